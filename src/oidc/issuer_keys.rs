//! An issuer's keys, kept up to date by a task of their own. Requests read them without a lock that is held across a wait.

use std::error::Error;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::error::TokenError;
use super::fetch::{FetchError, KeyFetcher};
use super::key_set::KeySet;
use super::refetch_rate::{RefetchDecision, RefetchRate};
use super::settings::KeySource;

/// How long a request waits for keys that are being fetched.
const WAIT: Duration = Duration::from_secs(5);
/// After a failure: the first wait, which doubles up to the time between two fetches.
const RETRY_MIN: Duration = Duration::from_secs(2);
/// And the longest wait: keys that were taken back meanwhile are to go soon.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// Whether a request waits for keys that are being fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyWait {
    /// For some seconds.
    Shortly,
    /// Not at all: those that are known decide.
    Never,
}

/// The keys of an issuer. Its task ends once this is dropped.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    pub(super) source: KeySource,
    state: watch::Receiver<KeyState>,
    refetch: mpsc::Sender<()>,
    rate: Arc<Mutex<RefetchRate>>,
}

/// The keys as they were fetched last.
#[derive(Debug, Clone, Default)]
struct KeyState {
    set: Option<Arc<KeySet>>,
    /// Counts up with each other set.
    version: u64,
    /// When they were fetched last.
    fetched: Option<Instant>,
}

impl IssuerKeys {
    /// Begins to fetch. The series have the issuer's keys under this name.
    pub(super) fn start(
        source: KeySource,
        name: String,
        metrics: &Arc<Metrics>,
        tasks: &Tasks,
    ) -> Result<Arc<IssuerKeys>, reqwest::Error> {
        let fetcher = KeyFetcher::new(source.clone())?;
        let (publish, state) = watch::channel(KeyState::default());
        let (refetch, asked) = mpsc::channel(1);
        let rate = Arc::new(Mutex::new(RefetchRate::new(Instant::now())));
        for outcome in ["fetched", "failed"] {
            metrics.tokens.fetches.with_label_values(&[&*name, outcome]);
        }
        let task = FetchTask {
            fetcher,
            name,
            publish,
            rate: rate.clone(),
            metrics: metrics.clone(),
            has_failed: false,
        };
        let (every, stopping) = (source.refresh, tasks.stopping());
        tasks.spawn(task.run(every, asked, stopping));
        Ok(Arc::new(IssuerKeys { source, state, refetch, rate }))
    }

    /// Which set of keys it is; none where they are not there, or too old.
    pub(super) fn version(&self) -> Option<u64> {
        let state = self.state.borrow();
        self.is_good(&state).then_some(state.version)
    }

    /// The key of a token, and which set it is in. An unknown one has the keys fetched again, within the rate, and may wait for them.
    pub(super) async fn find(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        wait: KeyWait,
    ) -> Result<(DecodingKey, u64), TokenError> {
        let mut state = self.state.clone();
        let found = self.find_in(&state.borrow_and_update(), id, algorithm);
        if found.is_ok() {
            return found;
        }
        match self.decide() {
            RefetchDecision::Refuse => return found,
            // It is full where one was asked for already.
            RefetchDecision::Ask => drop(self.refetch.try_send(())),
            RefetchDecision::Wait => {}
        }
        if wait == KeyWait::Never {
            return found;
        }
        // Whatever comes of it, what is there then decides.
        let _ = timeout(WAIT, state.changed()).await;
        self.find_in(&state.borrow(), id, algorithm)
    }

    fn decide(&self) -> RefetchDecision {
        lock(&self.rate).take(Instant::now())
    }

    fn find_in(
        &self,
        state: &KeyState,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<(DecodingKey, u64), TokenError> {
        let set = state.set.as_ref().filter(|_| self.is_good(state)).ok_or(TokenError::Unavailable)?;
        let key = set.find(id, algorithm).ok_or(TokenError::UnknownKey)?;
        Ok((key.clone(), state.version))
    }

    fn is_good(&self, state: &KeyState) -> bool {
        state.fetched.is_some_and(|at| at.elapsed() <= self.source.refresh + self.source.keep)
    }
}

/// What fetches one issuer's keys.
struct FetchTask {
    fetcher: KeyFetcher,
    name: String,
    publish: watch::Sender<KeyState>,
    rate: Arc<Mutex<RefetchRate>>,
    metrics: Arc<Metrics>,
    has_failed: bool,
}

impl FetchTask {
    /// Runs until shutdown begins, or nobody needs the keys any more.
    async fn run(
        mut self,
        every: Duration,
        mut asked: mpsc::Receiver<()>,
        stopping: impl Future<Output = ()>,
    ) {
        let mut stopping = pin!(stopping);
        let mut retry = RETRY_MIN;
        loop {
            let fetched = tokio::select! {
                biased;
                () = &mut stopping => return,
                fetched = self.fetcher.fetch() => fetched,
            };
            let wait = match self.apply(fetched) {
                Ok(()) => {
                    retry = RETRY_MIN;
                    every
                }
                Err(()) => {
                    let wait = retry.min(every);
                    retry = wait.saturating_mul(2).min(RETRY_MAX);
                    wait
                }
            };
            tokio::select! {
                biased;
                () = &mut stopping => return,
                more = asked.recv() => if more.is_none() { return },
                () = sleep(wait) => {}
            }
        }
    }

    fn apply(&mut self, fetched: Result<KeySet, FetchError>) -> Result<(), ()> {
        let outcome = if fetched.is_ok() { "fetched" } else { "failed" };
        self.metrics.tokens.fetches.with_label_values(&[&*self.name, outcome]).inc();
        lock(&self.rate).is_pending = false;
        match fetched {
            Ok(set) => {
                self.metrics.tokens.keys_fetched.with_label_values(&[&*self.name]).set(unix_seconds());
                if std::mem::take(&mut self.has_failed) {
                    tracing::info!(issuer = self.name, "the keys of the issuer can be fetched again");
                }
                self.publish.send_modify(|state| {
                    if state.set.as_deref() != Some(&set) {
                        state.set = Some(Arc::new(set));
                        state.version += 1;
                    }
                    state.fetched = Some(Instant::now());
                });
                Ok(())
            }
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    let error = &error as &dyn Error;
                    tracing::error!(
                        issuer = self.name,
                        error,
                        "the keys of an issuer of tokens cannot be fetched; those that are known hold for the time of keep"
                    );
                }
                // Those who wait learn that nothing came.
                self.publish.send_modify(|_| ());
                Err(())
            }
        }
    }
}

fn lock(rate: &Mutex<RefetchRate>) -> MutexGuard<'_, RefetchRate> {
    rate.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unix_seconds() -> f64 {
    let now = stint_types::units::Timestamp::now();
    Duration::from_millis(u64::try_from(now.0).unwrap_or_default()).as_secs_f64()
}
