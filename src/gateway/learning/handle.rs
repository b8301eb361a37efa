//! The way to learning for those who serve requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::catalog::{Demand, Source, Verdict};
use crate::history::{Line, LogSettings, ReplicaId, Scribe, Stories, StoriesError, Story};
use crate::learn::{Book, State};
use crate::metrics::Metrics;
use crate::tasks::Tasks;
use crate::tenant::Tenant;
use crate::units::{Chance, RequestId, Timestamp};

use super::LearnSettings;
use super::changes::Changes;
use super::clerk::Clerk;
use super::exchange::{self, Begun, Exchange};
use super::learner::Learner;
use super::marks::Marks;
use super::recall::Recall;
use super::recent::Recent;
use super::signals::Said;
use super::sway::{Sway, Weight};

/// Stories that may wait to be learned from.
const JOBS_MAX: usize = 4096;
/// How long the store may take to say what a caller asks for.
pub(super) const STORE_PATIENCE: Duration = Duration::from_secs(5);

/// What a gateway has learned and goes on learning. Clones share it.
#[derive(Clone, Default)]
pub struct Learning {
    inner: Option<Arc<Inner>>,
}

pub(super) struct Inner {
    pub(super) settings: LearnSettings,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stories: Arc<dyn Stories>,
    /// Read by every request, without a lock; replaced by the learner.
    pub(super) book: ArcSwap<Book>,
    pub(super) recent: Recent,
    pub(super) changes: Changes,
    pub(super) sway: Sway,
    recall: Recall,
    jobs: mpsc::Sender<Job>,
}

/// Something to learn from, or to do with what was learned.
pub(super) enum Job {
    /// A request has landed.
    Landed(Arc<Story>),
    /// Something was said of an answer.
    Judged(Box<Judged>),
    /// Somebody wants to know what was learned here.
    Show(oneshot::Sender<State>),
    /// What the others have learned.
    Others(Vec<State>),
    /// What replicas had learned that are gone is ours now.
    TakenOver(Vec<State>),
    /// Another took over what was learned here: it is begun anew, beside theirs.
    Anew,
}

/// A word on an answer that has landed.
pub(super) struct Judged {
    pub(super) story: Arc<Story>,
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
        stories: Arc<dyn Stories>,
        metrics: Arc<Metrics>,
        settings: LearnSettings,
    ) -> Learning {
        if !settings.enabled {
            return Learning::off();
        }
        let replica = ReplicaId::new();
        let Begun { book, saved, told } = exchange::begin(&*stories, &replica, &settings).await;
        let (jobs, arrived) = mpsc::channel(JOBS_MAX);
        let scribe = settings.log.clone().and_then(|log| scribe(log, &metrics));
        let inner = Arc::new(Inner {
            recall: Recall::new(settings.asked_again),
            sway: Sway::new(settings.feedback_max),
            settings,
            metrics,
            stories,
            book: ArcSwap::from_pointee(book.clone()),
            recent: Recent::default(),
            changes: Changes::default(),
            jobs: jobs.clone(),
        });
        let clerk = Clerk::start(tasks, inner.clone());
        let learner = Learner {
            inner: inner.clone(),
            arrived,
            book,
            marks: Marks::default(),
            clerk,
            scribe,
            replica: replica.clone(),
        };
        tasks.spawn(learner.run(tasks.clone()));
        tasks.spawn(Exchange { inner: inner.clone(), jobs, replica, saved, told }.run(tasks.clone()));
        Learning { inner: Some(inner) }
    }

    /// The same, asking this whether it serves one key alone, which may move what is believed as far as it likes. Without it
    /// no account may: see [`LearnSettings::feedback_max`].
    #[must_use]
    pub fn alone_while(self, is_alone: impl Fn() -> bool + Send + Sync + 'static) -> Learning {
        if let Some(inner) = &self.inner {
            inner.sway.ask(Box::new(is_alone));
        }
        self
    }

    pub(super) fn inner(&self) -> Option<&Arc<Inner>> {
        self.inner.as_ref()
    }

    /// Turns a prior's predictions into what is believed now.
    pub fn adjust(&self, demand: &mut Demand) {
        if let Some(inner) = &self.inner {
            inner.book.load().adjust(demand);
        }
    }

    /// A request has landed. Its story can be found from now on.
    pub(in crate::gateway) fn landed(&self, story: &Arc<Story>, asked: Option<super::Asked>) {
        let Some(inner) = &self.inner else { return };
        inner.recent.add(story);
        let (route, regret) = (&*story.decision.route, story.decision.regret());
        inner.metrics.learning.regret.with_label_values(&[route]).observe(regret);
        inner.submit(Job::Landed(story.clone()));
        let Some(before) = asked.and_then(|asked| inner.recall.again(asked, story)) else { return };
        inner.sign(&before, (Source::AskedAgain, Chance::new(0.0), super::recall::WEIGHT));
    }

    /// An answer that has landed says something of itself.
    pub(in crate::gateway) fn signs(&self, story: &Arc<Story>, said: impl IntoIterator<Item = Said>) {
        if let Some(inner) = &self.inner {
            said.into_iter().for_each(|said| inner.sign(story, said));
        }
    }

    /// The story of a request of this caller's, or of those below its account; none where there is no such request, nobody
    /// remembers it, or it is somebody else's.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn story(&self, tenant: &Tenant, id: RequestId) -> Result<Option<Story>, StoriesError> {
        let Some(inner) = &self.inner else { return Ok(None) };
        let story = inner.find(id).await?;
        Ok(story.filter(|story| tenant.account.holds(&story.account)).map(|story| Story::clone(&story)))
    }
}

