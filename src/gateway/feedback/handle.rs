//! The way to learning for those who serve requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::catalog::{Demand, Verdict, VerdictSource};
use crate::history::{
    DecisionLogLine, DecisionLogSettings, DecisionLogWriter, HistoryStore, HistoryStoreError, ReplicaId,
    RequestRecord,
};
use crate::learn::{BeliefStore, LearnedState};
use crate::metrics::Metrics;
use crate::tasks::Tasks;
use crate::tenant::Tenant;
use crate::units::{Chance, RequestId, Timestamp};

use super::influence_cap::{InfluenceCap, SignalWeight};
use super::learner::LearnerTask;
use super::marks::VerdictMarks;
use super::recent::RecentRecords;
use super::repeat_detector::RepeatDetector;
use super::reversal_limiter::ReversalLimiter;
use super::signals::AnswerSignal;
use super::state_exchange::{LearningStart, StateExchange};
use super::story_writer::StoryWriter;
use super::{LearnSettings, state_exchange};

/// Stories that may wait to be learned from.
const JOBS_MAX: usize = 4096;
/// How long the store may take to say what a caller asks for.
pub(super) const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// What a gateway has learned and goes on learning. Clones share it.
#[derive(Clone, Default)]
pub struct Learning {
    inner: Option<Arc<LearningInner>>,
}

pub(super) struct LearningInner {
    pub(super) settings: LearnSettings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) records: Arc<dyn HistoryStore>,
    /// Read by every request, without a lock; replaced by the learner.
    pub(super) book: ArcSwap<BeliefStore>,
    pub(super) recent: RecentRecords,
    pub(super) reversals: ReversalLimiter,
    pub(super) influence_cap: InfluenceCap,
    repeat_detector: RepeatDetector,
    jobs: mpsc::Sender<LearnJob>,
}

/// Something to learn from, or to do with what was learned.
pub(super) enum LearnJob {
    /// A request has landed.
    Finished(Arc<RequestRecord>),
    /// Something was said of an answer.
    Verdict(Box<VerdictUpdate>),
    /// Somebody wants to know what was learned here.
    ReadState(oneshot::Sender<LearnedState>),
    /// What the others have learned.
    OtherStates(Vec<LearnedState>),
    /// What replicas had learned that are gone is ours now.
    TakenOver(Vec<LearnedState>),
    /// Another took over what was learned here: it is begun anew, beside theirs.
    Reset,
}

/// A word on an answer that has landed.
pub(super) struct VerdictUpdate {
    pub(super) record: Arc<RequestRecord>,
    pub(super) verdict: Verdict,
    /// What it counts in the alarm that a model has changed.
    pub(super) alarm: f64,
    /// What the same source said before.
    pub(super) before: Option<Verdict>,
    pub(super) is_kept: bool,
}

impl Learning {
    /// Learns nothing and keeps nothing.
    pub fn off() -> Learning {
        Learning::default()
    }

    /// Goes on from what the store has. Where that cannot be had in a few seconds, it is begun anew and said so: a gateway
    /// that has forgotten is better than none.
    pub async fn open(
        tasks: &Tasks,
        stories: Arc<dyn HistoryStore>,
        metrics: Arc<Metrics>,
        settings: LearnSettings,
    ) -> Learning {
        if !settings.enabled {
            return Learning::off();
        }
        let replica = ReplicaId::new();
        let LearningStart { book, saved, warned: told } =
            state_exchange::load_initial(&*stories, &replica, &settings).await;
        let (jobs, arrived) = mpsc::channel(JOBS_MAX);
        let scribe = settings.log.clone().and_then(|log| scribe(log, &metrics));
        let inner = Arc::new(LearningInner {
            repeat_detector: RepeatDetector::new(settings.asked_again),
            influence_cap: InfluenceCap::new(settings.feedback_max),
            settings,
            metrics,
            records: stories,
            book: ArcSwap::from_pointee(book.clone()),
            recent: RecentRecords::default(),
            reversals: ReversalLimiter::default(),
            jobs: jobs.clone(),
        });
        let clerk = StoryWriter::start(tasks, inner.clone());
        let learner = LearnerTask {
            inner: inner.clone(),
            arrived,
            book,
            marks: VerdictMarks::default(),
            clerk,
            scribe,
            replica: replica.clone(),
        };
        tasks.spawn(learner.run(tasks.clone()));
        tasks.spawn(
            StateExchange { inner: inner.clone(), jobs, replica, saved, warned: told }.run(tasks.clone()),
        );
        Learning { inner: Some(inner) }
    }

    /// The same, asking this whether it serves one key alone, which may move what is believed as far as it likes. Without it
    /// no account may: see [`LearnSettings::feedback_max`].
    #[must_use]
    pub fn with_single_key_check(self, is_alone: impl Fn() -> bool + Send + Sync + 'static) -> Learning {
        if let Some(inner) = &self.inner {
            inner.influence_cap.set_single_key_check(Box::new(is_alone));
        }
        self
    }

