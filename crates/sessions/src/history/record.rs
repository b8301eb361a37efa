//! The story of one request.

use stint_types::catalog::{Decision, DecisionOutcome, Verdict, VerdictSource};
use stint_types::tenant::KeyId;
use stint_types::units::AccountId;

/// A decision, its outcome, and the verdicts on it.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestRecord {
    /// Whose request it was.
    pub account: AccountId,
    /// The key that it came with; none where an earlier version stored it.
    pub key: Option<KeyId>,
    /// What was decided.
    pub decision: Decision,
    /// What came of it.
    pub outcome: DecisionOutcome,
    /// The verdicts on the answer, one of each source at most, in their order.
    pub verdicts: Vec<Verdict>,
}

impl RequestRecord {
    /// Takes a verdict in; the one of the same source that it replaces comes back.
    pub fn set_verdict(&mut self, verdict: Verdict) -> Option<Verdict> {
        set_verdict(&mut self.verdicts, verdict)
    }

    /// What a source says.
    pub fn verdict(&self, source: VerdictSource) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.source == source)
    }
}

/// Puts a verdict in its place among those of one request; the one that it replaces comes back.
pub(super) fn set_verdict(verdicts: &mut Vec<Verdict>, verdict: Verdict) -> Option<Verdict> {
    match verdicts.binary_search_by_key(&verdict.source, |known| known.source) {
        Ok(place) => Some(std::mem::replace(&mut verdicts[place], verdict)),
        Err(place) => {
            verdicts.insert(place, verdict);
            None
        }
    }
}
