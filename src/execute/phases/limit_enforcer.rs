//! Holds a call to its limit where its upstream does not.
//!
//! The reader gets no more than the limit allows, by the least that was surely written. What goes beyond is withheld until the
//! upstream's last word says that it was within, and past a tolerance the call is hung up on.

use crate::backend::{BehaviorObservation, GenerationPart, Piece, TargetBehavior, TokenUsage};
use crate::catalog::{EnforcementClass, SolutionStopReason, ThinkingStopReason};
use crate::chat::FinishReason;
use crate::units::Tokens;

use super::super::overrun_guard::{OverrunGuard, TokenLowerBound, with_tolerance};
use super::super::usage_account::PartEnd;
use super::{ChoiceState, ChoiceStateMachine, ChoiceStep};

/// What the running call may write, and what of it passes.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitEnforcer {
    pub(super) guard: OverrunGuard,
    /// What the target is known for.
    pub(super) behavior: TargetBehavior,
    /// The most that its answer may take; thought and answer together, where `is_total`.
    answer_max: Tokens,
    is_total: bool,
    /// What has passed of its answer.
    passed: TokenLowerBound,
    /// What has not, until its count is known.
    withheld: String,
    /// Something may have come after the upstream's limit.
    is_beyond: bool,
    /// What its calls showed, until somebody asks.
    observations: Vec<BehaviorObservation>,
}

impl LimitEnforcer {
    pub(super) fn observe(&mut self, observation: BehaviorObservation) {
        self.observations.push(observation);
    }

    /// The answer may take so much more.
    pub(super) fn widen(&mut self, rest: Tokens) {
        self.answer_max += rest;
    }

    /// True where some of the answer has not passed.
    pub(super) fn withholds(&self) -> bool {
        !self.withheld.is_empty()
    }
}

impl ChoiceStateMachine {
    /// Told what is known of the target that is asked.
    pub fn set_behavior(&mut self, conduct: TargetBehavior) {
        self.enforcer.behavior = conduct;
    }

    /// What its calls have shown of the target since this was last asked.
    pub fn take_observations(&mut self) -> Vec<BehaviorObservation> {
        std::mem::take(&mut self.enforcer.observations)
    }

    /// The word for the least effort, where a call that asks for no thought has no other way to say so.
    pub fn effort_least(&self) -> Option<&str> {
        self.terms.effort_least.as_deref().filter(|_| self.terms.class == EnforcementClass::Effort)
    }

    /// The part is called for next.
    pub(super) fn prepare_part(&mut self, part: GenerationPart) -> GenerationPart {
        let LimitEnforcer { behavior: conduct, .. } = self.enforcer;
        let (beside, room, is_total) = match &part {
            GenerationPart::Whole { solution, .. } | GenerationPart::Thought { solution, .. } => {
                (self.terms.overhead, *solution, false)
            }
            GenerationPart::Solution { solution, .. } => (Tokens::ZERO, *solution, false),
            GenerationPart::Total { tokens, .. } => (Tokens::ZERO, *tokens, true),
        };
        let limit = part.tokens_max() + beside;
        let observations = std::mem::take(&mut self.enforcer.observations);
        self.enforcer = LimitEnforcer {
            guard: OverrunGuard::new(limit, conduct.has_token_per_piece),
            behavior: conduct,
            answer_max: room,
            is_total,
            observations,
            ..LimitEnforcer::default()
        };
        self.account.set_limit(with_tolerance(limit));
        part
    }

    /// True where the call is to be hung up on. What only a count says is first heard out: the end may be next to come.
    pub(super) fn is_overrun_by(&mut self, piece: &Piece) -> bool {
        let hold = &mut self.enforcer;
        let was_beyond = std::mem::replace(&mut hold.is_beyond, false);
        hold.guard.record(piece);
        hold.is_beyond = hold.guard.is_exceeded();
        match piece {
            Piece::End(_) => false,
            Piece::Usage(_) => was_beyond && hold.is_beyond,
            _ => hold.is_beyond,
        }
    }

    /// How much of the answer may pass.
    fn passable_max(&self) -> Tokens {
        let LimitEnforcer { guard: brake, answer_max: room, is_total, .. } = &self.enforcer;
        if *is_total { room.saturating_sub(brake.thinking_tokens()) } else { *room }
    }

    /// What of the answer's text passes now.
    pub(super) fn pass_within_limit(&mut self, text: &str) -> String {
        let most = self.passable_max();
        let LimitEnforcer { guard: brake, behavior: conduct, passed, withheld, is_beyond, .. } =
            &mut self.enforcer;
        if brake.counts_each_token() && !*is_beyond {
            // Each of its tokens was held against the limit.
            return text.to_owned();
        }
        let too_many = conduct.has_token_per_piece && brake.answer_tokens() > most;
        let room = if too_many || !withheld.is_empty() { 0 } else { passed.bytes_within(text, most) };
        let (now, later) = text.split_at(room);
        passed.add(now);
        if !*is_beyond {
            withheld.push_str(later);
        }
        now.to_owned()
    }

