//! Whose calls have shown something, such as that a target thinks or ignores its limits.
//!
//! A caller may ask for a text that looks like a thought, or like more than a target was allowed to write. So what the calls of one
//! account show holds for that account, and for all only once those of a second one show it too.

use std::mem;

/// The accounts whose calls have shown it so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShownBy<A> {
    /// No call has.
    #[default]
    Nobody,
    /// The calls of this account alone.
    One(A),
    /// Those of several, or something that no caller can ask for.
    Several,
}

impl<A: PartialEq> ShownBy<A> {
    /// A call of this account has shown it; where none is named, something that no caller can ask for.
    pub fn record(&mut self, account: Option<A>) {
        *self = match (mem::take(self), account) {
            (ShownBy::Nobody, Some(account)) => ShownBy::One(account),
            (ShownBy::One(first), Some(account)) if first == account => ShownBy::One(first),
            _ => ShownBy::Several,
        };
    }

    /// Whether it counts for this account's calls.
    pub fn holds_for(&self, account: &A) -> bool {
        match self {
            ShownBy::Nobody => false,
            ShownBy::One(first) => first == account,
            ShownBy::Several => true,
        }
    }

    /// Whether it counts for everybody's.
    pub fn holds_for_all(&self) -> bool {
        matches!(self, ShownBy::Several)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(shown_by: &[Option<u64>], holds_for: [bool; 3], holds_for_all: bool) {
        let mut shown = ShownBy::default();
        shown_by.iter().for_each(|account| shown.record(*account));
        assert_eq!([1, 2, 3].map(|account| shown.holds_for(&account)), holds_for, "{shown_by:?}");
        assert_eq!(shown.holds_for_all(), holds_for_all, "{shown_by:?}");
    }

    #[test]
    fn what_one_account_shows_holds_for_it_and_what_two_show_for_all() {
        check(&[], [false; 3], false);
        check(&[Some(1), Some(1)], [true, false, false], false);
        check(&[Some(1), Some(1), Some(2)], [true; 3], true);
        check(&[Some(1), Some(2), Some(1)], [true; 3], true);
    }

    #[test]
    fn what_no_caller_can_ask_for_holds_for_all_at_once() {
        check(&[None], [true; 3], true);
        check(&[Some(1), None, Some(1)], [true; 3], true);
    }
}
