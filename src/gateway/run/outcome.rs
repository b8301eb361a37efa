//! `RequestOutcome`: how a request ended over all its attempts, as `run` passes it to `finish`.

use crate::execute::ChoiceProgress;
use crate::gateway::VoteTally;
use crate::gateway::feedback::AnswerSignal;
use stint_types::catalog::{ChoiceUsage, Offer, SolutionStopReason};

use super::attempt_result::AttemptResult;

/// Nothing was left of the answer: it only called tools that it might not call.
const EMPTIED: &str = "emptied";

/// The end of a request over all its attempts: what is delivered, what was spent, how answers were selected.
pub(crate) struct RequestOutcome<'p> {
    pub(crate) offer: &'p Offer,
    pub(crate) result: AttemptResult,
    /// The progress of each choice that is delivered; if none is, of everything that ran.
    pub(crate) progress: Vec<ChoiceProgress>,
    /// What each of them took, including answers that were not chosen.
    pub(crate) spent: Vec<ChoiceUsage>,
    /// How each was chosen, where there were several.
    pub(crate) tallies: Vec<VoteTally>,
    /// What the selection shows about how right they are.
    pub(crate) signals: Vec<AnswerSignal>,
}

impl<'p> RequestOutcome<'p> {
    pub(super) fn of(
        offer: &'p Offer,
        result: AttemptResult,
        progress: Vec<ChoiceProgress>,
    ) -> RequestOutcome<'p> {
        let spent = spent_by_choice(&progress);
        RequestOutcome { offer, result, progress, spent, tallies: Vec::new(), signals: Vec::new() }
    }

    /// True if its answer came to its end and something is left of it.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.result, AttemptResult::Finished(_) | AttemptResult::Sampled(_))
            && self.ended() != EMPTIED
    }

    /// How it ended, in the word of metrics and records.
    pub(crate) fn ended(&self) -> &'static str {
        let is_empty = |spent: &ChoiceUsage| spent.solution_ended == SolutionStopReason::None;
        match &self.result {
            AttemptResult::Finished(_) if self.spent.iter().all(is_empty) => EMPTIED,
            result => result.as_str(),
        }
    }
}

/// What each choice took.
pub(super) fn spent_by_choice(progress: &[ChoiceProgress]) -> Vec<ChoiceUsage> {
    progress.iter().map(ChoiceProgress::spent).collect()
}
