//! Tests that a slow target is not taken for a full one: many calls to simulated upstreams, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::{Backend, BackendCall, Failure, Fault, Generation, GenerationEnd, GenerationPart, Piece};
use stint_prompt as prompt;
use stint_types::catalog::{EnforcementClass, ModelConditions};
use stint_types::chat::{Message, Request, Role};
use stint_types::metrics::Metrics;
use stint_types::tasks::{EventLoopLag, Tasks};
use stint_types::units::{Priority, SeededRng, Tokens};

use super::*;

/// How an upstream with too many calls behaves.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SimulatedCapacity {
    /// It has room for all.
    Endless,
    /// So many are served at once, the others line up, as at vLLM and at a llama.cpp server.
    Slots(u32),
    /// More than so many share what there is.
    Shared(u32),
}

/// A simulated upstream.
#[derive(Debug)]
struct SimulatedUpstream {
    room: SimulatedCapacity,
    slots: Semaphore,
    running: AtomicU32,
    served: AtomicU64,
    /// Milliseconds to the first token in any case.
    constant: f64,
    /// And for each token of the prompt.
    per_token: f64,
    /// How many times slower it is now.
    slower: AtomicU32,
    /// The pauses between the events of an answer, and how many there are.
    events: (Duration, u32),
}

impl SimulatedUpstream {
    fn new(room: SimulatedCapacity) -> SimulatedUpstream {
        let slots = if let SimulatedCapacity::Slots(slots) = room { slots } else { 100_000 };
        SimulatedUpstream {
            room,
            slots: Semaphore::new(slots as usize),
            running: AtomicU32::new(0),
            served: AtomicU64::new(0),
            constant: 100.0,
            per_token: 0.1,
            slower: AtomicU32::new(1),
            events: (Duration::from_millis(50), 20),
        }
    }

    /// How long something takes now.
    fn takes(&self, millis: f64) -> Duration {
        let share = match self.room {
            SimulatedCapacity::Shared(room) => {
                (f64::from(self.running.load(Ordering::Relaxed)) / f64::from(room)).max(1.0)
            }
            SimulatedCapacity::Endless | SimulatedCapacity::Slots(_) => 1.0,
        };
        Duration::from_secs_f64(millis * share * f64::from(self.slower.load(Ordering::Relaxed)) / 1e3)
    }

    async fn answer(&self, tokens: Tokens) {
        tokio::time::sleep(self.takes(self.constant + self.per_token * tokens.as_f64())).await;
    }
}

/// Counts as running until it is dropped.
struct SimulatedCall(Arc<SimulatedUpstream>);

impl Drop for SimulatedCall {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.slots.add_permits(1);
        self.0.served.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a fleet asks.
#[derive(Debug, Clone)]
struct SimulatedBackend(Arc<SimulatedUpstream>);

impl Backend for SimulatedBackend {
    fn generate(&self, call: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        let upstream = self.0.clone();
        let tokens = self.prompt_tokens(&call.request);
        async move {
            let pieces = stream::unfold((upstream, None, 0), move |(upstream, running, turn)| async move {
                let running = match running {
                    Some(running) => running,
                    None => {
                        upstream.slots.acquire().await.ok()?.forget();
                        upstream.running.fetch_add(1, Ordering::Relaxed);
                        SimulatedCall(upstream.clone())
                    }
                };
                let (pause, events) = upstream.events;
                match turn {
                    0 => upstream.answer(tokens).await,
                    turn if turn < events => {
                        tokio::time::sleep(upstream.takes(pause.as_secs_f64() * 1e3)).await;
                    }
                    turn if turn == events => {}
                    _ => return None,
                }
                let piece = if turn < events {
                    Piece::Answer { text: "x".to_owned(), tokens: Tokens(1) }
                } else {
                    Piece::End(GenerationEnd::Limit)
                };
                Some((Ok(piece), (upstream, Some(running), turn + 1)))
            });
            Ok(pieces.boxed() as Generation)
        }
        .boxed()
    }

    fn prompt_tokens(&self, request: &Request) -> Tokens {
        prompt::token_bound::prompt_tokens(request, &self.images())
    }

    fn conditions(&self) -> ModelConditions {
        ModelConditions::default()
    }
}

/// A fleet of one upstream, and who asks it.
#[derive(Clone)]
struct Crowd {
    upstream: Arc<SimulatedUpstream>,
    fleet: Arc<Fleet>,
    tasks: Tasks,
    refused: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
}

/// The lengths of prompts.
const LENGTHS: [u64; 7] = [100, 300, 1_000, 3_000, 10_000, 30_000, 100_000];

impl Crowd {
    fn before(upstream: SimulatedUpstream, concurrency: ConcurrencySettings) -> Crowd {
        let upstream = Arc::new(upstream);
        let target = Target {
            name: "t".into(),
            backend: Arc::new(SimulatedBackend(upstream.clone())),
            tokenizer_id: None,
        };
        let settings = Settings { concurrency: Some(concurrency), ..Settings::default() };
        let fleet = Fleet::new("m".into(), vec![target], Arc::new(Metrics::new().unwrap()), settings, 7);
        let (refused, asked) = (Arc::default(), Arc::default());
        Crowd { upstream, fleet, tasks: Tasks::default(), refused, asked }
    }

