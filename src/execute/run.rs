//! Moves pieces from a backend through the phase machine to the caller.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::{Backend, Call, Failure, Fault, Generation, Part};
use crate::chat::{Event, Finish, Request};

use super::phases::{Phases, Step};

/// One choice to be made.
#[derive(Debug)]
pub struct Job {
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
pub enum Halt {
    /// The backend failed.
    Failed(Failure),
    /// The caller is gone.
    HungUp,
}

/// An event of one choice.
pub type Indexed = (u32, Event);

/// Runs one choice to its end, whatever that is; `phases` holds the account of it at every moment, also when
/// this future is dropped. Dropping it cancels the backend.
///
/// # Errors
/// When the backend fails or nobody takes the events any more.
pub async fn run(job: &Job, phases: &mut Phases, events: &mpsc::Sender<Indexed>) -> Result<Finish, Halt> {
    let mut part = phases.begin();
    loop {
        let step = run_part(job, part, phases, events).await?;
        match step {
            Step::Call(next) => part = next,
            Step::Finish(last, finish) => {
                if let Some(event) = last {
                    show(job, events, event).await?;
                }
                return Ok(finish);
            }
            Step::Quiet | Step::Show(_) => return Err(truncated()),
        }
    }
}

/// Runs one part until the machine wants another one or is done.
async fn run_part(
    job: &Job,
    part: Part,
    phases: &mut Phases,
    events: &mpsc::Sender<Indexed>,
) -> Result<Step, Halt> {
    let call = Call { request: job.request.clone(), part, seed: job.seed };
    let mut generation = match in_time(job, phases, job.backend.generate(call)).await {
        Timed::Came(generation) => generation.map_err(Halt::Failed)?,
        Timed::Late(step) => return Ok(step),
    };
    loop {
        let piece = match in_time(job, phases, next(&mut generation)).await {
            Timed::Came(piece) => piece?,
            Timed::Late(step) => return Ok(step),
        };
        match phases.on(piece) {
            Step::Quiet => {}
            Step::Show(event) => show(job, events, event).await?,
            step => return Ok(step),
        }
    }
}

async fn next(generation: &mut Generation) -> Result<crate::backend::Piece, Halt> {
    match generation.next().await {
        Some(piece) => piece.map_err(Halt::Failed),
        None => Err(truncated()),
    }
}

fn truncated() -> Halt {
    Halt::Failed(Failure::new(Fault::Backend, "the backend's stream ended in the middle"))
}

enum Timed<T> {
    Came(T),
    Late(Step),
}

/// Waits for `work`, but not past the moment at which the thought must be cut or the answer must end.
async fn in_time<T>(job: &Job, phases: &mut Phases, work: impl Future<Output = T>) -> Timed<T> {
    let cut_at = job.cut_before.filter(|_| phases.is_thinking()).map(|before| job.deadline - before);
    let until = cut_at.unwrap_or(job.deadline);
    if let Ok(result) = tokio::time::timeout_at(until, work).await {
        return Timed::Came(result);
    }
    match phases.cut() {
        Some(part) if cut_at.is_some() => Timed::Late(Step::Call(part)),
        _ => Timed::Late(phases.expire()),
    }
}

async fn show(job: &Job, events: &mpsc::Sender<Indexed>, event: Event) -> Result<(), Halt> {
    events.send((job.index, event)).await.map_err(|_| Halt::HungUp)
}
