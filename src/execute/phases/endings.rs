//! How a thought, a part and the whole choice come to their ends.

use crate::backend::{Ending, Part, Piece, Thought};
use crate::catalog::{Class, Ended, SolutionEnded};
use crate::chat::Finish;
use crate::units::Tokens;

use super::super::account::{Close, Lean};
use super::super::quote::quote;
use super::{Phases, State, Step};

impl Phases {
    /// Time is up for thinking: closes the thought here, where the class can resume from it.
    pub fn cut(&mut self) -> Option<Part> {
        let resumes = self.terms.resume.is_some() && self.state == State::Thinking;
        resumes.then(|| self.resume(Ended::Cut, Close::BrokenOff))
    }

    /// Time is up altogether: what is there is the answer.
    pub fn expire(&mut self) -> Step {
        let rest = self.answer.rest();
        self.over(rest, Close::BrokenOff, (SolutionEnded::Deadline, Finish::Length))
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

    pub(super) fn end(&mut self, ending: Ending) -> Step {
        if let Ending::Stop { tokens } = ending {
            self.account.overhead(tokens);
        }
        let answered = !self.answer.is_empty() || self.tool_calls;
        let limit = ending == Ending::Limit;
        match (self.class, self.state) {
            (Class::Continue | Class::Turn, State::Closed) => {
                Step::Call(self.resume(Ended::Closed, Close::Ended))
            }
            (Class::Continue | Class::Turn, State::Thinking) => {
                Step::Call(self.resume(if limit { Ended::Cut } else { Ended::Stopped }, Close::Ended))
            }
            (Class::Continue, _) if limit && !self.tool_calls && self.thinks => self.go_on(ending),
            (Class::Native, _) if limit && !answered && self.terms.resume.is_some() => {
                Step::Call(self.resume(Ended::Cut, Close::Ended))
            }
            (Class::Effort, _) if limit && !answered && self.may_be_rescued() => Step::Call(self.rescue()),
            _ => self.conclude(ending),
        }
    }

    /// The thought closed by itself, and its limit broke off the answer that followed: the rest is asked for.
    fn go_on(&mut self, ending: Ending) -> Step {
        let solution = self.terms.solution.saturating_sub(self.account.solution_so_far());
        if solution == Tokens::ZERO {
            return self.conclude(ending);
        }
        let Part::Solution { thought, .. } = self.resume(Ended::Closed, Close::Ended) else {
            return self.conclude(ending);
        };
        Step::Call(Part::Solution { thought, answer: self.said.clone(), solution })
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
            Ending::Limit => self.finish(self.terms.solution_by.into(), Finish::Length),
            Ending::Filtered => self.finish(SolutionEnded::Upstream, Finish::ContentFilter),
            Ending::Stop { .. } if !self.tool_calls => self.finish(SolutionEnded::Stop, Finish::Stop),
            Ending::Stop { .. } | Ending::ToolCalls => {
                self.finish(SolutionEnded::ToolCalls, Finish::ToolCalls)
            }
        }
    }

    pub(super) fn finish(&mut self, ended: SolutionEnded, finish: Finish) -> Step {
        let rest = self.answer.rest();
        self.over(rest, Close::Ended, (ended, finish))
    }

    pub(super) fn over(
        &mut self,
        shown: String,
        close: Close,
        (ended, finish): (SolutionEnded, Finish),
    ) -> Step {
        self.account.book(close);
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
            self.leave_rest();
        }
    }

    /// Leaves to the answer what the thought has left of a limit that holds both, by the count that is rather too high.
    fn leave_rest(&mut self) {
        if std::mem::take(&mut self.terms.answer_takes_rest) {
            let used = self.account.thinking_with("", Tokens::ZERO, Lean::Early);
            self.terms.solution += self.terms.thinking.saturating_sub(used);
        }
    }

    /// Ends the part that thinks and asks for the answer from where it stands.
    pub(super) fn resume(&mut self, ended: Ended, close: Close) -> Part {
        self.close(ended);
        let mut thought = std::mem::take(&mut self.thought);
        self.shorten(&mut thought);
        self.account.go_on(close);
        self.state = State::Solution;
        self.class = self.terms.resume.unwrap_or(self.class);
        self.thinks = false;
        thought.closed = self.account.spent.thinking_ended == Ended::Closed;
        Part::resumed(thought, self.terms.solution)
    }

    /// Leaves of a thought that is to be read again what was set aside for reading it. One that goes on in *continue* was
    /// held by the upstream's own limit.
    fn shorten(&self, thought: &mut Thought) {
        let room = match self.class {
            Class::Turn => self.terms.thinking,
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

    fn may_be_rescued(&self) -> bool {
        self.terms.rescue && !self.rescued
    }

    /// The limit went into a thought: once more, with the least thinking. What came of the first try is not
    /// part of the answer.
    fn rescue(&mut self) -> Part {
        let tokens = self.terms.solution + self.terms.overhead;
        self.account.start_over(Some(tokens));
        self.account.spent.thinking_ended = Ended::None;
        self.state = State::Thinking;
        self.rescued = true;
        Part::Total { effort: self.terms.effort_least.clone(), tokens }
    }
}
