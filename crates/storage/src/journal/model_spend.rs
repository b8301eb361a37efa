//! What other models took of requests than the model that answered, on the way to its rows.

use std::collections::HashSet;
use std::sync::Arc;

use stint_ledger::{ModelSpend, ResolutionEntry};
use stint_types::units::RequestId;

/// What one other model took of a request.
pub(crate) struct ModelSpendRow {
    pub(super) id: RequestId,
    pub(super) model: Arc<str>,
    pub(super) spend: ModelSpend,
}

/// The rows of these resolutions. Where a request has several, the first one counts, and so do its parts alone.
pub(super) fn model_spend_rows(resolutions: &[&ResolutionEntry]) -> Vec<ModelSpendRow> {
    if resolutions.iter().all(|resolution| resolution.detail.parts.is_empty()) {
        return Vec::new();
    }
    let mut seen = HashSet::new();
    let first = resolutions.iter().filter(|resolution| seen.insert(resolution.id));
    first
        .flat_map(|resolution| {
            let parts = resolution.detail.parts.iter();
            parts.map(|(model, spend)| ModelSpendRow { id: resolution.id, model: model.clone(), spend })
        })
        .collect()
}
