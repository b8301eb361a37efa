//! Makes several answers to one choice side by side until they are decided about, and stops the rest.
//!
//! First as many are asked for as may settle it if they all agree, then ever as many again, `at_once` at most. A sample that
//! fails has no answer, and after it none is asked for any more; where none has one, its failure is that of all. What they
//! say is kept until the choice is made: the caller sees only the answer that was chosen.

use std::fmt;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::catalog::{Compare, Spent};
use crate::chat::{Event, Finish};
use crate::units::{Chance, mixed};

use super::run::{Halt, Indexed, Job, Progress, run};
use super::sampled::{Ended, Sample, Sampled, text};
use super::verify::{NoVerdict, Verifier};
use super::vote::{Ballot, Decided, Next, Stakes, key};

/// How many events a sample may be ahead of whoever keeps them.
const SHOWN_MAX: usize = 16;

/// How several answers to one choice are made and decided about.
#[derive(Clone)]
pub struct Panel<'a> {
    /// How they are compared.
    pub compare: &'a Compare,
    /// Whether it must be known if more than half of them agree.
    pub majority: bool,
    /// How many of them run side by side at most.
    pub at_once: u32,
    /// What a right answer is worth, in dollars.
    pub worth: f64,
    /// What a finished sample cost, in dollars at their shadow price.
    pub price: &'a (dyn Fn(&Spent) -> f64 + Sync),
    /// What a second of waiting costs, in dollars.
    pub second: f64,
    /// The chance of a change at which no more are asked for.
    pub doubt: Chance,
    /// Who checks each, and what it was asked.
    pub verifier: Option<(&'a Verifier, &'a str)>,
    /// Told of every verdict, or that there is none, and how many seconds it took.
    pub checked: &'a (dyn Fn(&Result<Chance, NoVerdict>, f64) + Sync),
}

impl fmt::Debug for Panel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Panel")
            .field("compare", self.compare)
            .field("at_once", &self.at_once)
            .finish_non_exhaustive()
    }
}

/// The draw of one sample of a choice: the first is what would be drawn without a vote.
fn seed(choice: u64, sample: u32) -> u64 {
    if sample == 0 { choice } else { mixed(choice ^ mixed(u64::from(sample))) }
}

/// Makes the samples of one choice; `progress` has a place for each, and holds the account of it at every moment.
/// Dropping this cancels them all.
///
/// # Errors
/// When none came to an end.
async fn sample(panel: &Panel<'_>, job: &Job, progress: &mut [Progress]) -> Result<Sampled, Halt> {
    let most = u32::try_from(progress.len()).unwrap_or(u32::MAX);
    let jobs: Vec<Job> = (0..most).map(|index| job.drawn(seed(job.seed, index))).collect();
    let mut waiting = jobs.iter().zip(progress).zip(0..);
    let mut running = FuturesUnordered::new();
    let mut sampling = Sampling::new(panel, most);
    loop {
        let wanted = sampling.wanted(job.deadline);
        while running.len() < usize::try_from(wanted).unwrap_or(usize::MAX) {
            let Some(((job, progress), index)) = waiting.next() else { break };
            sampling.sampled.asked += 1;
            running.push(one(panel, job, progress, index));
        }
        if running.is_empty() || sampling.is_decided() {
            break;
        }
        if let Some(ended) = running.next().await {
            sampling.take(ended);
        }
    }
    sampling.sampled.cancelled = u32::try_from(running.len()).unwrap_or(u32::MAX);
    drop(running);
    sampling.over()
}

impl Job {
    /// The same, with another draw.
    fn drawn(&self, seed: u64) -> Job {
        let Job { backend, request, index, deadline, cut_before, .. } = self;
        let (backend, request) = (Arc::clone(backend), Arc::clone(request));
        Job { backend, request, index: *index, seed, deadline: *deadline, cut_before: *cut_before }
    }
}

/// What one sample came to.
struct Came {
    index: u32,
    ended: Result<Finish, Halt>,
    events: Vec<Event>,
    score: Option<Chance>,
    spent: Spent,
    seconds: f64,
}

/// Runs one choice to its end and keeps what it shows, its pieces joined.
///
/// # Errors
/// When the backend fails.
pub async fn whole(job: &Job, progress: &mut Progress) -> (Result<Finish, Halt>, Vec<Event>) {
    let (events, mut shown) = mpsc::channel::<Indexed>(SHOWN_MAX);
    let mut kept = Vec::new();
    let running = async {
        let ended = run(job, progress, &events).await;
        drop(events);
        ended
    };
    let keeping = async {
        while let Some((_, event)) = shown.recv().await {
            keep(&mut kept, event);
        }
    };
    let (ended, ()) = tokio::join!(running, keeping);
    (ended, kept)
}

