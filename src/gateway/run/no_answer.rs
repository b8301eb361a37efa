//! Fails requests that returned no answer, only a thought or nothing at all: an empty answer would look like a success.

use crate::execute::ChoiceProgress;
use stint_backend::{Failure, Fault, Retry};
use stint_types::catalog::SolutionStopReason;
use stint_types::chat::{Budget, FinishReason};

const LATE: &str = "nothing of the answer came before the deadline";
const LIMIT: &str = "the whole limit went into the model's thought, and nothing is left of the answer; allow more tokens, or less \
                     thinking";
const WROTE_ON: &str = "the model wrote beyond its limit without an answer, and was disconnected; allow more tokens, or less \
                        thinking";
const BROKEN_OFF: &str = "the upstream broke its answer off before any of it came";

/// The failure if no choice has an answer. Another try would take as much and end alike, so there is none, unless it was the
/// upstream that broke it off. It is no failure if the caller has stated one limit for thought and answer, or if it was the
/// model's own: the finish reason says that the limit ended them, as the model itself would.
pub(crate) fn of(progress: &[ChoiceProgress], finishes: &[FinishReason], budget: &Budget) -> Option<Failure> {
    let mut choices = progress.iter().zip(finishes);
    let is_empty =
        !finishes.is_empty() && choices.all(|(choice, finish)| choice.phases.lacks_answer(*finish));
    let first = progress.first().filter(|_| is_empty)?;
    let failure = match first.phases.spent().solution_ended {
        SolutionStopReason::Caller if budget.total.is_some() => return None,
        SolutionStopReason::Model => return None,
        SolutionStopReason::Deadline => Failure::new(Fault::Timeout, LATE).code("deadline_exceeded"),
        SolutionStopReason::Upstream if !first.phases.has_overrun() => {
            return Some(Failure::new(Fault::Backend, BROKEN_OFF).retry_elsewhere());
        }
        SolutionStopReason::Upstream => Failure::new(Fault::Backend, WROTE_ON).code("no_answer"),
        _ => Failure::new(Fault::Backend, LIMIT).code("no_answer"),
    };
    Some(Failure { retry: Retry::Never, ..failure })
}
