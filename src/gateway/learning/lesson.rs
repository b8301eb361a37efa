//! What a story teaches.

use crate::catalog::{ChoiceOutcome, Demand, Verdict};
use crate::history::Story;
use crate::learn::{Context, Lesson};

/// How long thought and answer of each choice were. Only whole answers teach that: of others nobody knows how long they
/// would have been.
pub(super) fn of_outcome(story: &Story) -> Vec<Lesson> {
    let choices = story.outcome.choices.iter().filter(|_| story.outcome.is_finished());
    choices.filter_map(|choice| lesson(story, choice)).collect()
}

/// What was said of an answer; where there are several choices, of the first. An answer that was chosen among several says
/// little of how often one is right, so nothing is learned of that from it.
pub(super) fn of_verdict(story: &Story, verdict: &Verdict) -> Option<Lesson> {
    if story.decision.of_model(&story.outcome.model).is_some_and(|candidate| candidate.samples > 1) {
        return None;
    }
    let choice = story.outcome.choices.first().filter(|_| story.outcome.is_finished())?;
    let (success, weight) = (Some(verdict.success), verdict.weight);
    Some(Lesson { success, weight, alarm: weight, ..lesson(story, choice)? })
}

fn lesson(story: &Story, choice: &ChoiceOutcome) -> Option<Lesson> {
    let (decision, outcome) = (&story.decision, &story.outcome);
    let candidate = decision.of_model(&outcome.model)?;
    Some(Lesson {
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
fn context(story: &Story) -> Context {
    let decision = &story.decision;
    serde_json::from_value(decision.context.clone()).unwrap_or_else(|_| {
        let models = decision.candidates.iter().map(|each| (each.model.clone(), each.prior.clone()));
        Context::of(&Demand {
            class: decision.class,
            difficulty: decision.difficulty,
            confidence: decision.confidence,
            models: models.collect(),
        })
    })
}
