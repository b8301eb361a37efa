//! How a thought, a part and the whole choice come to their ends.

use crate::backend::{Ending, Failure, Fault, Observation, Part, Piece, Thought};
use crate::catalog::{Class, Ended, SolutionEnded};
use crate::chat::{Finish, is_whole};
use crate::units::Tokens;

use super::super::account::{Close, Lean};
use super::super::quote::quote;
use super::repeat::Repeat;
use super::{Phases, State, Step, Terms};

impl Phases {
    /// Time is up for thinking: closes the thought here, where the class can resume from it.
    pub fn cut(&mut self) -> Option<Part> {
        let resumes = self.resume_class().is_some() && self.state == State::Thinking;
        resumes.then(|| self.resume(Ended::Cut, Close::BrokenOff))
    }

    /// Time is up altogether: what is there is the answer.
    pub fn expire(&mut self) -> Step {
        let rest = self.answer.rest();
        self.over(rest, Close::BrokenOff, (SolutionEnded::Deadline, Finish::Length))
    }

    /// True where a choice that ended like that has no answer, because a limit came first or its thought was never closed. A
    /// model that ends its text at once has answered with nothing.
    pub fn lacks_answer(&self, finish: Finish) -> bool {
        let lost = self.account.spent.thinking_ended == Ended::Stopped;
        let is_cut = finish == Finish::Length || (finish == Finish::Stop && lost);
        is_cut && !self.spoke && !self.tool_calls
    }

    /// What is set aside is used up, and there is no more: what was shown is the answer. A piece that came all the same is
    /// billed, and not shown.
    pub fn run_out(&mut self, piece: Option<&Piece>, ended: SolutionEnded) -> Step {
        if let Some(piece) = piece {
            self.drain(piece.clone());
        }
        let rest = self.answer.rest();
        self.over(rest, Close::BrokenOff, (ended, Finish::Length))
    }

    /// True where what follows a thought is refused as the caller's fault, who has not asked for it.
    pub fn may_give_up(&self, failure: &Failure) -> bool {
        failure.fault == Fault::Caller && self.is_makeshift()
    }

    /// True where the running part was not planned, but is tried because a thought was seen, or had left no answer.
    pub(super) fn is_makeshift(&self) -> bool {
        self.terms.class == Class::Effort && (self.rescued || self.class == Class::Turn && !self.thinks)
    }

    /// What was to follow the thought was refused: the limit has ended the answer, as it does where nobody asks again. Such a
    /// target is not asked so the next time.
    pub fn give_up(&mut self) -> Step {
        self.hold.observe(Observation::Switched(false));
        let rest = self.answer.rest();
        self.over(rest, Close::Ended, (self.terms.solution_by.into(), Finish::Length))
    }

    pub(super) fn end(&mut self, ending: Ending) -> Step {
        if let Ending::Stop { tokens } = ending {
            self.account.overhead(tokens);
        }
        self.observe_end();
        if self.may_go_further() {
            return self.go_further();
        }
        let answered = !self.answer.is_empty() || self.tool_calls;
        let limit = ending == Ending::Limit;
        // Whoever ends its text inside a thought has lost its answer as well.
        let lost = limit || (self.account.thought_shows() && matches!(ending, Ending::Stop { .. }));
        match (self.class, self.state) {
            (Class::Continue | Class::Turn, State::Closed) => {
                Step::Call(self.resume(Ended::Closed, Close::Ended))
            }
            (Class::Continue | Class::Turn, State::Thinking) => {
                Step::Call(self.resume(if limit { Ended::Cut } else { Ended::Stopped }, Close::Ended))
            }
            (Class::Continue, _) if limit && !self.tool_calls && self.thinks => self.go_on(ending),
            (Class::Native, _) if limit && !answered && self.thinks && self.resume_class().is_some() => {
                Step::Call(self.resume(Ended::Cut, Close::Ended))
            }
            (Class::Effort, _) if lost && !answered && self.may_think_less() => Step::Call(self.rescue()),
            _ => self.conclude(ending),
        }
    }

    /// The thought closed by itself, and its limit broke off the answer that followed: the rest is asked for.
    fn go_on(&mut self, ending: Ending) -> Step {
        let solution = self.terms.solution.saturating_sub(self.account.solution_so_far());
        if solution == Tokens::ZERO || self.hold.withholds() {
            return self.conclude(ending);
        }
        let Part::Solution { thought, .. } = self.resume(Ended::Closed, Close::Ended) else {
            return self.conclude(ending);
        };
        self.repeat = Some(Repeat::of(&self.said, self.tagged));
        self.rest.waits();
        let part = Part::Solution { thought, answer: self.said.clone(), solution };
        Step::Call(self.call_for(part))
    }

    /// Why a hand-off came: the budget was spent, or the model ended its text before that.
    pub(super) fn handed_off(&self) -> Ended {
        let spent = self.account.thinking_now() >= self.terms.thinking;
        if spent || self.class != Class::Inline { Ended::Cut } else { Ended::Stopped }
    }

    fn conclude(&mut self, ending: Ending) -> Step {
        if self.account.thought_shows() {
            self.close(if ending == Ending::Limit { Ended::Cut } else { Ended::Stopped });
        }
        match ending {
            Ending::Limit => {
                let ended = self.rest.denied().unwrap_or(self.terms.solution_by.into());
                self.finish(ended, Finish::Length)
            }
            Ending::Filtered => self.finish(SolutionEnded::Upstream, Finish::ContentFilter),
            Ending::Stop { .. } if !self.tool_calls => self.finish(SolutionEnded::Stop, Finish::Stop),
            Ending::Stop { .. } | Ending::ToolCalls => {
                self.finish(SolutionEnded::ToolCalls, Finish::ToolCalls)
            }
        }
    }

