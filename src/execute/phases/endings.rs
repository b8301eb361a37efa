//! How a thought, a part and the whole choice come to their ends.

use crate::backend::{BehaviorObservation, Failure, Fault, GenerationEnd, GenerationPart, Piece, Thought};
use crate::catalog::{EnforcementClass, SolutionStopReason, ThinkingStopReason};
use crate::chat::{FinishReason, is_complete_json};
use crate::units::Tokens;

use super::super::thought_tail::thought_tail;
use super::super::usage_account::{CountBias, PartEnd};
use super::repeat_filter::RepeatFilter;
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep, ChoiceTerms};

impl ChoiceStateMachine {
    /// Time is up for thinking: closes the thought here, where the class can resume from it.
    pub fn cut(&mut self) -> Option<GenerationPart> {
        let resumes = self.resume_class().is_some() && self.state == ChoiceState::Thinking;
        resumes.then(|| self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff))
    }

    /// Time is up altogether: what is there is the answer.
    pub fn expire(&mut self) -> ChoiceStep {
        let rest = self.stop_filter.flush();
        self.finalize(rest, PartEnd::BrokenOff, (SolutionStopReason::Deadline, FinishReason::Length))
    }

    /// True where a choice that ended like that has no answer, because a limit came first or its thought was never closed. A
    /// model that ends its text at once has answered with nothing.
    pub fn lacks_answer(&self, finish: FinishReason) -> bool {
        let lost = self.account.spent.thinking_ended == ThinkingStopReason::Stopped;
        let is_cut = finish == FinishReason::Length || (finish == FinishReason::Stop && lost);
        is_cut && !self.has_answered && !self.tool_calls
    }

    /// What is set aside is used up, and there is no more: what was shown is the answer. A piece that came all the same is
    /// billed, and not shown.
    pub fn exhaust(&mut self, piece: Option<&Piece>, ended: SolutionStopReason) -> ChoiceStep {
        if let Some(piece) = piece {
            self.drain(piece.clone());
        }
        let rest = self.stop_filter.flush();
        self.finalize(rest, PartEnd::BrokenOff, (ended, FinishReason::Length))
    }

    /// True where what follows a thought is refused as the caller's fault, who has not asked for it.
    pub fn may_give_up(&self, failure: &Failure) -> bool {
        failure.fault == Fault::Caller && self.is_makeshift()
    }

    /// True where the running part was not planned, but is tried because a thought was seen, or had left no answer.
    pub(super) fn is_makeshift(&self) -> bool {
        self.terms.class == EnforcementClass::Effort
            && (self.rescued || self.class == EnforcementClass::Turn && !self.thinks)
    }

    /// What was to follow the thought was refused: the limit has ended the answer, as it does where nobody asks again. Such a
    /// target is not asked so the next time.
    pub fn give_up(&mut self) -> ChoiceStep {
        self.enforcer.observe(BehaviorObservation::ThinkingSwitched(false));
        let rest = self.stop_filter.flush();
        self.finalize(rest, PartEnd::Completed, (self.terms.solution_by.into(), FinishReason::Length))
    }

    pub(super) fn on_end(&mut self, ending: GenerationEnd) -> ChoiceStep {
        if let GenerationEnd::Stop { tokens } = ending {
            self.account.add_overhead(tokens);
        }
        self.observe_end();
        if self.take_grant() {
            return self.resume_answer();
        }
        let answered = !self.stop_filter.is_empty() || self.tool_calls;
        let limit = ending == GenerationEnd::Limit;
        // Whoever ends its text inside a thought has lost its answer as well.
        let lost =
            limit || (self.account.has_visible_thought() && matches!(ending, GenerationEnd::Stop { .. }));
        match (self.class, self.state) {
            (EnforcementClass::Continue | EnforcementClass::Turn, ChoiceState::Closed) => {
                ChoiceStep::Call(self.resume(ThinkingStopReason::Closed, PartEnd::Completed))
            }
            (EnforcementClass::Continue | EnforcementClass::Turn, ChoiceState::Thinking) => {
                ChoiceStep::Call(self.resume(
                    if limit { ThinkingStopReason::Cut } else { ThinkingStopReason::Stopped },
                    PartEnd::Completed,
                ))
            }
            (EnforcementClass::Continue, _) if limit && !self.tool_calls && self.thinks => {
                self.continue_answer(ending)
            }
            (EnforcementClass::Native, _)
                if limit && !answered && self.thinks && self.resume_class().is_some() =>
            {
                ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::Completed))
            }
            (EnforcementClass::Effort, _) if lost && !answered && self.may_think_less() => {
                ChoiceStep::Call(self.rescue())
            }
            _ => self.conclude(ending),
        }
    }

    /// The thought closed by itself, and its limit broke off the answer that followed: the rest is asked for.
    fn continue_answer(&mut self, ending: GenerationEnd) -> ChoiceStep {
        let solution = self.terms.solution.saturating_sub(self.account.solution_so_far());
        if solution == Tokens::ZERO || self.enforcer.withholds() {
            return self.conclude(ending);
        }
        let GenerationPart::Solution { thought, .. } =
            self.resume(ThinkingStopReason::Closed, PartEnd::Completed)
        else {
            return self.conclude(ending);
        };
        self.repeat_filter = Some(RepeatFilter::of(&self.answer_so_far, self.has_stray_tags));
        self.rest.mark_pending();
        let part = GenerationPart::Solution { thought, answer: self.answer_so_far.clone(), solution };
        ChoiceStep::Call(self.prepare_part(part))
    }

    /// Why a hand-off came: the budget was spent, or the model ended its text before that.
    pub(super) fn hand_off_reason(&self) -> ThinkingStopReason {
        let spent = self.account.thinking_now() >= self.terms.thinking;
        if spent || self.class != EnforcementClass::Inline {
            ThinkingStopReason::Cut
        } else {
            ThinkingStopReason::Stopped
        }
    }

    fn conclude(&mut self, ending: GenerationEnd) -> ChoiceStep {
        if self.account.has_visible_thought() {
            self.end_thinking(if ending == GenerationEnd::Limit {
                ThinkingStopReason::Cut
            } else {
                ThinkingStopReason::Stopped
            });
        }
        match ending {
            GenerationEnd::Limit => {
                let ended = self.rest.denied().unwrap_or(self.terms.solution_by.into());
                self.finish(ended, FinishReason::Length)
            }
            GenerationEnd::Filtered => self.finish(SolutionStopReason::Upstream, FinishReason::ContentFilter),
            GenerationEnd::Stop { .. } if !self.tool_calls => {
                self.finish(SolutionStopReason::Stop, FinishReason::Stop)
            }
            GenerationEnd::Stop { .. } | GenerationEnd::ToolCalls => {
                self.finish(SolutionStopReason::ToolCalls, FinishReason::ToolCalls)
            }
        }
    }

    /// What may be shown of an answer that goes on like this.
    pub(super) fn answer_shows(&mut self, text: &str) -> String {
        let behind_thought = self.has_stray_tags || self.account.has_thought();
        self.stop_filter.push(text, behind_thought)
    }

    pub(super) fn finish(&mut self, ended: SolutionStopReason, finish: FinishReason) -> ChoiceStep {
        let repeated = self.repeat_filter.as_mut().map(RepeatFilter::flush).unwrap_or_default();
        let passed = self.pass_within_limit(&repeated);
        let mut shown = self.answer_shows(&passed);
        let released = self.release_withheld();
        let is_lost = released.is_none();
        shown += &self.answer_shows(&released.unwrap_or_default());
        shown += &self.stop_filter.flush();
        let by_limit = (self.terms.solution_by.into(), FinishReason::Length);
        let (ended, finish) = match (self.stop_filter.stopped_by().is_some(), is_lost) {
            (true, _) => (SolutionStopReason::Stop, FinishReason::Stop),
            (false, true) => by_limit,
            (false, false) => (ended, finish),
        };
        self.finalize(shown, PartEnd::Completed, (ended, finish))
    }

    pub(super) fn finalize(
        &mut self,
        shown: String,
        close: PartEnd,
        (ended, finish): (SolutionStopReason, FinishReason),
    ) -> ChoiceStep {
        self.account.book(close);
        if finish == FinishReason::Length {
            self.account.cap_delivered(self.answer_max());
            let unfinished = self.arguments.values().filter(|arguments| !is_complete_json(arguments)).count();
            self.account.spent.unfinished_calls = u32::try_from(unfinished).unwrap_or(u32::MAX);
        }
        self.state = ChoiceState::Done;
        let by = self.stop_filter.stopped_by().map(Box::from).or_else(|| self.stopped_by.take());
        let spent = &mut self.account.spent;
        spent.solution_ended = ended;
        spent.stopped_by = by.filter(|_| finish == FinishReason::Stop);
        if spent.thinking_ended == ThinkingStopReason::None && spent.thinking > Tokens::ZERO {
            // The thought was hidden; only the usage told of it.
            let answered = !self.stop_filter.is_empty() || self.tool_calls;
            spent.thinking_ended =
                if answered { ThinkingStopReason::Closed } else { ThinkingStopReason::Cut };
        }
        ChoiceStep::Finish(super::visible_answer(shown), finish)
    }

    /// The thought is over: what follows is the answer's budget. The first reason holds.
    pub(super) fn end_thinking(&mut self, ended: ThinkingStopReason) {
        if self.state == ChoiceState::Thinking {
            self.state = ChoiceState::Closed;
            self.account.spent.thinking_ended = ended;
            self.carry_over_thinking(matches!(ended, ThinkingStopReason::Cut | ThinkingStopReason::Stopped));
        }
    }

    /// Leaves to the answer what the thought has left of a limit that holds both, by the count that is rather too high, and what
    /// was kept for a hand-off that does not come.
    pub(super) fn carry_over_thinking(&mut self, is_handed_off: bool) {
        if std::mem::take(&mut self.terms.answer_takes_rest) {
            let used = self.account.thinking_with("", Tokens::ZERO, CountBias::High);
            let unwritten = self.terms.overhead.saturating_sub(self.account.overhead_now());
            let resumes = matches!(self.class, EnforcementClass::Continue | EnforcementClass::Turn);
            let kept = if resumes && !is_handed_off { unwritten } else { Tokens::ZERO };
            let rest = self.terms.thinking.saturating_sub(used) + kept;
            self.terms.solution += rest;
            self.enforcer.widen(rest);
        }
    }

    /// Ends the part that thinks and asks for the answer from where it stands.
    pub(super) fn resume(&mut self, ended: ThinkingStopReason, close: PartEnd) -> GenerationPart {
        self.end_thinking(ended);
        let mut thought = std::mem::take(&mut self.thought);
        self.shorten_thought(&mut thought);
        self.account.next_part(close);
        self.state = ChoiceState::Solution;
        self.class = self.resume_class().unwrap_or(self.class);
        self.thinks = false;
        thought.closed = self.account.spent.thinking_ended == ThinkingStopReason::Closed;
        if self.terms.continuation.is_some() {
            self.rest.set_prior_thought(&thought);
        }
        self.prepare_part(GenerationPart::after_thought(thought, self.terms.solution))
    }

    /// The most that may be delivered of the answer.
    fn answer_max(&self) -> Tokens {
        let ChoiceTerms { class, thinking, solution, overhead, .. } = self.terms;
        let spent = &self.account.spent;
        let both = (thinking + solution + overhead).saturating_sub(spent.thinking);
        if class == EnforcementClass::Effort { both } else { solution }
    }

    /// Leaves of a thought that is to be read again what was set aside for reading it. One that goes on in *continue* was
    /// held by the upstream's own limit.
    fn shorten_thought(&self, thought: &mut Thought) {
        let room = match self.class {
            EnforcementClass::Turn => self.thought_tail_max(),
            EnforcementClass::Native => EnforcementClass::native_max(self.terms.thinking),
            EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Effort => return,
        };
        if self.terms.has_free_input {
            return;
        }
        let quoted = thought_tail(
            &thought.text,
            room + self.account.prompt_spare(),
            self.account.thinking_upper_bound(),
        );
        if quoted.len() < thought.text.len() {
            *thought = Thought { text: quoted.to_owned(), ..Thought::default() };
        }
    }

    /// The limit went into a thought: once more, with the least thinking. What came of the first try is not
    /// part of the answer.
    fn rescue(&mut self) -> GenerationPart {
        let tokens = self.terms.solution + self.terms.overhead;
        self.account.restart(Some(tokens));
        self.account.spent.thinking_ended = ThinkingStopReason::None;
        self.state = ChoiceState::Thinking;
        self.rescued = true;
        self.is_thought_visible = false;
        self.thought = Thought::default();
        self.prepare_part(GenerationPart::Total { effort: self.terms.effort_least.clone(), tokens })
    }
}
