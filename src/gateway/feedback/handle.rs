//! `Learning`: the handle through which requests read what was learned and report how they ended.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use stint_sessions::history::{
    DecisionLogSettings, DecisionLogWriter, HistoryStore, HistoryStoreError, ReplicaId, RequestRecord,
};
use stint_types::catalog::{Demand, VerdictSource};
use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;
use stint_types::tenant::Tenant;
use stint_types::units::{Chance, RequestId};

use super::influence_cap::InfluenceCap;
use super::inner::{self, LearnJob, LearningInner};
use super::learner::LearnerTask;
use super::marks::VerdictMarks;
use super::prompt_ratios::PromptRatios;
use super::recent::RecentRecords;
use super::repeat_detector::RepeatDetector;
use super::reversal_limiter::ReversalLimiter;
use super::signals::AnswerSignal;
use super::state_exchange::{LearningStart, StateExchange};
use super::story_writer::StoryWriter;
use super::{LearnSettings, state_exchange};

/// Records that may wait to be learned from.
const JOBS_MAX: usize = 4096;
/// What a gateway has learned and keeps learning. Clones share it.
#[derive(Clone, Default)]
pub struct Learning {
    pub(super) inner: Option<Arc<LearningInner>>,
    /// Also of who learns nothing else: forecasts go by them.
    prompt_ratios: Arc<PromptRatios>,
}

impl Learning {
    /// Learns nothing and keeps nothing.
    pub fn off() -> Learning {
        Learning::default()
    }

    /// Continues from what the store has. If the store does not answer in a few seconds, learning starts again, and the log
    /// says so: a gateway that has forgotten is better than none.
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
        let LearningStart { beliefs, saved, warned, prompt_ratios, take_over } =
            state_exchange::load_initial(&*stories, &replica, &settings).await;
        let (jobs, arrived) = mpsc::channel(JOBS_MAX);
        let log_writer = settings.log.clone().and_then(|log| log_writer(log, &metrics));
        let inner = Arc::new(LearningInner {
            repeat_detector: RepeatDetector::new(settings.asked_again),
            influence_cap: InfluenceCap::new(settings.feedback_max),
            settings,
            metrics,
            records: stories,
            beliefs: ArcSwap::from_pointee(beliefs.snapshot()),
            prompt_ratios: prompt_ratios.clone(),
            take_over,
            recent: RecentRecords::default(),
            reversals: ReversalLimiter::default(),
            jobs: jobs.clone(),
        });
        let writer = StoryWriter::start(tasks, inner.clone());
        let learner = LearnerTask {
            inner: inner.clone(),
            arrived,
            beliefs,
            marks: VerdictMarks::default(),
            writer,
            log_writer,
            replica: replica.clone(),
        };
        tasks.spawn(learner.run(tasks.clone()));
        tasks.spawn(StateExchange { inner: inner.clone(), jobs, replica, saved, warned }.run(tasks.clone()));
        Learning { inner: Some(inner), prompt_ratios }
    }

    /// The same, with a check whether it serves a single caller, who may change the beliefs without limit. Without the check
    /// only trusted keys may: see [`LearnSettings::feedback_max`].
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

    /// About how many tokens prompts have.
    pub(crate) fn prompt_ratios(&self) -> Arc<PromptRatios> {
        self.prompt_ratios.clone()
    }

    /// Corrects a prior's predictions by the current beliefs.
    pub fn adjust(&self, demand: &mut Demand) {
        if let Some(inner) = &self.inner {
            inner.beliefs.load().adjust(demand);
        }
    }

    /// A request has ended. Its record can be found from now on.
    pub(crate) fn record_finished(
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

    /// An answer shows something of itself.
    pub(crate) fn record_signals(
        &self,
        story: &Arc<RequestRecord>,
        signals: impl IntoIterator<Item = AnswerSignal>,
    ) {
        if let Some(inner) = &self.inner {
            signals.into_iter().for_each(|signal| inner.record_signal(story, signal));
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
            .filter(|story| tenant.may_read(&story.account, story.key))
            .map(|story| RequestRecord::clone(&story)))
    }

    /// The latest requests of this process that were answered or failed, the last one first; none where nothing is learned.
    pub fn latest_records(&self, most: usize) -> Vec<Arc<RequestRecord>> {
        self.inner.as_ref().map_or_else(Vec::new, |inner| inner.recent.latest(most))
    }

    /// False where nothing is learned, so that nothing is remembered of requests either.
    pub fn is_on(&self) -> bool {
        self.inner.is_some()
    }

    /// The record of a request of any account.
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

fn log_writer(log: DecisionLogSettings, metrics: &Arc<Metrics>) -> Option<DecisionLogWriter> {
    let metrics = metrics.clone();
    let lost = Arc::new(move |lines| metrics.learning.dropped.with_label_values(&[inner::LOG]).inc_by(lines));
    let path = log.path.display().to_string();
    DecisionLogWriter::start(log, lost)
        .inspect_err(|error| tracing::error!(path, %error, "the decision log cannot be written"))
        .ok()
}

impl fmt::Debug for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learning").field("enabled", &self.inner.is_some()).finish()
    }
}
