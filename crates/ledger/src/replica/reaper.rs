//! Reclaims expired replicas, in a task of its own: a replica with many open requests takes long.

use std::sync::{Arc, Weak};

use tokio::time::{Instant, sleep};

use crate::commit::LedgerCore;
use crate::quota::QuotaClient;
use crate::rows::JournalEntry;

/// Reclaims them until nothing will be written any more. The observer is told of what is posted, as after a restart of a
/// process that shares its accounts with nobody.
pub(super) async fn reap_expired(core: Weak<LedgerCore>, client: Arc<QuotaClient>) {
    let posted = |entries: &[JournalEntry]| {
        if let Some(core) = core.upgrade() {
            core.notify_posted(entries);
        }
    };
    loop {
        tokio::select! {
            biased;
            () = client.done.cancelled() => return,
            () = sleep(client.lease_state().renew_interval()) => {}
        }
        if !client.lease_state().can_reap(Instant::now()) {
            continue;
        }
        let reclaimed = tokio::select! {
            biased;
            reclaimed = client.coordinator.reclaim(&posted) => reclaimed,
            () = lease_lost(&client) => continue,
        };
        match reclaimed {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "replicas have died; what they left open is posted"),
            Err(error) => {
                client.outage.record_failure("what a dead replica left open is not posted", &error);
            }
        }
    }
}

/// Completes once this replica's own lease is over. A reclaim that it began before may succeed much later, when other
/// replicas that could not reach the coordinator either are about to come back.
async fn lease_lost(client: &QuotaClient) {
    while client.is_held() {
        sleep(client.lease_state().renew_interval()).await;
    }
}
