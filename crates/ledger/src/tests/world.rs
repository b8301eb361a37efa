//! Replicas that share a coordinator, each a machine with its own clocks, in virtual time.
//!
//! A machine's monotonic clock is that of its runtime, which runs only when the test lets it. Its wall clock is what its
//! callers pass in. The coordinator has its own clock. A test moves each of them independently.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::advance;

use crate::{Ledger, Reservation, ReservationRequest, ReserveError, Settings};
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;
use stint_types::units::Timestamp;

use super::faults::PostedSum;
use super::linked_coordinator::{CoordinatorLink, LinkedCoordinator};
use super::vault::Vault;
use super::{NOW, claim_of};

/// How long a lease lasts in these tests.
pub(super) const LASTS: Duration = Duration::from_secs(10);

/// Virtual time goes on by this much at once.
const STEP: Duration = Duration::from_millis(20);

/// After so many turns a machine has done all that can be done at one moment.
const TURNS: usize = 24;

pub(super) struct SimulatedReplica {
    pub(super) ledger: Ledger,
    pub(super) link: watch::Sender<CoordinatorLink>,
    /// What its observer was told of.
    pub(super) posted: Arc<PostedSum>,
    /// How far the wall clock is off, in milliseconds.
    pub(super) wall: i64,
    /// For how long it has stood still; nothing, where it runs.
    paused: Option<Duration>,
    runtime: Runtime,
    _tasks: Tasks,
}

pub(super) struct ReplicaWorld {
    pub(super) machines: Vec<SimulatedReplica>,
    pub(super) vault: Vault,
    /// How long it has run.
    pub(super) elapsed: Duration,
}

impl SimulatedReplica {
    fn start(vault: &Vault, terms: &[AccountTerms]) -> SimulatedReplica {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (link, ours) = watch::channel(CoordinatorLink::Whole);
        let (tasks, coordinator) = (Tasks::default(), Arc::new(LinkedCoordinator::new(vault, ours)));
        let posted = Arc::new(PostedSum::default());
        let opened = Ledger::share(&tasks, coordinator, posted.clone(), Settings::default(), terms);
        let ledger = runtime.block_on(opened).unwrap();
        SimulatedReplica { ledger, link, posted, wall: 0, paused: None, runtime, _tasks: tasks }
    }

    /// Does something by this machine's clocks.
    pub(super) fn on<T>(&self, what: impl FnOnce(&Ledger) -> T) -> T {
        let _here = self.runtime.enter();
        what(&self.ledger)
    }

    /// Begins something that goes on while this machine runs.
    pub(super) fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(work));
    }

    fn run(&self, by: Duration) {
        self.runtime.block_on(async {
            if !by.is_zero() {
                advance(by).await;
            }
            for _ in 0..TURNS {
                yield_now().await;
            }
        });
    }

    pub(super) fn pause(&mut self) {
        self.paused.get_or_insert(Duration::ZERO);
    }

    /// A process that was stopped finds that its clock went on; a machine that was asleep does not.
    pub(super) fn wake(&mut self, clock_went_on: bool) {
        if let Some(long) = self.paused.take() {
            self.run(if clock_went_on { long } else { Duration::ZERO });
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.paused.is_none()
    }
}

impl ReplicaWorld {
    pub(super) fn new(count: usize, terms: &[AccountTerms]) -> ReplicaWorld {
        let vault = Vault::new(NOW, LASTS);
        let machines = (0..count).map(|_| SimulatedReplica::start(&vault, terms)).collect();
        ReplicaWorld { machines, vault, elapsed: Duration::ZERO }
    }

    /// One more machine comes.
    pub(super) fn join(&mut self, terms: &[AccountTerms]) -> usize {
        self.machines.push(SimulatedReplica::start(&self.vault, terms));
        self.machines.len() - 1
    }

    /// Lets all clocks go on, and everybody do what they do.
    pub(super) fn run(&mut self, long: Duration) {
        let mut left = long;
        while !left.is_zero() {
            let step = left.min(STEP);
            left -= step;
            self.elapsed += step;
            {
                let mut coordinator = self.vault.state();
                coordinator.now = coordinator.now + step;
            }
            for machine in &mut self.machines {
                match &mut machine.paused {
                    Some(long) => *long += step,
                    None => machine.run(step),
                }
            }
            self.answer();
        }
    }

    /// What one announces to the others arrives at the same moment.
    fn answer(&self) {
        self.machines.iter().filter(|machine| machine.is_running()).for_each(|one| one.run(Duration::ZERO));
    }

    /// A claim as a caller of that machine makes it, by its wall clock.
    pub(super) fn claim(&self, on: usize, nanos: u64) -> ReservationRequest {
        let wall = NOW.0 + i64::try_from(self.elapsed.as_millis()).unwrap() + self.machines[on].wall;
        claim_of("key", nanos, 0, Timestamp(wall))
    }

    /// Runs until that is done; nothing, where it is not within a minute.
    pub(super) fn until<T: Send + 'static>(
        &mut self,
        on: usize,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let place = Arc::new(Mutex::new(None));
        let theirs = place.clone();
        self.machines[on].begin(async move {
            let done = work.await;
            *theirs.lock().unwrap() = Some(done);
        });
        for _ in 0..3_000 {
            self.answer();
            if let Some(done) = place.lock().unwrap().take() {
                return Some(done);
            }
            self.run(STEP);
        }
        None
    }

    pub(super) fn obtain(&mut self, on: usize, nanos: u64) -> Result<Reservation, ReserveError> {
        let (ledger, claim) = (self.machines[on].ledger.clone(), self.claim(on, nanos));
        self.until(on, async move { ledger.obtain(claim).await }).expect("an answer in time")
    }

    /// Dropped: given back, or posted whole where it was sent.
    pub(super) fn give_back(&self, on: usize, reservation: Reservation) {
        self.machines[on].on(|_| drop(reservation));
    }

    /// Sent upstream.
    pub(super) fn dispatched(&mut self, on: usize, nanos: u64) -> Reservation {
        let mut reservation = self.obtain(on, nanos).unwrap();
        let sent = self.until(on, async move {
            let sent = reservation.dispatch().await;
            (reservation, sent)
        });
        let (reservation, sent) = sent.expect("an answer in time");
        sent.unwrap();
        reservation
    }
}
