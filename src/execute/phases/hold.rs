//! Holds a call to its limit where its upstream does not.
//!
//! The reader gets no more than the limit allows, by the least that was surely written. What goes beyond is withheld until the
//! upstream's last word says that it was within, and past a tolerance the call is hung up on.

use crate::backend::{Conduct, Observation, Part, Piece, Usage};
use crate::catalog::{Class, Ended, SolutionEnded};
use crate::chat::Finish;
use crate::units::Tokens;

use super::super::account::Close;
use super::super::brake::{Brake, Weight, tolerated};
use super::{Phases, State, Step};

/// What the running call may write, and what of it passes.
#[derive(Debug, Clone, Default)]
pub(super) struct Hold {
    pub(super) brake: Brake,
    /// What the target is known for.
    pub(super) conduct: Conduct,
    /// The most that its answer may take; thought and answer together, where `is_total`.
    room: Tokens,
    is_total: bool,
    /// What has passed of its answer.
    passed: Weight,
    /// What has not, until its count is known.
    withheld: String,
    /// Something may have come after the upstream's limit.
    is_beyond: bool,
    /// What its calls showed, until somebody asks.
    observations: Vec<Observation>,
}

impl Hold {
    pub(super) fn observe(&mut self, observation: Observation) {
        self.observations.push(observation);
    }

    /// The answer may take so much more.
    pub(super) fn widen(&mut self, rest: Tokens) {
        self.room += rest;
    }

    /// True where some of the answer has not passed.
    pub(super) fn withholds(&self) -> bool {
        !self.withheld.is_empty()
    }
}

impl Phases {
    /// Told what is known of the target that is asked.
    pub fn meet(&mut self, conduct: Conduct) {
        self.hold.conduct = conduct;
    }

