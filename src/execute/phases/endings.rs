//! The end of a choice: by its upstream, by its deadline, by lack of money, or because another call was refused.

use stint_backend::{BehaviorObservation, Failure, Fault, GenerationEnd};
use stint_types::catalog::{EnforcementClass, SolutionStopReason, ThinkingStopReason};
use stint_types::chat::{FinishReason, is_complete_json};
use stint_types::units::Tokens;

use super::super::running_part::PartEnd;
use super::step::{ChoiceEnd, visible_answer};
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep, ChoiceTerms};

impl ChoiceStateMachine {
    /// Time is up altogether: what is there is the answer.
    pub fn expire(&mut self) -> ChoiceStep {
        let rest = self.stop_filter.flush();
        self.finalize(rest, PartEnd::BrokenOff, ChoiceEnd::broken_off(SolutionStopReason::Deadline))
    }

    /// True if a choice that ended like that has no answer, because a limit came first. A model that ends its text at once, or
    /// behind its thought, has answered with nothing.
    pub fn lacks_answer(&self, finish: FinishReason) -> bool {
        finish == FinishReason::Length && !self.has_answered && !self.tool_calls
    }

    /// True if the call wrote beyond its limit.
    pub fn has_overrun(&self) -> bool {
        self.enforcer.is_beyond()
    }

    /// True if what follows a thought is refused as the caller's fault, who has not asked for it.
    pub fn may_give_up(&self, failure: &Failure) -> bool {
        failure.fault == Fault::Caller && self.is_makeshift()
    }

    /// What was to follow the thought was refused: the limit has ended the answer, as it does where nobody asks again. Such a
    /// target is not asked so the next time.
    pub fn give_up(&mut self) -> ChoiceStep {
        self.enforcer.observe(BehaviorObservation::ThinkingSwitched(false));
        let rest = self.stop_filter.flush();
        let end = ChoiceEnd::broken_off(self.terms.solution_by.into());
        self.finalize(rest, PartEnd::Completed, end)
    }

    /// The upstream ended the last part, and nothing more is called for.
    pub(super) fn conclude(&mut self, ending: GenerationEnd) -> ChoiceStep {
        if self.account.has_visible_thought() {
            self.end_thinking(if ending.is_cut() {
                ThinkingStopReason::Cut
            } else {
                ThinkingStopReason::Stopped
            });
        }
        self.finish(match ending {
            GenerationEnd::Limit => ChoiceEnd::broken_off(self.limit_reached()),
            GenerationEnd::ModelLimit => ChoiceEnd::broken_off(SolutionStopReason::Model),
            GenerationEnd::BrokenOff => ChoiceEnd::broken_off(SolutionStopReason::Upstream),
            GenerationEnd::Filtered => {
                ChoiceEnd { reason: SolutionStopReason::Upstream, finish: FinishReason::ContentFilter }
            }
            // Some say so without any call.
            GenerationEnd::Stop { .. } | GenerationEnd::ToolCalls if !self.tool_calls => ChoiceEnd::STOPPED,
            GenerationEnd::Stop { .. } | GenerationEnd::ToolCalls => {
                ChoiceEnd { reason: SolutionStopReason::ToolCalls, finish: FinishReason::ToolCalls }
            }
        })
    }

    /// Whose limit the upstream has reached. One that wrote far less than it was allowed has a limit of its own.
    fn limit_reached(&self) -> SolutionStopReason {
        let ours = || self.continuation.denied().unwrap_or(self.terms.solution_by.into());
        if self.enforcer.ended_below_limit() { SolutionStopReason::Model } else { ours() }
    }

    /// Ends a choice that ran to the end of its part, and shows what was withheld. A stop text in that counts before `end`.
    pub(super) fn finish(&mut self, end: ChoiceEnd) -> ChoiceStep {
        let passed = self.flush_repeat_filter();
        let mut shown = self.shown_text(&passed);
        let released = self.enforcer.release();
        let is_lost = released.is_none();
        shown += &self.shown_text(&released.unwrap_or_default());
        shown += &self.stop_filter.flush();
        let end = if self.stop_filter.stopped_by().is_some() {
            ChoiceEnd::STOPPED
        } else if is_lost {
            ChoiceEnd::broken_off(self.terms.solution_by.into())
        } else {
            end
        };
        self.finalize(shown, PartEnd::Completed, end)
    }

    /// Books the last part and ends the choice; `shown` is the last that its caller sees.
    pub(super) fn finalize(&mut self, shown: String, part_end: PartEnd, end: ChoiceEnd) -> ChoiceStep {
        self.account.book(part_end);
        if end.finish == FinishReason::Length {
            self.account.cap_delivered(self.answer_max());
            let unfinished = self.arguments.values().filter(|arguments| !is_complete_json(arguments)).count();
            self.account.spent.unfinished_calls = u32::try_from(unfinished).unwrap_or(u32::MAX);
        }
        self.state = ChoiceState::Done;
        let by = self.stop_filter.stopped_by().map(Box::from).or_else(|| self.stopped_by.take());
        let answered = self.has_begun_answer();
        let spent = &mut self.account.spent;
        if spent.thinking_ended == ThinkingStopReason::None && spent.thinking > Tokens::ZERO {
            // The thought was hidden; only the usage reported it.
            spent.thinking_ended = match end.finish {
                _ if answered => ThinkingStopReason::Closed,
                FinishReason::Stop => ThinkingStopReason::Stopped,
                _ => ThinkingStopReason::Cut,
            };
        }
        let is_thought_alone = spent.thinking_ended == ThinkingStopReason::Stopped && !answered;
        spent.solution_ended = match end.reason {
            // It said that it was done, and had not begun.
            SolutionStopReason::Stop if is_thought_alone => SolutionStopReason::None,
            reason => reason,
        };
        spent.stopped_by = by.filter(|_| end.finish == FinishReason::Stop);
        ChoiceStep::Finish(visible_answer(shown), end.finish)
    }

    /// The most that may be delivered of the answer.
    fn answer_max(&self) -> Tokens {
        let ChoiceTerms { class, thinking, solution, overhead, .. } = self.terms;
        let spent = &self.account.spent;
        let both = (thinking + solution + overhead).saturating_sub(spent.thinking);
        if class == EnforcementClass::Effort { both } else { solution }
    }
}
