//! Saves what was learned now and then, and merges what other replicas have learned. Each process has a state of its own in
//! the store. The state of a process that has ended is taken over by the first process that finds it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use stint_decide::learn::{BeliefStore, LearnedState, StateError};
use stint_sessions::history::{HistoryStore, HistoryStoreError, ReplicaId, ReplicaState};
use stint_types::tasks::Tasks;
use stint_types::units::Timestamp;

use super::LearnSettings;
use super::inner::{LearnJob, LearningInner};
use super::pending_take_over::PendingTakeOver;
use super::prompt_ratios::PromptRatios;

/// How long the store may take at the start, and in each round.
const BEGIN_MAX: Duration = Duration::from_secs(5);
const ROUND_MAX: Duration = Duration::from_secs(10);
/// How long what another version left, or one with another rate of forgetting, is there for who goes back to that.
const OF_OTHERS_KEPT: Duration = Duration::from_secs(30 * 24 * 3600);

/// What a process starts with.
pub(super) struct LearningStart {
    pub(super) beliefs: BeliefStore,
    /// True if the store has something of ours.
    pub(super) saved: bool,
    pub(super) warned: WarnedReplicas,
    pub(super) prompt_ratios: Arc<PromptRatios>,
    /// What the store may have as ours without having said so.
    pub(super) take_over: PendingTakeOver,
}

/// Starts with all that the store has: orphaned states are taken over, those of other replicas are merged.
pub(super) async fn load_initial(
    stories: &dyn HistoryStore,
    replica: &ReplicaId,
    settings: &LearnSettings,
) -> LearningStart {
    let mut beliefs = BeliefStore::new(settings.beliefs);
    let (mut warned, prompt_ratios) = (WarnedReplicas::default(), Arc::<PromptRatios>::default());
    let take_over = PendingTakeOver::default();
    let began = timeout(BEGIN_MAX, async {
        let read = ReplicaStates::of(stories.replica_states().await?, replica, settings);
        warned.warn_new(&read.incompatible);
        read.forget_useless(stories).await?;
        let mut own = beliefs.own_state();
        read.orphaned.iter().for_each(|(_, state)| own.take_over(state, &settings.beliefs));
        let is_ours = read.take_over(stories, replica, &own, &take_over).await?;
        Ok::<_, HistoryStoreError>((read, is_ours))
    });
    let (read, is_ours) = match began.await {
        Ok(Ok(begun)) => begun,
        Ok(Err(error)) => {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "what was learned before cannot be read; learning starts again"
            );
            return LearningStart { beliefs, saved: false, warned, prompt_ratios, take_over };
        }
        Err(_) => {
            tracing::error!("what was learned before cannot be read in time; learning starts again");
            return LearningStart { beliefs, saved: false, warned, prompt_ratios, take_over };
        }
    };
    take_over.end();
    let left: Vec<LearnedState> = read.orphaned.into_iter().map(|(_, state)| state).collect();
    let mut others = read.others;
    left.iter().chain(&others).for_each(|state| prompt_ratios.take_over(state.prompts()));
    if is_ours {
        beliefs.take_over(&left);
    } else {
        others.extend(left);
    }
    if let Err(error) = beliefs.with_others(others) {
        tracing::warn!(%error, "what another replica has learned is left out");
    }
    LearningStart { beliefs, saved: is_ours, warned, prompt_ratios, take_over }
}

/// A state as it is written down.
pub(super) fn saved(replica: &ReplicaId, state: &LearnedState, has_left: bool) -> ReplicaState {
    // Names and numbers: it can be written as JSON.
    let state = serde_json::to_string(state).unwrap_or_default();
    ReplicaState { replica: replica.clone(), at: Timestamp::now(), is_final: has_left, state }
}

/// What the store has of others.
struct ReplicaStates {
    orphaned: Vec<(ReplicaState, LearnedState)>,
    others: Vec<LearnedState>,
    /// What is left alone.
    incompatible: Vec<(ReplicaId, StateError)>,
    /// What is of no use to anybody: damaged, or of others who have not come back for it.
    useless: Vec<ReplicaId>,
    has_own: bool,
}

impl ReplicaStates {
    fn of(all: Vec<ReplicaState>, own: &ReplicaId, settings: &LearnSettings) -> ReplicaStates {
        let has_own = all.iter().any(|saved| saved.replica == *own);
        let mut read = ReplicaStates {
            orphaned: Vec::new(),
            others: Vec::new(),
            incompatible: Vec::new(),
            useless: Vec::new(),
            has_own,
        };
        let now = Timestamp::now();
        let (oldest, oldest_of_others) = (now.before(settings.gone_after()), now.before(OF_OTHERS_KEPT));
        for saved in all.into_iter().filter(|saved| saved.replica != *own) {
            let is_gone = saved.is_final || saved.at < oldest;
            match LearnedState::read(&saved.state, &settings.beliefs) {
                Ok(state) if is_gone => read.orphaned.push((saved, state)),
                Ok(state) => read.others.push(state),
                Err(reason) if reason.is_of_others() && saved.at >= oldest_of_others => {
                    read.incompatible.push((saved.replica, reason));
                }
                // The process still runs and will write a valid state.
                Err(_) if !is_gone => {}
                Err(error) => {
                    tracing::error!(replica = %saved.replica, %error, "what was learned cannot be used, and is forgotten");
                    read.useless.push(saved.replica);
                }
            }
        }
        read
    }

