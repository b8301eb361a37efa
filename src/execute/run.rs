//! Moves pieces from a backend through the phase machine to the caller.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::backend::{Backend, Call, Failure, Fault, Generation, Part, Piece, Writing};
use crate::chat::{Event, Finish, Request};
use crate::units::{Count, Tokens};

use super::cover::Share;
use super::further::{Wishes, wish};
use super::heard::Heard;
use super::meter::{Due, Meter};
use super::passing::Passing;
use super::phases::{Phases, Step, Terms};
use super::taking::covered;

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

/// A choice under way: its phases, and when it first showed something. It outlives the future that runs it.
#[derive(Debug, Clone)]
pub struct Progress {
    /// Where it stands and what it took.
    pub phases: Phases,
    /// When its first token came, of thought or answer.
    pub first: Option<Instant>,
    /// When the first token of its answer came.
    pub first_answer: Option<Instant>,
    /// What it has taken so far, for those who watch.
    pub meter: Meter,
    /// What it has said, where somebody listens.
    pub heard: Heard,
    /// What of its tool calls passes, where it is a step of an agent's run.
    pub passing: Option<Passing>,
    /// Its part in what is covered, where not all that it may write is set aside at first.
    pub(super) share: Option<Share>,
    /// Where it asks for the money of another call, where money alone ends its answer.
    pub(super) wishes: Option<Wishes>,
    /// When its running part was called for, and how its target writes.
    pub(super) began: Option<(Instant, Writing)>,
    /// The tool calls of which something was shown, by their indices.
    pub(super) called: Vec<u32>,
    pub(super) due: Due,
}

impl Progress {
    /// A choice that has not begun.
    pub fn new(terms: Terms) -> Progress {
        Progress::of(Phases::new(terms))
    }

    fn of(phases: Phases) -> Progress {
        let (meter, due) = (Meter::default(), Due::first());
        let heard = Heard::default();
        let (called, share, began, wishes) = (Vec::new(), None, None, None);
        let (first, first_answer, passing) = (None, None, None);
        Progress { phases, first, first_answer, meter, heard, passing, share, wishes, began, called, due }
    }

    /// The same, listened to up to so many bytes of what it says.
    #[must_use]
    pub fn listening(self, bytes_max: usize) -> Progress {
        Progress { heard: Heard::up_to(bytes_max), ..self }
    }

    /// The same, of whose tool calls only some may pass.
    #[must_use]
    pub fn passing(self, passing: Passing) -> Progress {
        Progress { passing: Some(passing), ..self }
    }

    /// Its meter shows all of it from now on.
    pub fn measured(&self) {
        self.meter.show(self.spent());
    }

    /// A second try at a choice of which its reader has no answer, on terms of its own. Of its tool calls none passes.
    #[must_use]
    pub fn again(&self, terms: Terms) -> Progress {
        Progress {
            first: self.first,
            heard: self.heard.clone(),
            passing: self.passing.as_ref().map(Passing::again),
            ..Progress::of(Phases::again(terms))
        }
    }

    /// As if all of it had been shown at this moment.
    #[must_use]
    pub fn shown(self, now: Instant) -> Progress {
        Progress { first: Some(now), first_answer: Some(now), ..self }
    }

    /// How many tools its reader was told to call.
    pub fn called(&self) -> Count {
        let shown = if self.first.is_some() { self.called.len() } else { 0 };
        Count(u64::try_from(shown).unwrap_or(u64::MAX))
    }

    /// Tells the target's fleet what its calls have shown, and is told what is known by now.
    fn observe(&mut self, backend: &dyn Backend) {
        let observations = self.phases.observations();
        if !observations.is_empty() {
            observations.into_iter().for_each(|observation| backend.observe(observation));
            self.phases.meet(backend.conduct());
        }
    }

    fn measure(&mut self) {
        if self.due.is_now() {
            self.measured();
        }
    }

    fn note(&mut self, event: &Event) {
        self.heard.hear(event);
        if let Event::ToolCall(delta) = event
            && !self.called.contains(&delta.index)
        {
            self.called.push(delta.index);
        }
        let now = Instant::now();
        self.first.get_or_insert(now);
        if !matches!(event, Event::Thought(_)) {
            self.first_answer.get_or_insert(now);
        }
    }
}