    /// One request with a prompt about as long as that.
    async fn ask(&self, length: u64) {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let want = PermitRequest {
            affinity: AffinityKey::without_affinity(number),
            flow: FlowId(number % 10),
            calls: 1,
            priority: Priority::Interactive,
            deadline: Instant::now() + Duration::from_secs(600),
        };
        let permit = match self.fleet.acquire(want).await {
            Ok(permit) => permit,
            Err(failure) => {
                assert_eq!(failure.fault, Fault::Overload);
                self.refused.fetch_add(1, Ordering::Relaxed);
                // As callers do.
                tokio::time::sleep(Duration::from_secs(1)).await;
                return;
            }
        };
        let text = "x".repeat(usize::try_from(length).unwrap());
        let call = BackendCall {
            request: Arc::new(Request::new("m", vec![Message::text(Role::User, text)])),
            class: EnforcementClass::Effort,
            part: GenerationPart::Total { effort: None, tokens: Tokens(9) },
            seed: 1,
            hidden: false,
            whole: false,
            tells_limit: true,
            effort: None,
            effort_least: None,
        };
        let mut pieces = permit.backend().generate(call).await.unwrap();
        while let Some(piece) = pieces.next().await {
            piece.unwrap();
        }
    }

    /// So many callers, each of whom asks again as soon as it is answered, with prompts of these lengths by turns.
    fn callers(&self, count: u64, lengths: &'static [u64]) {
        for number in 0..count {
            let crowd = self.clone();
            self.tasks.spawn(async move {
                let mut dice = SeededRng::new(number);
                while !crowd.tasks.is_stopping() {
                    crowd.ask(lengths[dice.below(lengths.len())]).await;
                }
            });
        }
    }

    /// So many requests a second, whatever becomes of them.
    fn arrivals(&self, per_second: f64, lengths: &'static [u64]) {
        let crowd = self.clone();
        self.tasks.spawn(async move {
            let mut dice = SeededRng::new(99);
            while !crowd.tasks.is_stopping() {
                let pause = -(1.0 - dice.next_f64()).ln() / per_second;
                tokio::time::sleep(Duration::from_secs_f64(pause)).await;
                let (one, length) = (crowd.clone(), lengths[dice.below(lengths.len())]);
                crowd.tasks.spawn(async move { one.ask(length).await });
            }
        });
    }

    fn places(&self) -> u32 {
        self.fleet.status().0[0].limit.unwrap()
    }

    fn falls(&self) -> u64 {
        self.fleet.update_gauges();
        let falls = &self.fleet.metrics.backends.limit_falls;
        falls.with_label_values(&["m", "t", "waits"]).get()
    }

    /// Nobody was refused, and the limit is what it was or more.
    fn is_unharmed(&self, when: &str) {
        assert_eq!((self.refused.load(Ordering::Relaxed), self.falls()), (0, 0), "{when}");
    }