    pub(super) fn inner(&self) -> Option<&Arc<LearningInner>> {
        self.inner.as_ref()
    }

    /// Turns a prior's predictions into what is believed now.
    pub fn adjust(&self, demand: &mut Demand) {
        if let Some(inner) = &self.inner {
            inner.book.load().adjust(demand);
        }
    }

    /// A request has landed. Its story can be found from now on.
    pub(in crate::gateway) fn record_finished(
        &self,
        story: &Arc<RequestRecord>,
        asked: Option<super::QuestionFingerprint>,
    ) {
        let Some(inner) = &self.inner else { return };
        inner.recent.add(story);
        let (route, regret) = (&*story.decision.route, story.decision.regret());
        inner.metrics.learning.regret.with_label_values(&[route]).observe(regret);
        inner.submit(LearnJob::Finished(story.clone()));
        let Some(before) = asked.and_then(|asked| inner.repeat_detector.detect_repeat(asked, story)) else {
            return;
        };
        inner.record_signal(
            &before,
            (VerdictSource::AskedAgain, Chance::new(0.0), super::repeat_detector::WEIGHT),
        );
    }

    /// An answer that has landed says something of itself.
    pub(in crate::gateway) fn record_signals(
        &self,
        story: &Arc<RequestRecord>,
        said: impl IntoIterator<Item = AnswerSignal>,
    ) {
        if let Some(inner) = &self.inner {
            said.into_iter().for_each(|said| inner.record_signal(story, said));
        }
    }

    /// The story of a request of this caller's, or of those below its account; none where there is no such request, nobody
    /// remembers it, or it is somebody else's.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn request_record(
        &self,
        tenant: &Tenant,
        id: RequestId,
    ) -> Result<Option<RequestRecord>, HistoryStoreError> {
        let Some(inner) = &self.inner else { return Ok(None) };
        let story = inner.find(id).await?;
        Ok(story
            .filter(|story| tenant.account.contains(&story.account))
            .map(|story| RequestRecord::clone(&story)))
    }
}

impl Learning {
    /// The story of a request, whoever's it is.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn any_request_record(
        &self,
        id: RequestId,
    ) -> Result<Option<Arc<RequestRecord>>, HistoryStoreError> {
        match &self.inner {
            Some(inner) => inner.find(id).await,
            None => Ok(None),
        }
    }
}

impl LearningInner {
    /// Puts a job on its way. What there is no room for is not learned.
    pub(super) fn submit(&self, job: LearnJob) {
        if self.jobs.try_send(job).is_err() {
            self.metrics.learning.dropped.with_label_values(&[super::LEARNER]).inc();
        }
    }

    /// Something shows how right an answer is. Its measure is the caller's, who wrote the request, and it counts as such.
    fn record_signal(&self, story: &Arc<RequestRecord>, (source, success, weight): AnswerSignal) {
        let at = Timestamp::now();
        let SignalWeight { learned: weight, alarm } =
            self.influence_cap.cap_signal(&story.account, weight, at);
        let verdict = Verdict { id: story.decision.id, source, at, success, weight };
        let before = self.recent.judge(&verdict);
        let judged = VerdictUpdate { record: story.clone(), verdict, alarm, before, is_kept: false };
        self.submit(LearnJob::Verdict(Box::new(judged)));
    }

    /// The story of a request, whoever's it is.
    pub(super) async fn find(&self, id: RequestId) -> Result<Option<Arc<RequestRecord>>, HistoryStoreError> {
        let oldest = Timestamp::now().before(self.settings.keep);
        if let Some(story) = self.recent.find(id).filter(|story| story.decision.at >= oldest) {
            return Ok(Some(story));
        }
        let found = timeout(STORE_PATIENCE, self.records.find(id, oldest)).await;
        Ok(found.map_err(|_| HistoryStoreError::new("the store did not answer in time"))??.map(Arc::new))
    }
}

fn scribe(log: DecisionLogSettings, metrics: &Arc<Metrics>) -> Option<DecisionLogWriter> {
    let metrics = metrics.clone();
    let lost = Arc::new(move |lines| metrics.learning.dropped.with_label_values(&[super::LOG]).inc_by(lines));
    let path = log.path.display().to_string();
    DecisionLogWriter::start(log, lost)
        .inspect_err(|error| tracing::error!(path, %error, "the decision log cannot be written"))
        .ok()
}

/// The lines of a story: what was decided and came of it, and what was said at once.
pub(super) fn lines(story: &RequestRecord) -> impl Iterator<Item = DecisionLogLine> {
    let verdicts = story.verdicts.iter().cloned().map(DecisionLogLine::from_verdict);
    std::iter::once(DecisionLogLine::from_record(story)).chain(verdicts)
}

impl fmt::Debug for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learning").field("enabled", &self.inner.is_some()).finish()
    }
}