    /// What may be shown of an answer that goes on like this.
    pub(super) fn answer_shows(&mut self, text: &str) -> String {
        let behind_thought = self.tagged || self.account.has_thought();
        self.answer.push(text, behind_thought)
    }

    pub(super) fn finish(&mut self, ended: SolutionEnded, finish: Finish) -> Step {
        let repeated = self.repeat.as_mut().map(Repeat::rest).unwrap_or_default();
        let passed = self.pass(&repeated);
        let mut shown = self.answer_shows(&passed);
        let released = self.release();
        let is_lost = released.is_none();
        shown += &self.answer_shows(&released.unwrap_or_default());
        shown += &self.answer.rest();
        let by_limit = (self.terms.solution_by.into(), Finish::Length);
        let (ended, finish) = match (self.answer.stopped_by().is_some(), is_lost) {
            (true, _) => (SolutionEnded::Stop, Finish::Stop),
            (false, true) => by_limit,
            (false, false) => (ended, finish),
        };
        self.over(shown, Close::Ended, (ended, finish))
    }

    pub(super) fn over(
        &mut self,
        shown: String,
        close: Close,
        (ended, finish): (SolutionEnded, Finish),
    ) -> Step {
        self.account.book(close);
        if finish == Finish::Length {
            self.account.deliver_at_most(self.answer_max());
            let unfinished = self.arguments.values().filter(|arguments| !is_whole(arguments)).count();
            self.account.spent.unfinished_calls = u32::try_from(unfinished).unwrap_or(u32::MAX);
        }
        self.state = State::Done;
        let by = self.answer.stopped_by().map(Box::from).or_else(|| self.stopped_by.take());
        let spent = &mut self.account.spent;
        spent.solution_ended = ended;
        spent.stopped_by = by.filter(|_| finish == Finish::Stop);
        if spent.thinking_ended == Ended::None && spent.thinking > Tokens::ZERO {
            // The thought was hidden; only the usage told of it.
            let answered = !self.answer.is_empty() || self.tool_calls;
            spent.thinking_ended = if answered { Ended::Closed } else { Ended::Cut };
        }
        Step::Finish(super::shown(shown), finish)
    }

    /// The thought is over: what follows is the answer's budget. The first reason holds.
    pub(super) fn close(&mut self, ended: Ended) {
        if self.state == State::Thinking {
            self.state = State::Closed;
            self.account.spent.thinking_ended = ended;
            self.leave_rest(matches!(ended, Ended::Cut | Ended::Stopped));
        }
    }

    /// Leaves to the answer what the thought has left of a limit that holds both, by the count that is rather too high, and what
    /// was kept for a hand-off that does not come.
    pub(super) fn leave_rest(&mut self, is_handed_off: bool) {
        if std::mem::take(&mut self.terms.answer_takes_rest) {
            let used = self.account.thinking_with("", Tokens::ZERO, Lean::Early);
            let unwritten = self.terms.overhead.saturating_sub(self.account.overhead_now());
            let resumes = matches!(self.class, Class::Continue | Class::Turn);
            let kept = if resumes && !is_handed_off { unwritten } else { Tokens::ZERO };
            let rest = self.terms.thinking.saturating_sub(used) + kept;
            self.terms.solution += rest;
            self.hold.widen(rest);
        }
    }

    /// Ends the part that thinks and asks for the answer from where it stands.
    pub(super) fn resume(&mut self, ended: Ended, close: Close) -> Part {
        self.close(ended);
        let mut thought = std::mem::take(&mut self.thought);
        self.shorten(&mut thought);
        self.account.go_on(close);
        self.state = State::Solution;
        self.class = self.resume_class().unwrap_or(self.class);
        self.thinks = false;
        thought.closed = self.account.spent.thinking_ended == Ended::Closed;
        if self.terms.further.is_some() {
            self.rest.follows(&thought);
        }
        self.call_for(Part::resumed(thought, self.terms.solution))
    }

    /// The most that may be delivered of the answer.
    fn answer_max(&self) -> Tokens {
        let Terms { class, thinking, solution, overhead, .. } = self.terms;
        let spent = &self.account.spent;
        let both = (thinking + solution + overhead).saturating_sub(spent.thinking);
        if class == Class::Effort { both } else { solution }
    }

    /// Leaves of a thought that is to be read again what was set aside for reading it. One that goes on in *continue* was
    /// held by the upstream's own limit.
    fn shorten(&self, thought: &mut Thought) {
        let room = match self.class {
            Class::Turn => self.quoted_max(),
            Class::Native => Class::native_most(self.terms.thinking),
            Class::Inline | Class::Continue | Class::Effort => return,
        };
        if self.terms.reads_free {
            return;
        }
        let quoted = quote(&thought.text, room + self.account.prompt_spare(), self.account.thought_most());
        if quoted.len() < thought.text.len() {
            *thought = Thought { text: quoted.to_owned(), ..Thought::default() };
        }
    }

    /// The limit went into a thought: once more, with the least thinking. What came of the first try is not
    /// part of the answer.
    fn rescue(&mut self) -> Part {
        let tokens = self.terms.solution + self.terms.overhead;
        self.account.start_over(Some(tokens));
        self.account.spent.thinking_ended = Ended::None;
        self.state = State::Thinking;
        self.rescued = true;
        self.surfaced = false;
        self.thought = Thought::default();
        self.call_for(Part::Total { effort: self.terms.effort_least.clone(), tokens })
    }
}