    /// What was withheld, at the end of the call: all of it where its count says that it was within its limit, else nothing.
    /// `None` where something is lost.
    pub(super) fn release_withheld(&mut self) -> Option<String> {
        let most = self.passable_max();
        let withheld = std::mem::take(&mut self.enforcer.withheld);
        if withheld.is_empty() {
            return Some(withheld);
        }
        (self.enforcer.guard.reports_within(most) && !self.enforcer.is_beyond).then_some(withheld)
    }

    /// True where the call has kept to its limit, so that nothing of its answer is lost at its end.
    pub(super) fn holds_limit(&self) -> bool {
        let LimitEnforcer { guard: brake, withheld, is_beyond, .. } = &self.enforcer;
        let is_lost = !withheld.is_empty() && !brake.reports_within(self.passable_max());
        !is_beyond && !brake.is_exceeded() && !is_lost
    }

    /// True where the answer has surely gone beyond its own limit, whatever the call may write altogether.
    pub(super) fn is_answer_beyond(&self) -> bool {
        self.enforcer.guard.answer_tokens() > with_tolerance(self.passable_max())
    }

    /// Hangs up on a call that does not hold its limit.
    pub(super) fn hang_up(&mut self, shown: String) -> ChoiceStep {
        let LimitEnforcer { guard: brake, is_beyond, .. } = &self.enforcer;
        let (written, limit) = (brake.written(), brake.limit());
        // An upstream that was told no limit does not break one.
        let breaks = *is_beyond && self.terms.tells_limit;
        if breaks {
            self.enforcer.observe(BehaviorObservation::Overran { written, limit });
        }
        self.enforcer.withheld.clear();
        self.observe_switch(false);
        if self.account.has_visible_thought() {
            self.end_thinking(ThinkingStopReason::Cut);
        }
        let ended = if breaks { SolutionStopReason::Upstream } else { self.terms.solution_by.into() };
        let shown = [shown, self.stop_filter.flush()].concat();
        self.finalize(shown, PartEnd::BrokenOff, (ended, FinishReason::Length))
    }

    /// A call that is beyond its limit: its thought is cut where an answer can still be asked for, else it is hung up on.
    pub(super) fn on_overrun(&mut self, piece: Piece) -> ChoiceStep {
        let thinks = self.state == ChoiceState::Thinking && self.resume_class().is_some();
        match piece {
            Piece::Thought { text, tokens, .. } if thinks => {
                self.account.add_discarded(&text, tokens);
                ChoiceStep::Call(self.resume(ThinkingStopReason::Cut, PartEnd::BrokenOff))
            }
            Piece::Answer { text, tokens } => {
                self.begin_answer();
                self.account.add_solution(&text, tokens);
                let passed = self.pass_within_limit(&text);
                self.has_answered |= !passed.is_empty();
                let shown = self.answer_shows(&passed);
                self.hang_up(shown)
            }
            Piece::Usage(usage) => {
                self.account.set_usage(self.clamp_usage(usage));
                self.hang_up(String::new())
            }
            Piece::Thought { text, tokens, .. } => {
                self.account.add_thinking(&text, tokens);
                self.hang_up(String::new())
            }
            Piece::ToolCall(delta) => {
                self.begin_answer();
                self.tool_calls = true;
                // What does not pass is not kept: the call stays unfinished.
                self.arguments.entry(delta.index).or_default();
                self.account.add_solution(&delta.arguments, Tokens::ZERO);
                self.hang_up(String::new())
            }
            _ => self.hang_up(String::new()),
        }
    }

    /// A count, no higher than what can have been written.
    pub(super) fn clamp_usage(&self, usage: TokenUsage) -> TokenUsage {
        let most = with_tolerance(self.enforcer.guard.limit());
        let thinking = usage.thinking.map(|thinking| thinking.min(most));
        TokenUsage { completion: usage.completion.min(most), thinking, ..usage }
    }

    /// The call came to its end: what it showed of its target.
    pub(super) fn observe_end(&mut self) {
        let LimitEnforcer { guard: brake, is_beyond, .. } = &self.enforcer;
        let (written, limit) = (brake.written(), brake.limit());
        if *is_beyond && self.terms.tells_limit {
            self.enforcer.observe(BehaviorObservation::Overran { written, limit });
        } else if let (pieces, Some(tokens)) = brake.pieces() {
            self.enforcer.observe(BehaviorObservation::Counted { pieces, tokens });
        }
        let answered = !self.stop_filter.is_empty() || self.tool_calls;
        self.observe_switch(answered);
    }

    /// A call that was asked not to think shows whether that can be had.
    fn observe_switch(&mut self, answered: bool) {
        if self.is_makeshift() {
            self.enforcer.observe(BehaviorObservation::ThinkingSwitched(answered));
        }
    }
}
