//! Turns the record of a request, or a verdict on it, into samples to learn from.

use crate::catalog::{ChoiceOutcome, Demand, Verdict};
use crate::history::RequestRecord;
use crate::learn::{DemandSummary, OutcomeSample};

/// How long thought and answer of each choice were. Only whole answers teach that: of others nobody knows how long they
/// would have been.
pub(super) fn of_outcome(story: &RequestRecord) -> Vec<OutcomeSample> {
    let choices = story.outcome.choices.iter().filter(|_| story.outcome.is_finished());
    choices.filter_map(|choice| lesson(story, choice)).collect()
}

/// What was said of an answer; where there are several choices, of the first. An answer that was chosen among several says
/// little of how often one is right, so nothing is learned of that from it.
pub(super) fn of_verdict(story: &RequestRecord, verdict: &Verdict) -> Option<OutcomeSample> {
    if story.decision.of_model(&story.outcome.model).is_some_and(|candidate| candidate.samples > 1) {
        return None;
    }
    let choice = story.outcome.choices.first().filter(|_| story.outcome.is_finished())?;
    let (success, weight) = (Some(verdict.success), verdict.weight);
    Some(OutcomeSample { success, weight, alarm: weight, ..lesson(story, choice)? })
}

fn lesson(story: &RequestRecord, choice: &ChoiceOutcome) -> Option<OutcomeSample> {
    let (decision, outcome) = (&story.decision, &story.outcome);
    let candidate = decision.of_model(&outcome.model)?;
    Some(OutcomeSample {
        model: outcome.model.clone(),
        class: decision.class,
        predicted: candidate.prior.clone(),
        context: context(story),
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

/// As it was written down; where another version wrote it, by what was predicted of the candidates.
fn context(story: &RequestRecord) -> DemandSummary {
    let decision = &story.decision;
    serde_json::from_value(decision.context.clone()).unwrap_or_else(|_| {
        let models = decision.candidates.iter().map(|each| (each.model.clone(), each.prior.clone()));
        DemandSummary::of(&Demand {
            class: decision.class,
            difficulty: decision.difficulty,
            confidence: decision.confidence,
            models: models.collect(),
        })
    })
}
