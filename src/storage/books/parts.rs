//! Parts of resolutions, on their way to their rows.

use std::collections::HashSet;
use std::sync::Arc;

use crate::ledger::{ModelSpend, ResolutionEntry};
use crate::units::RequestId;

/// What another model took of a request than its own.
pub(in crate::storage) struct ModelSpendRow<'e> {
    pub(in crate::storage) id: RequestId,
    pub(in crate::storage) model: &'e Arc<str>,
    pub(in crate::storage) part: ModelSpend,
}

/// The parts of these ends. Of several ends of one request the first stands, and so do its parts alone.
pub(in crate::storage) fn parts_of<'e>(ends: &[&'e ResolutionEntry]) -> Vec<ModelSpendRow<'e>> {
    if ends.iter().all(|end| end.detail.parts.is_empty()) {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let first = ends.iter().filter(|end| seen.insert(end.id));
    first
        .flat_map(|end| {
            end.detail.parts.iter().map(|(model, part)| ModelSpendRow { id: end.id, model, part })
        })
        .collect()
}
