//! The phase machine: pieces in, steps out. It reads no clock and does no I/O. The driver feeds it.
//!
//! `Waiting → Thinking(t) → [closed | stopped | cut → hand-off] → Solution(s) → Done`
//!
//! A thought ends in one of three ways: the model closes it, the upstream stops it, or the machine cuts it. The budgets t
//! and s are separate, and what is left of t is returned, not spent (Elastic Reasoning, arXiv 2505.05315).
//!
//! This file has the machine's state and the queries on it. Its methods are in the files beside it, each of which calls
//! only those before it: `visible_thought` (what may be done about a thought), `thinking` (its end), `answer` (what of the
//! answer shows), `endings` (the end of the choice), `parts` (the calls it is made of), `overrun`, `drain` and `continuation`
//! (calls that break their limit, that write on, or that continue an answer), `late_thought` (thoughts behind the answer's first
//! word), `transitions` (a step for each piece).

mod answer;
mod continuation;
mod continuation_state;
mod drain;
mod endings;
mod late_thought;
mod limit_enforcer;
mod overrun;
mod parts;
mod repeat_filter;
mod step;
mod terms;
#[cfg(test)]
mod tests;
mod thinking;
mod transitions;
mod visible_thought;

use std::collections::BTreeMap;

use serde_json::Value;

use stint_backend::{BehaviorObservation, OutputStats, Piece, TargetBehavior, Thought};
use stint_types::catalog::{ChoiceUsage, EnforcementClass, ThinkingStopReason};
use stint_types::units::Tokens;

use super::leak::LeakCounter;
use super::logprobs::LogprobBuffer;
use super::stop_filter::StopFilter;
use super::usage_account::UsageAccount;
use continuation_state::ContinuationState;
use limit_enforcer::LimitEnforcer;
use repeat_filter::RepeatFilter;

