//! Moves pieces from a backend through the phase machine to the caller.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::{Backend, BackendCall, Failure, Fault, Generation, GenerationPart, OutputStats, Piece};
use crate::chat::{ChoiceEvent, FinishReason, Request};
use crate::units::{Count, Tokens};

use super::continuation::{ContinuationSender, await_continuation};
use super::meter::{Meter, MeterSchedule};
use super::phases::{ChoiceStateMachine, ChoiceStep, ChoiceTerms};
use super::reserved_output::ReservedOutputShare;
use super::tool_call_filter::ToolCallFilter;
use super::transcript::AnswerTranscript;
use super::usage_bounds::await_reserved;

/// One choice to be made.
#[derive(Debug)]
pub struct ChoiceJob {
    /// Who makes it.
    pub backend: Arc<dyn Backend>,
    /// What is asked.
    pub request: Arc<Request>,
    /// Which choice it is.
    pub index: u32,
    /// Fixes the draw.
    pub seed: u64,
    /// When the whole answer must be there.
    pub deadline: Instant,
    /// How long before that the thought is cut, so that hand-off and solution still fit; nothing where the
    /// caller stated no deadline.
    pub cut_before: Option<Duration>,
}

/// Why a choice came to no end of its own.
#[derive(Debug)]
pub enum ChoiceError {
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    Disconnected,
}

/// An event of one choice.
pub type IndexedEvent = (u32, ChoiceEvent);

/// A choice under way: its phases, and when it first showed something. It outlives the future that runs it.
#[derive(Debug, Clone)]
pub struct ChoiceProgress {
    /// Where it stands and what it took.
    pub phases: ChoiceStateMachine,
    /// When its first token came, of thought or answer.
    pub first: Option<Instant>,
    /// When the first token of its answer came.
    pub first_answer: Option<Instant>,
    /// What it has taken so far, for those who watch.
    pub meter: Meter,
    /// What it has said, where somebody listens.
    pub transcript: AnswerTranscript,
    /// What of its tool calls passes, where it is a step of an agent's run.
    pub tool_filter: Option<ToolCallFilter>,
    /// Its part in what is covered, where not all that it may write is set aside at first.
    pub(super) reserved: Option<ReservedOutputShare>,
    /// Where it asks for the money of another call, where money alone ends its answer.
    pub(super) wishes: Option<ContinuationSender>,
    /// When its running part was called for, and how its target writes.
    pub(super) part_began: Option<(Instant, OutputStats)>,
    /// The tool calls of which something was shown, by their indices.
    pub(super) shown_calls: Vec<u32>,
    pub(super) meter_schedule: MeterSchedule,
}

impl ChoiceProgress {
    /// A choice that has not begun.
    pub fn new(terms: ChoiceTerms) -> ChoiceProgress {
        ChoiceProgress::of(ChoiceStateMachine::new(terms))
    }

    fn of(phases: ChoiceStateMachine) -> ChoiceProgress {
        let (meter, due) = (Meter::default(), MeterSchedule::first());
        let heard = AnswerTranscript::default();
        let (called, share, began, wishes) = (Vec::new(), None, None, None);
        let (first, first_answer, passing) = (None, None, None);
        ChoiceProgress {
            phases,
            first,
            first_answer,
            meter,
            transcript: heard,
            tool_filter: passing,
            reserved: share,
            wishes,
            part_began: began,
            shown_calls: called,
            meter_schedule: due,
        }
    }

    /// The same, listened to up to so many bytes of what it says.
    #[must_use]
    pub fn with_transcript(self, bytes_max: usize) -> ChoiceProgress {
        ChoiceProgress { transcript: AnswerTranscript::with_bytes_max(bytes_max), ..self }
    }

    /// The same, of whose tool calls only some may pass.
    #[must_use]
    pub fn with_tool_filter(self, passing: ToolCallFilter) -> ChoiceProgress {
        ChoiceProgress { tool_filter: Some(passing), ..self }
    }

    /// Its meter shows all of it from now on.
    pub fn update_meter(&self) {
        self.meter.update(self.spent());
    }

    /// A second try at a choice of which its reader has no answer, on terms of its own. Of its tool calls none passes.
    #[must_use]
    pub fn retry(&self, terms: ChoiceTerms) -> ChoiceProgress {
        ChoiceProgress {
            first: self.first,
            transcript: self.transcript.clone(),
            tool_filter: self.tool_filter.as_ref().map(ToolCallFilter::for_retry),
            ..ChoiceProgress::of(ChoiceStateMachine::retry(terms))
        }
    }

    /// As if all of it had been shown at this moment.
    #[must_use]
    pub fn shown_at(self, now: Instant) -> ChoiceProgress {
        ChoiceProgress { first: Some(now), first_answer: Some(now), ..self }
    }

