//! Ids of the tool calls of one answer. A caller pairs results with calls by them, so each call has one, and no two have the same.

use std::collections::HashSet;

use crate::BackendCall;
use stint_types::units::mix64;

/// How the ids begin that are made up for calls that came without one.
pub(super) const MADE_ID_PREFIX: &str = "stint_";

/// Sees to it that each call of one answer has an id of its own.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    /// Tells made ids of one answer from those of another.
    seed: u64,
    used: HashSet<String>,
}

impl CallIds {
    /// For the answer to this call. A caller may ask with the same seed in every turn of a conversation, which is longer each time.
    pub(super) fn new(call: &BackendCall) -> CallIds {
        CallIds::with_seed(mix64(call.seed).wrapping_add(call.request.messages.len() as u64))
    }

    /// For an answer whose made ids have this seed in them.
    pub(super) fn with_seed(seed: u64) -> CallIds {
        CallIds { seed, used: HashSet::new() }
    }

    /// The upstream's id, or one that is made up where it is empty or an earlier call's.
    pub(super) fn unique(&mut self, id: Option<String>) -> String {
        let own = id.filter(|id| !id.is_empty() && !self.used.contains(id));
        let id = own.unwrap_or_else(|| self.made());
        self.used.insert(id.clone());
        id
    }

    fn made(&self) -> String {
        let mut number = self.used.len();
        loop {
            let id = format!("{MADE_ID_PREFIX}{:x}_{number}", self.seed);
            if !self.used.contains(&id) {
                return id;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ids: &[&str], expected: &[&str]) {
        let mut calls = CallIds::with_seed(0xab);
        let given: Vec<String> = ids.iter().map(|id| calls.unique(Some((*id).to_owned()))).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn each_call_has_an_id_of_its_own() {
        check(&["a", "b"], &["a", "b"]);
        check(&["", ""], &["stint_ab_0", "stint_ab_1"]);
        check(&["a", "a", "a"], &["a", "stint_ab_1", "stint_ab_2"]);
        check(&["stint_ab_1", ""], &["stint_ab_1", "stint_ab_2"]);
        assert_eq!(CallIds::with_seed(7).unique(None), "stint_7_0");
    }
}
