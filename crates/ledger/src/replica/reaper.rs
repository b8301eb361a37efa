//! Reclaims expired replicas, in a task of its own: a replica with many open requests takes long.

use std::sync::Arc;

use tokio::time::{Instant, sleep};

use crate::quota::QuotaClient;

/// Reclaims them until nothing will be written any more.
pub(super) async fn reap_expired(client: Arc<QuotaClient>) {
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
            reclaimed = client.coordinator.reclaim() => reclaimed,
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
