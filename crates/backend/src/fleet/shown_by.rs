//! Whose calls have shown something of a target.
//!
//! A caller may ask for a text that looks like a thought, or like more than a target was allowed to write. So what the texts of one
//! account show holds for that account, and for all only once those of a second one show it too.

use super::target::FlowId;

/// Whose calls have shown it so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ShownBy {
    first: Option<FlowId>,
    is_of_several: bool,
}

impl ShownBy {
    /// A call of this account has shown it.
    pub(super) fn record(&mut self, flow: FlowId) {
        self.is_of_several |= *self.first.get_or_insert(flow) != flow;
    }

    /// It was shown by what no caller can ask for.
    pub(super) fn confirm(&mut self) {
        self.is_of_several = true;
    }

    /// Whether it counts for this account's calls.
    pub(super) fn holds_for(self, flow: FlowId) -> bool {
        self.is_of_several || self.first == Some(flow)
    }

    /// Whether it counts for everybody's.
    pub(super) fn holds_for_all(self) -> bool {
        self.is_of_several
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_account_shows_holds_for_it_and_what_two_show_for_all() {
        let holds = |shown: ShownBy| [1, 2, 3].map(|flow| shown.holds_for(FlowId(flow)));
        let mut shown = ShownBy::default();
        assert_eq!(holds(shown), [false, false, false]);
        shown.record(FlowId(1));
        shown.record(FlowId(1));
        assert_eq!(holds(shown), [true, false, false]);
        shown.record(FlowId(2));
        assert_eq!(holds(shown), [true, true, true]);
        let mut sure = ShownBy::default();
        sure.confirm();
        assert_eq!(holds(sure), [true, true, true]);
    }
}
