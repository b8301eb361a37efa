//! A step that is running: filters its answer, counts what it took, and records it in the episode.

use std::sync::OnceLock;
use std::time::Duration;

use crate::execute::{ChoiceProgress, ToolCallFilter};
use stint_ledger::Ledger;
use stint_sessions::agent::{
    self, AddedWords, Addition, AnsweredStep, BrokenOffStep, CountedPrompt, EpisodeEnding, EpisodeOwner,
    Finality, HistoryHash, LastStep, ToolCallTrimmer,
};
use stint_types::catalog::{ChoiceUsage, Offer, TaskClass};
use stint_types::chat::{CommentaryPlace, EpisodeLimits, FinishReason, Role, ToolCounts};
use stint_types::metrics::{Metrics, ToolDecision};
use stint_types::units::{AccountId, Count, EpisodeId, Money, Timestamp, Tokens};

use super::join::JoinedEpisode;
use super::manager::{EpisodeManager, KEEP_PATIENCE, Written, wait_for};
use super::snapshot::EpisodeSnapshot;

/// So many additions of an episode are kept; beyond that, what was not added is no longer noted.
const ADDITIONS_MAX: usize = 1024;

/// What is said where nothing is left of an answer.
const EMPTIED: &str = "; nothing is left of the answer: the model only called tools that it may not call, also when it was asked \
                       for an answer without calls";

/// A step of an episode that is reserved.
pub(crate) struct RunningStep {
    pub(crate) manager: EpisodeManager,
    pub(crate) episode: JoinedEpisode,
    /// The limits that hold.
    pub(crate) limits: EpisodeLimits,
    pub(crate) plan: agent::StepPlan,
    /// The step by rules that are only watched.
    pub(crate) observed_step: Option<agent::StepPlan>,
    /// What it may spend, attempts after the first included, besides its tool calls: what its episode keeps for an answer is not
    /// in it.
    pub(crate) money_max: Option<Money>,
    /// The write of what is added to its prompt, once that was begun. Whatever else is written of the step comes after it.
    pub(crate) beginning: OnceLock<Written>,
}

/// The answers of a step that came to their end.
pub(crate) struct StepAnswers<'a> {
    pub(crate) progress: &'a [ChoiceProgress],
    pub(crate) finishes: &'a [FinishReason],
    /// Whether their caller is still there.
    pub(crate) is_heard: bool,
}

/// The tool calls of a step, as they are settled.
#[derive(Debug, Clone, Default)]
pub(crate) struct PassedToolCalls {
    pub(crate) tools: ToolCounts,
    pub(crate) cost: Money,
    /// How many did not pass.
    pub(crate) dropped: Count,
    /// Whether an answer was nothing but such calls, to the end.
    pub(crate) is_emptied: bool,
}

impl PassedToolCalls {
    /// Of an answer to a request that declares no tools and is no step of an episode: whatever its model calls, it invents.
    pub(crate) fn of_undeclared(progress: &[ChoiceProgress], metrics: &Metrics) -> PassedToolCalls {
        let mut passed = PassedToolCalls::default();
        for choice in progress {
            let Some(filter) = &choice.tool_filter else {
                passed.tools.all += choice.shown_call_count();
                continue;
            };
            passed.tools.all += filter.passed().all;
            passed.dropped += filter.dropped();
            passed.is_emptied |= filter.is_emptied();
        }
        metrics.tools.count(ToolDecision::Passed, passed.tools.all.0);
        metrics.tools.count(ToolDecision::Trimmed, passed.dropped.0);
        passed
    }

    /// What is added to the line on what decided, where calls did not pass.
    pub(crate) fn why(&self) -> Option<String> {
        let trimmed = match self.dropped {
            Count::ZERO => return None,
            Count::ONE => "; 1 call trimmed, beyond what was set aside for it".to_owned(),
            dropped => format!("; {dropped} calls trimmed, beyond what was set aside for them"),
        };
        Some(if self.is_emptied { trimmed + EMPTIED } else { trimmed })
    }
}

impl RunningStep {
    /// Holds one choice to what was set aside for it. Its caller has what the model says on its way in that place.
    pub(crate) fn passing(&self, commentary: CommentaryPlace) -> ToolCallFilter {
        let trim = |step| ToolCallTrimmer::new(step, self.manager.inner.tools.clone());
        ToolCallFilter::new(trim(&self.plan), self.observed_step.as_ref().map(trim), commentary)
    }

