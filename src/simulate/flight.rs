//! One request on its way.

use crate::catalog::{Offer, Tariff};
use crate::learn::Context;
use crate::units::Money;

use super::moment::Moment;
use super::population::{Luck, Request};
use super::work::Work;

/// One request that was admitted.
#[derive(Debug)]
pub(super) struct Flight {
    pub request: Request,
    pub arrived: Moment,
    /// What is tried now.
    pub offer: Offer,
    /// What is tried next, the last first.
    pub fallbacks: Vec<Offer>,
    /// Who serves it.
    pub model: usize,
    /// The price that was in force when it was reserved.
    pub tariff: Tariff,
    /// What was predicted of all models, for learning.
    pub context: Context,
    /// When it came to this host.
    pub seated: Moment,
    pub stage: Stage,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// It waits for a place.
    Waiting,
    /// Nobody is there, which shows in a moment.
    Failing,
    /// It is served.
    Serving { begun: Moment, work: Work, luck: Luck },
}

impl Flight {
    /// What a finished attempt costs.
    pub(super) fn cost(&self, work: &Work) -> Money {
        let calls = work.calls.iter().filter(|call| call.input.0 > 0);
        calls.map(|call| self.tariff.cost(call)).sum()
    }
}
