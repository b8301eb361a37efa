//! Learning and pacing, as the gateway does them, in virtual time.

use stint_decide::learn::{BeliefStore, BudgetPacer, OutcomeSample, PaceSettings, RemainingBudget, Settings};
use stint_ledger::LimitStatus;
use stint_types::catalog::Demand;
use stint_types::units::{Amount, Money, Timestamp};

/// What one policy has learned, and how it keeps to each tenant's budget.
#[derive(Debug)]
pub(super) struct SimulatedLearner {
    beliefs: BeliefStore,
    paces: Vec<BudgetPacer>,
    settings: PaceSettings,
}

impl SimulatedLearner {
    /// Nothing learned yet.
    pub(super) fn new(tenants: usize) -> SimulatedLearner {
        SimulatedLearner {
            beliefs: BeliefStore::new(Settings::default()),
            paces: vec![BudgetPacer::default(); tenants],
            settings: PaceSettings::default(),
        }
    }

    /// Turns predictions into what is believed.
    pub(super) fn adjust(&self, demand: &mut Demand) {
        self.beliefs.adjust(demand);
    }

    /// What a tenant's dollar counts.
    pub(super) fn price(&self, tenant: usize) -> f64 {
        self.paces[tenant].price()
    }

    /// Takes in an outcome.
    pub(super) fn observe(&mut self, sample: &OutcomeSample) {
        self.beliefs.observe(sample);
    }

    /// A tenant has spent something; these are its limits.
    pub(super) fn settle(&mut self, tenant: usize, now: Timestamp, spent: Money, lines: &[LimitStatus]) {
        let limits = lines.iter().filter_map(|line| match (line.left, line.resets_at) {
            (Amount::Money(left), Some(end)) => {
                let length = i64::try_from(line.limit.window.length().as_millis()).unwrap_or(i64::MAX);
                Some(RemainingBudget { start: Timestamp(end.0.saturating_sub(length)), end, left })
            }
            _ => None,
        });
        let rate = |budget: &RemainingBudget| (budget.left.as_dollars(), (budget.end.0 - now.0).max(1));
        let tightest = limits.min_by(|one, other| {
            let ((a, s), (b, t)) = (rate(one), rate(other));
            (a * span(t)).total_cmp(&(b * span(s)))
        });
        if let Some(budget) = tightest {
            // Nobody waits here between admission and settlement: what is expected is what was spent.
            self.paces[tenant].record_expected(now, spent, &budget, &self.settings);
            self.paces[tenant].settle(spent, spent, &self.settings);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a span of time, for statistics")]
fn span(milliseconds: i64) -> f64 {
    milliseconds as f64
}