impl Learning {
    /// The story of a request, whoever's it is.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn any_story(&self, id: RequestId) -> Result<Option<Arc<Story>>, StoriesError> {
        match &self.inner {
            Some(inner) => inner.find(id).await,
            None => Ok(None),
        }
    }
}

impl Inner {
    /// Puts a job on its way. What there is no room for is not learned.
    pub(super) fn submit(&self, job: Job) {
        if self.jobs.try_send(job).is_err() {
            self.metrics.learning.dropped.with_label_values(&[super::LEARNER]).inc();
        }
    }

    /// Something shows how right an answer is. Its measure is the caller's, who wrote the request, and it counts as such.
    fn sign(&self, story: &Arc<Story>, (source, success, weight): Said) {
        let at = Timestamp::now();
        let Weight { learned: weight, alarm } = self.sway.of_sign(&story.account, weight, at);
        let verdict = Verdict { id: story.decision.id, source, at, success, weight };
        let before = self.recent.judge(&verdict);
        let judged = Judged { story: story.clone(), verdict, alarm, before, is_kept: false };
        self.submit(Job::Judged(Box::new(judged)));
    }

    /// The story of a request, whoever's it is.
    pub(super) async fn find(&self, id: RequestId) -> Result<Option<Arc<Story>>, StoriesError> {
        let oldest = Timestamp::now().before(self.settings.keep);
        if let Some(story) = self.recent.find(id).filter(|story| story.decision.at >= oldest) {
            return Ok(Some(story));
        }
        let found = timeout(STORE_PATIENCE, self.stories.find(id, oldest)).await;
        Ok(found.map_err(|_| StoriesError::new("the store did not answer in time"))??.map(Arc::new))
    }
}

fn scribe(log: LogSettings, metrics: &Arc<Metrics>) -> Option<Scribe> {
    let metrics = metrics.clone();
    let lost = Arc::new(move |lines| metrics.learning.dropped.with_label_values(&[super::LOG]).inc_by(lines));
    let path = log.path.display().to_string();
    Scribe::start(log, lost)
        .inspect_err(|error| tracing::error!(path, %error, "the decision log cannot be written"))
        .ok()
}

/// The lines of a story: what was decided and came of it, and what was said at once.
pub(super) fn lines(story: &Story) -> impl Iterator<Item = Line> {
    let verdicts = story.verdicts.iter().cloned().map(Line::of_verdict);
    std::iter::once(Line::of_story(story)).chain(verdicts)
}

impl fmt::Debug for Learning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Learning").field("enabled", &self.inner.is_some()).finish()
    }
}
