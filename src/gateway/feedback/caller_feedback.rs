//! Takes verdicts of callers on answers, at once or days later.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use stint_sessions::history::{HistoryStoreError, RequestRecord};
use stint_types::catalog::{Verdict, VerdictSource};
use stint_types::tenant::Tenant;
use stint_types::units::{AccountId, Chance, RequestId, Timestamp};

use super::influence_cap::SignalWeight;
use super::inner::{LearnJob, LearningInner, STORE_PATIENCE, VerdictUpdate};
use super::{Learning, NotLearned, samples};

/// A caller's feedback.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CallerFeedback {
    /// How right an answer is; 1 is right, 0 is wrong.
    Score(RequestId, Chance),
    /// One answer is better than another.
    Preferred {
        /// The better one.
        better: RequestId,
        /// The other.
        worse: RequestId,
    },
}

/// Why a caller's feedback is not accepted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FeedbackError {
    /// There is no such request, it is another account's, or it was too long ago. Callers cannot tell which.
    #[error("this key has no request of that id, or none that is remembered any more")]
    Unknown,
    /// The account changed too many verdicts, and has to wait.
    #[error("too many judgements were changed within an hour; the earlier ones stay for now")]
    TooManyReversals(Duration),
    /// The store cannot record it now.
    #[error("feedback cannot be recorded right now; try again shortly")]
    Store(#[from] HistoryStoreError),
}

impl Learning {
    /// Accepts a caller's feedback, which replaces earlier feedback on the same answer. It is stored when this returns, and
    /// learned soon after, unless the inner result says why nothing is learned from it.
    ///
    /// # Errors
    /// When the caller has no such request, or the store does not take it.
    pub async fn feedback(
        &self,
        tenant: &Tenant,
        feedback: CallerFeedback,
    ) -> Result<Result<(), NotLearned>, FeedbackError> {
        let inner = self.inner().ok_or(FeedbackError::Unknown)?;
        match feedback {
            CallerFeedback::Score(id, success) => {
                let story = inner.own_record(tenant, id).await?;
                inner.record_feedback(tenant, [verdict_for(story, VerdictSource::Feedback, success)]).await
            }
            CallerFeedback::Preferred { better, worse } => {
                let (better, worse) =
                    (inner.own_record(tenant, better).await?, inner.own_record(tenant, worse).await?);
                let judged =
                    |story, success| verdict_for(story, VerdictSource::Preference, Chance::new(success));
                inner.record_feedback(tenant, [judged(better, 1.0), judged(worse, 0.0)]).await
            }
        }
    }
}

impl LearningInner {
    /// The record of a request of this caller.
    async fn own_record(&self, tenant: &Tenant, id: RequestId) -> Result<Arc<RequestRecord>, FeedbackError> {
        let story = self.find(id).await?;
        story.filter(|story| tenant.may_read(&story.account, story.key)).ok_or(FeedbackError::Unknown)
    }

    /// Accepts all of these verdicts, or none of them if the account changes too many. The inner result is that of the first
    /// from which nothing is learned.
    async fn record_feedback<const N: usize>(
        &self,
        tenant: &Tenant,
        verdicts: [(Arc<RequestRecord>, Verdict); N],
    ) -> Result<Result<(), NotLearned>, FeedbackError> {
        let turns_over = |(story, verdict): &&(Arc<RequestRecord>, Verdict)| {
            story.verdict(verdict.source).is_some_and(|known| known.success != verdict.success)
        };
        let changed: Vec<&AccountId> =
            verdicts.iter().filter(turns_over).map(|(story, _)| &story.account).collect();
        self.reversals.take(&changed, Timestamp::now()).map_err(FeedbackError::TooManyReversals)?;
        let mut learned = Ok(());
        for (story, verdict) in verdicts {
            let recorded = self.record_verdict(tenant, story, verdict).await?;
            learned = learned.and(recorded);
        }
        Ok(learned)
    }

    async fn record_verdict(
        &self,
        tenant: &Tenant,
        story: Arc<RequestRecord>,
        verdict: Verdict,
    ) -> Result<Result<(), NotLearned>, FeedbackError> {
        let SignalWeight { learned: weight, alarm } = self.weight(tenant, &story, &verdict);
        let verdict = Verdict { weight, ..verdict };
        let learned = self.check_learned(&story, &verdict);
        let late = |_| HistoryStoreError::new("the store did not answer in time");
        let before = timeout(STORE_PATIENCE, self.records.set_verdict(&verdict)).await.map_err(late)??;
        self.recent.judge(&verdict);
        let update = VerdictUpdate { record: story, verdict, alarm, before, is_kept: true };
        let is_taken = self.submit(LearnJob::Verdict(Box::new(update)));
        Ok(learned.and(is_taken.then_some(()).ok_or(NotLearned::Busy)))
    }

    /// What a word counts: what is left for a first one, and for a change what the first one counted.
    fn weight(&self, tenant: &Tenant, story: &RequestRecord, verdict: &Verdict) -> SignalWeight {
        match story.verdict(verdict.source) {
            Some(known) => SignalWeight { learned: known.weight, alarm: 0.0 },
            None => self.influence_cap.cap_feedback(tenant, verdict.weight, verdict.at),
        }
    }

    /// Whether anything will be learned from a verdict with the weight that it counts.
    fn check_learned(&self, story: &RequestRecord, verdict: &Verdict) -> Result<(), NotLearned> {
        samples::of_verdict(story, verdict)?;
        match story.verdict(verdict.source) {
            Some(known) if known.success == verdict.success => Err(NotLearned::Unchanged),
            Some(known) if known.weight <= 0.0 => Err(NotLearned::FirstUncounted),
            None if verdict.weight <= 0.0 => {
                Err(NotLearned::InfluenceSpent { most: self.settings.feedback_max })
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn verdict_for(
    story: Arc<RequestRecord>,
    source: VerdictSource,
    success: Chance,
) -> (Arc<RequestRecord>, Verdict) {
    let weight = source.word_weight().unwrap_or_default();
    let verdict = Verdict { id: story.decision.id, source, at: Timestamp::now(), success, weight };
    (story, verdict)
}
