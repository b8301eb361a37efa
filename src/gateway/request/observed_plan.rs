//! Plans that are only observed, not enforced: what they would have done, and what they would have saved.

use std::sync::Arc;

use stint_types::catalog::{ChoiceUsage, Offer};
use stint_types::metrics::Metrics;
use stint_types::units::{Money, RequestId, Tokens};

/// What a plan that is only watched would have done.
#[derive(Debug, Clone)]
pub(crate) struct ObservedPlan {
    model: Arc<str>,
    thinking: Tokens,
    cost: Money,
}

/// The log mentions one in so many observed requests.
const EACH: u64 = 1000;

impl ObservedPlan {
    /// What a watched plan chose.
    pub(crate) fn of(offer: &Offer) -> ObservedPlan {
        ObservedPlan { model: offer.model.clone(), thinking: offer.thinking, cost: offer.cost }
    }

    /// Counts what would have been cut and saved. Of another model's thought nothing is known, so only the expected cost is
    /// held against what was paid.
    pub(crate) fn record_outcome(
        &self,
        metrics: &Metrics,
        id: RequestId,
        route: &str,
        ran: &ActualUsage<'_>,
    ) {
        let same = self.model == *ran.model;
        let used = |spent: &ChoiceUsage| spent.thinking;
        let saved = |spent: &ChoiceUsage| used(spent).saturating_sub(self.thinking);
        let cut = ran.spent.iter().filter(|spent| same && saved(spent) > Tokens::ZERO).count();
        let tokens: Tokens = ran.spent.iter().filter(|_| same).map(saved).sum();
        let series = &metrics.rollout;
        series.requests.with_label_values(&[route, if same { "same_model" } else { "other_model" }]).inc();
        series.cuts.with_label_values(&[route]).inc_by(cut as u64);
        series.tokens.with_label_values(&[route]).inc_by(tokens.0);
        let dollars = ran.cost.as_dollars() - self.cost.as_dollars();
        series.dollars.with_label_values(&[route]).add(dollars);
        ObservedPlan::sum_up(metrics, route);
        tracing::debug!(
            request = %id, route, model = %ran.model, would = %self.model, would_think = %self.thinking,
            thought = %ran.spent.iter().map(used).sum::<Tokens>(), would_save_tokens = %tokens, would_save_usd = dollars,
            "observed: nothing was changed"
        );
    }

    /// Logs the first and every thousandth observed request; each single one is logged at `debug`. Two that end at
    /// the same moment may pass over a thousandth.
    fn sum_up(metrics: &Metrics, route: &str) {
        let series = &metrics.rollout;
        let [same, other] = ["same_model", "other_model"]
            .map(|would| series.requests.with_label_values(&[route, would]).get());
        let requests = same + other;
        if requests == 1 || requests.is_multiple_of(EACH) {
            tracing::info!(
                route,
                requests,
                other_model = other,
                would_cut = series.cuts.with_label_values(&[route]).get(),
                would_save_tokens = series.tokens.with_label_values(&[route]).get(),
                would_save_usd = series.dollars.with_label_values(&[route]).get(),
                "observed so far, and nothing changed"
            );
        }
    }
}

/// What really ran.
pub(crate) struct ActualUsage<'a> {
    pub(crate) model: &'a Arc<str>,
    pub(crate) spent: &'a [ChoiceUsage],
    pub(crate) cost: Money,
}
