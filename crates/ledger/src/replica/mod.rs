//! The tasks of a replica that shares its accounts: one keeps its lease, one gets quota for requests that wait and hands
//! back what is idle, one reclaims expired replicas.

mod manager;
mod opener;
mod reaper;
mod renewer;
mod requests;
mod round;
mod start;

pub(crate) use requests::{QuotaRequest, QuotaRequests};
pub(crate) use start::{StartedReplica, start_replica};
