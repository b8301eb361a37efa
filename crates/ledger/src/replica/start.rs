//! Starts a ledger that shares its accounts with other replicas: registers the replica, and starts its tasks.

use std::sync::Arc;

use tokio::time::Instant;

use crate::Settings;
use crate::accounts::{LedgerError, LedgerState};
use crate::commit::{LedgerCore, Observer};
use crate::quota::{QuotaClient, QuotaCoordinator};
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;

use super::manager::LeaseManager;
use super::opener::WindowOpener;
use super::reaper::reap_expired;
use super::renewer::LeaseRenewer;
use super::requests::{QuotaRequests, listen};

/// A replica that has registered, and where requests wait for quota.
pub(crate) struct StartedReplica {
    pub(crate) core: Arc<LedgerCore>,
    pub(crate) requests: Arc<QuotaRequests>,
}

/// Registers this replica and starts its tasks.
pub(crate) async fn start_replica(
    tasks: &Tasks,
    coordinator: Arc<dyn QuotaCoordinator>,
    observer: Arc<dyn Observer>,
    settings: Settings,
    terms: &[AccountTerms],
) -> Result<StartedReplica, LedgerError> {
    let asked = Instant::now();
    let lease = coordinator.register().await?;
    let renewal = match coordinator.renew(lease.epoch).await {
        Ok(renewal) => renewal,
        Err(error) => {
            // Nobody will use that epoch.
            if coordinator.retire(lease.epoch).await.is_err() {
                tracing::warn!("a lease was not given back; it runs out by itself");
            }
            return Err(error.into());
        }
    };
    let client = Arc::new(QuotaClient::new(coordinator, &lease, asked, terms.to_vec()));
    let accounts = LedgerState::shared(terms, lease.now);
    let quota = Some(client.clone());
    let core = LedgerCore::start(tasks, accounts, lease.journal, observer, settings, quota);
    core.apply_renewal(&renewal);
    let requests = Arc::new(QuotaRequests::default());
    tasks.spawn(LeaseRenewer { core: Arc::downgrade(&core), client: client.clone() }.run());
    tasks.spawn(reap_expired(Arc::downgrade(&core), client.clone()));
    tasks.spawn(listen(client.clone(), requests.clone()));
    let manager = LeaseManager {
        core: Arc::downgrade(&core),
        client,
        requests: requests.clone(),
        tasks: tasks.clone(),
        opener: WindowOpener::new(),
    };
    tasks.spawn(manager.run());
    Ok(StartedReplica { core, requests })
}
