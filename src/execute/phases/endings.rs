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

    /// True if a choice that ended like that has no answer, because a limit came first or its thought was never closed. A
    /// model that ends its text at once has answered with nothing.
    pub fn lacks_answer(&self, finish: FinishReason) -> bool {
        let lost = self.account.spent.thinking_ended == ThinkingStopReason::Stopped;
        let is_cut = finish == FinishReason::Length || (finish == FinishReason::Stop && lost);
        is_cut && !self.has_answered && !self.tool_calls
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
            self.end_thinking(if ending == GenerationEnd::Limit {
                ThinkingStopReason::Cut
            } else {
                ThinkingStopReason::Stopped
            });
        }
        self.finish(match ending {
            GenerationEnd::Limit => {
                ChoiceEnd::broken_off(self.continuation.denied().unwrap_or(self.terms.solution_by.into()))
            }
            GenerationEnd::Filtered => {
                ChoiceEnd { reason: SolutionStopReason::Upstream, finish: FinishReason::ContentFilter }
            }
            GenerationEnd::Stop { .. } if !self.tool_calls => ChoiceEnd::STOPPED,
            GenerationEnd::Stop { .. } | GenerationEnd::ToolCalls => {
                ChoiceEnd { reason: SolutionStopReason::ToolCalls, finish: FinishReason::ToolCalls }
            }
        })
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
        spent.solution_ended = end.reason;
        spent.stopped_by = by.filter(|_| end.finish == FinishReason::Stop);
        if spent.thinking_ended == ThinkingStopReason::None && spent.thinking > Tokens::ZERO {
            // The thought was hidden; only the usage reported it.
            spent.thinking_ended =
                if answered { ThinkingStopReason::Closed } else { ThinkingStopReason::Cut };
        }
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
