//! Remembers how the latest verdicts were learned, so that a changed verdict can replace the earlier one.

use std::collections::{HashMap, VecDeque};

use stint_decide::learn::JudgementMark;
use stint_types::catalog::{Verdict, VerdictSource};
use stint_types::units::RequestId;

/// How many are remembered. For an older one it is not known how much of it is left.
const MARKS_MAX: usize = 16_384;

/// The marks of the latest verdicts that this process learned.
#[derive(Debug, Default)]
pub(super) struct VerdictMarks {
    by_verdict: HashMap<(RequestId, VerdictSource), JudgementMark>,
    order: VecDeque<(RequestId, VerdictSource)>,
}

impl VerdictMarks {
    pub(super) fn note(&mut self, verdict: &Verdict, mark: JudgementMark) {
        let word = (verdict.id, verdict.source);
        if self.by_verdict.insert(word, mark).is_none() {
            self.order.push_back(word);
        }
        if self.order.len() > MARKS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_verdict.remove(&oldest);
        }
    }

    /// The mark of an earlier verdict of the same source on the same answer.
    pub(super) fn of(&self, verdict: &Verdict) -> Option<JudgementMark> {
        self.by_verdict.get(&(verdict.id, verdict.source)).copied()
    }

    /// What was learned here belongs to another replica now.
    pub(super) fn forget(&mut self) {
        *self = VerdictMarks::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::feedback::samples;
    use stint_decide::learn::{BeliefStore, Settings};
    use stint_sessions::history::conformance;

    #[test]
    fn only_the_latest_are_remembered_each_source_by_itself() {
        let story = conformance::story(1);
        let verdict = |source| conformance::verdict(&story, source, 1.0);
        let (first, other) = (verdict(VerdictSource::Feedback), verdict(VerdictSource::Form));
        let mut beliefs = BeliefStore::new(Settings::default());
        let mut judge =
            |verdict: &Verdict| beliefs.judge(&samples::of_verdict(&story, verdict).unwrap()).unwrap();
        let (mark, later) = (judge(&first), judge(&other));
        let mut marks = VerdictMarks::default();
        marks.note(&first, mark);
        assert_eq!((marks.of(&first), marks.of(&other)), (Some(mark), None));
        for number in 0..2 * MARKS_MAX {
            let other = conformance::story(i64::try_from(number).unwrap());
            marks.note(&conformance::verdict(&other, VerdictSource::Feedback, 0.0), later);
        }
        assert_eq!((marks.of(&first), marks.by_verdict.len()), (None, MARKS_MAX));
    }
}
