//! A step on its way: what of its answer passes, what it took, and what is remembered of it.

use crate::agent::{self, Ending, Extension, Finality, LastStep, Reading, Trim};
use crate::catalog::{Offer, Spent, TaskClass};
use crate::chat::{EpisodeLimits, Finish, Role, ToolCounts};
use crate::execute::{Passing, Progress};
use crate::metrics::{Metrics, ToolDecision};
use crate::units::{AccountId, Count, EpisodeId, Money, Timestamp, Tokens};

use super::Agents;
use super::join::Joined;

/// A step of a run that departs.
pub(in crate::gateway) struct Stepping {
    pub(super) agents: Agents,
    pub(in crate::gateway) run: Joined,
    /// The limits that hold.
    pub(super) limits: EpisodeLimits,
    pub(in crate::gateway) step: agent::Step,
    /// The step by rules that are only watched.
    pub(super) watched: Option<agent::Step>,
    /// What it may spend, attempts after the first included, besides its tool calls: what its run keeps for an answer is not
    /// in it.
    pub(in crate::gateway) money_max: Option<Money>,
}

/// The tool calls of a step, as they are settled.
#[derive(Debug, Clone, Default)]
pub(in crate::gateway) struct Passed {
    pub(in crate::gateway) tools: ToolCounts,
    pub(in crate::gateway) cost: Money,
    /// How many did not pass.
    pub(in crate::gateway) dropped: Count,
}

impl Passed {
    /// Of an answer to a request that declares no tools and is no step of a run: whatever its model calls, it invents.
    pub(in crate::gateway) fn invented(progress: &[Progress], metrics: &Metrics) -> Passed {
        let all = progress.iter().map(Progress::called).fold(Count::ZERO, |sum, called| sum + called);
        metrics.tools.count(ToolDecision::Passed, all.0);
        Passed { tools: ToolCounts { all, ..ToolCounts::default() }, ..Passed::default() }
    }

    /// What is added to the line on what decided, where calls did not pass.
    pub(in crate::gateway) fn why(&self) -> Option<String> {
        match self.dropped {
            Count::ZERO => None,
            Count::ONE => Some("; 1 call trimmed, beyond what was set aside for it".to_owned()),
            dropped => Some(format!("; {dropped} calls trimmed, beyond what was set aside for them")),
        }
    }
}

impl Stepping {
    /// Holds one choice to what was set aside for it.
    pub(in crate::gateway) fn passing(&self) -> Passing {
        let trim = |step| Trim::new(step, self.agents.inner.tools.clone());
        Passing::new(trim(&self.step), self.watched.as_ref().map(trim))
    }

    /// The name of the run.
    pub(in crate::gateway) fn id(&self) -> &EpisodeId {
        &self.run.id
    }

    /// What was counted of the run's last prompt, where this model read it.
    pub(in crate::gateway) fn reading_before(&self, model: &str) -> Option<Reading> {
        self.run.last.as_ref().filter(|last| *last.model == *model)?.reading
    }

    /// What passed of the tool calls of these choices, and what that costs.
    pub(in crate::gateway) fn passed(&self, progress: &[Progress], metrics: &Metrics) -> Passed {
        let mut passed = Passed::default();
        let mut would_drop = Count::ZERO;
        for passing in progress.iter().filter_map(|choice| choice.passing.as_ref()) {
            let tools = passing.passed();
            passed.tools.all += tools.all;
            for (tool, count) in &tools.each {
                *passed.tools.each.entry(tool.clone()).or_default() += *count;
                passed.cost += self.agents.inner.tools.price(tool) * count.0;
            }
            passed.dropped += passing.dropped();
            would_drop += passing.would_drop();
        }
        let withheld = u64::try_from(self.step.withheld.len()).unwrap_or(u64::MAX);
        for (decision, count) in [
            (ToolDecision::Passed, passed.tools.all.0),
            (ToolDecision::Trimmed, passed.dropped.0),
            (ToolDecision::Withheld, withheld),
            (ToolDecision::Watched, would_drop.0),
        ] {
            metrics.tools.count(decision, count);
        }
        passed
    }

    /// Remembers the step by the histories that its answers end.
    pub(in crate::gateway) async fn keep(
        &self,
        account: &AccountId,
        (offer, progress): (&Offer, &[Progress]),
        finishes: &[Finish],
        reading: impl FnOnce(Tokens) -> Option<Reading>,
        now: Timestamp,
    ) {
        let passings = || progress.iter().filter_map(|choice| choice.passing.as_ref());
        let link = |passing: &Passing| self.run.chain.clone().after(&passing.message());
        let spent = progress.iter().map(Progress::spent);
        let context = spent.map(|spent: Spent| spent.prompt + spent.completion()).max().unwrap_or_default();
        let calls = passings().any(|passing| !passing.passed().is_zero());
        let ended = match () {
            () if calls || finishes.contains(&Finish::ToolCalls) => Ending::Open,
            () if self.step.is_final() => Ending::Capped,
            () => Ending::Answered,
        };
        if ended != Ending::Open {
            let limit = self.step.finality.map_or("none", Finality::word);
            self.agents.inner.metrics.agents.ended.with_label_values(&[limit]).inc();
        }
        let told = progress.iter().filter_map(|choice| choice.phases.prompt_told()).max();
        let last = LastStep {
            model: offer.model.clone(),
            class: TaskClass::Agentic,
            context,
            reading: told.and_then(reading),
            ended,
            route_turns: self.step.route_turns,
        };
        let step = Extension {
            account: account.clone(),
            id: self.run.id.clone(),
            from: self.run.from,
            to: passings().map(link).collect(),
            is_first: self.run.is_first,
            last,
            at: now,
        };
        debug_assert!(passings().all(|passing| passing.message().role == Role::Assistant));
        self.agents.keep(step).await;
    }
}
