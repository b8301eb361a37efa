//! The lease manager: the task that gets quota leases for waiting requests, and returns idle ones. There is one exchange
//! with the coordinator at a time, for all requests that came during the last one.

use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use crate::accounts::{LeaseReturn, QuotaNeed, ReserveError};
use crate::commit::LedgerCore;
use crate::journal::{DatabaseFault, JournalError};
use crate::quota::{
    ExchangeResult, LeaseDecision, LeaseVerdict, QuotaBalance, QuotaClient, QuotaDemand, ReplicaEpoch, decide,
};
use stint_types::tasks::Tasks;

use super::opener::{OpenedWindows, WindowOpener};
use super::requests::{QuotaRequest, QuotaRequests, QuotaWaiter};
use super::round::{ExchangeRound, PreparedDemand};

/// How many requests one exchange serves.
const WANTS_MAX: usize = 2048;
/// How many leases are returned in one exchange.
const RETURNS_MAX: usize = 512;
/// How long requests that wait for others to hand something back do so before they are tried again.
const RETRY_DELAY: Duration = Duration::from_millis(5);
/// How long it waits after the coordinator failed.
const FAILURE_DELAY: Duration = Duration::from_millis(200);
/// How long other replicas have to return what they do not use.
const RECALL_MAX: Duration = Duration::from_millis(1_000);
/// How long one exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(3);
/// How long it is remembered that nothing is left of a window, so that refusals cost no round trip.
const EXHAUSTED_TTL: Duration = Duration::from_millis(250);

pub(super) struct LeaseManager {
    pub(super) core: Weak<LedgerCore>,
    pub(super) client: Arc<QuotaClient>,
    pub(super) requests: Arc<QuotaRequests>,
    pub(super) tasks: Tasks,
    pub(super) opener: WindowOpener,
}

/// Why the manager wakes up.
enum WakeReason {
    Requested,
    Tick,
    Opened(OpenedWindows),
    Shutdown,
}

impl LeaseManager {
    /// Runs until nothing will be written any more.
    pub(super) async fn run(mut self) {
        let mut waiting: Vec<QuotaWaiter> = Vec::new();
        loop {
            let reason = self.next_wake(!waiting.is_empty()).await;
            let Some(core) = self.core.upgrade() else { return };
            let returns = match reason {
                WakeReason::Shutdown => return,
                WakeReason::Opened(opened) => {
                    self.opener.complete(opened, &core, &self.client);
                    Vec::new()
                }
                WakeReason::Requested => self.recalled_leases(&core),
                WakeReason::Tick => core.accounts().idle_leases(self.client.replicas()),
            };
            waiting.extend(self.requests.take(WANTS_MAX.saturating_sub(waiting.len())));
            waiting.retain(|one| !one.is_abandoned());
            let mut parts = returns.chunks(RETURNS_MAX);
            let first = parts.next().unwrap_or_default();
            if !waiting.is_empty() || !first.is_empty() {
                waiting = self.exchange_round(&core, waiting, first).await;
            }
            for part in parts {
                waiting = self.exchange_round(&core, waiting, part).await;
            }
            self.opener.start(&self.tasks, &core, &self.client);
        }
    }

    async fn next_wake(&mut self, has_waiting: bool) -> WakeReason {
        if self.requests.has_work() && !has_waiting {
            return WakeReason::Requested;
        }
        tokio::select! {
            biased;
            () = self.client.done.cancelled() => WakeReason::Shutdown,
            opened = self.opener.next() => WakeReason::Opened(opened),
            () = self.requests.arrived.notified() => WakeReason::Requested,
            () = self.client.tick.notified() => WakeReason::Tick,
            () = sleep(RETRY_DELAY), if has_waiting => WakeReason::Requested,
        }
    }

    /// All leases of the accounts that others recalled.
    fn recalled_leases(&self, core: &LedgerCore) -> Vec<LeaseReturn> {
        let recalls = self.requests.take_recalls();
        let accounts = core.accounts();
        if recalls.all {
            return accounts.leases(None);
        }
        recalls.accounts.iter().flat_map(|account| accounts.leases(Some(account))).collect()
    }

    /// One exchange. Returns the requests that still wait afterwards.
    async fn exchange_round(
        &mut self,
        core: &Arc<LedgerCore>,
        waiting: Vec<QuotaWaiter>,
        returns: &[LeaseReturn],
    ) -> Vec<QuotaWaiter> {
        let (epoch, mut round) = (self.client.epoch(), ExchangeRound::default());
        let PreparedDemand { demands, waiting, parked } = self.prepare(core, &mut round, waiting);
        round.add_returns(&mut core.accounts(), returns);
        if round.windows.is_empty() {
            return parked;
        }
        let mut left = match self.exchange(core, epoch, &round, &demands).await {
            Ok((ExchangeResult::Balances(balances), decision)) => {
                self.apply_balances(core, epoch, &round, &balances, &decision);
                serve(core, waiting, &decision.verdicts)
            }
            Ok((ExchangeResult::Missing(places), _)) => {
                places.iter().for_each(|at| self.opener.request(&round.windows[*at], None));
                waiting
            }
            Err(error) => {
                self.mark_uncertain(core, epoch, &round);
                self.after_failure(&error, waiting).await
            }
        };
        left.extend(parked);
        left
    }

