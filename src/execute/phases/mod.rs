//! The phase machine: pieces in, steps out. It reads no clock and does no I/O.
//!
//! `Waiting → Thinking(t) → [closed | stopped | cut → hand-off] → Solution(s) → Done`
//!
//! Three ways a thought ends are three cases; t and s are separate, and what is left of t is returned, not
//! spent (Elastic Reasoning, arXiv 2505.05315, and design: elastic execution).

use std::collections::BTreeMap;

mod continuation;
mod drain;
mod endings;
mod limit_enforcer;
mod reclassify;
mod repeat_filter;
mod visible_thought;

use serde_json::Value;

use crate::backend::{GenerationPart, OutputStats, Piece, TagEdge, Thought, TokenUsage};
use crate::catalog::{ChoiceUsage, ContinuationLimit, EnforcementClass, LimitedBy, ThinkingStopReason};
use crate::chat::{CacheTtl, ChoiceEvent, CompletionKind, FinishReason};
use crate::units::Tokens;

use super::leak::LeakCounter;
use super::logprobs::LogprobBuffer;
use super::overrun_guard::with_tolerance;
use super::stop_filter::StopFilter;
use super::usage_account::{CountBias, PartEnd, UsageAccount};
use continuation::ContinuationState;
use limit_enforcer::LimitEnforcer;
use repeat_filter::RepeatFilter;

/// What one choice may take and how it is held.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceTerms {
    /// How the budgets are held.
    pub class: EnforcementClass,
    /// How an answer is asked for after a thought that was stopped from outside, where that can be.
    pub resume: Option<EnforcementClass>,
    /// The thinking budget t.
    pub thinking: Tokens,
    /// The most that the answer may take.
    pub solution: Tokens,
    /// True where the answer may take besides what its thought leaves: both stand under one limit.
    pub answer_takes_rest: bool,
    /// Who says so.
    pub solution_by: LimitedBy,
    /// Whether an upstream that needs no limit is told one.
    pub tells_limit: bool,
    /// What is set aside for tags, hand-off and end of text.
    pub overhead: Tokens,
    /// The effort word to send, for the class `effort`.
    pub effort: Option<String>,
    /// Where a thought is cut that shows, though its upstream was taken to hide it; nothing where nobody stated a limit. For
    /// the class `effort`.
    pub visible_max: Option<Tokens>,
    /// How far the answer may go in further calls, where money alone limits the first one.
    pub continuation: Option<ContinuationLimit>,
    /// True where an answer that came out empty may be tried again.
    pub rescue: bool,
    /// The word for the least effort, for that second try.
    pub effort_least: Option<String>,
    /// An upper bound of the prompt's tokens, until the backend says how many they are.
    pub prompt: Tokens,
    /// True where reading costs nothing, so that a thought may be read again whatever its length.
    pub has_free_input: bool,
    /// The longest that its caller wants any of the prompt kept in the provider's cache.
    pub cache_ttl: CacheTtl,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// What is wanted: a text that goes on keeps the blank that it goes on with.
    pub kind: CompletionKind,
}

