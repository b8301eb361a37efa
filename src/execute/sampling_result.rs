//! The result of sampling several answers to one choice.

use stint_types::chat::{ChoiceEvent, FinishReason};
use stint_types::units::Chance;

use super::vote::{AnswerVotes, Ballot, VoteStopReason};

/// Why no more samples were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingStopReason {
    /// The vote was decided.
    Voted(VoteStopReason),
    /// The verifier found one good enough.
    Accepted,
    /// There was no time for more.
    Late,
    /// One failed.
    Failed,
}

/// A sample that came to its end.
#[derive(Debug, Clone)]
pub struct AnswerSample {
    /// Which of the choice's samples it is.
    pub index: u32,
    /// Why it ended.
    pub finish: FinishReason,
    /// What the caller would see of it.
    pub events: Vec<ChoiceEvent>,
    /// The key of its answer; nothing if it cannot be compared.
    pub key: Option<String>,
    /// The verifier's score.
    pub score: Option<Chance>,
}

/// What came of a choice's samples.
#[derive(Debug, Clone)]
pub struct SamplingResult {
    /// Those that came to their end, in the order in which they did.
    pub finished: Vec<AnswerSample>,
    /// The votes for each answer.
    pub ballot: Ballot,
    /// How many were asked for.
    pub asked: u32,
    /// How many were stopped before their end.
    pub cancelled: u32,
    /// Why no more were asked for.
    pub ended: SamplingStopReason,
}

impl SamplingStopReason {
    /// Every reason there is.
    pub const ALL: [SamplingStopReason; 7] = [
        SamplingStopReason::Voted(VoteStopReason::Uncatchable),
        SamplingStopReason::Voted(VoteStopReason::NotWorth),
        SamplingStopReason::Voted(VoteStopReason::Torn),
        SamplingStopReason::Voted(VoteStopReason::Exhausted),
        SamplingStopReason::Accepted,
        SamplingStopReason::Late,
        SamplingStopReason::Failed,
    ];

    /// The word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            SamplingStopReason::Voted(decided) => decided.as_str(),
            SamplingStopReason::Accepted => "accepted",
            SamplingStopReason::Late => "late",
            SamplingStopReason::Failed => "failed",
        }
    }
}

impl AnswerSample {
    /// What it answers.
    pub fn answer(&self) -> String {
        answer_text(&self.events)
    }
}

impl SamplingResult {
    /// The answers that are left to choose from, best first, each by the sample that gave it first.
    pub fn candidates(&self) -> Vec<(&AnswerVotes, &AnswerSample)> {
        let of = |standing: &AnswerVotes| self.finished.iter().find(|sample| sample.index == standing.sample);
        self.ballot
            .common_answers()
            .into_iter()
            .filter_map(|standing| Some((standing, of(standing)?)))
            .collect()
    }

    /// How many samples gave the same answer as this one.
    pub fn votes(&self, sample: &AnswerSample) -> u32 {
        let same = self.finished.iter().filter(|other| sample.key.is_some() && other.key == sample.key);
        u32::try_from(same.count()).unwrap_or(u32::MAX)
    }

    /// The candidate that the verifier likes best, if it has seen one; of equals, the first. One that was good enough
    /// is not dropped for being rare.
    pub fn best_verified(&self) -> Option<&AnswerSample> {
        let candidates: Vec<&AnswerSample> = match self.ended {
            SamplingStopReason::Accepted => self.finished.iter().collect(),
            _ => self.candidates().into_iter().map(|(_, sample)| sample).collect(),
        };
        let scored = candidates.into_iter().rev().filter_map(|sample| Some((sample, sample.score?.get())));
        scored.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(sample, _)| sample)
    }

    /// The answer with most votes; if none can be compared, the first one.
    pub fn vote_winner(&self) -> Option<&AnswerSample> {
        self.candidates().first().map(|(_, sample)| *sample).or(self.finished.first())
    }
}

/// What is answered in these events.
pub fn answer_text(events: &[ChoiceEvent]) -> String {
    let texts = events.iter().filter_map(|event| match event {
        ChoiceEvent::Answer(text) => Some(text.as_str()),
        ChoiceEvent::Thought(_)
        | ChoiceEvent::Signed(_)
        | ChoiceEvent::Logprobs(_)
        | ChoiceEvent::Note(_)
        | ChoiceEvent::ToolCall(_) => None,
    });
    texts.collect()
}
