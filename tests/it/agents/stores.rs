//! Runs outlive the process, and a store that does not work takes no budget with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::harness::Stored;
use crate::harness::patience::until;
use stint_ledger::{AccountId, MemoryJournal};
use stint_sessions::agent::{
    self, AnsweredStep, BrokenOffStep, EpisodeLength, EpisodeOwner, EpisodeStore, EpisodesError, HistoryHash,
    IdenticalEpisode, MemoryEpisodes, StoredEpisode,
};
use stint_storage::{Database, Settings, SqliteSettings, Synchronous};
use stint_types::chat::{EpisodeLimits, EpisodeRaise};
use stint_types::units::{EpisodeId, Timestamp};

use super::{Agent, calls, run, searching, world, world_on};

#[tokio::test]
async fn a_run_goes_on_after_a_restart_with_what_it_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { path: folder.path().join("stint.db"), synchronous: Synchronous::Normal };
    let settings = Settings::Sqlite(settings);
    let script = searching(2);
    let mut unnamed = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 3 } })).about("Where?");
    let mut named = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 3 }, "episode": "named" }));
    let first = {
        let database = Database::open(&settings).await.unwrap();
        let world = world_on(&script, Stored::of(&database)).await;
        named.step(&world).await;
        let first = unnamed.step(&world).await;
        world.settled().await;
        assert!(world.stop().await);
        first
    };
    // Nothing is said of limits any more.
    (unnamed.budget, named.budget) = (json!({}), json!({ "episode": "named" }));
    let database = loop {
        match Database::open(&settings).await {
            Ok(database) => break database,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let world = world_on(&script, Stored::of(&database)).await;
    let second = unnamed.step(&world).await;
    assert_eq!((run(&second), calls(&second)), (run(&first), 1), "{second}");
    assert_eq!(calls(&named.step(&world).await), 1);
    assert_eq!((calls(&unnamed.step(&world).await), calls(&named.step(&world).await)), (0, 0));
}

/// A store that never answers.
struct Hanging;

impl EpisodeStore for Hanging {
    fn open<'a>(
        &'a self,
        _: &'a EpisodeOwner,
        _: &'a EpisodeId,
        _: &'a EpisodeLimits,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>> {
        pending().boxed()
    }

    fn raise<'a>(
        &'a self,
        _: &'a AccountId,
        _: &'a EpisodeId,
        _: &'a EpisodeRaise,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        pending().boxed()
    }

    fn list<'a>(
        &'a self,
        _: Option<&'a AccountId>,
        _: Option<&'a (AccountId, EpisodeId)>,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        pending().boxed()
    }

    fn recent<'a>(
        &'a self,
        _: Option<&'a AccountId>,
        _: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        pending().boxed()
    }

    fn read<'a>(
        &'a self,
        _: &'a AccountId,
        _: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        pending().boxed()
    }

    fn find<'a>(
        &'a self,
        _: &'a EpisodeOwner,
        _: &'a HistoryHash,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        pending().boxed()
    }

    fn release<'a>(
        &'a self,
        _: &'a AccountId,
        _: &'a HistoryHash,
        _: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        pending().boxed()
    }

    fn identical_episodes<'a>(
        &'a self,
        _: &'a EpisodeOwner,
        _: &'a HistoryHash,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>> {
        pending().boxed()
    }

    fn record_step<'a>(&'a self, _: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        pending().boxed()
    }

    fn record_broken_off<'a>(&'a self, _: &'a BrokenOffStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        pending().boxed()
    }

    fn take_back<'a>(&'a self, _: &'a BrokenOffStep, _: bool) -> BoxFuture<'a, Result<(), EpisodesError>> {
        pending().boxed()
    }

    fn episode_lengths(&self, _: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>> {
        pending().boxed()
    }

    fn purge(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
        pending().boxed()
    }
}

#[tokio::test]
async fn a_store_that_hangs_serves_no_named_run_and_makes_others_new_ones() {
    let script = searching(2);
    let stored = Stored { episodes: Arc::new(Hanging), ..Stored::alone(Arc::new(MemoryJournal::default())) };
    let world = world_on(&script, stored).await;
    let named = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 }, "episode": "named" }));
    let refused = named.ask(&world).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after"));
    assert!(script.records().is_empty());
    let mut unnamed = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 } }));
    assert_eq!(calls(&unnamed.step(&world).await), 1, "what is said now holds");
    let metrics = world.metrics_page();
    assert!(!metrics.contains("stint_episode_steps_total{found=\"lost\"} 0\n"), "{metrics}");
}

#[tokio::test]
async fn without_a_database_runs_are_remembered_while_the_process_lives() {
    let script = searching(1);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({}));
    let first = agent.step(&world).await;
    for _ in 0..4 {
        assert_eq!(run(&agent.step(&world).await), run(&first));
    }
}

