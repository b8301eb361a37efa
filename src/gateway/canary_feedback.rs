//! Callers' words on answers, on their way to what learns from them and to the recipes that try new models.

use stint_decide::learn::CanaryEvidence;
use stint_types::tenant::Tenant;
use stint_types::units::{Chance, RequestId};

use super::request::canary_policy;
use super::{CallerFeedback, FeedbackError, Gateway, NotLearned};

impl Gateway {
    /// Accepts a caller's feedback: see [`Learning::feedback`](super::Learning::feedback).
    ///
    /// # Errors
    /// As there.
    pub async fn feedback(
        &self,
        tenant: &Tenant,
        feedback: CallerFeedback,
    ) -> Result<Result<(), NotLearned>, FeedbackError> {
        let learned = self.learning().feedback(tenant, feedback).await?;
        // What is not to count for what is learned does not count against a model either.
        if learned.is_ok() && self.state.recipes.has_canary() {
            match feedback {
                CallerFeedback::Score(id, score) => self.judge_canary(tenant, id, score).await,
                CallerFeedback::Preferred { better, worse } => {
                    self.judge_canary(tenant, better, Chance::new(1.0)).await;
                    self.judge_canary(tenant, worse, Chance::ZERO).await;
                }
            }
        }
        Ok(learned)
    }

    /// Tells the route by whose rules an answer was made how right it is.
    async fn judge_canary(&self, tenant: &Tenant, id: RequestId, score: Chance) {
        // That the store cannot say now is no reason to refuse what it has taken already.
        let Ok(Some(record)) = self.learning().request_record(tenant, id).await else { return };
        // Behind the rules stands the way of choosing, after a slash.
        let rules = record.decision.policy.rsplit_once('/').map_or("", |(rules, _)| rules);
        let route = rules.strip_suffix(canary_policy("").as_str()).unwrap_or(rules);
        let Some(canary) = self.catalog().routes.get(route).and_then(|route| route.canary.as_ref()) else {
            return;
        };
        let of_canary = record.outcome.model == canary.model;
        let (metrics, evidence) = (&self.state.parts.metrics, CanaryEvidence::Judged(score));
        self.state.recipes.record_canary(route, of_canary, evidence, metrics);
    }
}
