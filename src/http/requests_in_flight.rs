//! Counts requests in flight by whose they are, so that nobody has more than a share.

use std::hash::Hash;
use std::sync::Arc;

use dashmap::DashMap;

/// The requests in flight of each one of `K`. Clones share them.
#[derive(Debug)]
pub(super) struct RequestsInFlight<K: Eq + Hash>(Arc<DashMap<K, usize>>);

/// One of them. Dropping it ends it.
#[derive(Debug)]
pub(super) struct RequestInFlight<K: Eq + Hash> {
    all: RequestsInFlight<K>,
    whose: K,
}

impl<K: Eq + Hash> Default for RequestsInFlight<K> {
    fn default() -> RequestsInFlight<K> {
        RequestsInFlight(Arc::default())
    }
}

impl<K: Eq + Hash> Clone for RequestsInFlight<K> {
    fn clone(&self) -> RequestsInFlight<K> {
        RequestsInFlight(self.0.clone())
    }
}

impl<K: Eq + Hash + Clone> RequestsInFlight<K> {
    /// One more; `None` if there are as many as there may be.
    pub(super) fn begin(&self, whose: K, most: usize) -> Option<RequestInFlight<K>> {
        let mut count = self.0.entry(whose.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(RequestInFlight { all: self.clone(), whose })
    }
}

impl<K: Eq + Hash> Drop for RequestInFlight<K> {
    fn drop(&mut self) {
        self.all.0.remove_if_mut(&self.whose, |_, count| {
            *count = count.saturating_sub(1);
            *count == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_so_many_requests_at_once() {
        let all = RequestsInFlight::default();
        let first = all.begin("a", 1);
        assert!(first.is_some() && all.begin("a", 1).is_none());
        assert!(all.begin("b", 1).is_some());
        drop(first);
        assert!(all.begin("a", 1).is_some() && all.0.is_empty());
    }
}
