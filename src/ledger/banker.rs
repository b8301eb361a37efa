//! Gets slices for those who wait, and hands back what is idle: one exchange with the bank at a time, for all who came
//! during the last one.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use tokio::time::{Duration, Instant, sleep, timeout};

use super::lease::{Balance, Epoch, Purse, Traded};
use super::ledger::Inner;
use super::opening::{Opened, Openings};
use super::share::{Decision, Item, Verdict, Want, decide};
use super::sharing::{Sharing, Waiting, What};
use super::{Accounts, JournalError, Ledger, LedgerError, Need, Refused};
use crate::tasks::Tasks;

/// How many requests one exchange serves.
const WANTS_MAX: usize = 2048;
/// How many slices are handed back in one exchange.
const BACK_MAX: usize = 512;
/// How long those who wait for others to hand something back do, before they look again.
const AGAIN: Duration = Duration::from_millis(5);
/// How long it waits after the bank failed.
const AFTER_FAILURE: Duration = Duration::from_millis(200);
/// How long others have for it.
const RECALL_MAX: Duration = Duration::from_millis(1_000);
/// How long one exchange may take.
const EXCHANGE_MAX: Duration = Duration::from_secs(3);

/// How long it is remembered that nothing is left of a purse, so that refusals cost no round trip.
const KNOWN: Duration = Duration::from_millis(250);

pub(super) struct Banker {
    pub(super) ledger: Weak<Inner>,
    pub(super) sharing: Arc<Sharing>,
    pub(super) tasks: Tasks,
    pub(super) openings: Openings,
}

/// Why the banker looks up.
enum Why {
    Asked,
    Idle,
    Opened(Opened),
    Done,
}

/// Those who wait, and what they want.
#[derive(Default)]
struct Asked {
    wants: Vec<Want>,
    waiting: Vec<Waiting>,
    /// Who waits for purses that are being opened.
    parked: Vec<Waiting>,
}

/// What one exchange is about.
#[derive(Default)]
struct Round {
    purses: Vec<Purse>,
    items: Vec<Item>,
    places: HashMap<Purse, usize>,
}

impl Round {
    /// The place of a purse in it; the replica's own slice is frozen at what is used. Nothing, where its window is over.
    fn place(
        &mut self,
        accounts: &mut Accounts,
        purse: &Purse,
        max: u64,
        keeps: Option<u64>,
    ) -> Option<usize> {
        if let Some(at) = self.places.get(purse) {
            return Some(*at);
        }
        let at = self.purses.len();
        let (used, is_quiet) = accounts.freeze(purse, keeps.unwrap_or(0))?;
        self.items.push(Item { used, max, keeps, is_quiet });
        self.purses.push(purse.clone());
        self.places.insert(purse.clone(), at);
        Some(at)
    }
}

impl Banker {
    /// Runs until nothing will be written any more.
    pub(super) async fn run(mut self) {
        let mut waiting: Vec<Waiting> = Vec::new();
        loop {
            let why = self.why(!waiting.is_empty()).await;
            let Some(inner) = self.ledger.upgrade() else { return };
            let ledger = Ledger { inner };
            let back = match why {
                Why::Done => return,
                Why::Opened(opened) => {
                    self.openings.done(opened, &ledger, &self.sharing);
                    Vec::new()
                }
                Why::Asked => self.recalled(&ledger),
                Why::Idle => ledger.accounts().idle(self.sharing.replicas()),
            };
            waiting.extend(self.sharing.take(WANTS_MAX.saturating_sub(waiting.len())));
            waiting.retain(|one| !one.is_given_up());
            let mut parts = back.chunks(BACK_MAX);
            let first = parts.next().unwrap_or_default();
            if !waiting.is_empty() || !first.is_empty() {
                waiting = self.round(&ledger, waiting, first).await;
            }
            for part in parts {
                waiting = self.round(&ledger, waiting, part).await;
            }
            self.openings.start(&self.tasks, &ledger, &self.sharing);
        }
    }

    async fn why(&mut self, is_waited_for: bool) -> Why {
        if self.sharing.is_asked() && !is_waited_for {
            return Why::Asked;
        }
        tokio::select! {
            biased;
            () = self.sharing.done.cancelled() => Why::Done,
            opened = self.openings.next() => Why::Opened(opened),
            () = self.sharing.arrived.notified() => Why::Asked,
            () = self.sharing.tick.notified() => Why::Idle,
            () = sleep(AGAIN), if is_waited_for => Why::Asked,
        }
    }