    async fn forget_useless(&self, stories: &dyn HistoryStore) -> Result<(), HistoryStoreError> {
        for replica in &self.useless {
            stories.delete_state(replica).await?;
        }
        Ok(())
    }

    /// Saves `own`, which includes all orphaned states; false if another replica was quicker. If nobody waits for the answer,
    /// `pending` has what may be ours.
    async fn take_over(
        &self,
        stories: &dyn HistoryStore,
        replica: &ReplicaId,
        own: &LearnedState,
        pending: &PendingTakeOver,
    ) -> Result<bool, HistoryStoreError> {
        let (left, states): (Vec<_>, Vec<_>) = self.orphaned.iter().cloned().unzip();
        let own = saved(replica, own, false);
        pending.begin(&own, states);
        stories.save_state(&own, &left).await
    }
}

/// The replicas whose incompatible state was logged: each is logged once.
#[derive(Default)]
pub(super) struct WarnedReplicas(BTreeSet<ReplicaId>);

impl WarnedReplicas {
    fn warn_new(&mut self, of_others: &[(ReplicaId, StateError)]) {
        for (replica, reason) in of_others.iter().filter(|(replica, _)| !self.0.contains(replica)) {
            tracing::warn!(%replica, %reason, "what another gateway has learned is left alone, for thirty days at most");
        }
        self.0 = of_others.iter().map(|(replica, _)| replica.clone()).collect();
    }
}

/// The task that saves and takes in.
pub(super) struct StateExchange {
    pub(super) inner: Arc<LearningInner>,
    pub(super) jobs: mpsc::Sender<LearnJob>,
    pub(super) replica: ReplicaId,
    /// True if the store has something of ours.
    pub(super) saved: bool,
    pub(super) warned: WarnedReplicas,
}

impl StateExchange {
    pub(super) async fn run(mut self, tasks: Tasks) {
        let stopping = tasks.stopping();
        tokio::pin!(stopping);
        let mut is_failing = false;
        loop {
            tokio::select! {
                biased;
                () = &mut stopping => return,
                () = tokio::time::sleep(self.inner.settings.save_every) => {}
            }
            let round = tokio::select! {
                biased;
                () = &mut stopping => return,
                round = timeout(ROUND_MAX, self.round()) => round,
            };
            let error = match round {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error),
                Err(_) => Some(HistoryStoreError::new("the store did not answer in time")),
            };
            if let Some(error) = error.as_ref().filter(|_| !is_failing) {
                tracing::error!(
                    error = error as &dyn std::error::Error,
                    "what was learned cannot be saved; trying again"
                );
            }
            is_failing = error.is_some();
        }
    }

    async fn round(&mut self) -> Result<(), HistoryStoreError> {
        let (stories, settings) = (self.inner.records.clone(), &self.inner.settings);
        // What was submitted before is learned once this is answered.
        let Some(mut own) = self.own_state().await else { return Ok(()) };
        let all = stories.replica_states().await?;
        if let Some(states) = self.inner.take_over.committed(&all, &self.replica) {
            self.saved = true;
            self.submit(LearnJob::TakenOver(states)).await;
            let Some(with_these) = self.own_state().await else { return Ok(()) };
            own = with_these;
        }
        let read = ReplicaStates::of(all, &self.replica, settings);
        if self.saved && !read.has_own {
            self.start_again(read).await;
            return Ok(());
        }
        self.warned.warn_new(&read.incompatible);
        read.forget_useless(&*stories).await?;
        let own_alone = own.clone();
        read.orphaned.iter().for_each(|(_, state)| own.take_over(state, &settings.beliefs));
        let mut others = read.others.clone();
        let left: Vec<LearnedState> = read.orphaned.iter().map(|(_, state)| state.clone()).collect();
        if read.take_over(&*stories, &self.replica, &own, &self.inner.take_over).await? {
            self.submit(LearnJob::TakenOver(left)).await;
        } else {
            self.inner.take_over.end();
            others.extend(left);
            stories.save_state(&saved(&self.replica, &own_alone, false), &[]).await?;
        }
        self.saved = true;
        self.submit(LearnJob::OtherStates(others)).await;
        Ok(())
    }

    /// What was learned here; nothing at the end, when nobody listens any more.
    async fn own_state(&self) -> Option<LearnedState> {
        let (reply, answer) = oneshot::channel();
        self.jobs.send(LearnJob::ReadState(reply)).await.ok()?;
        answer.await.ok()
    }

    /// Somebody took us for gone. What we had is among what others have now.
    async fn start_again(&mut self, read: ReplicaStates) {
        self.saved = false;
        self.submit(LearnJob::Reset).await;
        let left = read.orphaned.into_iter().map(|(_, state)| state);
        self.submit(LearnJob::OtherStates(read.others.into_iter().chain(left).collect())).await;
    }

    async fn submit(&self, job: LearnJob) {
        // At the end nobody listens any more.
        let _ = self.jobs.send(job).await;
    }
}

#[cfg(test)]
#[path = "state_exchange_tests.rs"]
mod tests;