    async fn ends(self) {
        self.tasks.stop();
        assert!(self.tasks.drain(Duration::from_secs(3_600)).await);
        assert_eq!(self.fleet.status().0[0].in_flight, 0);
    }
}

async fn minutes(count: u64) {
    tokio::time::sleep(Duration::from_secs(60 * count)).await;
}

fn narrow(start: u32, max: u32) -> ConcurrencySettings {
    ConcurrencySettings { start, max, ..ConcurrencySettings::default() }
}

#[tokio::test(start_paused = true)]
async fn prompts_of_a_hundred_to_a_hundred_thousand_tokens_and_waves_of_long_ones_lower_nothing() {
    let crowd = Crowd::before(SimulatedUpstream::new(SimulatedCapacity::Endless), narrow(64, 128));
    crowd.callers(40, &LENGTHS);
    minutes(3).await;
    crowd.is_unharmed("mixed");
    crowd.callers(20, &[100_000]);
    minutes(5).await;
    crowd.is_unharmed("a wave of long ones");
    assert!(crowd.places() >= 64);
    crowd.ends().await;
}

#[tokio::test(start_paused = true)]
async fn long_prompts_after_none_but_short_ones_lower_nothing() {
    let crowd = Crowd::before(SimulatedUpstream::new(SimulatedCapacity::Endless), narrow(64, 128));
    crowd.callers(10, &[100]);
    minutes(2).await;
    crowd.callers(50, &[50_000, 100_000]);
    minutes(3).await;
    crowd.is_unharmed("the wave");
    crowd.ends().await;
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_slows_by_five_for_ten_minutes_keeps_all_its_calls() {
    for per_second in [None, Some(40.0)] {
        let crowd = Crowd::before(SimulatedUpstream::new(SimulatedCapacity::Endless), narrow(256, 512));
        match per_second {
            None => crowd.callers(120, &LENGTHS),
            // Slower answers make for more calls at once.
            Some(per_second) => crowd.arrivals(per_second, &LENGTHS[..5]),
        }
        minutes(3).await;
        for slower in [5, 1, 5] {
            crowd.upstream.slower.store(slower, Ordering::Relaxed);
            minutes(10).await;
            crowd.is_unharmed(&format!("{per_second:?}: {slower} times as slow"));
        }
        assert!(crowd.places() >= 256);
        crowd.ends().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stall_of_our_own_processor_lowers_nothing() {
    let crowd = Crowd::before(SimulatedUpstream::new(SimulatedCapacity::Endless), narrow(64, 128));
    let lag = EventLoopLag::default();
    lag.measure(&crowd.tasks, |_| ());
    crowd.fleet.set_lag(&lag);
    crowd.callers(60, &LENGTHS[..4]);
    minutes(1).await;
    for _ in 0..60 {
        tokio::time::advance(Duration::from_secs(2)).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    crowd.is_unharmed("stalls");
    assert!(lag.total() >= Duration::from_secs(110), "{:?}", lag.total());
    crowd.ends().await;
}

#[tokio::test(start_paused = true)]
async fn two_hundred_streams_and_then_a_thousand_are_all_served() {
    let crowd =
        Crowd::before(SimulatedUpstream::new(SimulatedCapacity::Endless), ConcurrencySettings::default());
    for streams in [200, 1_000, 1_000, 200] {
        for _ in 0..streams {
            let one = crowd.clone();
            crowd.tasks.spawn(async move { one.ask(300).await });
        }
        tokio::time::sleep(Duration::from_secs(10)).await;
        crowd.is_unharmed(&format!("{streams} streams"));
    }
    assert_eq!(crowd.upstream.served.load(Ordering::Relaxed), 2_400);
    crowd.ends().await;
}

/// The limit is found of an engine with room for sixteen, within so many minutes, and all of its room is used.
async fn is_found(room: SimulatedCapacity, mins: u64) {
    let crowd = Crowd::before(SimulatedUpstream::new(room), narrow(64, 128));
    crowd.callers(1, &[300]);
    minutes(1).await;
    crowd.callers(80, &[300]);
    minutes(mins).await;
    let (mut most, mut sum, before) = (0, 0, crowd.upstream.served.load(Ordering::Relaxed));
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        most = most.max(crowd.places());
        sum += crowd.places();
    }
    assert!(
        (14..=48).contains(&(sum / 120)) && most <= 60,
        "{room:?}: {} on average, {most} at most",
        sum / 120
    );
    let served = crowd.upstream.served.load(Ordering::Relaxed) - before;
    // Of sixteen at once, each for 1.08 s.
    assert!(served > 120 * 16 * 90 / 108, "{room:?}: {served}");
    assert_eq!(crowd.refused.load(Ordering::Relaxed), 0, "those who find no place wait");
    crowd.ends().await;
}

// OV-02
#[tokio::test(start_paused = true)]
async fn the_limit_is_found_of_an_engine_that_is_full() {
    is_found(SimulatedCapacity::Slots(16), 2).await;
    is_found(SimulatedCapacity::Shared(16), 2).await;
}

#[tokio::test(start_paused = true)]
async fn only_an_engine_that_is_full_refuses_and_it_goes_on_serving_what_it_can() {
    let crowd = Crowd::before(SimulatedUpstream::new(SimulatedCapacity::Slots(16)), narrow(64, 128));
    crowd.arrivals(8.0, &[300]);
    minutes(2).await;
    crowd.is_unharmed("half of what it can do");
    crowd.arrivals(24.0, &[300]);
    minutes(3).await;
    let before = crowd.upstream.served.load(Ordering::Relaxed);
    minutes(1).await;
    let served = crowd.upstream.served.load(Ordering::Relaxed) - before;
    assert!(crowd.refused.load(Ordering::Relaxed) > 100, "twice what it can do");
    assert!(served > 60 * 16 * 85 / 108, "{served} in a minute");
    assert!(crowd.places() <= 48, "{}", crowd.places());
    crowd.ends().await;
}