    /// What its calls have shown of the target since this was last asked.
    pub fn observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.hold.observations)
    }

    /// The word for the least effort, where a call that asks for no thought has no other way to say so.
    pub fn effort_least(&self) -> Option<&str> {
        self.terms.effort_least.as_deref().filter(|_| self.terms.class == Class::Effort)
    }

    /// The part is called for next.
    pub(super) fn call_for(&mut self, part: Part) -> Part {
        let Hold { conduct, .. } = self.hold;
        let (beside, room, is_total) = match &part {
            Part::Whole { solution, .. } | Part::Thought { solution, .. } => {
                (self.terms.overhead, *solution, false)
            }
            Part::Solution { solution, .. } => (Tokens::ZERO, *solution, false),
            Part::Total { tokens, .. } => (Tokens::ZERO, *tokens, true),
        };
        let limit = part.most() + beside;
        let observations = std::mem::take(&mut self.hold.observations);
        self.hold = Hold {
            brake: Brake::new(limit, conduct.token_each),
            conduct,
            room,
            is_total,
            observations,
            ..Hold::default()
        };
        self.account.limit(tolerated(limit));
        part
    }

    /// True where the call is to be hung up on. What only a count says is first heard out: the end may be next to come.
    pub(super) fn watch(&mut self, piece: &Piece) -> bool {
        let hold = &mut self.hold;
        let was_beyond = std::mem::replace(&mut hold.is_beyond, false);
        hold.brake.note(piece);
        hold.is_beyond = hold.brake.is_beyond();
        match piece {
            Piece::End(_) => false,
            Piece::Usage(_) => was_beyond && hold.is_beyond,
            _ => hold.is_beyond,
        }
    }

    /// How much of the answer may pass.
    fn most(&self) -> Tokens {
        let Hold { brake, room, is_total, .. } = &self.hold;
        if *is_total { room.saturating_sub(brake.thought()) } else { *room }
    }

    /// What of the answer's text passes now.
    pub(super) fn pass(&mut self, text: &str) -> String {
        let most = self.most();
        let Hold { brake, conduct, passed, withheld, is_beyond, .. } = &mut self.hold;
        if brake.counts_each() && !*is_beyond {
            // Each of its tokens was held against the limit.
            return text.to_owned();
        }
        let too_many = conduct.token_each && brake.answered() > most;
        let room = if too_many || !withheld.is_empty() { 0 } else { passed.room(text, most) };
        let (now, later) = text.split_at(room);
        passed.add(now);
        if !*is_beyond {
            withheld.push_str(later);
        }
        now.to_owned()
    }

    /// What was withheld, at the end of the call: all of it where its count says that it was within its limit, else nothing.
    /// `None` where something is lost.
    pub(super) fn release(&mut self) -> Option<String> {
        let most = self.most();
        let withheld = std::mem::take(&mut self.hold.withheld);
        if withheld.is_empty() {
            return Some(withheld);
        }
        (self.hold.brake.says_within(most) && !self.hold.is_beyond).then_some(withheld)
    }

    /// True where the call has kept to its limit, so that nothing of its answer is lost at its end.
    pub(super) fn holds_limit(&self) -> bool {
        let Hold { brake, withheld, is_beyond, .. } = &self.hold;
        let is_lost = !withheld.is_empty() && !brake.says_within(self.most());
        !is_beyond && !brake.is_beyond() && !is_lost
    }

    /// True where the answer has surely gone beyond its own limit, whatever the call may write altogether.
    pub(super) fn is_answer_beyond(&self) -> bool {
        self.hold.brake.answered() > tolerated(self.most())
    }

    /// Hangs up on a call that does not hold its limit.
    pub(super) fn hang_up(&mut self, shown: String) -> Step {
        let Hold { brake, is_beyond, .. } = &self.hold;
        let (written, limit) = (brake.written(), brake.limit());
        // An upstream that was told no limit does not break one.
        let breaks = *is_beyond && self.terms.tells_limit;
        if breaks {
            self.hold.observe(Observation::Overran { written, limit });
        }
        self.hold.withheld.clear();
        self.observe_switch(false);
        if self.account.thought_shows() {
            self.close(Ended::Cut);
        }
        let ended = if breaks { SolutionEnded::Upstream } else { self.terms.solution_by.into() };
        let shown = [shown, self.answer.rest()].concat();
        self.over(shown, Close::BrokenOff, (ended, Finish::Length))
    }

    /// A call that is beyond its limit: its thought is cut where an answer can still be asked for, else it is hung up on.
    pub(super) fn brake(&mut self, piece: Piece) -> Step {
        let thinks = self.state == State::Thinking && self.resume_class().is_some();
        match piece {
            Piece::Thought { text, tokens, .. } if thinks => {
                self.account.discarded(&text, tokens);
                Step::Call(self.resume(Ended::Cut, Close::BrokenOff))
            }
            Piece::Answer { text, tokens } => {
                self.answer_begins();
                self.account.solve(&text, tokens);
                let passed = self.pass(&text);
                self.spoke |= !passed.is_empty();
                let shown = self.answer_shows(&passed);
                self.hang_up(shown)
            }
            Piece::Usage(usage) => {
                self.account.usage(self.believed(usage));
                self.hang_up(String::new())
            }
            Piece::Thought { text, tokens, .. } => {
                self.account.think(&text, tokens);
                self.hang_up(String::new())
            }
            Piece::ToolCall(delta) => {
                self.answer_begins();
                self.tool_calls = true;
                // What does not pass is not kept: the call stays unfinished.
                self.arguments.entry(delta.index).or_default();
                self.account.solve(&delta.arguments, Tokens::ZERO);
                self.hang_up(String::new())
            }
            _ => self.hang_up(String::new()),
        }
    }

    /// A count, no higher than what can have been written.
    pub(super) fn believed(&self, usage: Usage) -> Usage {
        let most = tolerated(self.hold.brake.limit());
        let thinking = usage.thinking.map(|thinking| thinking.min(most));
        Usage { completion: usage.completion.min(most), thinking, ..usage }
    }

    /// The call came to its end: what it showed of its target.
    pub(super) fn observe_end(&mut self) {
        let Hold { brake, is_beyond, .. } = &self.hold;
        let (written, limit) = (brake.written(), brake.limit());
        if *is_beyond && self.terms.tells_limit {
            self.hold.observe(Observation::Overran { written, limit });
        } else if let (pieces, Some(tokens)) = brake.pieces() {
            self.hold.observe(Observation::Counted { pieces, tokens });
        }
        let answered = !self.answer.is_empty() || self.tool_calls;
        self.observe_switch(answered);
    }

    /// A call that was asked not to think shows whether that can be had.
    fn observe_switch(&mut self, answered: bool) {
        if self.is_makeshift() {
            self.hold.observe(Observation::Switched(answered));
        }
    }
}
