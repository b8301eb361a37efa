//! Enforces the limit of a call whose upstream ignores it.
//!
//! The reader gets no more than the limit allows, counted by the least that was surely written. Text beyond it is withheld
//! until the upstream's last usage shows that it was within the limit. Past a tolerance the phase machine hangs up.

use stint_backend::{BehaviorObservation, GenerationPart, Piece, Remark, TargetBehavior, TokenUsage};
use stint_types::units::Tokens;

use super::super::overrun_guard::{OverrunGuard, TokenLowerBound, with_tolerance};

/// An answer that ends so many tokens before its limit was ended by it: not all count alike.
const LIMIT_TOLERANCE: u64 = 8;
/// The same for one part in so many of the answer.
const LIMIT_TOLERANCE_PART: u64 = 8;

/// The most that an upstream may count where so many tokens were reported: one that allows no more was ended by its limit.
pub(super) fn count_max(reported: Tokens) -> Tokens {
    reported + Tokens(reported.0 / LIMIT_TOLERANCE_PART + LIMIT_TOLERANCE)
}

/// What the running call may write, what of it passes, and what it showed of its target.
#[derive(Debug, Clone, Default)]
pub(super) struct LimitEnforcer {
    guard: OverrunGuard,
    /// What the target is known for.
    pub(super) behavior: TargetBehavior,
    /// The most that its answer may take; thought and answer together, where `is_total`.
    answer_max: Tokens,
    is_total: bool,
    /// What the upstream was sent as the limit of both, where its answer ends by that.
    sent: Option<Tokens>,
    /// The upstream takes no limit so low, so that it was sent a higher one.
    is_raised: bool,
    /// What has passed of its answer.
    passed: TokenLowerBound,
    /// What has not, until its count is known.
    withheld: String,
    /// Something may have come after the upstream's limit.
    is_beyond: bool,
    /// A word of its answer came, or a call of a tool.
    has_answered: bool,
    /// What it thought unasked before that.
    unasked: Tokens,
    /// What its calls showed, until the observations are taken.
    observations: Vec<BehaviorObservation>,
}

impl LimitEnforcer {
    /// This part is called for, and may write so much altogether, of an upstream that takes no limit below `least`. What the last
    /// one showed is still to be reported.
    pub(super) fn begin_part(&mut self, part: &GenerationPart, limit: Tokens, least: Tokens) {
        let (answer_max, is_total) = match part {
            GenerationPart::Whole { solution, .. }
            | GenerationPart::Thought { solution, .. }
            | GenerationPart::Solution { solution, .. } => (*solution, false),
            GenerationPart::Total { tokens, .. } => (*tokens, true),
        };
        let sent = match part {
            // Which of the two limits it is sent, and whether its answer stands under that, differs.
            GenerationPart::Thought { .. } => None,
            GenerationPart::Whole { thinking, solution } => Some(*thinking + *solution),
            GenerationPart::Solution { solution, .. } => Some(*solution),
            GenerationPart::Total { tokens, .. } => Some(*tokens),
        };
        *self = LimitEnforcer {
            sent,
            guard: OverrunGuard::new(limit, self.behavior.has_token_per_piece),
            behavior: self.behavior,
            answer_max,
            is_total,
            is_raised: limit < least,
            observations: self.take_observations(),
            ..LimitEnforcer::default()
        };
    }

    pub(super) fn observe(&mut self, observation: BehaviorObservation) {
        self.observations.push(observation);
    }

    pub(super) fn take_observations(&mut self) -> Vec<BehaviorObservation> {
        std::mem::take(&mut self.observations)
    }

    /// The call is over, or about to be hung up on. True if it broke a limit that it was sent.
    pub(super) fn observe_overrun(&mut self, tells_limit: bool) -> bool {
        let breaks_limit = self.is_beyond && tells_limit;
        if breaks_limit {
            let (written, limit) = (self.guard.written(), self.guard.limit());
            let is_counted = self.guard.is_counted_beyond_limit();
            self.observe(BehaviorObservation::Overran { written, limit, is_counted });
        }
        breaks_limit
    }

    /// The call came to its end: whether it held its limit, or how it counts.
    pub(super) fn observe_end(&mut self, tells_limit: bool) {
        if !self.observe_overrun(tells_limit)
            && let (pieces, Some(tokens)) = self.guard.pieces()
        {
            self.observe(BehaviorObservation::Counted { pieces, tokens });
        }
    }

    /// The answer may take so much more. Under one limit for both that was in it from the beginning.
    pub(super) fn widen(&mut self, rest: Tokens) {
        if !self.is_total {
            self.answer_max += rest;
        }
    }

    /// The least that the call has thought of what shows.
    pub(super) fn thinking_tokens(&self) -> Tokens {
        self.guard.thinking_tokens()
    }