    /// How many tools its reader was told to call.
    pub fn shown_call_count(&self) -> Count {
        let shown = if self.first.is_some() { self.shown_calls.len() } else { 0 };
        Count(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// Tells the target's fleet what its calls have shown, and is told what is known by now.
    fn report_observations(&mut self, backend: &dyn Backend) {
        let observations = self.phases.take_observations();
        if !observations.is_empty() {
            observations.into_iter().for_each(|observation| backend.observe(observation));
            self.phases.set_behavior(backend.behavior());
        }
    }

    fn update_meter_if_due(&mut self) {
        if self.meter_schedule.is_due() {
            self.update_meter();
        }
    }

    fn record_event(&mut self, event: &ChoiceEvent) {
        self.transcript.record(event);
        if let ChoiceEvent::ToolCall(delta) = event
            && !self.shown_calls.contains(&delta.index)
        {
            self.shown_calls.push(delta.index);
        }
        let now = Instant::now();
        self.first.get_or_insert(now);
        if !matches!(event, ChoiceEvent::Thought(_)) {
            self.first_answer.get_or_insert(now);
        }
    }
}

/// Runs one choice to its end, whatever that is; `progress` holds the account of it at every moment, also when
/// this future is dropped. Dropping it cancels the backend.
///
/// # Errors
/// When the backend fails or nobody takes the events any more.
pub async fn generate_choice<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<FinishReason, ChoiceError> {
    progress.phases.set_behavior(job.backend.behavior());
    let mut part = progress.phases.begin();
    loop {
        let next = match generate_part(job, part, progress, events).await {
            Err(ChoiceError::Failed(failure)) if progress.phases.may_keep_partial(&failure) => {
                tracing::warn!(
                    error = &failure as &dyn std::error::Error,
                    "an answer could not be gone on with, and ends where it is"
                );
                let step = progress.phases.keep_partial();
                apply_step(job, step, progress, events).await?
            }
            Err(ChoiceError::Failed(failure)) if progress.phases.may_give_up(&failure) => {
                give_up(job, &failure, progress, events).await?
            }
            result => result?,
        };
        match next {
            DriverStep::Part(next) => part = next,
            DriverStep::Over(finish) => {
                let (told, most) = progress.phases.prompt_read();
                told.into_iter().for_each(|told| job.backend.record_prompt_tokens(told, most));
                return flush_tool_filter(job, finish, progress, events).await;
            }
            DriverStep::Piece | DriverStep::Drain => return Err(truncated()),
        }
    }
}

/// The answer ends with what there is of it.
async fn give_up<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    failure: &Failure,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<DriverStep, ChoiceError> {
    tracing::warn!(error = failure as &dyn std::error::Error, "an answer behind a thought was refused");
    let step = progress.phases.give_up();
    progress.report_observations(&*job.backend);
    apply_step(job, step, progress, events).await
}

/// What follows a step.
enum DriverStep {
    /// The next piece of the same part.
    Piece,
    /// Another part.
    Part(GenerationPart),
    /// What still comes of this part is only counted.
    Drain,
    /// The end of the choice.
    Over(FinishReason),
}

/// How long an upstream is heard out whose answer is over for the caller: the end of the answer waits for it.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Runs one part until the machine wants another one or is done.
async fn generate_part<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    part: GenerationPart,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<DriverStep, ChoiceError> {
    let class = progress.phases.class();
    let hidden = progress.phases.is_hidden();
    let tells_limit = progress.phases.tells_limit();
    progress.begin_part(job.backend.output_stats());
    let (request, seed, effort) = (job.request.clone(), job.seed, progress.phases.effort_word());
    let effort_least = progress.phases.effort_least().map(str::to_owned);
    let call = BackendCall { request, class, part, seed, hidden, tells_limit, effort, effort_least };
    let began = before_deadline(job, progress, job.backend.generate(call)).await;
    progress.meter.mark_response();
    let mut generation = match began {
        DeadlineResult::Done(Ok(generation)) => generation,
        DeadlineResult::Done(Err(failure)) => {
            if failure.unsent {
                progress.phases.mark_refused();
            }
            return Err(ChoiceError::Failed(failure));
        }
        DeadlineResult::Expired(step) => return apply_late_step(job, step, progress, events).await,
    };
    // Once an upstream has said what it took, it has written all of it.
    let mut is_told = false;
    loop {
        if !is_told && let DeadlineResult::Expired(step) = await_reserved(job, progress, None).await {
            return apply_late_step(job, step, progress, events).await;
        }
        let piece = match before_deadline(job, progress, next_piece(&mut generation)).await {
            DeadlineResult::Done(piece) => piece?,
            DeadlineResult::Expired(step) => return apply_late_step(job, step, progress, events).await,
        };
        is_told = matches!(piece, Piece::Usage(_));
        let step = match await_reserved(job, progress, Some(&piece)).await {
            DeadlineResult::Done(()) => {
                await_continuation(job, progress, &piece).await;
                progress.phases.on_piece(piece)
            }
            DeadlineResult::Expired(step) => return apply_late_step(job, step, progress, events).await,
        };
        progress.update_meter_if_due();
        progress.report_observations(&*job.backend);
        match apply_step(job, step, progress, events).await? {
            DriverStep::Piece => {}
            DriverStep::Drain => return Ok(DriverStep::Over(drain(job, generation, progress).await)),
            next => return Ok(next),
        }
    }
}

/// Time is up. Where nothing was said until then, that is a failure and no answer.
async fn apply_late_step<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    step: ChoiceStep,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<DriverStep, ChoiceError> {
    if progress.first.is_none() && matches!(step, ChoiceStep::Finish(..)) {
        let failure = Failure::new(Fault::Timeout, "nothing came before the deadline");
        return Err(ChoiceError::Failed(failure.code("deadline_exceeded")));
    }
    apply_step(job, step, progress, events).await
}

/// Shows what a step shows and says what comes next.
async fn apply_step<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    step: ChoiceStep,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<DriverStep, ChoiceError> {
    let (shown, next) = match step {
        ChoiceStep::Continue => (None, DriverStep::Piece),
        ChoiceStep::Show(event) => (Some(event), DriverStep::Piece),
        ChoiceStep::Drain(last) => (last, DriverStep::Drain),
        ChoiceStep::Call(part) => (None, DriverStep::Part(part)),
        ChoiceStep::GoOn(shown, part) => (shown, DriverStep::Part(part)),
        ChoiceStep::Finish(last, finish) => (last, DriverStep::Over(finish)),
    };
    if let Some(event) = shown {
        if let ChoiceEvent::Answer(text) = &event {
            let entries = progress.phases.logprobs_of(text);
            if !entries.is_empty() {
                send_event(job, ChoiceEvent::Logprobs(entries), progress, events).await?;
            }
        }
        let Some(passing) = &mut progress.tool_filter else {
            send_event(job, event, progress, events).await?;
            return Ok(next);
        };
        for event in passing.push(event) {
            send_event(job, event, progress, events).await?;
        }
    }
    Ok(next)
}

/// The choice is over: what was held back of its tool calls is shown, so far as it passes.
async fn flush_tool_filter<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    finish: FinishReason,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<FinishReason, ChoiceError> {
    let Some(passing) = &mut progress.tool_filter else { return Ok(finish) };
    let (passed, finish) = passing.finish(finish);
    for event in passed {
        send_event(job, event, progress, events).await?;
    }
    Ok(finish)
}

async fn send_event<T: From<IndexedEvent>>(
    job: &ChoiceJob,
    event: ChoiceEvent,
    progress: &mut ChoiceProgress,
    events: &mpsc::Sender<T>,
) -> Result<(), ChoiceError> {
    progress.record_event(&event);
    // A caller who takes nothing until the deadline has left.
    let sent = tokio::time::timeout_at(job.deadline, events.send((job.index, event).into())).await;
    sent.map_err(|_| ChoiceError::Disconnected)?.map_err(|_| ChoiceError::Disconnected)
}

/// Hears an upstream out, so far as its limit and the time go. What goes wrong now no longer concerns the caller.
async fn drain(job: &ChoiceJob, mut generation: Generation, progress: &mut ChoiceProgress) -> FinishReason {
    let until = job.deadline.min(Instant::now() + DRAIN_MAX);
    let rest = async {
        while let Some(Ok(piece)) = generation.next().await {
            if progress.phases.drain(piece) || !progress.reserve_output(Tokens(1)) {
                break;
            }
            progress.update_meter_if_due();
        }
    };
    let _ = tokio::time::timeout_at(until, rest).await;
    progress.break_off_part();
    progress.phases.finish_drain()
}

async fn next_piece(generation: &mut Generation) -> Result<Piece, ChoiceError> {
    match generation.next().await {
        Some(piece) => piece.map_err(ChoiceError::Failed),
        None => Err(truncated()),
    }
}

fn truncated() -> ChoiceError {
    ChoiceError::Failed(Failure::new(Fault::Backend, "the backend's stream ended in the middle"))
}

pub(super) enum DeadlineResult<T> {
    Done(T),
    Expired(ChoiceStep),
}

/// Waits for `work`, but not past the moment at which the thought must be cut or the answer must end.
async fn before_deadline<T>(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    work: impl Future<Output = T>,
) -> DeadlineResult<T> {
    let is_thinking = progress.phases.is_thinking();
    let cut_at = job.cut_before.filter(|_| is_thinking).map(|before| job.deadline - before);
    let until = cut_at.unwrap_or(job.deadline);
    let mut work = pin!(work);
    loop {
        let look = progress.meter_schedule.next_at().min(until);
        if let Ok(result) = tokio::time::timeout_at(look, &mut work).await {
            return DeadlineResult::Done(result);
        }
        if Instant::now() >= until {
            break;
        }
        progress.update_meter_if_due();
    }
    progress.break_off_part();
    match progress.phases.cut() {
        Some(part) if cut_at.is_some() => DeadlineResult::Expired(ChoiceStep::Call(part)),
        _ => DeadlineResult::Expired(progress.phases.expire()),
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
