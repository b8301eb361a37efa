//! The driver of one choice: moves pieces from a backend through the phase machine to the caller.

use std::iter::once;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::Instant;

use stint_backend::{BackendCall, Failure, Fault, Generation, GenerationPart, Piece, Retry};
use stint_types::chat::{ChoiceEvent, FinishReason};
use stint_types::units::Tokens;

use super::choice::{ChoiceError, ChoiceJob, IndexedEvent};
use super::deadline::{DeadlineResult, await_continuation, await_reserved, before_deadline};
use super::event_channel::{Disconnected, EventSender, EventSize};
use super::event_pieces::event_pieces;
use super::phases::ChoiceStep;
use super::progress::ChoiceProgress;

/// How long an upstream is drained once the caller's stop text came: the end of the answer waits for it.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How long what had arrived is still read once the caller is gone.
pub const ARRIVED_MAX: Duration = Duration::from_millis(50);

/// Where nothing comes for so long, nothing had arrived.
const ARRIVED_PAUSE: Duration = Duration::from_millis(5);

/// How often a later part is asked for again that is refused: what was paid for before it would be lost with it.
const REPEATS_MAX: u32 = 2;

/// How long to wait before that, at least, and at most where the upstream wants more.
const REPEAT_WAIT: Duration = Duration::from_millis(300);
const REPEAT_WAIT_MAX: Duration = Duration::from_secs(5);

/// Runs one choice to its end, whatever that is; `progress` holds the account of it at every moment, also when
/// this future is dropped. Dropping it cancels the backend.
///
/// # Errors
/// When the backend fails or the receiver of the events is gone.
pub async fn generate_choice<T: From<IndexedEvent> + EventSize>(
    job: &ChoiceJob,
    progress: &mut ChoiceProgress,
    events: &EventSender<T>,
) -> Result<FinishReason, ChoiceError> {
    ChoiceDriver { job, progress, events }.run().await
}

/// One choice, the account of it, and where its events go.
struct ChoiceDriver<'a, T> {
    job: &'a ChoiceJob,
    progress: &'a mut ChoiceProgress,
    events: &'a EventSender<T>,
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

