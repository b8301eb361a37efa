//! How long tests wait, on a machine that is busy with other things or stands still for a while.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// What comes in a moment may take so long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A stop in good order takes no longer, once no answer runs: 2 s for what is cut off, 10 for the ledger's last rows, 5 for its file,
/// and 3 for what blocks.
pub(crate) const STOP_MAX: Duration = Duration::from_secs(20);

/// How often it is looked whether it has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Waits until something is so, which it is in a moment.
pub(crate) async fn until_sync(what: &str, is_so: impl Fn() -> bool) {
    let all = async {
        while !is_so() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, all).await.is_ok(), "never: {what}");
}

/// The same of something that is asked for.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let all = async {
        while !is_so().await {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, all).await.is_ok(), "never: {what}");
}

/// It came too late.
#[derive(Debug)]
#[expect(dead_code, reason = "it is shown")]
pub(crate) struct TooLate(Duration);

/// What comes within so long, as a quiet machine counts it.
pub(crate) async fn within<T>(bound: Duration, future: impl Future<Output = T>) -> Result<T, TooLate> {
    let began = QuietInstant::now();
    let came = tokio::time::timeout(bound + PATIENCE, future).await;
    let took = began.elapsed();
    came.ok().filter(|_| took <= bound).ok_or(TooLate(took))
}

/// An instant of a clock that a busy machine has no say in, for what must happen within a bound. A thread counts turns in which
/// it sleeps and works: while the whole machine stands still there are none, and while others work they take longer.
#[derive(Debug, Clone)]
pub(crate) struct QuietInstant {
    clock: Arc<QuietClock>,
    turns: u32,
}

/// There is one while anybody has an instant of it.
#[derive(Debug, Default)]
struct QuietClock {
    turns: AtomicU32,
}

/// A turn, where nobody else works.
const SLEEP: Duration = Duration::from_millis(4);
const WORK: Duration = Duration::from_millis(1);

impl QuietInstant {
    pub(crate) fn now() -> QuietInstant {
        static CLOCK: Mutex<Weak<QuietClock>> = Mutex::new(Weak::new());
        let mut shared = CLOCK.lock().unwrap();
        let clock = shared.upgrade().unwrap_or_else(QuietClock::start);
        *shared = Arc::downgrade(&clock);
        QuietInstant { turns: clock.turns.load(Ordering::Relaxed), clock }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.until(&QuietInstant::now())
    }

    /// How much later another one is, if it is later.
    pub(crate) fn until(&self, later: &QuietInstant) -> Duration {
        assert!(Arc::ptr_eq(&self.clock, &later.clock), "this one has kept the clock");
        (SLEEP + WORK) * later.turns.saturating_sub(self.turns)
    }
}

impl QuietClock {
    fn start() -> Arc<QuietClock> {
        let clock = Arc::<QuietClock>::default();
        let wanted = Arc::downgrade(&clock);
        std::thread::spawn(move || {
            while let Some(clock) = wanted.upgrade() {
                clock.turns.fetch_add(1, Ordering::Relaxed);
                drop(clock);
                std::thread::sleep(SLEEP);
                work(steps_of_a_turn());
            }
        });
        clock
    }
}

fn work(steps: u32) {
    std::hint::black_box((0..steps).fold(0, |sum, number| std::hint::black_box(sum ^ number)));
}

/// As many steps of work as fill their part of a turn. Of several short pieces of work, the quickest was not interrupted.
fn steps_of_a_turn() -> u32 {
    const PIECE: u32 = 10_000;
    static STEPS: OnceLock<u32> = OnceLock::new();
    *STEPS.get_or_init(|| {
        let pieces = (0..50).map(|_| {
            let began = Instant::now();
            work(PIECE);
            began.elapsed()
        });
        let quickest = pieces.min().unwrap().max(Duration::from_nanos(1));
        PIECE * u32::try_from(WORK.as_nanos() / quickest.as_nanos()).unwrap().max(1)
    })
}
