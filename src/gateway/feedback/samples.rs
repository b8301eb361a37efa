//! Turns the record of a request, or a verdict on it, into samples to learn from.

use stint_decide::learn::OutcomeSample;
use stint_sessions::history::RequestRecord;
use stint_types::catalog::{ChoiceOutcome, SolutionStopReason, Verdict};

use super::not_learned::NotLearned;

/// Samples of how long the thought and the answer of each choice were. Only complete answers give one: nobody knows how
/// long the others would have been. Nor does an emptied one: nobody has it. Nor does a rescued one: its thought filled the limit, and
/// what answered then was told to think as little as it can.
pub(super) fn of_outcome(story: &RequestRecord) -> Vec<OutcomeSample> {
    let choices = story.outcome.choices.iter().filter(|_| story.outcome.is_finished());
    let whole = choices.filter(|choice| is_answer(choice) && !choice.rescued);
    whole.filter_map(|choice| sample(story, choice)).collect()
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
    let choice =
        story.outcome.choices.first().filter(|choice| story.outcome.is_finished() && is_answer(choice));
    let choice = choice.ok_or(NotLearned::Unfinished)?;
    let (success, weight) = (Some(verdict.success), verdict.weight);
    let sample = sample(story, choice).ok_or(NotLearned::Unpredicted)?;
    Ok(OutcomeSample { success, weight, alarm: weight, ..sample })
}

fn is_answer(choice: &ChoiceOutcome) -> bool {
    choice.solution_ended != SolutionStopReason::None
}

fn sample(story: &RequestRecord, choice: &ChoiceOutcome) -> Option<OutcomeSample> {
    let (decision, outcome) = (&story.decision, &story.outcome);
    let candidate = decision.of_model(&outcome.model)?;
    Some(OutcomeSample {
        model: outcome.model.clone(),
        class: decision.class,
        predicted: candidate.prior.clone(),
        request: story.decision.context.clone(),
        budget: outcome.thinking,
        thinking: choice.thinking,
        effort: outcome.effort.unwrap_or(1.0),
        ended: choice.thinking_ended,
        solution: choice.solution,
        solution_ended: choice.solution_ended,
        success: None,
        weight: 1.0,
        alarm: 1.0,
    })
}

#[cfg(test)]
mod tests {
    use stint_sessions::history::conformance;
    use stint_types::catalog::VerdictSource;
    use stint_types::units::Chance;

    use super::*;

    #[test]
    fn a_rescued_answer_teaches_no_length_and_its_verdict_counts() {
        let mut story = conformance::story(0);
        let (id, at) = (story.decision.id, story.outcome.at);
        let verdict =
            Verdict { id, source: VerdictSource::Feedback, at, success: Chance::new(1.0), weight: 1.0 };
        let before = of_outcome(&story).len();
        story.outcome.choices[0].rescued = true;
        assert_eq!(of_outcome(&story).len(), before - 1);
        assert!(of_verdict(&story, &verdict).is_ok());
    }

    #[test]
    fn an_answer_of_which_nothing_passed_teaches_nothing() {
        let mut story = conformance::story(0);
        let (id, at) = (story.decision.id, story.outcome.at);
        let verdict =
            Verdict { id, source: VerdictSource::Feedback, at, success: Chance::new(1.0), weight: 1.0 };
        assert!(!of_outcome(&story).is_empty() && of_verdict(&story, &verdict).is_ok());
        story.outcome.choices[0].solution_ended = SolutionStopReason::None;
        assert_eq!(of_outcome(&story).len(), story.outcome.choices.len() - 1);
        assert_eq!(of_verdict(&story, &verdict).map(drop), Err(NotLearned::Unfinished));
    }
}
