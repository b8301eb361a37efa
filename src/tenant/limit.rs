//! A limit on what a tenant may spend.

use crate::units::{Amount, Limit, Window};

/// The most of one unit that a tenant may spend in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLimit {
    /// Over what time.
    pub window: Window,
    /// How much, and of what.
    pub max: Amount,
}

impl TenantLimit {
    /// The name of the limit, as refusals show it.
    pub fn name(self) -> Limit {
        Limit { holder: "key", unit: self.max.unit(), window: self.window }
    }
}
