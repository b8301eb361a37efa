//! The latest request records, in memory: a verdict that comes soon after its answer need not wait for the store.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stint_sessions::history::RequestRecord;
use stint_types::catalog::Verdict;
use stint_types::units::RequestId;

/// How many stories are remembered.
const STORIES_MAX: usize = 4096;

/// The latest stories of this process. Its lock is held for moments.
#[derive(Debug, Default)]
pub(super) struct RecentRecords {
    records: Mutex<RecentRecordIndex>,
}

#[derive(Debug, Default)]
struct RecentRecordIndex {
    by_id: HashMap<RequestId, Arc<RequestRecord>>,
    order: VecDeque<RequestId>,
}

impl RecentRecords {
    fn records(&self) -> MutexGuard<'_, RecentRecordIndex> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, story: &Arc<RequestRecord>) {
        let mut stories = self.records();
        let id = story.decision.id;
        if stories.by_id.insert(id, story.clone()).is_none() {
            stories.order.push_back(id);
        }
        while stories.order.len() > STORIES_MAX {
            if let Some(oldest) = stories.order.pop_front() {
                stories.by_id.remove(&oldest);
            }
        }
    }

    pub(super) fn find(&self, id: RequestId) -> Option<Arc<RequestRecord>> {
        self.records().by_id.get(&id).cloned()
    }

    /// The latest, the last one first, so many at most.
    pub(super) fn latest(&self, most: usize) -> Vec<Arc<RequestRecord>> {
        let stories = self.records();
        let latest = stories.order.iter().rev().take(most);
        latest.filter_map(|id| stories.by_id.get(id).cloned()).collect()
    }

    /// Takes a verdict in, where its story is here; the one of the same source that it replaces comes back.
    pub(super) fn judge(&self, verdict: &Verdict) -> Option<Verdict> {
        let mut stories = self.records();
        let story = stories.by_id.get_mut(&verdict.id)?;
        Arc::make_mut(story).set_verdict(verdict.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_sessions::history::conformance;
    use stint_types::catalog::VerdictSource;

    #[test]
    fn only_the_latest_are_remembered_with_what_was_said_of_them() {
        let recent = RecentRecords::default();
        let first = Arc::new(conformance::story(1));
        recent.add(&first);
        let verdict = conformance::verdict(&first, VerdictSource::Feedback, 1.0);
        assert_eq!(recent.judge(&verdict), None);
        assert_eq!(recent.judge(&verdict), Some(verdict.clone()));
        assert_eq!(recent.find(first.decision.id).unwrap().verdicts, std::slice::from_ref(&verdict));
        assert!(first.verdicts.is_empty(), "a copy taken before does not change");
        (0..STORIES_MAX).for_each(|_| recent.add(&Arc::new(conformance::story(2))));
        assert_eq!(recent.find(first.decision.id), None);
        let last = Arc::new(conformance::story(3));
        recent.add(&last);
        assert_eq!(recent.latest(2).first(), Some(&last), "the last one comes first");
        assert_eq!((recent.latest(2).len(), recent.latest(usize::MAX).len()), (2, STORIES_MAX));
        assert_eq!(recent.judge(&verdict), None);
        assert_eq!(recent.records().by_id.len(), STORIES_MAX);
    }
}