    /// All slices of those accounts that others ask for; what is not used of them is to be handed back.
    fn recalled(&self, ledger: &Ledger) -> Vec<(Purse, u64, u64)> {
        let recalls = self.sharing.take_recalls();
        let replicas = self.sharing.replicas();
        let mut accounts = ledger.accounts();
        let mut back = match recalls.all {
            true => accounts.slices(None, replicas),
            false => recalls.accounts.iter().flat_map(|of| accounts.slices(Some(of), replicas)).collect(),
        };
        drop(accounts);
        back.iter_mut().for_each(|(.., keeps)| *keeps = 0);
        back
    }

    /// One exchange. Those who still wait afterwards come out.
    async fn round(
        &mut self,
        ledger: &Ledger,
        waiting: Vec<Waiting>,
        back: &[(Purse, u64, u64)],
    ) -> Vec<Waiting> {
        let (epoch, mut round) = (self.sharing.epoch(), Round::default());
        let Asked { wants, mut waiting, parked } = self.wants(ledger, &mut round, waiting);
        {
            let mut accounts = ledger.accounts();
            for (purse, max, keeps) in back {
                round.place(&mut accounts, purse, *max, Some(*keeps));
            }
        }
        if round.purses.is_empty() {
            return parked;
        }
        let mut left = match self.exchange(ledger, epoch, &round, &wants).await {
            Ok((Traded::Balances(balances), decision)) => {
                self.apply(ledger, epoch, &round, &balances, &decision, waiting)
            }
            Ok((Traded::Missing(places), _)) => {
                places.iter().for_each(|at| self.openings.want(&round.purses[*at], None));
                waiting
            }
            Err(error) => {
                self.doubt(ledger, epoch, &round);
                if error.is_lease_over() {
                    self.sharing.over.notify_one();
                    waiting.drain(..).for_each(|one| one.refuse(Refused::NoLease));
                } else {
                    self.sharing.outage.failed("no slices of the limits are to be had", &error);
                    sleep(AFTER_FAILURE).await;
                }
                let now = Instant::now();
                let (late, waiting): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|one| one.until <= now);
                late.into_iter().for_each(|one| one.refuse(Refused::NoLease));
                waiting
            }
        };
        left.extend(parked);
        left
    }

    /// What the bank made of it is not known: it is asked again, and what was to be handed back is so then.
    fn doubt(&self, ledger: &Ledger, epoch: Epoch, round: &Round) {
        let mut accounts = ledger.accounts();
        if self.sharing.epoch() == epoch {
            round.purses.iter().for_each(|purse| accounts.doubt(purse));
        }
        drop(accounts);
        let back = round.purses.iter().zip(&round.items).filter(|(_, item)| item.keeps == Some(0));
        self.sharing.recall(back.map(|(purse, _)| purse.account.clone()));
    }

    /// Serves who can be served already; what the others need. Who needs a purse that is not open yet stands aside.
    fn wants(&mut self, ledger: &Ledger, round: &mut Round, waiting: Vec<Waiting>) -> Asked {
        let now = Instant::now();
        let mut asked = Asked::default();
        for one in waiting {
            let Some((one, needs)) = attempt(ledger, one) else { continue };
            for need in needs.iter().filter(|need| need.counted_since.is_some()) {
                self.openings.want(&need.purse, need.counted_since);
            }
            if needs.iter().any(|need| self.openings.holds(&need.purse)) {
                match one.until > now {
                    true => asked.parked.push(one),
                    false => one.refuse(Refused::Summing),
                }
                continue;
            }
            let mut accounts = ledger.accounts();
            let places = needs.iter().map(|need| {
                let at = round.place(&mut accounts, &need.purse, need.max, None)?;
                Some((at, need.shortfall.needed.size()))
            });
            let places = places.collect::<Option<Vec<_>>>();
            drop(accounts);
            let Some(needs) = places else {
                // A window ended just now: a new request needs others' purses, and one that began in it gets no more.
                match one.until > now {
                    true => asked.parked.push(one),
                    false => one.refuse(shortfall(needs)),
                }
                continue;
            };
            let may_wait = one.until > now && one.recalled.is_none_or(|since| since + RECALL_MAX > now);
            let only_looks = matches!(one.what, What::Gather(..) | What::GatherEpisode(..));
            let has_recalled = one.recalled.is_some();
            asked.wants.push(Want { needs, has_recalled, may_wait, only_looks });
            asked.waiting.push(one);
        }
        asked
    }

    /// What settlements have freed is handed back once they are written down: of a replica that dies before, the whole
    /// is posted, and nobody else may have taken it.
    async fn exchange(
        &self,
        ledger: &Ledger,
        epoch: Epoch,
        round: &Round,
        wants: &[Want],
    ) -> Result<(Traded, Decision), JournalError> {
        let mut decision = Decision::default();
        let decided = Box::new(|balances: &[Balance]| {
            decision = decide(&round.items, wants, balances);
            decision.orders.clone()
        });
        let exchanged = timeout(EXCHANGE_MAX, async {
            ledger.inner.queue.written().await?;
            self.sharing.bank.exchange(epoch, &round.purses, decided).await
        });
        let traded = exchanged.await.unwrap_or_else(|_| Err(JournalError::new("the bank took too long")))?;
        Ok((traded, decision))
    }

    /// Takes over the slices, and serves those for whom they were cut before anybody else can use them.
    fn apply(
        &self,
        ledger: &Ledger,
        epoch: Epoch,
        round: &Round,
        balances: &[Balance],
        decision: &Decision,
        waiting: Vec<Waiting>,
    ) -> Vec<Waiting> {
        let mut accounts = ledger.accounts();
        // A life that ended meanwhile took its slices with it.
        if self.sharing.epoch() == epoch {
            let known = self.sharing.now() + KNOWN;
            for (at, (purse, balance)) in round.purses.iter().zip(balances).enumerate() {
                accounts.hear(purse, balance, true);
                accounts.close(purse, decision.orders[at].is_final);
                if decision.known[at] {
                    accounts.know(purse, known);
                }
            }
        }
        drop(accounts);
        let now = Instant::now();
        let mut left = Vec::new();
        for (mut one, verdict) in waiting.into_iter().zip(&decision.verdicts) {
            let Some((back, needs)) = attempt(ledger, one) else { continue };
            if *verdict == Verdict::Refused {
                back.refuse(shortfall(needs));
                continue;
            }
            one = back;
            if *verdict == Verdict::Recalled {
                one.recalled = Some(now);
            }
            left.push(one);
        }
        left
    }
}

