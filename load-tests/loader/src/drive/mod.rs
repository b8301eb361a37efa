//! Callers that measure: as many as there are connections, on one thread, looking at bytes.
//!
//! Where requests arrive at a rate, each is timed from when it was due and not from when a caller was free to send it, so that a
//! gateway which keeps all callers waiting is not measured less often.

mod arrivals;
mod caller;
mod connection;
mod request;
mod response;
mod tally;
mod watch;

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::LoadError;
use crate::report::Report;
use crate::scenario::Scenario;

use arrivals::Arrivals;
use caller::Caller;
use request::RequestBytes;
use tally::Tally;
use watch::Watch;

/// Connections at most, where a rate was asked for and nothing else said.
pub const OPEN_CONNECTIONS: usize = 1024;
/// How long requests that are under way at the end may still take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is measured.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its API begins, like `/v1`.
    pub base: String,
    /// The model to ask for.
    pub model: String,
    /// The key to show.
    pub key: String,
    /// Its processes, to be watched with their children.
    pub processes: Vec<u32>,
}

/// When a run is measured.
#[derive(Debug, Clone, Copy)]
struct Window {
    begin: Instant,
    end: Instant,
}

/// Runs a scenario's load. An answer is right if it has `words` words.
pub async fn run(scenario: &Scenario, target: Target, words: usize) -> Result<Report, LoadError> {
    let load = &scenario.load;
    let start = Instant::now();
    let begin = start + Duration::from_secs_f64(load.warm_up);
    let window = Window { begin, end: begin + Duration::from_secs_f64(load.seconds) };
    let arrivals = Arrivals::begin(load.arrival, start, window.end);
    let tally = Rc::new(RefCell::new(Tally::new(window)));
    let caller = Caller {
        address: target.address,
        request: RequestBytes::new(load, &target),
        expected: caller::Expected::of(scenario, words),
        leaving: load.leaving,
        arrivals,
        tally: tally.clone(),
        idle: RefCell::default(),
    };
    let caller = Rc::new(caller);
    let mut callers = JoinSet::new();
    for _ in 0..load.arrival.connections() {
        callers.spawn_local(caller.clone().run());
    }
    let watched = watch(&target.processes, window).await;
    let finish = async { while callers.join_next().await.is_some() {} };
    // Those that are not done by then are counted as unfinished.
    timeout(PATIENCE, finish).await.ok();
    callers.shutdown().await;
    let report = tally.borrow().report(scenario.title.clone(), watched);
    Ok(report)
}

async fn watch(processes: &[u32], window: Window) -> Option<Watch> {
    sleep_until(window.begin).await;
    if processes.is_empty() {
        sleep_until(window.end).await;
        return None;
    }
    Some(Watch::until(processes.to_vec(), window.end).await)
}
