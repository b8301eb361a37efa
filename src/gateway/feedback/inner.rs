//! The state that `Learning` and its tasks share, and the jobs of the learner task. It does not name any task.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use stint_decide::learn::{BeliefSnapshot, LearnedState};
use stint_sessions::history::{HistoryStore, HistoryStoreError, RequestRecord};
use stint_types::catalog::Verdict;
use stint_types::metrics::Metrics;
use stint_types::units::{RequestId, Timestamp};

use super::influence_cap::{InfluenceCap, SignalWeight};
use super::pending_take_over::PendingTakeOver;
use super::prompt_ratios::PromptRatios;
use super::recent::RecentRecords;
use super::repeat_detector::RepeatDetector;
use super::reversal_limiter::ReversalLimiter;
use super::settings::LearnSettings;
use super::signals::AnswerSignal;

/// The places where an outcome may be lost.
const STORE: &str = "store";
const LEARNER: &str = "learner";
pub(super) const LOG: &str = "log";
pub(crate) const LOST_AT: [&str; 3] = [STORE, LEARNER, LOG];

/// How long the store may take to answer a caller's query.
pub(super) const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// What all clones of `Learning` and its tasks share.
pub(super) struct LearningInner {
    pub(super) settings: LearnSettings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) records: Arc<dyn HistoryStore>,
    /// Read by every request, without a lock; replaced by the learner.
    pub(super) beliefs: ArcSwap<BeliefSnapshot>,
    pub(super) prompt_ratios: Arc<PromptRatios>,
    /// What the store may have as ours without having said so.
    pub(super) take_over: PendingTakeOver,
    pub(super) recent: RecentRecords,
    pub(super) reversals: ReversalLimiter,
    pub(super) influence_cap: InfluenceCap,
    pub(super) repeat_detector: RepeatDetector,
    pub(super) jobs: mpsc::Sender<LearnJob>,
}

/// Something to learn from, or to do with what was learned.
pub(super) enum LearnJob {
    /// A request has ended.
    Finished(Arc<RequestRecord>),
    /// An answer was judged.
    Verdict(Box<VerdictUpdate>),
    /// Somebody wants to know what was learned here.
    ReadState(oneshot::Sender<LearnedState>),
    /// What the others have learned.
    OtherStates(Vec<LearnedState>),
    /// What replicas had learned that are gone is ours now.
    TakenOver(Vec<LearnedState>),
    /// Another replica took over what was learned here: learning starts again, beside theirs.
    Reset,
}

/// A verdict on an answer.
pub(super) struct VerdictUpdate {
    pub(super) record: Arc<RequestRecord>,
    pub(super) verdict: Verdict,
    /// What it counts in the alarm that a model has changed.
    pub(super) alarm: f64,
    /// The earlier verdict of the same source.
    pub(super) before: Option<Verdict>,
    pub(super) is_kept: bool,
}

impl LearningInner {
    /// Puts a job on its way. What there is no room for is not learned; then it is false.
    pub(super) fn submit(&self, job: LearnJob) -> bool {
        let is_taken = self.jobs.try_send(job).is_ok();
        if !is_taken {
            self.metrics.learning.dropped.with_label_values(&[LEARNER]).inc();
        }
        is_taken
    }

    /// Counts what could not be written to the store.
    pub(super) fn lost(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.metrics.learning.dropped.with_label_values(&[STORE]).inc_by(count);
    }

    /// Something shows how right an answer is. Its measure is the caller's, who wrote the request, and it counts as such.
    pub(super) fn record_signal(&self, story: &Arc<RequestRecord>, (source, success, weight): AnswerSignal) {
        let at = Timestamp::now();
        let SignalWeight { learned: weight, alarm } =
            self.influence_cap.cap_signal(&story.account, weight, at);
        let verdict = Verdict { id: story.decision.id, source, at, success, weight };
        let before = self.recent.judge(&verdict);
        let judged = VerdictUpdate { record: story.clone(), verdict, alarm, before, is_kept: false };
        self.submit(LearnJob::Verdict(Box::new(judged)));
    }

    /// The record of a request of any account.
    pub(super) async fn find(&self, id: RequestId) -> Result<Option<Arc<RequestRecord>>, HistoryStoreError> {
        let oldest = Timestamp::now().before(self.settings.keep);
        if let Some(story) = self.recent.find(id).filter(|story| story.decision.at >= oldest) {
            return Ok(Some(story));
        }
        let found = timeout(STORE_PATIENCE, self.records.find(id, oldest)).await;
        Ok(found.map_err(|_| HistoryStoreError::new("the store did not answer in time"))??.map(Arc::new))
    }
}
