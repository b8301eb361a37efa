use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;

use super::*;
use crate::gateway::feedback::Learning;
use stint_decide::learn::TokenRatios;
use stint_sessions::history::{MemoryHistoryStore, RequestRecord, WritableRecord};
use stint_types::catalog::Verdict;
use stint_types::metrics::Metrics;
use stint_types::units::RequestId;

/// A store that takes over what others left, and does not say so; or in which another replica was quicker.
#[derive(Default)]
struct SilentStore {
    stories: MemoryHistoryStore,
    is_silent: AtomicBool,
    is_late: AtomicBool,
}

impl HistoryStore for SilentStore {
    fn insert<'a>(
        &'a self,
        stories: &'a [Arc<WritableRecord>],
    ) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        self.stories.insert(stories)
    }

    fn find(
        &self,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<Option<RequestRecord>, HistoryStoreError>> {
        self.stories.find(id, since)
    }

    fn set_verdict<'a>(
        &'a self,
        verdict: &'a Verdict,
    ) -> BoxFuture<'a, Result<Option<Verdict>, HistoryStoreError>> {
        self.stories.set_verdict(verdict)
    }

    fn retention_cutoff(&self, most: u32) -> BoxFuture<'_, Result<Option<Timestamp>, HistoryStoreError>> {
        self.stories.retention_cutoff(most)
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, HistoryStoreError>> {
        self.stories.purge(before, most)
    }

    fn replica_states(&self) -> BoxFuture<'_, Result<Vec<ReplicaState>, HistoryStoreError>> {
        self.stories.replica_states()
    }

    fn save_state<'a>(
        &'a self,
        own: &'a ReplicaState,
        in_place_of: &'a [ReplicaState],
    ) -> BoxFuture<'a, Result<bool, HistoryStoreError>> {
        Box::pin(async move {
            if !in_place_of.is_empty() && self.is_late.load(Ordering::SeqCst) {
                return Ok(false);
            }
            let saved = self.stories.save_state(own, in_place_of).await;
            if !in_place_of.is_empty() && self.is_silent.load(Ordering::SeqCst) {
                pending::<()>().await;
            }
            saved
        })
    }

    fn delete_state<'a>(&'a self, replica: &'a ReplicaId) -> BoxFuture<'a, Result<(), HistoryStoreError>> {
        self.stories.delete_state(replica)
    }
}

/// A silent store.
fn silent() -> Arc<SilentStore> {
    Arc::new(SilentStore { is_silent: AtomicBool::new(true), ..SilentStore::default() })
}

/// A gateway has ended that had learned something of the model `left`.
async fn leave_behind(store: &SilentStore) {
    let prompts = BTreeMap::from([("left".into(), TokenRatios::default())]);
    let learned = BeliefStore::new(LearnSettings::default().beliefs).own_state().with_prompts(prompts);
    let gone = saved(&ReplicaId::new(), &learned, true);
    assert!(store.save_state(&gone, &[]).await.unwrap());
}

async fn open(store: &Arc<SilentStore>, tasks: &Tasks) -> Learning {
    let metrics = Arc::new(Metrics::new().unwrap());
    Learning::open(tasks, store.clone(), metrics, LearnSettings::default()).await
}

/// All that the store has is one state, with what was left behind in it.
async fn check_taken_over(store: &SilentStore) {
    let states = store.replica_states().await.unwrap();
    let [state] = &states[..] else { panic!("{states:?}") };
    assert!(state.state.contains("left"), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_at_the_start_is_not_written_over_where_the_store_did_not_say_so() {
    let (store, tasks) = (silent(), Tasks::default());
    leave_behind(&store).await;
    let learning = open(&store, &tasks).await;
    check_taken_over(&store).await;
    store.is_silent.store(false, Ordering::SeqCst);
    tokio::time::sleep(LearnSettings::default().save_every * 5 / 2).await;
    check_taken_over(&store).await;
    assert!(learning.prompt_ratios().snapshot().contains_key("left"), "it is known here too");
    tasks.stop();
    assert!(tasks.drain(Duration::from_secs(60)).await);
    check_taken_over(&store).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_when_the_gateway_ended_is_not_written_over() {
    let (store, tasks) = (silent(), Tasks::default());
    let _learning = open(&store, &tasks).await;
    leave_behind(&store).await;
    tokio::time::sleep(LearnSettings::default().save_every + Duration::from_secs(1)).await;
    check_taken_over(&store).await;
    tasks.stop();
    assert!(tasks.drain(Duration::from_secs(60)).await);
    check_taken_over(&store).await;
}

#[tokio::test(start_paused = true)]
async fn what_another_replica_was_quicker_to_take_over_is_not_waited_for() {
    let (store, tasks) = (
        Arc::new(SilentStore { is_late: AtomicBool::new(true), ..SilentStore::default() }),
        Tasks::default(),
    );
    let learning = open(&store, &tasks).await;
    leave_behind(&store).await;
    tokio::time::sleep(LearnSettings::default().save_every + Duration::from_secs(1)).await;
    assert!(!learning.inner.as_ref().unwrap().take_over.is_pending());
    tasks.stop();
    assert!(tasks.drain(Duration::from_secs(60)).await);
}
