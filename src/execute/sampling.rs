//! Generates several answers to one choice in parallel until one can be selected, and stops the rest.
//!
//! First it asks for as many samples as can settle the vote if they all agree, then for as many again each time, with at
//! most `concurrency` at once. A sample that fails has no answer, and after it no more are started. If none has an
//! answer, the choice fails with a sample's failure. The samples' texts are held back: the caller sees only the selected
//! answer.

use std::fmt;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;

use stint_types::catalog::{AnswerComparison, ChoiceUsage};
use stint_types::chat::{ChoiceEvent, FinishReason};
use stint_types::units::{Chance, mix64};

use super::choice::{ChoiceError, ChoiceJob, IndexedEvent};
use super::driver::generate_choice;
use super::event_channel::{EventLimits, event_channel};
use super::progress::ChoiceProgress;
use super::sampling_result::{AnswerSample, SamplingResult, SamplingStopReason, answer_text};
use super::verify::{Verifier, VerifierError};
use super::vote::{Ballot, StoppingRule, VoteStep, VoteStopReason, answer_key};

/// How many events a sample may be ahead of the reader that keeps them.
const SHOWN: EventLimits = EventLimits { events: 16, bytes: 64 << 10 };

/// How several answers to one choice are made and decided about.
#[derive(Clone)]
pub struct VotingConfig<'a> {
    /// How they are compared.
    pub compare: &'a AnswerComparison,
    /// Whether it must be known if more than half of them agree.
    pub majority: bool,
    /// How many of them run side by side at most.
    pub concurrency: u32,
    /// What a right answer is worth, in dollars.
    pub worth: f64,
    /// What a finished sample cost, in dollars at their shadow price.
    pub price: &'a (dyn Fn(&ChoiceUsage) -> f64 + Sync),
    /// What a second of waiting costs, in dollars.
    pub cost_per_second: f64,
    /// The chance of a change at which no more are asked for.
    pub stop_probability: Chance,
    /// Who checks each, and what it was asked.
    pub verifier: Option<(&'a Verifier, &'a str)>,
    /// Told of every verdict, or that there is none, and how many seconds it took.
    pub on_verdict: &'a (dyn Fn(&Result<Chance, VerifierError>, f64) + Sync),
}

impl fmt::Debug for VotingConfig<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VotingConfig")
            .field("compare", self.compare)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// The draw of one sample of a choice: the first is what would be drawn without a vote.
fn sample_seed(choice: u64, sample: u32) -> u64 {
    if sample == 0 { choice } else { mix64(choice ^ mix64(u64::from(sample))) }
}

/// Makes the samples of one choice; `progress` has a place for each, and holds the account of it at every moment.
/// Dropping this cancels them all.
///
/// # Errors
/// When none came to an end.
async fn sample_choice(
    voting: &VotingConfig<'_>,
    job: &ChoiceJob,
    progress: &mut [ChoiceProgress],
) -> Result<SamplingResult, ChoiceError> {
    let most = u32::try_from(progress.len()).unwrap_or(u32::MAX);
    let jobs: Vec<ChoiceJob> = (0..most).map(|index| job.with_seed(sample_seed(job.seed, index))).collect();
    let mut waiting = jobs.iter().zip(progress).zip(0..);
    let mut running = FuturesUnordered::new();
    let mut sampling = SamplingProgress::new(voting, most);
    loop {
        let wanted = sampling.wanted(job.deadline);
        while running.len() < usize::try_from(wanted).unwrap_or(usize::MAX) {
            let Some(((job, progress), index)) = waiting.next() else { break };
            sampling.sampled.asked += 1;
            running.push(generate_sample(voting, job, progress, index));
        }
        if running.is_empty() || sampling.is_decided() {
            break;
        }
        if let Some(ended) = running.next().await {
            sampling.record(ended);
        }
    }
    sampling.sampled.cancelled = u32::try_from(running.len()).unwrap_or(u32::MAX);
    drop(running);
    sampling.finish()
}

/// What one sample came to.
struct SampleAttempt {
    index: u32,
    ended: Result<FinishReason, ChoiceError>,
    events: Vec<ChoiceEvent>,
    score: Option<Chance>,
    spent: ChoiceUsage,
    seconds: f64,
}

/// Runs one choice to its end and keeps what it shows, its pieces joined.
///
/// # Errors
/// When the backend fails.
pub async fn collect_choice(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
) -> (Result<FinishReason, ChoiceError>, Vec<ChoiceEvent>) {
    let (events, mut shown) = event_channel::<IndexedEvent>(SHOWN);
    let mut merged = Vec::new();
    let running = async {
        let ended = generate_choice(job, progress, &events).await;
        drop(events);
        ended
    };
    let keeping = async {
        while let Some((_, event)) = shown.recv().await {
            push_merged(&mut merged, event);
        }
    };
    let (ended, ()) = tokio::join!(running, keeping);
    (ended, merged)
}

async fn generate_sample(
    voting: &VotingConfig<'_>,
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    index: u32,
) -> SampleAttempt {
    let began = Instant::now();
    let (ended, events) = collect_choice(job, progress).await;
    let spent = progress.spent();
    let seconds = began.elapsed().as_secs_f64();
    let mut came = SampleAttempt { index, ended, events, score: None, spent, seconds };
    if let (Some((verifier, question)), Ok(FinishReason::Stop)) = (voting.verifier, &came.ended) {
        came.score = score(voting, verifier, question, &answer_text(&came.events)).await;
    }
    came
}

