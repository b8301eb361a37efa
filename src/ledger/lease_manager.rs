//! Gets slices for those who wait, and hands back what is idle: one exchange with the bank at a time, for all who came
//! during the last one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use super::lease_allocation::{LeaseDecision, LeaseVerdict, LocalWindow, QuotaDemand, decide};
use super::ledger::LedgerInner;
use super::quota_client::{QuotaClient, QuotaRequest, QuotaWaiter};
use super::quota_coordinator::{ExchangeResult, QuotaBalance, QuotaWindow, ReplicaEpoch};
use super::window_opener::{OpenedWindows, WindowOpener};
use super::{JournalError, Ledger, LedgerError, LedgerState, QuotaNeed, ReserveError};
use crate::tasks::Tasks;

/// How many requests one exchange serves.
const WANTS_MAX: usize = 2048;
/// How many slices are handed back in one exchange.
const RETURNS_MAX: usize = 512;
/// How long those who wait for others to hand something back do, before they look again.
const RETRY_DELAY: Duration = Duration::from_millis(5);
/// How long it waits after the bank failed.
const FAILURE_DELAY: Duration = Duration::from_millis(200);
/// How long others have for it.
const RECALL_MAX: Duration = Duration::from_millis(1_000);
/// How long one exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(3);

/// How long it is remembered that nothing is left of a purse, so that refusals cost no round trip.
const EXHAUSTED_TTL: Duration = Duration::from_millis(250);

pub(super) struct LeaseManager {
    pub(super) ledger: Weak<LedgerInner>,
    pub(super) sharing: Arc<QuotaClient>,
    pub(super) tasks: Tasks,
    pub(super) openings: WindowOpener,
}

/// Why the banker looks up.
enum WakeReason {
    Requested,
    Tick,
    Opened(OpenedWindows),
    Shutdown,
}

/// Those who wait, and what they want.
#[derive(Default)]
struct PreparedDemand {
    wants: Vec<QuotaDemand>,
    waiting: Vec<QuotaWaiter>,
    /// Who waits for purses that are being opened.
    parked: Vec<QuotaWaiter>,
}

/// What one exchange is about.
#[derive(Default)]
struct ExchangeRound {
    windows: Vec<QuotaWindow>,
    items: Vec<LocalWindow>,
    indices: HashMap<QuotaWindow, usize>,
}

impl ExchangeRound {
    /// The place of a purse in it; the replica's own slice is frozen at what is used. Nothing, where its window is over.
    fn index_of(
        &mut self,
        accounts: &mut LedgerState,
        purse: &QuotaWindow,
        max: u64,
        keeps: Option<u64>,
    ) -> Option<usize> {
        if let Some(at) = self.indices.get(purse) {
            return Some(*at);
        }
        let at = self.windows.len();
        let (used, is_quiet) = accounts.freeze(purse, keeps.unwrap_or(0))?;
        self.items.push(LocalWindow { used, max, retain: keeps, is_idle: is_quiet });
        self.windows.push(purse.clone());
        self.indices.insert(purse.clone(), at);
        Some(at)
    }
}

impl LeaseManager {
    /// Runs until nothing will be written any more.
    pub(super) async fn run(mut self) {
        let mut waiting: Vec<QuotaWaiter> = Vec::new();
        loop {
            let why = self.next_wake(!waiting.is_empty()).await;
            let Some(inner) = self.ledger.upgrade() else { return };
            let ledger = Ledger { inner };
            let back = match why {
                WakeReason::Shutdown => return,
                WakeReason::Opened(opened) => {
                    self.openings.complete(opened, &ledger, &self.sharing);
                    Vec::new()
                }
                WakeReason::Requested => self.recalled_leases(&ledger),
                WakeReason::Tick => ledger.accounts().idle_leases(self.sharing.replicas()),
            };
            waiting.extend(self.sharing.take(WANTS_MAX.saturating_sub(waiting.len())));
            waiting.retain(|one| !one.is_abandoned());
            let mut parts = back.chunks(RETURNS_MAX);
            let first = parts.next().unwrap_or_default();
            if !waiting.is_empty() || !first.is_empty() {
                waiting = self.exchange_round(&ledger, waiting, first).await;
            }
            for part in parts {
                waiting = self.exchange_round(&ledger, waiting, part).await;
            }
            self.openings.start(&self.tasks, &ledger, &self.sharing);
        }
    }

    async fn next_wake(&mut self, is_waited_for: bool) -> WakeReason {
        if self.sharing.has_work() && !is_waited_for {
            return WakeReason::Requested;
        }
        tokio::select! {
            biased;
            () = self.sharing.done.cancelled() => WakeReason::Shutdown,
            opened = self.openings.next() => WakeReason::Opened(opened),
            () = self.sharing.arrived.notified() => WakeReason::Requested,
            () = self.sharing.tick.notified() => WakeReason::Tick,
            () = sleep(RETRY_DELAY), if is_waited_for => WakeReason::Requested,
        }
    }