/// What to do after a piece.
#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceStep {
    /// Nothing is to be shown.
    Continue,
    /// The caller sees this; more pieces follow.
    Show(ChoiceEvent),
    /// The caller sees this, if anything, and nothing more; what still comes goes to [`Phases::drain`].
    Drain(Option<ChoiceEvent>),
    /// This part is over: drop it and call for the next one.
    Call(GenerationPart),
    /// The caller sees this, if anything; this part is over, and the next one goes on with the answer.
    GoOn(Option<ChoiceEvent>, GenerationPart),
    /// The choice is over; the text that was held back, if any, is shown first.
    Finish(Option<ChoiceEvent>, FinishReason),
}

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
    /// The answer is over for the caller; the upstream is heard out.
    Draining,
    /// The choice is over.
    Done,
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
    rest: ContinuationState,
    leaks: LeakCounter,
    logprobs: LogprobBuffer,
    /// True while the running part was asked for a thought, so that its limit is the thought's.
    thinks: bool,
    tool_calls: bool,
    /// The arguments of each call so far.
    arguments: BTreeMap<u32, String>,
    /// Something of the answer came, if only blank.
    has_answered: bool,
    rescued: bool,
    overran: bool,
    enforcer: LimitEnforcer,
    /// True once a thought has shown that was to be hidden.
    is_thought_visible: bool,
    /// True where a tag of thinking came that was not counted: thoughts come mixed into the answer.
    has_stray_tags: bool,
    /// The answer is gone on with, and may be begun again instead.
    repeat_filter: Option<RepeatFilter>,
    /// The stop text that ended the answer, where the upstream says so.
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
            rest: ContinuationState::default(),
            leaks: LeakCounter::default(),
            logprobs: LogprobBuffer::default(),
            thinks: false,
            tool_calls: false,
            arguments: BTreeMap::new(),
            has_answered: false,
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

    /// The first part to call for.
    pub fn begin(&mut self) -> GenerationPart {
        let ChoiceTerms { thinking, solution, .. } = self.terms;
        let whole = thinking + solution + self.terms.overhead;
        self.account.begin(self.hidden_max(whole));
        let thinks = thinking > Tokens::ZERO || self.class == EnforcementClass::Effort;
        self.state = if thinks { ChoiceState::Thinking } else { ChoiceState::Solution };
        self.thinks = thinks;
        let part = match self.class {
            EnforcementClass::Inline | EnforcementClass::Native => {
                GenerationPart::Whole { thinking, solution }
            }
            EnforcementClass::Continue | EnforcementClass::Turn if thinks => {
                GenerationPart::Thought { thinking, solution }
            }
            EnforcementClass::Continue | EnforcementClass::Turn => {
                GenerationPart::after_thought(Thought::default(), solution)
            }
            EnforcementClass::Effort => {
                GenerationPart::Total { effort: self.terms.effort.clone(), tokens: whole }
            }
        };
        self.prepare_part(part)
    }

    /// All that the first call may write unseen, where its thought may be hidden: whoever hangs up meanwhile, the
    /// upstream bills it.
    fn hidden_max(&self, whole: Tokens) -> Option<Tokens> {
        let ChoiceTerms { class, thinking, rescue, .. } = self.terms;
        match class {
            EnforcementClass::Effort => (rescue && !self.enforcer.behavior.shows_thoughts).then_some(whole),
            EnforcementClass::Native => {
                let beyond = EnforcementClass::native_max(thinking).saturating_sub(thinking);
                (thinking > Tokens::ZERO).then_some(whole + beyond)
            }
            EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Turn => None,
        }
    }

    /// How the part that was called for last holds its budgets.
    pub fn class(&self) -> EnforcementClass {
        self.class
    }

    /// True where an upstream that needs no limit is told one all the same.
    pub fn tells_limit(&self) -> bool {
        self.terms.tells_limit
    }

    /// True where the part that was called for last may think unseen.
    pub fn is_hidden(&self) -> bool {
        self.account.is_hidden()
    }

    /// The part that was called for was refused before a model saw it: it took nothing.
    pub fn mark_refused(&mut self) {
        self.account.discard_running();
    }

    /// The chances of the tokens that this text is made of, where they are told.
    pub fn logprobs_of(&mut self, shown: &str) -> Vec<Value> {
        self.logprobs.take_for(shown)
    }

    /// Takes the next piece of the running part.
    pub fn on_piece(&mut self, piece: Piece) -> ChoiceStep {
        if self.is_overrun_by(&piece) {
            return self.on_overrun(piece);
        }
        match piece {
            Piece::Thought { text, tokens, ids } => return self.on_thought(text, tokens, &ids),
            Piece::Answer { text, tokens } => return self.on_answer(&text, tokens),
            Piece::End(ending) => return self.on_end(ending),
            Piece::Usage(usage) => return self.on_usage(usage),
            Piece::Tag { tokens, edge } => {
                self.account.add_overhead(tokens);
                self.has_stray_tags |= tokens == Tokens::ZERO;
                if edge == TagEdge::Start {
                    self.repeat_filter.iter_mut().for_each(RepeatFilter::distrust);
                }
                if edge == TagEdge::End {
                    self.end_thinking(ThinkingStopReason::Closed);
                }
            }
            Piece::HandOff { tokens } => {
                match self.class {
                    EnforcementClass::Continue | EnforcementClass::Turn => self.account.add_injected(tokens),
                    EnforcementClass::Inline | EnforcementClass::Native | EnforcementClass::Effort => {
                        self.account.add_overhead(tokens);
                    }
                }
                self.end_thinking(self.hand_off_reason());
                self.state = ChoiceState::Solution;
            }
            Piece::Summary(text) if text.is_empty() => {}
            Piece::Summary(text) => return ChoiceStep::Show(ChoiceEvent::Thought(text)),
            Piece::Signed(signed) => return ChoiceStep::Show(ChoiceEvent::Signed(signed)),
            Piece::StoppedBy(text) => self.stopped_by = Some(text),
            Piece::Unthought => return self.reclassify_thought(),
            Piece::Logprobs(entries) => self.logprobs.push(entries),
            Piece::ToolCall(delta) => {
                self.begin_answer();
                self.account.add_solution(&delta.arguments, Tokens::ZERO);
                self.tool_calls = true;
                self.arguments.entry(delta.index).or_default().push_str(&delta.arguments);
                if self.is_answer_beyond() {
                    return self.hang_up(String::new());
                }
                return ChoiceStep::Show(ChoiceEvent::ToolCall(delta));
            }
        }
        ChoiceStep::Continue
    }

    /// True while the thought runs.
    pub fn is_thinking(&self) -> bool {
        self.state == ChoiceState::Thinking
    }

    /// How many tokens the backend said that the prompt has, where it did and no second try had another one.
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
        let mut account = self.account.clone();
        account.set_unseen_max(unseen_max);
        account.book(PartEnd::BrokenOff);
        ChoiceUsage { leaks: self.leaks.count(), overran: self.overran, ..account.spent }
    }

    /// The running part is about to be broken off, and can have written so much unseen and no more.
    pub fn set_unseen_max(&mut self, most: Tokens) {
        self.account.set_unseen_max(Some(most));
    }

    /// Its target writes like that, as far as it is known.
    pub fn set_output_stats(&mut self, writing: OutputStats) {
        self.account.set_output_stats(writing);
    }

    /// Everything written until now, shown or not.
    pub fn written(&self) -> Tokens {
        self.account.written()
    }

    /// How many tokens a piece is, reckoned where it is not said.
    pub fn estimate_tokens(&self, piece: &Piece) -> Tokens {
        match piece {
            Piece::Thought { text, tokens, .. } | Piece::Answer { text, tokens } => match *tokens {
                Tokens::ZERO => self.account.estimate_tokens(text),
                told => told,
            },
            Piece::ToolCall(delta) => self.account.estimate_tokens(&delta.arguments),
            Piece::Tag { tokens, .. } => *tokens,
            Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::StoppedBy(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Usage(_)
            | Piece::End(_) => Tokens::ZERO,
        }
    }

    fn on_thought(&mut self, text: String, tokens: Tokens, ids: &[u32]) -> ChoiceStep {
        if self.class.is_resumed() && self.state == ChoiceState::Solution {
            // A thought that begins again inside the answer eats the answer's budget and is not shown.
            return self.on_answer("", tokens);
        }
        self.on_visible_thought();
        if self.is_beyond_budget(&text, tokens) {
            // The backend does not hold its limit: we do, where we can.
            self.overran |= self.class == EnforcementClass::Native;
            if self.resume_class().is_some() {
                self.account.add_discarded(&text, tokens);
                return ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff));
            }
        }
        if self.class == EnforcementClass::Continue
            && self.enforcer.guard.thinking_tokens() > self.thinking_max()
        {
            // Within the tolerance, and beyond the budget all the same.
            self.account.add_discarded(&text, tokens);
            return ChoiceStep::Continue;
        }
        self.account.add_thinking(&text, tokens);
        self.thought.ids.extend_from_slice(ids);
        self.thought.text.push_str(&text);
        if text.is_empty() { ChoiceStep::Continue } else { ChoiceStep::Show(ChoiceEvent::Thought(text)) }
    }

    /// Whether a thought with one more piece goes beyond what its class allows, by the best count there is. A limit that the
    /// backend holds itself is only doubted where it counts each token.
    fn is_beyond_budget(&self, text: &str, tokens: Tokens) -> bool {
        let t = self.thinking_max();
        match self.class {
            EnforcementClass::Continue if tokens > Tokens::ZERO => self.account.thinking_now() + tokens > t,
            EnforcementClass::Continue => self.enforcer.guard.thinking_tokens() > with_tolerance(t),
            EnforcementClass::Turn => self.account.thinking_with(text, tokens, CountBias::High) > t,
            EnforcementClass::Native => {
                self.account.thinking_with(text, tokens, CountBias::Low) > EnforcementClass::native_max(t)
            }
            EnforcementClass::Inline | EnforcementClass::Effort => false,
        }
    }

    /// Takes the upstream's own count, which may say in the middle that the thought has gone too far.
    fn on_usage(&mut self, usage: TokenUsage) -> ChoiceStep {
        self.account.set_usage(self.clamp_usage(usage));
        let cuts = matches!(self.class, EnforcementClass::Turn | EnforcementClass::Native)
            && self.is_beyond_budget("", Tokens::ZERO);
        self.overran |= cuts && self.class == EnforcementClass::Native;
        if cuts
            && self.state == ChoiceState::Thinking
            && self.resume_class().is_some()
            && self.account.has_visible_thought()
        {
            return ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff));
        }
        ChoiceStep::Continue
    }

    fn on_answer(&mut self, text: &str, tokens: Tokens) -> ChoiceStep {
        self.begin_answer();
        let held = self.class == EnforcementClass::Effort
            || self.account.solution_now() + tokens <= self.terms.solution;
        if !held {
            self.account.add_discarded(text, tokens);
            return self.finish(self.terms.solution_by.into(), FinishReason::Length);
        }
        let text = self.strip_repeated_blank(text);
        let text = self.new_text(text);
        self.account.add_solution(&text, tokens);
        self.say(&text)
    }

    /// Shows what passes of some text of the answer.
    fn say(&mut self, text: &str) -> ChoiceStep {
        let text = self.pass_within_limit(text);
        self.has_answered |= !text.is_empty();
        self.observe_answer(&text);
        let shown = self.answer_shows(&text);
        if self.is_answer_beyond() {
            return self.hang_up(shown);
        }
        if self.stop_filter.stopped_by().is_some() {
            self.on_stop_text(shown)
        } else if shown.is_empty() {
            ChoiceStep::Continue
        } else {
            ChoiceStep::Show(ChoiceEvent::Answer(shown))
        }
    }

    /// Where the thought was cut, it may go on in the answer; where a limit is the thought's, it may break off the
    /// answer that followed.
    fn observe_answer(&mut self, text: &str) {
        if self.account.spent.thinking_ended == ThinkingStopReason::Cut {
            self.leaks.push(text);
        }
        if self.class == EnforcementClass::Continue || self.terms.continuation.is_some() {
            self.answer_so_far.push_str(text);
        }
    }

    fn begin_answer(&mut self) {
        if self.account.has_visible_thought() {
            self.end_thinking(ThinkingStopReason::Closed);
        } else if self.state == ChoiceState::Thinking {
            self.carry_over_thinking(false);
        }
        self.state = ChoiceState::Solution;
    }
}

/// Text that the caller sees, if there is any.
fn visible_answer(text: String) -> Option<ChoiceEvent> {
    (!text.is_empty()).then_some(ChoiceEvent::Answer(text))
}

#[cfg(test)]
mod lying_tests;
#[cfg(test)]
mod tests;