/// Runs one choice to its end, whatever that is; `progress` holds the account of it at every moment, also when
/// this future is dropped. Dropping it cancels the backend.
///
/// # Errors
/// When the backend fails or nobody takes the events any more.
pub async fn run<T: From<Indexed>>(
    job: &Job,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<Finish, Halt> {
    progress.phases.meet(job.backend.conduct());
    let mut part = progress.phases.begin();
    loop {
        let next = match run_part(job, part, progress, events).await {
            Err(Halt::Failed(failure)) if progress.phases.may_stay(&failure) => {
                tracing::warn!(
                    error = &failure as &dyn std::error::Error,
                    "an answer could not be gone on with, and ends where it is"
                );
                let step = progress.phases.stay();
                follow(job, step, progress, events).await?
            }
            Err(Halt::Failed(failure)) if progress.phases.may_give_up(&failure) => {
                give_up(job, &failure, progress, events).await?
            }
            result => result?,
        };
        match next {
            Next::Part(next) => part = next,
            Next::Over(finish) => {
                let (told, most) = progress.phases.prompt_read();
                told.into_iter().for_each(|told| job.backend.was_read(told, most));
                return close(job, finish, progress, events).await;
            }
            Next::Piece | Next::Drain => return Err(truncated()),
        }
    }
}

/// The answer ends with what there is of it.
async fn give_up<T: From<Indexed>>(
    job: &Job,
    failure: &Failure,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<Next, Halt> {
    tracing::warn!(error = failure as &dyn std::error::Error, "an answer behind a thought was refused");
    let step = progress.phases.give_up();
    progress.observe(&*job.backend);
    follow(job, step, progress, events).await
}

/// What follows a step.
enum Next {
    /// The next piece of the same part.
    Piece,
    /// Another part.
    Part(Part),
    /// What still comes of this part is only counted.
    Drain,
    /// The end of the choice.
    Over(Finish),
}

/// How long an upstream is heard out whose answer is over for the caller: the end of the answer waits for it.
const DRAIN: Duration = Duration::from_secs(10);

/// Runs one part until the machine wants another one or is done.
async fn run_part<T: From<Indexed>>(
    job: &Job,
    part: Part,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<Next, Halt> {
    let class = progress.phases.class();
    let hidden = progress.phases.is_hidden();
    let tells_limit = progress.phases.tells_limit();
    progress.begins(job.backend.writing());
    let (request, seed, effort) = (job.request.clone(), job.seed, progress.phases.word());
    let effort_least = progress.phases.effort_least().map(str::to_owned);
    let call = Call { request, class, part, seed, hidden, tells_limit, effort, effort_least };
    let began = in_time(job, progress, job.backend.generate(call)).await;
    progress.meter.hear();
    let mut generation = match began {
        Timed::Came(Ok(generation)) => generation,
        Timed::Came(Err(failure)) => {
            if failure.unsent {
                progress.phases.refused();
            }
            return Err(Halt::Failed(failure));
        }
        Timed::Late(step) => return late(job, step, progress, events).await,
    };
    // Once an upstream has said what it took, it has written all of it.
    let mut is_told = false;
    loop {
        if !is_told && let Timed::Late(step) = covered(job, progress, None).await {
            return late(job, step, progress, events).await;
        }
        let piece = match in_time(job, progress, next(&mut generation)).await {
            Timed::Came(piece) => piece?,
            Timed::Late(step) => return late(job, step, progress, events).await,
        };
        is_told = matches!(piece, Piece::Usage(_));
        let step = match covered(job, progress, Some(&piece)).await {
            Timed::Came(()) => {
                wish(job, progress, &piece).await;
                progress.phases.on(piece)
            }
            Timed::Late(step) => return late(job, step, progress, events).await,
        };
        progress.measure();
        progress.observe(&*job.backend);
        match follow(job, step, progress, events).await? {
            Next::Piece => {}
            Next::Drain => return Ok(Next::Over(drain(job, generation, progress).await)),
            next => return Ok(next),
        }
    }
}

/// Time is up. Where nothing was said until then, that is a failure and no answer.
async fn late<T: From<Indexed>>(
    job: &Job,
    step: Step,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<Next, Halt> {
    if progress.first.is_none() && matches!(step, Step::Finish(..)) {
        let failure = Failure::new(Fault::Timeout, "nothing came before the deadline");
        return Err(Halt::Failed(failure.code("deadline_exceeded")));
    }
    follow(job, step, progress, events).await
}

/// Shows what a step shows and says what comes next.
async fn follow<T: From<Indexed>>(
    job: &Job,
    step: Step,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<Next, Halt> {
    let (shown, next) = match step {
        Step::Quiet => (None, Next::Piece),
        Step::Show(event) => (Some(event), Next::Piece),
        Step::Drain(last) => (last, Next::Drain),
        Step::Call(part) => (None, Next::Part(part)),
        Step::GoOn(shown, part) => (shown, Next::Part(part)),
        Step::Finish(last, finish) => (last, Next::Over(finish)),
    };
    if let Some(event) = shown {
        if let Event::Answer(text) = &event {
            let entries = progress.phases.logprobs_of(text);
            if !entries.is_empty() {
                show(job, Event::Logprobs(entries), progress, events).await?;
            }
        }
        let Some(passing) = &mut progress.passing else {
            show(job, event, progress, events).await?;
            return Ok(next);
        };
        for event in passing.push(event) {
            show(job, event, progress, events).await?;
        }
    }
    Ok(next)
}

/// The choice is over: what was held back of its tool calls is shown, so far as it passes.
async fn close<T: From<Indexed>>(
    job: &Job,
    finish: Finish,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<Finish, Halt> {
    let Some(passing) = &mut progress.passing else { return Ok(finish) };
    let (passed, finish) = passing.finish(finish);
    for event in passed {
        show(job, event, progress, events).await?;
    }
    Ok(finish)
}

async fn show<T: From<Indexed>>(
    job: &Job,
    event: Event,
    progress: &mut Progress,
    events: &mpsc::Sender<T>,
) -> Result<(), Halt> {
    progress.note(&event);
    // A caller who takes nothing until the deadline has left.
    let sent = tokio::time::timeout_at(job.deadline, events.send((job.index, event).into())).await;
    sent.map_err(|_| Halt::HungUp)?.map_err(|_| Halt::HungUp)
}

/// Hears an upstream out, so far as its limit and the time go. What goes wrong now no longer concerns the caller.
async fn drain(job: &Job, mut generation: Generation, progress: &mut Progress) -> Finish {
    let until = job.deadline.min(Instant::now() + DRAIN);
    let rest = async {
        while let Some(Ok(piece)) = generation.next().await {
            if progress.phases.drain(piece) || !progress.holds(Tokens(1)) {
                break;
            }
            progress.measure();
        }
    };
    let _ = tokio::time::timeout_at(until, rest).await;
    progress.breaks_off();
    progress.phases.leave()
}

async fn next(generation: &mut Generation) -> Result<Piece, Halt> {
    match generation.next().await {
        Some(piece) => piece.map_err(Halt::Failed),
        None => Err(truncated()),
    }
}

fn truncated() -> Halt {
    Halt::Failed(Failure::new(Fault::Backend, "the backend's stream ended in the middle"))
}

pub(super) enum Timed<T> {
    Came(T),
    Late(Step),
}

/// Waits for `work`, but not past the moment at which the thought must be cut or the answer must end.
async fn in_time<T>(job: &Job, progress: &mut Progress, work: impl Future<Output = T>) -> Timed<T> {
    let is_thinking = progress.phases.is_thinking();
    let cut_at = job.cut_before.filter(|_| is_thinking).map(|before| job.deadline - before);
    let until = cut_at.unwrap_or(job.deadline);
    let mut work = pin!(work);
    loop {
        let look = progress.due.at().min(until);
        if let Ok(result) = tokio::time::timeout_at(look, &mut work).await {
            return Timed::Came(result);
        }
        if Instant::now() >= until {
            break;
        }
        progress.measure();
    }
    progress.breaks_off();
    match progress.phases.cut() {
        Some(part) if cut_at.is_some() => Timed::Late(Step::Call(part)),
        _ => Timed::Late(progress.phases.expire()),
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
