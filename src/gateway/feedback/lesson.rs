//! Turns the record of a request, or a verdict on it, into samples to learn from.

use stint_decide::learn::OutcomeSample;
use stint_sessions::history::RequestRecord;
use stint_types::catalog::{ChoiceOutcome, Verdict};

use super::not_learned::NotLearned;

/// Samples of how long the thought and the answer of each choice were. Only complete answers give one: nobody knows how
/// long the others would have been.
pub(super) fn of_outcome(story: &RequestRecord) -> Vec<OutcomeSample> {
    let choices = story.outcome.choices.iter().filter(|_| story.outcome.is_finished());
    choices.filter_map(|choice| lesson(story, choice)).collect()
}

/// A sample of a verdict on an answer; with several choices, on the first. An answer that was chosen among several shows
/// little of how often a single answer is right, so nothing is learned from it.
///
/// # Errors
/// When nothing can be learned from any verdict on that answer.
pub(super) fn of_verdict(story: &RequestRecord, verdict: &Verdict) -> Result<OutcomeSample, NotLearned> {
    if story.decision.of_model(&story.outcome.model).is_some_and(|candidate| candidate.samples > 1) {
        return Err(NotLearned::Chosen);
    }
    let choice = story.outcome.choices.first().filter(|_| story.outcome.is_finished());
    let choice = choice.ok_or(NotLearned::Unfinished)?;
    let (success, weight) = (Some(verdict.success), verdict.weight);
    let lesson = lesson(story, choice).ok_or(NotLearned::Unpredicted)?;
    Ok(OutcomeSample { success, weight, alarm: weight, ..lesson })
}

fn lesson(story: &RequestRecord, choice: &ChoiceOutcome) -> Option<OutcomeSample> {
    let (decision, outcome) = (&story.decision, &story.outcome);
    let candidate = decision.of_model(&outcome.model)?;
    Some(OutcomeSample {
        model: outcome.model.clone(),
        class: decision.class,
        predicted: candidate.prior.clone(),
        request: story.decision.context.clone(),
        budget: outcome.thinking,
        thinking: choice.thinking,
        ended: choice.thinking_ended,
        solution: choice.solution,
        solution_ended: choice.solution_ended,
        success: None,
        weight: 1.0,
        alarm: 1.0,
    })
}
