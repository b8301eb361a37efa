//! `TargetBehavior`: how a target was seen to treat the limits it is sent, as far as its next calls must know.

use stint_types::units::Tokens;

/// What is known of a target's ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TargetBehavior {
    /// Each piece of its text is a token at least, as its finished answers showed.
    pub has_token_per_piece: bool,
    /// It shows its thoughts, though its class takes them for hidden.
    pub shows_thoughts: bool,
    /// It spent its limit on a thought again when it was last asked not to think.
    pub ignores_switch: bool,
    /// Whether an answer can be asked for in a new turn, behind a thought that was cut.
    pub turns: Turns,
    /// Its chat template knows of no thoughts, so there is none to be held.
    pub never_thinks: bool,
    /// It wrote clearly more than it was allowed, and is not left alone while it writes.
    pub breaks_limits: bool,
    /// It can be asked for an answer in one piece.
    pub answers_whole: bool,
    /// Enough of its first tokens were waited for just now: one answer more that comes in one piece, and shows none, hides nothing.
    pub is_measured: bool,
}

/// Whether an answer can be asked for in a new turn, without a thought of its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turns {
    /// It cannot: nothing would keep the turn from thinking again.
    #[default]
    Never,
    /// It can where the model has a word for the least effort.
    ByWord,
    /// It can: thinking can be turned off.
    Always,
}

/// What one call showed of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BehaviorObservation {
    /// It came to its end, with so many pieces of text for so many tokens that could be seen.
    Counted {
        /// The pieces that had text.
        pieces: u64,
        /// The target's own count.
        tokens: Tokens,
    },
    /// A thought came where none was to be seen.
    ShowsThoughts,
    /// It was asked not to think: true if an answer came of it.
    ThinkingSwitched(bool),
    /// It wrote, or reported, clearly more than it was allowed.
    Overran {
        /// What it wrote, at least.
        written: Tokens,
        /// What it was allowed.
        limit: Tokens,
        /// True if its own counts show it, or its pieces, where each is a token: not only how long its text is.
        is_counted: bool,
    },
}

/// What a target's calls have shown so far, by all accounts.
#[derive(Debug, Clone, Copy, Default)]
pub struct BehaviorTracker {
    behavior: TargetBehavior,
    /// How many finished answers in a row had a token in each piece.
    agreeing: u32,
    /// For how many more answers it is taken to think whatever it is asked.
    switch_ignored_for: u32,
}

/// An answer of fewer pieces shows nothing.
const PIECES_MIN: u64 = 16;
/// So many answers in a row are believed.
const AGREEING_ANSWERS_MIN: u32 = 2;
/// After so many answers a target that went on thinking is asked once more not to.
const SWITCH_RETRY_AFTER: u32 = 50;
/// Tags and the end of the text may part a piece.
const SPLIT_PIECES_MAX: u64 = 4;

impl BehaviorTracker {
    /// What is known by now.
    pub fn behavior(&self) -> TargetBehavior {
        self.behavior
    }

    /// Takes in what one more call showed.
    pub fn record(&mut self, observation: BehaviorObservation) {
        match observation {
            BehaviorObservation::Counted { pieces, tokens } => self.count(pieces, tokens),
            BehaviorObservation::ThinkingSwitched(heeded) => {
                self.switch_ignored_for = if heeded { 0 } else { SWITCH_RETRY_AFTER }
            }
            // For whom this holds depends on whose calls they were, which the fleet knows.
            BehaviorObservation::ShowsThoughts | BehaviorObservation::Overran { .. } => {}
        }
        self.behavior.ignores_switch = self.switch_ignored_for > 0;
    }

    fn count(&mut self, pieces: u64, tokens: Tokens) {
        self.switch_ignored_for = self.switch_ignored_for.saturating_sub(1);
        if pieces > tokens.0 + SPLIT_PIECES_MAX {
            self.agreeing = 0;
        } else if pieces >= PIECES_MIN {
            self.agreeing = self.agreeing.saturating_add(1);
        }
        self.behavior.has_token_per_piece = self.agreeing >= AGREEING_ANSWERS_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_went_on_thinking_is_asked_once_more_after_a_while() {
        let mut observed = BehaviorTracker::default();
        observed.record(BehaviorObservation::ThinkingSwitched(false));
        assert!(observed.behavior().ignores_switch);
        (0..SWITCH_RETRY_AFTER)
            .for_each(|_| observed.record(BehaviorObservation::Counted { pieces: 1, tokens: Tokens(1) }));
        assert!(!observed.behavior().ignores_switch);
    }

    #[test]
    fn pieces_are_tokens_only_where_finished_answers_showed_one_in_each() {
        let mut observed = BehaviorTracker::default();
        let mut after = |pieces, tokens| {
            observed.record(BehaviorObservation::Counted { pieces, tokens: Tokens(tokens) });
            observed.behavior().has_token_per_piece
        };
        assert!(!after(100, 100), "one answer is not believed");
        assert!(after(20, 60), "a piece of several tokens is a token at least");
        assert!(after(3, 1), "a short answer tells nothing");
        assert!(!after(400, 100), "here a token comes in four pieces");
    }
}
