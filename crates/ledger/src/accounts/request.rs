//! The requests to the account machine: a new reservation, or an extension of one.

use std::sync::Arc;

use crate::rows::{AbandonPolicy, RequestScope, SpendRate, StepReservation};
use stint_types::catalog::{Prices, WorstCase};
use stint_types::units::{AccountId, RequestId, Timestamp};

/// A request for a reservation: what is reserved, for whom and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationRequest {
    /// Whose money it is; all ancestors' too.
    pub account: AccountId,
    /// For which request; also the reservation's id.
    pub id: RequestId,
    /// What the request is about.
    pub about: RequestScope,
    /// How much.
    pub worst: WorstCase,
    /// What else it takes as a step of the episode that `about` names.
    pub step: Option<StepReservation>,
    /// The prices in force.
    pub prices: Option<Prices>,
    /// What is posted if it is dispatched and nobody settles it.
    pub if_abandoned: AbandonPolicy,
    /// How fast it takes money at most, where that is known.
    pub rate: Option<SpendRate>,
    /// Now: the moment of admission.
    pub now: Timestamp,
    /// When it expires: the request's deadline and a margin.
    pub expires: Timestamp,
}

/// How much more is to be reserved for an open reservation, and for which model, if that changes.
#[derive(Debug, Clone)]
pub(crate) struct ExtendRequest {
    pub(crate) id: RequestId,
    pub(crate) more: WorstCase,
    pub(crate) model: Option<Arc<str>>,
}