/// Does what somebody waits for and says so to them; else gives it back with what it still needs.
fn attempt(ledger: &Ledger, one: Waiting) -> Option<(Waiting, Vec<Need>)> {
    let Waiting { what, until, recalled } = one;
    let back = |what, needs| Some((Waiting { what, until, recalled }, needs));
    match what {
        What::Reserve(claim, answer) => match ledger.reserve((*claim).clone()) {
            Err(Refused::Needs(needs)) => back(What::Reserve(claim, answer), needs),
            // If nobody waits any more, the reservation is dropped, which resolves it.
            done => {
                drop(answer.send(done));
                None
            }
        },
        What::Extend(extend, answer) => match ledger.try_extend(&extend) {
            Err(LedgerError::Refused(Refused::Needs(needs))) => back(What::Extend(extend, answer), needs),
            done => {
                drop(answer.send(done));
                None
            }
        },
        What::Gather(account, about, answer) => {
            let needs = ledger.accounts().all_of(&account, &about, ledger.now());
            back(What::Gather(account, about, answer), needs)
        }
        What::GatherEpisode(account, episode, answer) => {
            let needs = ledger.accounts().all_of_episode(&account, &episode, ledger.now());
            if needs.is_empty() {
                // A new life does not know the limits, and whoever waits says them again.
                let _ = answer.send(());
                return None;
            }
            back(What::GatherEpisode(account, episode, answer), needs)
        }
    }
}

/// The first limit that has no room.
fn shortfall(needs: Vec<Need>) -> Refused {
    let least = needs
        .into_iter()
        .min_by_key(|need| need.shortfall.left.size().saturating_sub(need.shortfall.needed.size()));
    least.map_or(Refused::NoLease, |need| Refused::Shortfall(need.shortfall))
}