impl<T: From<IndexedEvent> + EventSize> ChoiceDriver<'_, T> {
    async fn run(mut self) -> Result<FinishReason, ChoiceError> {
        self.progress.phases.set_behavior(self.job.backend.behavior());
        let mut part = self.progress.phases.begin();
        // The gateway may try the first elsewhere.
        let mut repeats_max = 0;
        loop {
            let next = match self.generate_part(part, repeats_max).await {
                Err(ChoiceError::Failed(failure)) => {
                    let step = self.recover(failure)?;
                    self.apply_step(step).await?
                }
                result => result?,
            };
            match next {
                DriverStep::Part(next) => (part, repeats_max) = (next, REPEATS_MAX),
                DriverStep::Over(finish) => {
                    self.record_prompt();
                    return self.flush_tool_filter(finish).await;
                }
                DriverStep::Piece | DriverStep::Drain => return Err(truncated()),
            }
        }
    }

    /// Lets the backend learn which part of its bound a prompt usually has. The bound of a file or an image is far above what
    /// it has, so that one of them would make every later prompt of text seem short.
    fn record_prompt(&self) {
        let (reported, most) = self.progress.phases.prompt_read();
        if let Some(tokens) = reported.filter(|_| !self.job.request.has_media()) {
            self.job.backend.record_prompt_tokens(tokens, most);
        }
    }

    /// A call failed: where what was shown is an answer without it, the choice ends with that.
    fn recover(&mut self, failure: Failure) -> Result<ChoiceStep, ChoiceError> {
        let error = &failure as &dyn std::error::Error;
        if self.progress.phases.may_keep_partial(&failure) {
            tracing::warn!(error, "an answer could not be continued, and ends where it is");
            Ok(self.progress.phases.keep_partial())
        } else if self.progress.phases.may_give_up(&failure) {
            tracing::warn!(error, "an answer behind a thought was refused");
            let step = self.progress.phases.give_up();
            self.progress.report_observations(&*self.job.backend);
            Ok(step)
        } else {
            Err(ChoiceError::Failed(failure))
        }
    }

    /// Runs one part until the machine wants another one or is done. Where it is refused before a model saw it, and that may
    /// pass, it is asked for again, so often at most, and as often as its target has retries left.
    async fn generate_part(
        &mut self,
        mut part: GenerationPart,
        mut repeats_left: u32,
    ) -> Result<DriverStep, ChoiceError> {
        loop {
            let result = self.call_part(part.clone()).await;
            let Err(ChoiceError::Failed(failure)) = result else { return result };
            self.progress.record_failure(&failure);
            let wait = self.repeat_wait(&failure).filter(|_| repeats_left > 0);
            let Some(wait) = wait.filter(|_| self.job.backend.take_retry()) else {
                return Err(ChoiceError::Failed(failure));
            };
            tracing::info!(%failure, ?wait, "the next call of an answer was refused, and is made again");
            unless_disconnected(self.events, tokio::time::sleep(wait)).await?;
            repeats_left -= 1;
            part = self.progress.phases.repeat_part(part);
        }
    }

    /// How long to wait before a part that failed is asked for again; nothing where that would not help, or not in time.
    fn repeat_wait(&self, failure: &Failure) -> Option<Duration> {
        let helps = failure.unsent && failure.retry == Retry::Again && failure.fault != Fault::Caller;
        let wait = failure.retry_after.unwrap_or_default().max(REPEAT_WAIT);
        let is_in_time = wait <= REPEAT_WAIT_MAX && Instant::now() + wait < self.job.deadline;
        (helps && is_in_time).then_some(wait)
    }

    /// Calls for one part, once.
    async fn call_part(&mut self, part: GenerationPart) -> Result<DriverStep, ChoiceError> {
        let call = self.call(part);
        let generating = before_deadline(self.job, self.progress, self.job.backend.generate(call));
        let began = unless_disconnected(self.events, generating).await?;
        self.progress.meter.mark_response();
        let mut generation = match began {
            DeadlineResult::Done(Ok(generation)) => generation,
            DeadlineResult::Done(Err(failure)) => return Err(ChoiceError::Failed(failure)),
            DeadlineResult::Expired(step) => return self.apply_late_step(step).await,
        };
        let next = self.read_part(&mut generation).await;
        match next {
            Ok(DriverStep::Drain) => Ok(DriverStep::Over(self.drain(generation).await)),
            Err(ChoiceError::Disconnected) => {
                self.count_arrived(&mut generation).await;
                next
            }
            next => next,
        }
    }

    /// Passes the pieces of a part on until the machine wants something else.
    async fn read_part(&mut self, generation: &mut Generation) -> Result<DriverStep, ChoiceError> {
        // Once an upstream has reported its usage, it has written all of it.
        let mut is_reported = false;
        loop {
            if let Some(turns) = &mut self.progress.turns {
                unless_disconnected(self.events, turns.wait()).await?;
            }
            if !is_reported
                && let DeadlineResult::Expired(step) = await_reserved(self.job, self.progress, None).await
            {
                return self.apply_late_step(step).await;
            }
            let reading = before_deadline(self.job, self.progress, next_piece(generation));
            let piece = match unless_disconnected(self.events, reading).await? {
                DeadlineResult::Done(piece) => piece?,
                DeadlineResult::Expired(step) => return self.apply_late_step(step).await,
            };
            is_reported = matches!(piece, Piece::Usage(_));
            if let Some(turns) = &mut self.progress.turns {
                turns.record_piece(piece.text_bytes());
            }
            match await_reserved(self.job, self.progress, Some(&piece)).await {
                DeadlineResult::Done(()) => await_continuation(self.job, self.progress, &piece).await,
                DeadlineResult::Expired(step) => return self.apply_late_step(step).await,
            }
            let step = self.progress.phases.on_piece(piece);
            self.progress.update_meter_if_due();
            self.progress.report_observations(&*self.job.backend);
            match self.apply_step(step).await? {
                DriverStep::Piece => {}
                next => return Ok(next),
            }
        }
    }

    /// The caller is gone: what the upstream had written by then is billed, so it is read as far as it has come.
    async fn count_arrived(&mut self, generation: &mut Generation) {
        let until = Instant::now() + ARRIVED_MAX;
        while self.progress.reserve_output(Tokens(1)) {
            let pause = until.min(Instant::now() + ARRIVED_PAUSE);
            let Ok(Some(Ok(piece))) = tokio::time::timeout_at(pause, generation.next()).await else { break };
            let step = self.progress.phases.on_piece(piece);
            if !matches!(step, ChoiceStep::Continue | ChoiceStep::Show(_)) {
                break;
            }
        }
    }

    /// The call for a part, which begins now.
    fn call(&mut self, part: GenerationPart) -> BackendCall {
        let ChoiceJob { backend, request, seed, .. } = self.job;
        let phases = &self.progress.phases;
        let call = BackendCall {
            request: request.clone(),
            class: phases.class(),
            part,
            seed: *seed,
            hidden: phases.is_hidden(),
            whole: phases.is_whole(),
            tells_limit: phases.tells_limit(),
            effort: phases.effort_word(),
            effort_least: phases.effort_least().map(str::to_owned),
        };
        self.progress.begin_part(backend.output_stats());
        call
    }

    /// Time is up. Where nothing was shown until then, that is a failure and no answer.
    async fn apply_late_step(&mut self, step: ChoiceStep) -> Result<DriverStep, ChoiceError> {
        if self.progress.first.is_none() && matches!(step, ChoiceStep::Finish(..)) {
            let failure = Failure::new(Fault::Timeout, "nothing came before the deadline");
            return Err(ChoiceError::Failed(failure.code("deadline_exceeded")));
        }
        self.apply_step(step).await
    }

    /// Sends the caller what a step shows, and returns what comes next.
    async fn apply_step(&mut self, step: ChoiceStep) -> Result<DriverStep, ChoiceError> {
        let (shown, next) = match step {
            ChoiceStep::Continue => (None, DriverStep::Piece),
            ChoiceStep::Show(event) => (Some(event), DriverStep::Piece),
            ChoiceStep::Drain(last) => (last, DriverStep::Drain),
            ChoiceStep::Call(part) => (None, DriverStep::Part(part)),
            ChoiceStep::GoOn(shown, part) => (shown, DriverStep::Part(part)),
            ChoiceStep::Finish(last, finish) => (last, DriverStep::Over(finish)),
        };
        if let Some(event) = shown {
            self.show(event).await?;
        }
        Ok(next)
    }

    /// Sends an event, its log probabilities first, as far as its tool calls pass.
    async fn show(&mut self, event: ChoiceEvent) -> Result<(), ChoiceError> {
        if let ChoiceEvent::Answer(text) = &event {
            let entries = self.progress.phases.logprobs_of(text);
            if !entries.is_empty() {
                self.send(ChoiceEvent::Logprobs(entries)).await?;
            }
        }
        let Some(filter) = &mut self.progress.tool_filter else { return self.send(event).await };
        for event in filter.push(event) {
            self.send(event).await?;
        }
        Ok(())
    }

    /// The choice is over: what was withheld of its tool calls is shown, so far as it passes.
    async fn flush_tool_filter(&mut self, finish: FinishReason) -> Result<FinishReason, ChoiceError> {
        let Some(filter) = &mut self.progress.tool_filter else { return Ok(finish) };
        let (passed, finish) = filter.finish(finish);
        for event in passed {
            self.send(event).await?;
        }
        Ok(finish)
    }

    async fn send(&mut self, event: ChoiceEvent) -> Result<(), ChoiceError> {
        self.progress.record_event(&event);
        let (first, others) = event_pieces(event);
        let (is_cut, mut has_waited) = (!others.is_empty(), false);
        for piece in once(first).chain(others) {
            let sent = self.events.try_send((self.job.index, piece).into());
            let Some(waiting) = sent.map_err(|_| ChoiceError::Disconnected)? else { continue };
            has_waited = true;
            before_leaving(self.job.deadline, self.events.send(waiting)).await?;
        }
        // The next event may be as long: it is read once the caller has taken this one.
        if is_cut && has_waited {
            before_leaving(self.job.deadline, self.events.all_taken()).await
        } else {
            Ok(())
        }
    }

    /// Reads what an upstream still writes, as far as its limit and the time allow. A failure now no longer concerns the
    /// caller.
    async fn drain(&mut self, mut generation: Generation) -> FinishReason {
        let until = self.job.deadline.min(Instant::now() + DRAIN_MAX);
        let rest = async {
            while let Some(Ok(piece)) = generation.next().await {
                if self.progress.phases.drain(piece) || !self.progress.reserve_output(Tokens(1)) {
                    break;
                }
                self.progress.update_meter_if_due();
            }
        };
        let _ = tokio::time::timeout_at(until, rest).await;
        self.progress.break_off_part();
        self.progress.phases.finish_drain()
    }
}

/// Waits for a caller to take something: who takes nothing until the deadline has left.
async fn before_leaving(
    deadline: Instant,
    taking: impl Future<Output = Result<(), Disconnected>>,
) -> Result<(), ChoiceError> {
    let taken = tokio::time::timeout_at(deadline, taking).await;
    taken.map_err(|_| ChoiceError::Disconnected)?.map_err(|_| ChoiceError::Disconnected)
}

async fn next_piece(generation: &mut Generation) -> Result<Piece, ChoiceError> {
    match generation.next().await {
        Some(piece) => piece.map_err(ChoiceError::Failed),
        None => Err(truncated()),
    }
}

/// Waits for `work`, but not beyond the moment at which the receiver of the events is gone.
async fn unless_disconnected<T, E>(
    events: &EventSender<E>,
    work: impl Future<Output = T>,
) -> Result<T, ChoiceError> {
    tokio::select! {
        biased;
        result = work => Ok(result),
        () = events.closed() => Err(ChoiceError::Disconnected),
    }
}

fn truncated() -> ChoiceError {
    ChoiceError::Failed(Failure::new(Fault::Backend, "the backend's stream ended in the middle"))
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