/// A store whose word on what it has handed out takes as long as it is made to.
struct Slow {
    runs: MemoryEpisodes,
    /// Answers wait for a permit each, once it is slow.
    words: Semaphore,
    is_slow: AtomicBool,
    /// How many runs were handed out while it is, and how many were given back.
    handed_out: AtomicUsize,
    released: AtomicUsize,
}

/// Waits until there were so many.
async fn reach(count: &AtomicUsize, most: usize) {
    until("there are so many", async || count.load(Ordering::Relaxed) >= most).await;
}

impl Default for Slow {
    fn default() -> Slow {
        let (runs, words) = (MemoryEpisodes::default(), Semaphore::new(0));
        let (handed_out, released) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Slow { runs, words, is_slow: AtomicBool::new(false), handed_out, released }
    }
}

impl EpisodeStore for Slow {
    fn open<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        id: &'a EpisodeId,
        limits: &'a EpisodeLimits,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<StoredEpisode, EpisodesError>> {
        self.runs.open(owner, id, limits, now)
    }

    fn raise<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
        more: &'a EpisodeRaise,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        self.runs.raise(account, id, more, now)
    }

    fn list<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        after: Option<&'a (AccountId, EpisodeId)>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        self.runs.list(account, after, most)
    }

    fn recent<'a>(
        &'a self,
        account: Option<&'a AccountId>,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<(AccountId, StoredEpisode)>, EpisodesError>> {
        self.runs.recent(account, most)
    }

    fn read<'a>(
        &'a self,
        account: &'a AccountId,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<Option<StoredEpisode>, EpisodesError>> {
        self.runs.read(account, id)
    }

    fn find<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<EpisodeId>, EpisodesError>> {
        async move {
            let found = self.runs.find(owner, link, since).await;
            if self.is_slow.load(Ordering::Relaxed) {
                self.handed_out.fetch_add(1, Ordering::Relaxed);
                self.words.acquire().await.unwrap().forget();
            }
            found
        }
        .boxed()
    }

    fn record_broken_off<'a>(&'a self, step: &'a BrokenOffStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.runs.record_broken_off(step)
    }

    fn take_back<'a>(
        &'a self,
        step: &'a BrokenOffStep,
        is_first: bool,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.runs.take_back(step, is_first)
    }

    fn release<'a>(
        &'a self,
        account: &'a AccountId,
        link: &'a HistoryHash,
        id: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.released.fetch_add(1, Ordering::Relaxed);
        self.runs.release(account, link, id)
    }

    fn identical_episodes<'a>(
        &'a self,
        owner: &'a EpisodeOwner,
        link: &'a HistoryHash,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<IdenticalEpisode>, EpisodesError>> {
        self.runs.identical_episodes(owner, link, since)
    }

    fn record_step<'a>(&'a self, step: &'a AnsweredStep) -> BoxFuture<'a, Result<(), EpisodesError>> {
        self.runs.record_step(step)
    }

    fn episode_lengths(&self, most: u32) -> BoxFuture<'_, Result<Vec<EpisodeLength>, EpisodesError>> {
        self.runs.episode_lengths(most)
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, EpisodesError>> {
        self.runs.purge(before, most)
    }
}

#[tokio::test]
async fn a_run_that_was_handed_out_too_late_goes_to_the_next_caller() {
    let (script, slow) = (searching(2), Arc::new(Slow::default()));
    let stored = Stored { episodes: slow.clone(), ..Stored::alone(Arc::new(MemoryJournal::default())) };
    let world = world_on(&script, stored).await;
    let mut one = Agent::new("sk-acme", &json!({}));
    let mut other = one.clone();
    let runs = [one.step(&world).await, other.step(&world).await].map(|answer| run(&answer).to_owned());
    slow.is_slow.store(true, Ordering::Relaxed);
    // One is served as a new run; the other's caller does not wait for that.
    let late = other.ask(&world).await.good();
    assert!(!runs.iter().any(|known| known == run(&late)), "{late}");
    let request = Request::post("/v1/chat/completions").header("host", "here");
    let request =
        request.header("authorization", "Bearer sk-acme").header("content-type", "application/json");
    let request = request.body(Body::from(other.body().to_string())).unwrap();
    tokio::select! {
        answer = TowerToHyperService::new(world.api.clone()).call(request) => panic!("{answer:?}"),
        () = reach(&slow.handed_out, 2) => {}
    }
    slow.is_slow.store(false, Ordering::Relaxed);
    slow.words.add_permits(2);
    reach(&slow.released, 2).await;
    assert_eq!(run(&other.step(&world).await), runs[1]);
    assert_eq!(run(&one.step(&world).await), runs[0]);
}
