//! Quota leases: the coordinator that leases parts of limits to replicas, and a replica's own leases. How much a replica
//! takes is decided here, without I/O.

mod allocation;
mod client;
mod coordinator;
mod lease;
mod lease_state;
mod window;

pub(crate) use allocation::{LeaseDecision, LeaseVerdict, LocalWindow, QuotaDemand, decide};
pub(crate) use client::QuotaClient;
pub use coordinator::{
    ChangeNotice, DecideFn, ExchangeResult, LeaseAdjustment, LeaseRenewal, PostedFn, QuotaCoordinator,
    ReplicaEpoch, ReplicaLease, WindowOpening,
};
pub(crate) use lease::QuotaLease;
pub(crate) use lease_state::LeaseState;
pub use window::{QuotaBalance, QuotaWindow};
