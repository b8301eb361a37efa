//! `ResolutionRecord`: a resolution with all the entries that led to it, as a seal covers it.

use crate::rows::{Amounts, DispatchEntry, ExtensionEntry, MeterEntry, ResolutionEntry};

/// A resolution with all that led to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolutionRecord {
    /// The place of the resolution among all of them.
    pub number: i64,
    /// The end.
    pub resolved: ResolutionEntry,
    /// The beginning; absent only if someone deleted it.
    pub dispatched: Option<DispatchEntry>,
    /// What was reserved later, in order.
    pub extended: Vec<ExtensionEntry>,
    /// What was metered, in order.
    pub metered: Vec<MeterEntry>,
}

impl ResolutionRecord {
    /// All that was reserved for it.
    pub fn held(&self) -> Amounts {
        let first = self.dispatched.as_ref().map_or(Amounts::ZERO, |row| row.held);
        self.extended.iter().fold(first, |held, step| held + step.more)
    }
}