async fn one(panel: &Panel<'_>, job: &Job, progress: &mut Progress, index: u32) -> Came {
    let began = Instant::now();
    let (ended, events) = whole(job, progress).await;
    let spent = progress.spent();
    let seconds = began.elapsed().as_secs_f64();
    let mut came = Came { index, ended, events, score: None, spent, seconds };
    if let (Some((verifier, question)), Ok(Finish::Stop)) = (panel.verifier, &came.ended) {
        came.score = score(panel, verifier, question, &text(&came.events)).await;
    }
    came
}

/// Pieces of one text are one piece.
fn keep(kept: &mut Vec<Event>, event: Event) {
    match (kept.last_mut(), event) {
        (Some(Event::Thought(text)), Event::Thought(more))
        | (Some(Event::Answer(text)), Event::Answer(more)) => {
            text.push_str(&more);
        }
        (_, event) => kept.push(event),
    }
}

async fn score(panel: &Panel<'_>, verifier: &Verifier, question: &str, answer: &str) -> Option<Chance> {
    let began = Instant::now();
    let verdict = verifier.score(question, answer).await;
    (panel.checked)(&verdict, began.elapsed().as_secs_f64());
    verdict.ok()
}

/// A choice's samples while they are made.
struct Sampling<'a, 'p> {
    panel: &'a Panel<'p>,
    sampled: Sampled,
    failure: Option<Halt>,
    price: f64,
    seconds: f64,
    decided: bool,
}

impl<'a, 'p> Sampling<'a, 'p> {
    fn new(panel: &'a Panel<'p>, most: u32) -> Sampling<'a, 'p> {
        let ended = Ended::Voted(Decided::Exhausted);
        let ballot = if panel.majority { Ballot::of_majority(most) } else { Ballot::new(most) };
        let sampled = Sampled { finished: Vec::new(), ballot, asked: 0, cancelled: 0, ended };
        Sampling { panel, sampled, failure: None, price: 0.0, seconds: 0.0, decided: false }
    }

    fn is_decided(&self) -> bool {
        self.decided
    }

    /// How many are to be under way.
    fn wanted(&mut self, deadline: Instant) -> u32 {
        if self.failure.is_some() || self.decided {
            return 0;
        }
        match self.sampled.ballot.next(&self.stakes(), self.panel.at_once) {
            Next::Stop(decided) => {
                (self.decided, self.sampled.ended) = (true, Ended::Voted(decided));
                0
            }
            Next::Ask(_) if self.is_late(deadline) => {
                self.sampled.ended = Ended::Late;
                0
            }
            Next::Ask(more) => more,
        }
    }

    /// Whether a sample as long as those before would come too late.
    fn is_late(&self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        !self.sampled.finished.is_empty() && self.mean(self.seconds) > left
    }

    fn stakes(&self) -> Stakes {
        let Panel { worth, second, doubt, .. } = *self.panel;
        Stakes { worth, price: self.mean(self.price) + second * self.mean(self.seconds), doubt }
    }

    /// Of the samples that came to their end.
    fn mean(&self, sum: f64) -> f64 {
        sum / f64::from(u32::try_from(self.sampled.finished.len()).unwrap_or(u32::MAX).max(1))
    }

    fn take(&mut self, came: Came) {
        let Came { index, ended, events, score, spent, seconds } = came;
        let finish = match ended {
            Ok(finish) => finish,
            Err(halt) => {
                self.sampled.ballot.cast(index, None);
                self.sampled.ended = Ended::Failed;
                self.failure.get_or_insert(halt);
                return;
            }
        };
        self.price += (self.panel.price)(&spent);
        self.seconds += seconds;
        // Half an answer is none that could be compared.
        let key = (finish == Finish::Stop).then(|| key(&text(&events), self.panel.compare)).flatten();
        self.sampled.ballot.cast(index, key.clone());
        self.sampled.finished.push(Sample { index, finish, events, key, score });
        let floor = self.panel.verifier.map(|(verifier, _)| verifier.floor());
        if score.zip(floor).is_some_and(|(score, floor)| score >= floor) {
            (self.decided, self.sampled.ended) = (true, Ended::Accepted);
        }
    }

    fn over(self) -> Result<Sampled, Halt> {
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
pub async fn samples(
    panel: &Panel<'_>,
    jobs: &[Job],
    progress: &mut [Progress],
    each: u32,
) -> Result<Vec<Sampled>, Halt> {
    let each = usize::try_from(each.max(1)).unwrap_or(usize::MAX);
    let choices = jobs.iter().zip(progress.chunks_mut(each));
    let made: Vec<_> = choices.map(|(job, progress)| sample(panel, job, progress)).collect();
    futures_util::future::try_join_all(made).await
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