pub use step::ChoiceStep;
pub use terms::{ChoiceTerms, WholeAnswer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceState {
    /// Nothing was called for.
    Waiting,
    /// The thought runs.
    Thinking,
    /// The thought is closed, the answer has not begun.
    Closed,
    /// The answer runs.
    Solution,
    /// The answer is over for the caller; what the upstream still writes is counted.
    Draining,
    /// The choice is over.
    Done,
}

/// What a thought left to its answer, where one limit holds both.
#[derive(Debug, Clone, Copy, Default)]
struct CarriedThinking {
    rest: Tokens,
    /// What was kept for a hand-off.
    kept: Tokens,
    /// What had been thought by then.
    used: Tokens,
}

/// One choice's way from the prompt to the end of its answer, and the account of what it took.
#[derive(Debug, Clone)]
pub struct ChoiceStateMachine {
    terms: ChoiceTerms,
    /// How the running part holds its budgets.
    class: EnforcementClass,
    state: ChoiceState,
    account: UsageAccount,
    thought: Thought,
    stop_filter: StopFilter,
    /// The answer so far, where a limit may break it off that another call can lift.
    answer_so_far: String,
    continuation: ContinuationState,
    carried: CarriedThinking,
    leaks: LeakCounter,
    logprobs: LogprobBuffer,
    /// True while the running part is to come in one piece.
    is_whole: bool,
    /// True while the running part was asked for a thought, so that its limit is the thought's.
    thinks: bool,
    tool_calls: bool,
    /// The arguments of each call so far.
    arguments: BTreeMap<u32, String>,
    /// Something of the answer came, if only blank.
    has_answered: bool,
    /// A picture or a sound came.
    has_media: bool,
    rescued: bool,
    overran: bool,
    enforcer: LimitEnforcer,
    /// True once a thought has shown that was to be hidden.
    is_thought_visible: bool,
    /// True if a tag of thinking came that was not counted: thoughts come mixed into the answer.
    has_stray_tags: bool,
    /// Set while the answer is continued: its upstream may begin it again instead.
    repeat_filter: Option<RepeatFilter>,
    /// The stop text that ended the answer, if the upstream reports it.
    stopped_by: Option<Box<str>>,
}

impl ChoiceStateMachine {
    /// A choice that has not begun.
    pub fn new(terms: ChoiceTerms) -> ChoiceStateMachine {
        ChoiceStateMachine {
            class: terms.class,
            state: ChoiceState::Waiting,
            account: UsageAccount::new(terms.prompt, terms.overhead, terms.cache_ttl),
            thought: Thought::default(),
            stop_filter: StopFilter::new(&terms.stop, terms.kind),
            answer_so_far: String::new(),
            continuation: ContinuationState::default(),
            carried: CarriedThinking::default(),
            leaks: LeakCounter::default(),
            logprobs: LogprobBuffer::default(),
            is_whole: false,
            thinks: false,
            tool_calls: false,
            arguments: BTreeMap::new(),
            has_answered: false,
            has_media: false,
            rescued: false,
            overran: false,
            enforcer: LimitEnforcer::default(),
            is_thought_visible: false,
            has_stray_tags: false,
            repeat_filter: None,
            stopped_by: None,
            terms,
        }
    }

    /// A second try at a choice whose first came out empty; there is no third.
    pub fn retry(terms: ChoiceTerms) -> ChoiceStateMachine {
        ChoiceStateMachine { rescued: true, ..ChoiceStateMachine::new(terms) }
    }

    /// How the part that was called for last holds its budgets.
    pub fn class(&self) -> EnforcementClass {
        self.class
    }

    /// True if an upstream that needs no limit is sent one all the same.
    pub fn tells_limit(&self) -> bool {
        self.terms.tells_limit
    }

    /// True if the part that was called for last may think unseen.
    pub fn is_hidden(&self) -> bool {
        self.account.is_hidden()
    }

    /// True if the part that was called for last is to come in one piece.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// The caller's word for how hard to think, while the thought is asked for.
    pub fn effort_word(&self) -> Option<String> {
        self.terms.effort.clone().filter(|_| self.class != EnforcementClass::Effort && self.thinks)
    }

    /// The word for the least effort, where a call that asks for no thought has no other way to say so.
    pub fn effort_least(&self) -> Option<&str> {
        self.terms.effort_least.as_deref().filter(|_| self.terms.class == EnforcementClass::Effort)
    }

    /// True while the thought runs.
    pub fn is_thinking(&self) -> bool {
        self.state == ChoiceState::Thinking
    }

    /// The part that was called for was refused before a model saw it: it took nothing.
    pub fn mark_refused(&mut self) {
        self.account.discard_running();
    }

    /// Takes over what is known of the target that is asked.
    pub fn set_behavior(&mut self, behavior: TargetBehavior) {
        self.enforcer.behavior = behavior;
    }

    /// What its calls have shown of the target since this was last asked.
    pub fn take_observations(&mut self) -> Vec<BehaviorObservation> {
        self.enforcer.take_observations()
    }

    /// The log probabilities of this text's tokens, if they are reported.
    pub fn logprobs_of(&mut self, shown: &str) -> Vec<Value> {
        self.logprobs.take_for(shown)
    }

    /// How many tokens the backend reported for the prompt, where it did and no second try had another one.
    pub fn prompt_reported(&self) -> Option<Tokens> {
        self.account.prompt_reported().filter(|_| !self.rescued)
    }

    /// The same, and the most that it was taken to have.
    pub fn prompt_read(&self) -> (Option<Tokens>, Tokens) {
        (self.prompt_reported(), self.terms.prompt)
    }

    /// True once an empty answer was tried again.
    pub fn was_rescued(&self) -> bool {
        self.rescued
    }

    /// What the choice has taken so far, the running part included; ask at any moment.
    pub fn spent(&self) -> ChoiceUsage {
        self.spent_within(None)
    }

    /// The same, where the running part can have written so much unseen and no more.
    pub fn spent_within(&self, unseen_max: Option<Tokens>) -> ChoiceUsage {
        let spent = self.account.spent_within(unseen_max);
        let thinking_ended = match spent.thinking_ended {
            // It is broken off where it stands.
            ThinkingStopReason::None if spent.thinking > Tokens::ZERO => {
                if self.has_begun_answer() {
                    ThinkingStopReason::Closed
                } else {
                    ThinkingStopReason::Cut
                }
            }
            ended => ended,
        };
        ChoiceUsage { leaks: self.leaks.count(), overran: self.overran, thinking_ended, ..spent }
    }

    /// The running part is about to be broken off, and can have written so much unseen and no more.
    pub fn set_unseen_max(&mut self, most: Tokens) {
        self.account.set_unseen_max(Some(most));
    }

    /// How its target writes, as far as that is known.
    pub fn set_output_stats(&mut self, stats: OutputStats) {
        self.account.set_output_stats(stats);
    }

    /// Everything written until now, shown or not.
    pub fn written(&self) -> Tokens {
        self.account.written()
    }

    /// How many tokens a piece has, estimated where nobody counted them.
    pub fn estimate_tokens(&self, piece: &Piece) -> Tokens {
        match piece {
            Piece::Thought { text, tokens, .. } | Piece::Answer { text, tokens } => match *tokens {
                Tokens::ZERO => self.account.estimate_tokens(text),
                counted => counted,
            },
            Piece::ToolCall(delta) => self.account.estimate_tokens(&delta.arguments),
            Piece::Tag { tokens, .. } => *tokens,
            Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::Remark(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Note(_)
            | Piece::Usage(_)
            | Piece::End(_) => Tokens::ZERO,
        }
    }

    /// True if something of an answer came, be it text or a call.
    fn has_begun_answer(&self) -> bool {
        !self.stop_filter.is_empty() || self.tool_calls || self.has_media
    }
}
