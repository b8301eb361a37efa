//! What one request demands of the accounts of its lineage.

use crate::rows::{Amounts, RequestScope, StepReservation};
use stint_types::tenant::LimitSelector;
use stint_types::units::{AccountId, Facet, Timestamp};

/// So much more for a request, in the windows of its admission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExtraDemand<'a> {
    /// The request's own account, which is the last of the lineage.
    pub(crate) account: &'a AccountId,
    /// What the request was about until now, and what is reserved for it; `None` for a new one.
    pub(crate) previous: Option<(&'a RequestScope, Amounts)>,
    /// What it is about from now on.
    pub(crate) about: &'a RequestScope,
    pub(crate) more: Amounts,
    /// What it takes as a step; `None` for more of one that is counted already.
    pub(crate) step: Option<&'a StepReservation>,
    pub(crate) admitted: Timestamp,
}

impl ExtraDemand<'_> {
    /// What it demands of a limit of this scope: all that is reserved, if it was not counted there before.
    pub(crate) fn demand_under(&self, scope: &LimitSelector) -> Option<(Facet, Amounts)> {
        let facet = self.about.facet(scope)?;
        let more = match self.previous {
            Some((before, held)) if before.facet(scope).as_ref() != Some(&facet) => held + self.more,
            _ => self.more,
        };
        Some((facet, more))
    }
}
