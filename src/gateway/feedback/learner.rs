//! The one task that learns from outcomes and verdicts. It waits for nothing but its incoming jobs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use stint_decide::learn::{BeliefStore, LearnedState, OutcomeSample};
use stint_sessions::history::{
    DecisionLogEntry, DecisionLogWriter, HistoryStoreError, ReplicaId, RequestRecord, WritableRecord,
};
use stint_types::catalog::{Verdict, VerdictSource};
use stint_types::tasks::Tasks;

use super::inner::{LearnJob, LearningInner, VerdictUpdate};
use super::marks::VerdictMarks;
use super::story_writer::{StoryWriter, WriteJob};
use super::{samples, state_exchange};

/// Jobs between two moments at which what was learned is made known, and the pause after it: each time what has changed of that
/// is made anew.
const BATCH_MAX: usize = 1024;
const PAUSE: Duration = Duration::from_millis(20);
/// How long the last words may take at the end, for the store and for the log.
const LAST_SAVE: Duration = Duration::from_secs(2);
const LAST_LINES: Duration = Duration::from_secs(1);

pub(super) struct LearnerTask {
    pub(super) inner: Arc<LearningInner>,
    pub(super) arrived: mpsc::Receiver<LearnJob>,
    pub(super) beliefs: BeliefStore,
    pub(super) marks: VerdictMarks,
    pub(super) writer: StoryWriter,
    pub(super) log_writer: Option<DecisionLogWriter>,
    pub(super) replica: ReplicaId,
}

impl LearnerTask {
    /// Runs until shutdown, and then until all is learned that has arrived.
    pub(super) async fn run(mut self, tasks: Tasks) {
        let stopping = tasks.stopping();
        tokio::pin!(stopping);
        let (mut is_closing, mut batch) = (false, Vec::with_capacity(BATCH_MAX));
        loop {
            tokio::select! {
                count = self.arrived.recv_many(&mut batch, BATCH_MAX) => {
                    if count == 0 {
                        break;
                    }
                    batch.drain(..).for_each(|job| self.learn(job));
                    self.inner.beliefs.store(Arc::new(self.beliefs.snapshot()));
                    pause(&self.arrived, &tasks).await;
                }
                () = &mut stopping, if !is_closing => {
                    is_closing = true;
                    self.arrived.close();
                }
            }
        }
        self.end().await;
    }

    fn learn(&mut self, job: LearnJob) {
        match job {
            LearnJob::Finished(story) => self.learn_outcome(&story),
            LearnJob::Verdict(judged) => {
                let VerdictUpdate { record: story, verdict, alarm, before, is_kept } = *judged;
                self.learn_verdict(&story, &verdict, alarm, before.as_ref());
                self.log(DecisionLogEntry::Verdict(verdict.clone()));
                if !is_kept {
                    self.writer.keep(WriteJob::Verdict(verdict));
                }
            }
            LearnJob::ReadState(reply) => {
                let _ = reply.send(self.own_state());
            }
            LearnJob::OtherStates(states) => {
                if let Err(error) = self.beliefs.with_others(states) {
                    tracing::warn!(%error, "what another replica has learned is left out");
                }
            }
            LearnJob::TakenOver(states) => {
                states.iter().for_each(|gone| self.inner.prompt_ratios.take_over(gone.prompts()));
                self.beliefs.take_over(&states);
                self.inner.take_over.end();
            }
            LearnJob::Reset => {
                self.beliefs = BeliefStore::new(self.inner.settings.beliefs);
                self.marks.forget();
            }
        }
    }

    fn learn_outcome(&mut self, story: &Arc<RequestRecord>) {
        for sample in samples::of_outcome(story) {
            self.beliefs.observe(&sample);
            self.inner.metrics.learning.observations.with_label_values(&[&*sample.model]).inc();
        }
        for verdict in &story.verdicts {
            self.learn_verdict(story, verdict, verdict.weight, None);
        }
        let record = WritableRecord::new(story.clone());
        self.log(DecisionLogEntry::Record(record.clone()));
        // The verdicts of its end.
        story.verdicts.iter().for_each(|verdict| self.log(DecisionLogEntry::Verdict(verdict.clone())));
        self.writer.keep(WriteJob::Record(record));
    }

    fn learn_verdict(
        &mut self,
        story: &RequestRecord,
        verdict: &Verdict,
        alarm: f64,
        before: Option<&Verdict>,
    ) {
        let model = &*story.outcome.model;
        if verdict.source == VerdictSource::Feedback {
            let score = verdict.success.get();
            self.inner.metrics.learning.feedback_score.with_label_values(&[model]).observe(score);
        }
        if before.is_some_and(|before| before.success == verdict.success) {
            return;
        }
        if let Ok(sample) = samples::of_verdict(story, verdict) {
            let alarms = self.beliefs.alarms(model);
            let is_learned = match before {
                None => {
                    let mark = self.beliefs.judge(&OutcomeSample { alarm, ..sample });
                    mark.into_iter().for_each(|mark| self.marks.note(verdict, mark));
                    mark.is_some()
                }
                // What is changed weighs what it weighed when it came first.
                Some(before) => {
                    let sample = OutcomeSample { weight: before.weight, ..sample };
                    self.beliefs.amend(&sample, before.success, self.marks.of(verdict))
                }
            };
            if is_learned {
                self.inner.metrics.learning.observations.with_label_values(&[model]).inc();
            }
            if self.beliefs.alarms(model) > alarms {
                self.report_alarm(model);
            }
        }
    }

    fn report_alarm(&self, model: &str) {
        self.inner.metrics.learning.alarms.with_label_values(&[model]).inc();
        tracing::warn!(
            model,
            "a model has changed: its answers were better or worse than predicted for a long time; its quality is learned again"
        );
    }

    fn log(&self, entry: DecisionLogEntry) {
        if let Some(log_writer) = &self.log_writer {
            log_writer.write(entry);
        }
    }

    /// What was learned here, to be saved.
    fn own_state(&self) -> LearnedState {
        self.beliefs.own_state().with_prompts(self.inner.prompt_ratios.snapshot())
    }

    async fn save_last(&mut self) -> Result<bool, HistoryStoreError> {
        let records = self.inner.records.clone();
        if self.inner.take_over.is_pending() {
            let all = records.replica_states().await?;
            let taken_over = self.inner.take_over.committed(&all, &self.replica);
            taken_over.into_iter().for_each(|states| self.learn(LearnJob::TakenOver(states)));
        }
        records.save_state(&state_exchange::saved(&self.replica, &self.own_state(), true), &[]).await
    }

    /// Says for the last time what was learned, and waits a little for those who write.
    async fn end(mut self) {
        let is_saved = timeout(LAST_SAVE, self.save_last()).await;
        if !matches!(is_saved, Ok(Ok(_))) {
            tracing::warn!("what was learned since it was last saved is lost: the store does not take it");
        }
        if let Some(log_writer) = self.log_writer {
            log_writer.close(LAST_LINES).await;
        }
    }
}

/// Lets more arrive; not at the end, nor where much waits already.
async fn pause(arrived: &mpsc::Receiver<LearnJob>, tasks: &Tasks) {
    if arrived.len() >= BATCH_MAX {
        return;
    }
    tokio::select! {
        () = sleep(PAUSE) => {}
        () = tasks.stopping() => {}
    }
}