/// Pieces of one text are one piece.
fn push_merged(events: &mut Vec<ChoiceEvent>, event: ChoiceEvent) {
    match (events.last_mut(), event) {
        (Some(ChoiceEvent::Thought(text)), ChoiceEvent::Thought(more))
        | (Some(ChoiceEvent::Answer(text)), ChoiceEvent::Answer(more)) => {
            text.push_str(&more);
        }
        (_, event) => events.push(event),
    }
}

async fn score(
    voting: &VotingConfig<'_>,
    verifier: &Verifier,
    question: &str,
    answer: &str,
) -> Option<Chance> {
    let began = Instant::now();
    let verdict = verifier.score(question, answer).await;
    (voting.on_verdict)(&verdict, began.elapsed().as_secs_f64());
    verdict.ok()
}

/// A choice's samples while they are made.
struct SamplingProgress<'a, 'p> {
    voting: &'a VotingConfig<'p>,
    sampled: SamplingResult,
    failure: Option<ChoiceError>,
    price: f64,
    seconds: f64,
    decided: bool,
}

impl<'a, 'p> SamplingProgress<'a, 'p> {
    fn new(voting: &'a VotingConfig<'p>, most: u32) -> SamplingProgress<'a, 'p> {
        let ended = SamplingStopReason::Voted(VoteStopReason::Exhausted);
        let ballot = if voting.majority { Ballot::of_majority(most) } else { Ballot::new(most) };
        let sampled = SamplingResult { finished: Vec::new(), ballot, asked: 0, cancelled: 0, ended };
        SamplingProgress { voting, sampled, failure: None, price: 0.0, seconds: 0.0, decided: false }
    }

    fn is_decided(&self) -> bool {
        self.decided
    }

    /// How many are to be under way.
    fn wanted(&mut self, deadline: Instant) -> u32 {
        if self.failure.is_some() || self.decided {
            return 0;
        }
        match self.sampled.ballot.next_step(&self.stopping_rule(), self.voting.concurrency) {
            VoteStep::Stop(decided) => {
                (self.decided, self.sampled.ended) = (true, SamplingStopReason::Voted(decided));
                0
            }
            VoteStep::Sample(_) if self.is_late(deadline) => {
                self.sampled.ended = SamplingStopReason::Late;
                0
            }
            VoteStep::Sample(more) => more,
        }
    }

    /// Whether a sample as long as those before would come too late.
    fn is_late(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        !self.sampled.finished.is_empty() && self.mean(self.seconds) > left
    }

    fn stopping_rule(&self) -> StoppingRule {
        let VotingConfig { worth, cost_per_second: second, stop_probability: doubt, .. } = *self.voting;
        StoppingRule {
            worth,
            price: self.mean(self.price) + second * self.mean(self.seconds),
            stop_probability: doubt,
        }
    }

    /// Of the samples that came to their end.
    fn mean(&self, sum: f64) -> f64 {
        sum / f64::from(u32::try_from(self.sampled.finished.len()).unwrap_or(u32::MAX).max(1))
    }

    fn record(&mut self, came: SampleAttempt) {
        let SampleAttempt { index, ended, events, score, spent, seconds } = came;
        let finish = match ended {
            Ok(finish) => finish,
            Err(halt) => {
                self.sampled.ballot.cast(index, None);
                self.sampled.ended = SamplingStopReason::Failed;
                self.failure.get_or_insert(halt);
                return;
            }
        };
        self.price += (self.voting.price)(&spent);
        self.seconds += seconds;
        // Half an answer is none that could be compared.
        let key = (finish == FinishReason::Stop)
            .then(|| answer_key(&answer_text(&events), self.voting.compare))
            .flatten();
        self.sampled.ballot.cast(index, key.clone());
        self.sampled.finished.push(AnswerSample { index, finish, events, key, score });
        let floor = self.voting.verifier.map(|(verifier, _)| verifier.floor());
        if score.zip(floor).is_some_and(|(score, floor)| score >= floor) {
            (self.decided, self.sampled.ended) = (true, SamplingStopReason::Accepted);
        }
    }

    fn finish(self) -> Result<SamplingResult, ChoiceError> {
        match self.failure {
            Some(halt) if self.sampled.finished.is_empty() => Err(halt),
            _ => Ok(self.sampled),
        }
    }
}

/// All choices at once, `each` with so many samples; the first that fails ends them all.
///
/// # Errors
/// When no sample of a choice came to an end.
pub async fn sample_choices(
    voting: &VotingConfig<'_>,
    jobs: &[ChoiceJob],
    progress: &mut [ChoiceProgress],
    each: u32,
) -> Result<Vec<SamplingResult>, ChoiceError> {
    let each = usize::try_from(each.max(1)).unwrap_or(usize::MAX);
    let choices = jobs.iter().zip(progress.chunks_mut(each));
    let made: Vec<_> = choices.map(|(job, progress)| sample_choice(voting, job, progress)).collect();
    futures_util::future::try_join_all(made).await
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