    /// All slices of those accounts that others ask for; what is not used of them is to be handed back.
    fn recalled_leases(&self, ledger: &Ledger) -> Vec<(QuotaWindow, u64, u64)> {
        let recalls = self.sharing.take_recalls();
        let replicas = self.sharing.replicas();
        let mut accounts = ledger.accounts();
        let mut back = match recalls.all {
            true => accounts.leases(None, replicas),
            false => recalls.accounts.iter().flat_map(|of| accounts.leases(Some(of), replicas)).collect(),
        };
        drop(accounts);
        back.iter_mut().for_each(|(.., keeps)| *keeps = 0);
        back
    }

    /// One exchange. Those who still wait afterwards come out.
    async fn exchange_round(
        &mut self,
        ledger: &Ledger,
        waiting: Vec<QuotaWaiter>,
        back: &[(QuotaWindow, u64, u64)],
    ) -> Vec<QuotaWaiter> {
        let (epoch, mut round) = (self.sharing.epoch(), ExchangeRound::default());
        let PreparedDemand { wants, mut waiting, parked } = self.prepare(ledger, &mut round, waiting);
        {
            let mut accounts = ledger.accounts();
            for (purse, max, keeps) in back {
                round.index_of(&mut accounts, purse, *max, Some(*keeps));
            }
        }
        if round.windows.is_empty() {
            return parked;
        }
        let mut left = match self.exchange(ledger, epoch, &round, &wants).await {
            Ok((ExchangeResult::Balances(balances), decision)) => {
                self.apply(ledger, epoch, &round, &balances, &decision, waiting)
            }
            Ok((ExchangeResult::Missing(places), _)) => {
                places.iter().for_each(|at| self.openings.request(&round.windows[*at], None));
                waiting
            }
            Err(error) => {
                self.mark_uncertain(ledger, epoch, &round);
                if error.is_lease_lost() {
                    self.sharing.lease_lost.notify_one();
                    waiting.drain(..).for_each(|one| one.refuse(ReserveError::NoLease));
                } else {
                    self.sharing.outage.record_failure("no slices of the limits are to be had", &error);
                    sleep(FAILURE_DELAY).await;
                }
                let now = Instant::now();
                let (late, waiting): (Vec<_>, Vec<_>) =
                    waiting.into_iter().partition(|one| one.deadline <= now);
                late.into_iter().for_each(|one| one.refuse(ReserveError::NoLease));
                waiting
            }
        };
        left.extend(parked);
        left
    }

    /// What the bank made of it is not known: it is asked again, and what was to be handed back is so then.
    fn mark_uncertain(&self, ledger: &Ledger, epoch: ReplicaEpoch, round: &ExchangeRound) {
        let mut accounts = ledger.accounts();
        if self.sharing.epoch() == epoch {
            round.windows.iter().for_each(|purse| accounts.mark_uncertain(purse));
        }
        drop(accounts);
        let back = round.windows.iter().zip(&round.items).filter(|(_, item)| item.retain == Some(0));
        self.sharing.recall(back.map(|(purse, _)| purse.account.clone()));
    }

    /// Serves who can be served already; what the others need. Who needs a purse that is not open yet stands aside.
    fn prepare(
        &mut self,
        ledger: &Ledger,
        round: &mut ExchangeRound,
        waiting: Vec<QuotaWaiter>,
    ) -> PreparedDemand {
        let now = Instant::now();
        let mut asked = PreparedDemand::default();
        for one in waiting {
            let Some((one, needs)) = attempt(ledger, one) else { continue };
            for need in needs.iter().filter(|need| need.counted_since.is_some()) {
                self.openings.request(&need.window, need.counted_since);
            }
            if needs.iter().any(|need| self.openings.contains(&need.window)) {
                match one.deadline > now {
                    true => asked.parked.push(one),
                    false => one.refuse(ReserveError::Summing),
                }
                continue;
            }
            let mut accounts = ledger.accounts();
            let places = needs.iter().map(|need| {
                let at = round.index_of(&mut accounts, &need.window, need.max, None)?;
                Some((at, need.shortfall.needed.size()))
            });
            let places = places.collect::<Option<Vec<_>>>();
            drop(accounts);
            let Some(needs) = places else {
                // A window ended just now: a new request needs others' purses, and one that began in it gets no more.
                match one.deadline > now {
                    true => asked.parked.push(one),
                    false => one.refuse(shortfall(needs)),
                }
                continue;
            };
            let may_wait = one.deadline > now && one.recalled_at.is_none_or(|since| since + RECALL_MAX > now);
            let only_looks =
                matches!(one.request, QuotaRequest::RefreshLimits(..) | QuotaRequest::RefreshEpisode(..));
            let has_recalled = one.recalled_at.is_some();
            asked.wants.push(QuotaDemand { needs, has_recalled, can_wait: may_wait, is_refresh: only_looks });
            asked.waiting.push(one);
        }
        asked
    }

