//! How much one step does: all that its commands depend on, beside the model.

use crate::ops::splits_max;

/// How much one step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StepExtent {
    pub(super) rows: u32,
    pub(super) picks: u32,
    /// The most positions that one of the rows attends to.
    pub(super) longest: u32,
    /// How many logits are changed before tokens are drawn; none are drawn without.
    pub(super) changes: Option<u32>,
}

impl StepExtent {
    /// Whether the same commands do both.
    pub(super) fn runs_like(self, other: Self) -> bool {
        let longest = other.longest;
        Self { longest, ..self } == other && splits_max(self.longest) == splits_max(longest)
    }

    /// The step that comes next if every text is past its prompt and none ends.
    pub(super) fn next(self) -> Option<Self> {
        let decodes = self.rows == self.picks && self.changes == Some(0);
        decodes.then_some(Self { longest: self.longest + 1, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: StepExtent = StepExtent { rows: 3, picks: 3, longest: 100, changes: Some(0) };

    #[test]
    fn steps_of_other_positions_run_like_each_other_until_there_are_more_splits() {
        assert!(STEP.runs_like(StepExtent { longest: 256, ..STEP }));
        assert!(!STEP.runs_like(StepExtent { longest: 257, ..STEP }));
        assert!(!StepExtent { longest: 257, ..STEP }.runs_like(STEP));
    }

    #[test]
    fn steps_of_other_numbers_of_rows_picks_and_changes_do_not() {
        assert!(!STEP.runs_like(StepExtent { rows: 4, ..STEP }));
        assert!(!STEP.runs_like(StepExtent { picks: 2, ..STEP }));
        assert!(!STEP.runs_like(StepExtent { changes: Some(1), ..STEP }));
        assert!(!STEP.runs_like(StepExtent { changes: None, ..STEP }));
    }

    #[test]
    fn after_a_step_in_which_all_decode_the_same_is_expected_one_position_on() {
        assert_eq!(STEP.next(), Some(StepExtent { longest: 101, ..STEP }));
        assert_eq!(StepExtent { rows: 20, ..STEP }.next(), None, "a prompt is read");
        assert_eq!(StepExtent { changes: Some(4), ..STEP }.next(), None, "they differ from step to step");
        assert_eq!(StepExtent { changes: None, ..STEP }.next(), None);
    }
}
