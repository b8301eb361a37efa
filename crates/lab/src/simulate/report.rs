//! What a simulation says: for every policy its quality, cost, regret and pace; as text, and as plain data.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use serde::Serialize;

use stint_types::units::Tokens;

use super::policy::SimulationPolicy;
use super::setup::SimulationSetup;
use super::tally::{InvariantViolations, PolicyTally, TimeSlice, WindowSpend};

/// What came of every policy on one world.
#[derive(Debug, Clone, Serialize)]
pub struct SimulationReport {
    /// What the scenario is called.
    pub scenario: String,
    /// What all luck followed from.
    pub seed: u64,
    /// How many requests arrived.
    pub requests: u64,
    /// How many seconds of virtual time that took.
    pub seconds: f64,
    /// The models, in the order in which shares are given.
    pub models: Vec<Arc<str>>,
    /// The tenants, in the order in which spending is given.
    pub tenants: Vec<Arc<str>>,
    /// The dollars a second that each tenant's tightest limit allows, where it has one.
    pub paces: Vec<Option<f64>>,
    /// What each policy came to.
    pub policies: Vec<PolicyResult>,
}

/// What one policy came to.
#[derive(Debug, Clone, Serialize)]
pub struct PolicyResult {
    /// Which.
    pub policy: SimulationPolicy,
    /// Requests that were answered.
    pub served: u64,
    /// Requests that were refused, by the word for it.
    pub refused: BTreeMap<String, u64>,
    /// Requests whose every attempt failed.
    pub failed: u64,
    /// Attempts beyond the first.
    pub retried: u64,
    /// The chance of a right answer, on average over all that arrived; none for what was not answered.
    pub quality: f64,
    /// Answers that were right, as a share of all that arrived.
    pub right: f64,
    /// Dollars.
    pub cost_usd: f64,
    /// Seconds from arrival to answer, on average.
    pub latency: f64,
    /// Seconds of that in a queue, on average.
    pub queue: f64,
    /// Thinking tokens an answer, on average.
    pub thinking: f64,
    /// Thoughts that were cut, as a share of the answers.
    pub cut: f64,
    /// What all answers were worth beyond what they took, in dollars.
    pub value_usd: f64,
    /// By how much that is less than the oracle's; none without an oracle.
    pub regret_usd: Option<f64>,
    /// How far windows with a limit on money ended above their pace at most, as a share of it; below 0 where none did.
    pub overspent: Option<f64>,
    /// How far they ended from it on average, in either direction.
    pub deviation: Option<f64>,
    /// Which share each model served.
    pub shares: Vec<f64>,
    /// What did not hold that always must.
    pub faults: InvariantViolations,
    /// The course of it.
    pub course: PolicyTimeline,
}

/// How it went, in even slices of time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PolicyTimeline {
    /// Regret added up, in dollars.
    pub regret: Vec<f64>,
    /// Value added up, in dollars.
    pub value: Vec<f64>,
    /// Seconds in a queue, on average.
    pub queue: Vec<f64>,
    /// By model, its share.
    pub shares: Vec<Vec<f64>>,
    /// By tenant, dollars added up.
    pub spent: Vec<Vec<f64>>,
}

impl PolicyResult {
    /// One policy's sums as means and shares.
    pub(super) fn of(policy: SimulationPolicy, tally: &PolicyTally) -> PolicyResult {
        let arrived = Tokens(tally.arrived).as_f64().max(1.0);
        let served = Tokens(tally.served).as_f64().max(1.0);
        let count = |count: u64| Tokens(count).as_f64();
        PolicyResult {
            policy,
            served: tally.served,
            refused: tally.refused.clone(),
            failed: tally.failed,
            retried: tally.retried,
            quality: tally.chance / arrived,
            right: count(tally.right) / arrived,
            cost_usd: tally.dollars,
            latency: tally.seconds / served,
            queue: tally.waited / served,
            thinking: count(tally.thinking) / served,
            cut: count(tally.cut) / served,
            value_usd: tally.value,
            regret_usd: None,
            overspent: tally.window_spends.iter().map(WindowSpend::deviation).max_by(f64::total_cmp),
            deviation: mean(tally.window_spends.iter().map(|window| window.deviation().abs())),
            shares: tally.by_model.iter().map(|&one| count(one) / served).collect(),
            faults: tally.faults,
            course: PolicyTimeline::of(&tally.slices),
        }
    }