    /// More of the call's answer came; blank alone is none.
    pub(super) fn record_answer(&mut self, text: &str) {
        self.has_answered |= !text.trim().is_empty();
    }

    /// The call has called a tool.
    pub(super) fn record_call(&mut self) {
        self.has_answered = true;
    }

    /// True once a word of the call's answer came, or a call of a tool.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// What the call has thought so far it was not asked to, and is put up with.
    pub(super) fn tolerate_thought(&mut self) {
        self.unasked = self.guard.thinking_tokens();
    }

    /// The least that the call has thought since its answer began, and before it if it was asked to.
    pub(super) fn late_thinking_tokens(&self) -> Tokens {
        self.guard.thinking_tokens().saturating_sub(self.unasked)
    }

    /// True if the call must be hung up. An overrun that only a count shows takes effect at the next piece, since that
    /// may be the end.
    pub(super) fn is_overrun_by(&mut self, piece: &Piece) -> bool {
        let was_beyond = self.is_beyond;
        self.guard.record(piece);
        self.is_beyond = self.guard.is_exceeded();
        match piece {
            Piece::End(_) | Piece::Remark(Remark::Members(_)) => false,
            Piece::Usage(_) => was_beyond && self.is_beyond,
            _ => self.is_beyond,
        }
    }

    /// What of the answer's text passes now.
    pub(super) fn pass<'t>(&mut self, text: &'t str) -> &'t str {
        if self.guard.counts_each_token() && !self.is_beyond {
            // Each of its tokens was held against the limit.
            return text;
        }
        let most = self.passable_max();
        let too_many = self.behavior.has_token_per_piece && self.guard.answer_tokens() > most;
        let room = if too_many || self.withholds() { 0 } else { self.passed.bytes_within(text, most) };
        let (now, later) = text.split_at(room);
        self.passed.add(now);
        if !self.is_beyond {
            self.withheld.push_str(later);
        }
        now
    }

    /// True if something may have come after the upstream's limit.
    pub(super) fn is_beyond(&self) -> bool {
        self.is_beyond
    }

    /// True if some of the answer has not passed.
    pub(super) fn withholds(&self) -> bool {
        !self.withheld.is_empty()
    }

    /// What was withheld, at the end of the call: all of it where its count says that it was within its limit, else nothing.
    /// `None` where something is lost.
    pub(super) fn release(&mut self) -> Option<String> {
        let withheld = std::mem::take(&mut self.withheld);
        let is_within = || self.guard.reports_within(self.passable_max()) && !self.is_beyond;
        let is_cut = self.is_raised && self.guard.written() > self.guard.limit();
        (!is_cut && (withheld.is_empty() || is_within())).then_some(withheld)
    }

    /// True if the call is reported to have written far less than it was allowed.
    pub(super) fn ended_below_limit(&self) -> bool {
        let is_below = |written: Tokens, limit: Tokens| count_max(written) < limit;
        let is_answer_below = self.is_total || is_below(self.guard.answer_tokens(), self.answer_max);
        let is_all_below = self.sent.is_some_and(|limit| is_below(self.guard.written(), limit));
        self.guard.is_counted() && is_answer_below && is_all_below
    }

    /// What was withheld is never shown.
    pub(super) fn drop_withheld(&mut self) {
        self.withheld.clear();
    }

    /// True if the call has kept to its limit, so that nothing of its answer is lost at its end.
    pub(super) fn holds_limit(&self) -> bool {
        let is_lost = self.withholds() && !self.guard.reports_within(self.passable_max());
        !self.is_beyond && !self.guard.is_exceeded() && !is_lost
    }

    /// True if the answer has surely gone beyond its own limit, whatever the call may write altogether.
    pub(super) fn is_answer_beyond(&self) -> bool {
        self.guard.answer_tokens() > with_tolerance(self.passable_max())
    }

    /// True if what the call thought unasked leaves nothing of what may be answered, from which it is taken.
    pub(super) fn is_answer_thought_away(&self) -> bool {
        self.guard.answer_tokens() + self.guard.thinking_tokens() > with_tolerance(self.passable_max())
    }

    /// A count, no higher than what can have been written.
    pub(super) fn clamp_usage(&self, usage: TokenUsage) -> TokenUsage {
        let most = with_tolerance(self.guard.limit());
        let thinking = usage.thinking.map(|thinking| thinking.min(most));
        TokenUsage { completion: usage.completion.min(most), thinking, ..usage }
    }

    /// How much of the answer may pass.
    fn passable_max(&self) -> Tokens {
        let thought = if self.is_total { self.guard.thinking_tokens() } else { Tokens::ZERO };
        self.answer_max.saturating_sub(thought)
    }
}