    /// The name of the episode.
    pub(crate) fn id(&self) -> &EpisodeId {
        &self.episode.id
    }

    /// What was counted of the episode's last prompt, where this model read it.
    pub(crate) fn previous_counted_prompt(&self, model: &str) -> Option<CountedPrompt> {
        self.episode.last.as_ref().filter(|last| *last.model == *model)?.reading
    }

    /// What passed of the tool calls of these choices, and what that costs.
    pub(crate) fn passed(&self, progress: &[ChoiceProgress], metrics: &Metrics) -> PassedToolCalls {
        let mut passed = PassedToolCalls::default();
        let mut would_drop = Count::ZERO;
        for filter in progress.iter().filter_map(|choice| choice.tool_filter.as_ref()) {
            let tools = filter.passed();
            passed.tools.all += tools.all;
            for (tool, count) in &tools.each {
                *passed.tools.each.entry(tool.clone()).or_default() += *count;
                passed.cost += self.manager.inner.tools.price(tool) * count.0;
            }
            passed.dropped += filter.dropped();
            passed.is_emptied |= filter.is_emptied();
            would_drop += filter.would_drop();
        }
        let withheld = u64::try_from(self.plan.withheld.len()).unwrap_or(u64::MAX);
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

    /// How the episode stands after this step.
    pub(crate) fn snapshot(
        &self,
        ledger: &Ledger,
        account: &AccountId,
        passed: &PassedToolCalls,
    ) -> EpisodeSnapshot {
        let standing = ledger.episode(account, &self.episode.id);
        EpisodeSnapshot {
            passed: passed.tools.all,
            trimmed: passed.dropped,
            withheld: self.plan.withheld.clone(),
            finality: self.plan.finality,
            route_turns: self.plan.route_turns,
            ..EpisodeSnapshot::of(self.episode.id.clone(), &self.limits, &standing)
        }
    }

    /// Begins to remember what is added to its prompt.
    pub(crate) fn record_beginning(&self, account: &AccountId, now: Timestamp) {
        if self.begun().is_some() {
            let step = BrokenOffStep { is_running: true, ..self.broken_off(account, now) };
            let written = self.manager.store_beginning(step, self.episode.is_first);
            written.map(|written| self.beginning.set(written));
        }
    }

    /// Waits for that, no longer than so: from the first word of the answer on its caller may go on, by another gateway too, and
    /// this one may end.
    pub(crate) async fn wait_for_beginning(&self, most: Duration) {
        wait_for(self.beginning.get().cloned(), most.min(KEEP_PATIENCE)).await;
    }

    /// Takes back what was remembered of its beginning: nobody heard a word of it.
    pub(crate) async fn take_back(&self, account: &AccountId, now: Timestamp) {
        wait_for(self.begin_take_back(account, now), KEEP_PATIENCE).await;
    }

    /// The same, without waiting for it. Where an earlier reply to the same words broke off, the link is that one's too, and stays.
    pub(crate) fn begin_take_back(&self, account: &AccountId, now: Timestamp) -> Option<Written> {
        let (beginning, begun) = (self.beginning.get()?.clone(), self.begun()?);
        let is_other = |known: &Addition| known.before == begun.before && known.after.is_none();
        let step = self.broken_off(account, now);
        if self.episode.added.all.iter().any(is_other) {
            return self.manager.store_broken_off(step, Some(beginning));
        }
        let step = BrokenOffStep { added: vec![begun], ..step };
        self.manager.take_back(step, self.episode.is_first, beginning)
    }

    /// Remembers the step by the histories that its answers end. A caller who has left goes on from what it heard of them, if it
    /// goes on.
    pub(crate) async fn record(
        &self,
        account: &AccountId,
        offer: &Offer,
        StepAnswers { progress, finishes, is_heard }: StepAnswers<'_>,
        reading: impl FnOnce(Tokens) -> Option<CountedPrompt>,
        now: Timestamp,
    ) {
        let filters = || progress.iter().filter_map(|choice| choice.tool_filter.as_ref());
        let link = |filter: &ToolCallFilter| self.episode.chain.clone().hash_after(&filter.message());
        let context = progress.iter().map(|choice| cached_context(&choice.spent())).max().unwrap_or_default();
        let calls = filters().any(|filter| !filter.passed().is_zero());
        let ended = self.ending(calls || finishes.contains(&FinishReason::ToolCalls));
        if ended != EpisodeEnding::Open {
            let limit = self.plan.finality.map_or("none", Finality::as_str);
            self.manager.inner.metrics.episodes.ended.with_label_values(&[limit]).inc();
        }
        let reported = progress.iter().filter_map(|choice| choice.phases.prompt_reported()).max();
        let last = LastStep {
            model: offer.model.clone(),
            class: TaskClass::Agentic,
            context,
            reading: reported.and_then(reading),
            ended,
            route_turns: self.plan.route_turns,
        };
        let to: Vec<HistoryHash> = filters().map(link).collect();
        if !is_heard && self.begun().is_some() {
            self.record_broken_off(account, now).await;
        }
        let step = AnsweredStep {
            owner: EpisodeOwner { account: account.clone(), key: self.episode.key },
            id: self.episode.id.clone(),
            from: self.episode.from,
            added: self.added(to.iter().copied().map(Some)),
            begun: self.begun().filter(|_| is_heard),
            to,
            is_first: self.episode.is_first,
            last,
            at: now,
        };
        debug_assert!(filters().all(|filter| filter.message().role == Role::Assistant));
        let written = self.manager.store_step(step, self.beginning.get().cloned());
        wait_for(written, KEEP_PATIENCE).await;
    }

    /// How its answer leaves the run, by whether it calls tools.
    fn ending(&self, calls_tools: bool) -> EpisodeEnding {
        if calls_tools {
            EpisodeEnding::Open
        } else if self.plan.is_final() {
            EpisodeEnding::Capped
        } else {
            EpisodeEnding::Answered
        }
    }

    /// Remembers a step whose answer broke off: its caller may go on from what there is of it.
    pub(crate) async fn record_broken_off(&self, account: &AccountId, now: Timestamp) {
        let beginning = self.beginning.get().cloned();
        let written = self.manager.store_broken_off(self.broken_off(account, now), beginning);
        wait_for(written, KEEP_PATIENCE).await;
    }

    /// What there is of it while its answer has not come to its end.
    fn broken_off(&self, account: &AccountId, at: Timestamp) -> BrokenOffStep {
        BrokenOffStep {
            owner: EpisodeOwner { account: account.clone(), key: self.episode.key },
            id: self.episode.id.clone(),
            link: self.episode.chain.clone().hash().broken_off(),
            added: self.added([None]),
            is_running: false,
            at,
        }
    }

    /// What was added to the prompt of these replies, beside what the episode does not have yet of its conversation.
    fn added(&self, replies: impl IntoIterator<Item = Option<HistoryHash>>) -> Vec<Addition> {
        let carried = self.episode.added.carried.iter().cloned();
        let Some(begun) = self.begun() else { return carried.collect() };
        let here = replies.into_iter().map(|after| Addition { after, ..begun.clone() });
        carried.chain(here).collect()
    }

    /// What is added to its prompt, whatever the reply.
    fn begun(&self) -> Option<Addition> {
        let known = &self.episode.added;
        // Most steps add nothing, and take no hash for it.
        if self.plan.addition().is_none() && known.all.is_empty() {
            return None;
        }
        let before = self.episode.chain.clone().hash();
        let words = match self.plan.addition() {
            Some(words) => words.clone(),
            // Another reply to the same words may have been told something: this one was not. And what was carried here is found by
            // this place, where no reply came to its end.
            None if (known.all.is_known(&before) || !known.carried.is_empty())
                && known.all.len() < ADDITIONS_MAX =>
            {
                let last = known.placed.last().map(|last| last.words.withheld.clone());
                AddedWords { withheld: last.unwrap_or_default(), ..AddedWords::default() }
            }
            None => return None,
        };
        Some(Addition { before, after: None, words })
    }
}

/// How much of a conversation its provider has cached after these calls. One that says what it put there says what is there.
fn cached_context(spent: &ChoiceUsage) -> Tokens {
    match spent.calls.last() {
        Some(call) if call.cache_write > Tokens::ZERO => call.cache_read + call.cache_write,
        _ => spent.prompt + spent.completion(),
    }
}
