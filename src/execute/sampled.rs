//! What came of several answers to one choice.

use crate::chat::{Event, Finish};
use crate::units::Chance;

use super::vote::{Ballot, Decided, Standing};

/// Why no more samples were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The vote was decided.
    Voted(Decided),
    /// The verifier found one good enough.
    Accepted,
    /// There was no time for more.
    Late,
    /// One failed.
    Failed,
}

/// A sample that came to its end.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Which of the choice's samples it is.
    pub index: u32,
    /// Why it ended.
    pub finish: Finish,
    /// What the caller would see of it.
    pub events: Vec<Event>,
    /// What makes it this answer; nothing where it has none that can be compared.
    pub key: Option<String>,
    /// What the verifier says of it.
    pub score: Option<Chance>,
}

/// What came of a choice's samples.
#[derive(Debug, Clone)]
pub struct Sampled {
    /// Those that came to their end, in the order in which they did.
    pub finished: Vec<Sample>,
    /// The votes for each answer.
    pub ballot: Ballot,
    /// How many were asked for.
    pub asked: u32,
    /// How many were stopped before their end.
    pub cancelled: u32,
    /// Why no more were asked for.
    pub ended: Ended,
}

impl Ended {
    /// Every reason there is.
    pub const ALL: [Ended; 7] = [
        Ended::Voted(Decided::Uncatchable),
        Ended::Voted(Decided::NotWorth),
        Ended::Voted(Decided::Torn),
        Ended::Voted(Decided::Exhausted),
        Ended::Accepted,
        Ended::Late,
        Ended::Failed,
    ];

    /// The word in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Ended::Voted(decided) => decided.word(),
            Ended::Accepted => "accepted",
            Ended::Late => "late",
            Ended::Failed => "failed",
        }
    }
}

impl Sample {
    /// What it answers.
    pub fn answer(&self) -> String {
        text(&self.events)
    }
}

impl Sampled {
    /// The answers that are left to choose from, best first, each by the sample that gave it first.
    pub fn candidates(&self) -> Vec<(&Standing, &Sample)> {
        let of = |standing: &Standing| self.finished.iter().find(|sample| sample.index == standing.sample);
        self.ballot.common().into_iter().filter_map(|standing| Some((standing, of(standing)?))).collect()
    }

    /// How many samples gave the same answer as this one.
    pub fn votes(&self, sample: &Sample) -> u32 {
        let same = self.finished.iter().filter(|other| sample.key.is_some() && other.key == sample.key);
        u32::try_from(same.count()).unwrap_or(u32::MAX)
    }

    /// The candidate that the verifier likes best, if it has seen one; of equals, the first. One that was good enough
    /// is not dropped for being rare.
    pub fn verified(&self) -> Option<&Sample> {
        let candidates: Vec<&Sample> = match self.ended {
            Ended::Accepted => self.finished.iter().collect(),
            _ => self.candidates().into_iter().map(|(_, sample)| sample).collect(),
        };
        let scored = candidates.into_iter().rev().filter_map(|sample| Some((sample, sample.score?.get())));
        scored.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(sample, _)| sample)
    }

    /// The answer with most votes; where none can be compared, what came first.
    pub fn elected(&self) -> Option<&Sample> {
        self.candidates().first().map(|(_, sample)| *sample).or(self.finished.first())
    }
}

/// What is answered in these events.
pub fn text(events: &[Event]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        Event::Answer(text) => Some(text.as_str()),
        Event::Thought(_) | Event::Signed(_) | Event::Logprobs(_) | Event::ToolCall(_) => None,
    });
    texts.collect()
}