    /// Refuses requests whose time is over, and all of them if the lease is lost. Returns the others.
    async fn after_failure(&self, error: &JournalError, waiting: Vec<QuotaWaiter>) -> Vec<QuotaWaiter> {
        let is_lost = error.is_lease_lost();
        if is_lost {
            self.client.lease_lost.notify_one();
        } else {
            self.client.outage.record_failure("no quota leases could be obtained", error);
            sleep(FAILURE_DELAY).await;
        }
        let now = Instant::now();
        let (refused, left): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|one| is_lost || one.deadline <= now);
        refused.into_iter().for_each(|one| one.refuse(ReserveError::NoLease));
        left
    }

    /// The result at the coordinator is unknown: the exchange is repeated, and then the idle leases are returned.
    fn mark_uncertain(&self, core: &LedgerCore, epoch: ReplicaEpoch, round: &ExchangeRound) {
        let mut accounts = core.accounts();
        if self.client.epoch() == epoch {
            for window in &round.windows {
                if let Some(lease) = accounts.lease_mut(window) {
                    lease.is_uncertain = true;
                }
            }
        }
        drop(accounts);
        let returned = round.windows.iter().zip(&round.items).filter(|(_, item)| item.retain == Some(0));
        self.requests.recall(returned.map(|(window, _)| window.account.clone()));
    }

    /// Serves the requests that can be served already, and collects what the others need. A request for a window that is
    /// not open yet is parked.
    fn prepare(
        &mut self,
        core: &Arc<LedgerCore>,
        round: &mut ExchangeRound,
        waiting: Vec<QuotaWaiter>,
    ) -> PreparedDemand {
        let now = Instant::now();
        let mut prepared = PreparedDemand::default();
        for one in waiting {
            let Some((one, needs)) = one.attempt(core) else { continue };
            for need in needs.iter().filter(|need| need.counted_since.is_some()) {
                self.opener.request(&need.window, need.counted_since);
            }
            if needs.iter().any(|need| self.opener.contains(&need.window)) {
                prepared.park(one, now, || ReserveError::Summing);
                continue;
            }
            let places = round.places(&mut core.accounts(), &needs);
            let Some(places) = places else {
                // A window ended just now: a new request needs the next one, and one that began in it gets no more.
                prepared.park(one, now, || shortfall(needs));
                continue;
            };
            prepared.demands.push(QuotaDemand {
                needs: places,
                has_recalled: one.recalled_at.is_some(),
                can_wait: one.deadline > now && one.recalled_at.is_none_or(|since| since + RECALL_MAX > now),
                is_refresh: matches!(one.request, QuotaRequest::Refresh(..)),
            });
            prepared.waiting.push(one);
        }
        prepared
    }

    /// What settlements have freed is returned once they are written down. If this replica dies before, all that it
    /// held is posted, so nobody else may have taken it.
    async fn exchange(
        &self,
        core: &LedgerCore,
        epoch: ReplicaEpoch,
        round: &ExchangeRound,
        demands: &[QuotaDemand],
    ) -> Result<(ExchangeResult, LeaseDecision), JournalError> {
        let mut decision = LeaseDecision::default();
        let decided = Box::new(|balances: &[QuotaBalance]| {
            decision = decide(&round.items, demands, balances);
            decision.adjustments.clone()
        });
        let exchanged = timeout(EXCHANGE_MAX, async {
            core.queue.flush().await?;
            self.client.coordinator.exchange(epoch, &round.windows, decided).await
        });
        let result = exchanged.await.unwrap_or_else(|_| {
            Err(JournalError::new("the coordinator took too long").with_fault(DatabaseFault::Silent))
        })?;
        Ok((result, decision))
    }

    /// Takes over the leases, unless they went with an epoch that ended meanwhile.
    fn apply_balances(
        &self,
        core: &LedgerCore,
        epoch: ReplicaEpoch,
        round: &ExchangeRound,
        balances: &[QuotaBalance],
        decision: &LeaseDecision,
    ) {
        let mut accounts = core.accounts();
        if self.client.epoch() != epoch {
            return;
        }
        let fresh_until = self.client.now() + EXHAUSTED_TTL;
        for (at, (window, balance)) in round.windows.iter().zip(balances).enumerate() {
            accounts.apply_balance(window, balance, true);
            let Some(lease) = accounts.lease_mut(window) else { continue };
            lease.is_final = decision.adjustments[at].is_final;
            if decision.exhausted[at] {
                lease.fresh_until = fresh_until;
            }
        }
    }
}

/// Serves the requests for which leases were taken, before any other request can use those. Returns the ones that still
/// wait.
fn serve(core: &Arc<LedgerCore>, waiting: Vec<QuotaWaiter>, verdicts: &[LeaseVerdict]) -> Vec<QuotaWaiter> {
    let now = Instant::now();
    let mut left = Vec::new();
    for (one, verdict) in waiting.into_iter().zip(verdicts) {
        let Some((mut one, needs)) = one.attempt(core) else { continue };
        if *verdict == LeaseVerdict::Refused {
            one.refuse(shortfall(needs));
            continue;
        }
        if *verdict == LeaseVerdict::Recalled {
            one.recalled_at = Some(now);
        }
        left.push(one);
    }
    left
}

/// The first limit that has no room.
fn shortfall(needs: Vec<QuotaNeed>) -> ReserveError {
    let least = needs
        .into_iter()
        .min_by_key(|need| need.shortfall.left.size().saturating_sub(need.shortfall.needed.size()));
    least.map_or(ReserveError::NoLease, |need| ReserveError::Shortfall(need.shortfall))
}