    /// Measures it by the oracle's.
    pub(super) fn compare_with(&mut self, oracle: &PolicyResult) {
        self.regret_usd = Some(oracle.value_usd - self.value_usd);
        let pairs = oracle.course.value.iter().zip(&self.course.value);
        self.course.regret = pairs.map(|(best, own)| best - own).collect();
    }

    fn refusals(&self) -> u64 {
        self.refused.values().sum()
    }
}

impl PolicyTimeline {
    fn of(slices: &[TimeSlice]) -> PolicyTimeline {
        let models = slices.first().map_or(0, |slice| slice.by_model.len());
        let tenants = slices.first().map_or(0, |slice| slice.spent.len());
        let served = |slice: &TimeSlice| Tokens(slice.served).as_f64().max(1.0);
        let share =
            |model: usize| move |slice: &TimeSlice| Tokens(slice.by_model[model]).as_f64() / served(slice);
        PolicyTimeline {
            regret: Vec::new(),
            value: cumulative(slices.iter().map(|slice| slice.value)),
            queue: slices.iter().map(|slice| slice.waited / served(slice)).collect(),
            shares: (0..models).map(|model| slices.iter().map(share(model)).collect()).collect(),
            spent: (0..tenants).map(|one| cumulative(slices.iter().map(|slice| slice.spent[one]))).collect(),
        }
    }
}

impl SimulationReport {
    /// Puts the policies beside one another.
    pub(super) fn of(
        setup: &SimulationSetup,
        tallies: &[(SimulationPolicy, PolicyTally)],
    ) -> SimulationReport {
        let mut policies: Vec<PolicyResult> =
            tallies.iter().map(|(policy, tally)| PolicyResult::of(*policy, tally)).collect();
        if let Some(oracle) =
            policies.iter().find(|result| result.policy == SimulationPolicy::Oracle).cloned()
        {
            policies.iter_mut().for_each(|result| result.compare_with(&oracle));
        }
        SimulationReport {
            scenario: setup.scenario.name.clone(),
            seed: setup.scenario.seed,
            requests: setup.scenario.requests,
            seconds: setup.length.as_secs_f64(),
            models: setup.models.iter().map(|model| model.name.clone()).collect(),
            tenants: setup.scenario.tenants.iter().map(|tenant| tenant.name.clone()).collect(),
            paces: setup.budget_rates(),
            policies,
        }
    }

    /// What a policy came to, where it took part.
    pub fn result(&self, policy: SimulationPolicy) -> Option<&PolicyResult> {
        self.policies.iter().find(|result| result.policy == policy)
    }

    /// A table for people.
    pub fn table(&self) -> String {
        let hours = self.seconds / 3600.0;
        let SimulationReport { scenario, seed, requests, .. } = self;
        let mut text =
            format!("{scenario}: {requests} requests in {hours:.1} virtual hours, seed {seed}\n\n");
        text.push_str(
            "policy     quality   cost $    value $   regret $  latency s  queue s  thinking   cut  refused  failed  overspent  deviation\n",
        );
        for result in &self.policies {
            let _ = writeln!(text, "{}", line(result));
        }
        if self.policies.iter().any(|result| result.overspent.is_some()) {
            text.push_str(
                "\noverspent: how far above its limit's pace the worst window ended, below 0 where all kept to it; deviation: \
                 how far windows\nended from their pace on average, in either direction\n",
            );
        }
        text.push_str("\nshare     ");
        self.models.iter().for_each(|model| {
            let _ = write!(text, " {model:>9}");
        });
        for result in &self.policies {
            let _ = write!(text, "\n{:10}", result.policy.as_str());
            for share in &result.shares {
                let _ = write!(text, " {:>7.1} %", 100.0 * share);
            }
        }
        text
    }
}

fn line(result: &PolicyResult) -> String {
    let share = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:+.1} %", 100.0 * share));
    let regret = result.regret_usd.map_or("-".to_owned(), |regret| format!("{regret:.2}"));
    format!(
        "{:10} {:>7.4} {:>8.2} {:>10.2} {:>10} {:>10.2} {:>8.2} {:>9.0} {:>5.2} {:>8} {:>7} {:>10} {:>10}",
        result.policy.as_str(),
        result.quality,
        result.cost_usd,
        result.value_usd,
        regret,
        result.latency,
        result.queue,
        result.thinking,
        result.cut,
        result.refusals(),
        result.failed,
        share(result.overspent),
        share(result.deviation),
    )
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    numbers.for_each(|number| (sum, count) = (sum + number, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

fn cumulative(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let add = |sum: &mut f64, number: f64| {
        *sum += number;
        Some(*sum)
    };
    numbers.scan(0.0, add).collect()
}