    /// What settlements have freed is handed back once they are written down: of a replica that dies before, the whole
    /// is posted, and nobody else may have taken it.
    async fn exchange(
        &self,
        ledger: &Ledger,
        epoch: ReplicaEpoch,
        round: &ExchangeRound,
        wants: &[QuotaDemand],
    ) -> Result<(ExchangeResult, LeaseDecision), JournalError> {
        let mut decision = LeaseDecision::default();
        let decided = Box::new(|balances: &[QuotaBalance]| {
            decision = decide(&round.items, wants, balances);
            decision.adjustments.clone()
        });
        let exchanged = timeout(EXCHANGE_MAX, async {
            ledger.inner.queue.flush().await?;
            self.sharing.coordinator.exchange(epoch, &round.windows, decided).await
        });
        let traded = exchanged.await.unwrap_or_else(|_| Err(JournalError::new("the bank took too long")))?;
        Ok((traded, decision))
    }

    /// Takes over the slices, and serves those for whom they were cut before anybody else can use them.
    fn apply(
        &self,
        ledger: &Ledger,
        epoch: ReplicaEpoch,
        round: &ExchangeRound,
        balances: &[QuotaBalance],
        decision: &LeaseDecision,
        waiting: Vec<QuotaWaiter>,
    ) -> Vec<QuotaWaiter> {
        let mut accounts = ledger.accounts();
        // A life that ended meanwhile took its slices with it.
        if self.sharing.epoch() == epoch {
            let known = self.sharing.now() + EXHAUSTED_TTL;
            for (at, (purse, balance)) in round.windows.iter().zip(balances).enumerate() {
                accounts.apply_balance(purse, balance, true);
                accounts.set_final(purse, decision.adjustments[at].is_final);
                if decision.exhausted[at] {
                    accounts.set_fresh_until(purse, known);
                }
            }
        }
        drop(accounts);
        let now = Instant::now();
        let mut left = Vec::new();
        for (mut one, verdict) in waiting.into_iter().zip(&decision.verdicts) {
            let Some((back, needs)) = attempt(ledger, one) else { continue };
            if *verdict == LeaseVerdict::Refused {
                back.refuse(shortfall(needs));
                continue;
            }
            one = back;
            if *verdict == LeaseVerdict::Recalled {
                one.recalled_at = Some(now);
            }
            left.push(one);
        }
        left
    }
}

/// Does what somebody waits for and says so to them; else gives it back with what it still needs.
fn attempt(ledger: &Ledger, one: QuotaWaiter) -> Option<(QuotaWaiter, Vec<QuotaNeed>)> {
    let QuotaWaiter { request: what, deadline: until, recalled_at: recalled } = one;
    let back =
        |what, needs| Some((QuotaWaiter { request: what, deadline: until, recalled_at: recalled }, needs));
    match what {
        QuotaRequest::Reserve(claim, answer) => match ledger.reserve((*claim).clone()) {
            Err(ReserveError::NeedsQuota(needs)) => back(QuotaRequest::Reserve(claim, answer), needs),
            // If nobody waits any more, the reservation is dropped, which resolves it.
            done => {
                drop(answer.send(done));
                None
            }
        },
        QuotaRequest::Extend(extend, answer) => match ledger.try_extend(&extend) {
            Err(LedgerError::Refused(ReserveError::NeedsQuota(needs))) => {
                back(QuotaRequest::Extend(extend, answer), needs)
            }
            done => {
                drop(answer.send(done));
                None
            }
        },
        QuotaRequest::RefreshLimits(account, about, answer) => {
            let needs = ledger.accounts().all_needs(&account, &about, ledger.now());
            back(QuotaRequest::RefreshLimits(account, about, answer), needs)
        }
        QuotaRequest::RefreshEpisode(account, episode, answer) => {
            let needs = ledger.accounts().all_episode_needs(&account, &episode, ledger.now());
            if needs.is_empty() {
                // A new life does not know the limits, and whoever waits says them again.
                let _ = answer.send(());
                return None;
            }
            back(QuotaRequest::RefreshEpisode(account, episode, answer), needs)
        }
    }
}

/// The first limit that has no room.
fn shortfall(needs: Vec<QuotaNeed>) -> ReserveError {
    let least = needs
        .into_iter()
        .min_by_key(|need| need.shortfall.left.size().saturating_sub(need.shortfall.needed.size()));
    least.map_or(ReserveError::NoLease, |need| ReserveError::Shortfall(need.shortfall))
}
