//! What the parts below refuse and fail with, as problems: the one place where that becomes a status.

use std::time::Duration;

use axum::http::StatusCode;

use crate::agent::TooLong;
use crate::backend::{Failure, Fault};
use crate::gateway::{Denial, FeedbackError, Refusal};
use crate::idempotency::BeginError;
use crate::ledger::{Refused, Shortfall};
use crate::plan;
use crate::tenant::KeyRefused;
use crate::units::RequestId;

use super::Problem;

const DEADLINE_EXCEEDED: &str = "deadline_exceeded";
const NO_ANSWER: &str = "no_answer";
/// A wait that need not be told in seconds.
const SHORTLY: Duration = Duration::from_secs(5);

impl From<Denial> for Problem {
    fn from(Denial { refusal, episode }: Denial) -> Problem {
        Problem::from(*refusal).of_step(episode.as_ref())
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        let message = refusal.to_string();
        match refusal {
            Refusal::UnknownModel { .. } => {
                Problem::not_found(message).code("model_not_found").about("model")
            }
            Refusal::SeveralEmbedders(_) => Problem::invalid(None, message).about("model"),
            Refusal::Beyond { .. } => {
                Problem::invalid(None, message).code("model_not_capable").about("model")
            }
            Refusal::TooManyChoices { .. } => Problem::invalid(None, message).about("n"),
            Refusal::Plan(refusal) => refusal.into(),
            Refusal::Spent(Refused::Shortfall(shortfall)) => shortfall.into(),
            Refusal::Spent(Refused::TooLarge) => Problem::invalid(None, message).code("budget_too_large"),
            Refusal::Spent(_) | Refusal::Ledger(_) => Problem::overloaded(message, Duration::from_secs(5)),
            Refusal::Idempotency(BeginError::Taken) => Problem::in_flight(),
            Refusal::Idempotency(BeginError::Store(_)) => {
                Problem::overloaded(message, Duration::from_secs(5))
            }
            Refusal::Overloaded { retry_after } | Refusal::Resting { retry_after } => {
                Problem::overloaded(message, retry_after)
            }
            Refusal::Busy { retry_after, .. } => Problem::busy(message, retry_after),
            Refusal::Held { shortfall, retry_after } => Problem::held(message, shortfall, retry_after),
            Refusal::NoEpisode { retry_after, .. } => Problem::overloaded(message, retry_after),
            Refusal::TooLong(TooLong { member, .. }) => {
                Problem::invalid(None, message).code("context_length_exceeded").about(member)
            }
            Refusal::TooManyTools { .. } => Problem::invalid(None, message).about("budget.tool_calls"),
            Refusal::Stopping => Problem::overloaded(message, Duration::from_secs(1)),
            Refusal::Failed(failure) => failure.into(),
            Refusal::Incapable { failure, member } => Problem::from(*failure).about(member),
        }
    }
}

impl From<KeyRefused> for Problem {
    fn from(refused: KeyRefused) -> Problem {
        let message = refused.to_string();
        match refused {
            KeyRefused::Unknown(_) | KeyRefused::UnknownAccount(_) => Problem::not_found(message),
            KeyRefused::Declared(_) => Problem::standing(message, "declared_in_configuration"),
            KeyRefused::Exists(_) => Problem::standing(message, "already_exists"),
            KeyRefused::Revoked(_) => Problem::standing(message, "revoked"),
            KeyRefused::Replaced(_) | KeyRefused::SameSecret(..) => {
                Problem::standing(message, "secret_in_use")
            }
            KeyRefused::Several(_) | KeyRefused::TwoSecrets(_) => Problem::standing(message, "conflict"),
            KeyRefused::Keys(_) | KeyRefused::Secret(_) => Problem::internal(RequestId::new(), &message),
            KeyRefused::Store(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "keys could not be kept");
                let message = "the keys cannot be read or changed right now; try again shortly";
                Problem::overloaded(message.to_owned(), Duration::from_secs(1))
            }
        }
    }
}

impl From<Shortfall> for Problem {
    fn from(shortfall: Shortfall) -> Problem {
        let message = shortfall.to_string();
        let Shortfall { limit, needed, left, resets_at } = shortfall;
        Problem::short(message, &limit, needed, left, resets_at)
    }
}

impl From<plan::Refusal> for Problem {
    fn from(refusal: plan::Refusal) -> Problem {
        let message = refusal.to_string();
        match refusal {
            plan::Refusal::Unhealthy => Problem::overloaded(message, Duration::from_secs(5)),
            plan::Refusal::DoesNotFit { limit, needed, left, resets_at, .. } => {
                Problem::short(message, &limit, needed, left, resets_at)
            }
            other => {
                let problem = Problem::invalid(None, message).code(other.code());
                other.member().into_iter().fold(problem, Problem::about)
            }
        }
    }
}

/// Callers never see our insides: whose fault it was, and what they can do.
impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        match failure.fault {
            Fault::Caller => {
                Problem::invalid(None, failure.for_caller()).code(failure.code.unwrap_or("upstream_refused"))
            }
            Fault::Overload => {
                let wait = failure.retry_after.unwrap_or(Duration::from_secs(1));
                let when = match wait <= SHORTLY {
                    true => "shortly".to_owned(),
                    false => format!("in {} s", wait.as_millis().div_ceil(1_000)),
                };
                Problem::overloaded(format!("the model has no room right now; try again {when}"), wait)
            }
            // Another try would meet the same deadline, and cost as much.
            Fault::Timeout if failure.code == Some(DEADLINE_EXCEEDED) => {
                let message = "nothing of the answer came before the deadline; allow more time, or ask for less thinking";
                let mut problem = Problem::new(StatusCode::GATEWAY_TIMEOUT, "server_error", message);
                problem.0.final_word = true;
                problem.code(DEADLINE_EXCEEDED)
            }
            Fault::Timeout => {
                let message = "the model took too long; try again, or allow it more time";
                Problem::new(StatusCode::GATEWAY_TIMEOUT, "server_error", message).code("upstream_timeout")
            }
            // Another try would most likely be answered alike, and cost as much.
            Fault::Backend if failure.code == Some(NO_ANSWER) => {
                let mut problem = Problem::new(StatusCode::BAD_GATEWAY, "server_error", failure.message);
                problem.0.final_word = true;
                problem.code(NO_ANSWER)
            }
            Fault::Backend | Fault::Credential => {
                let message = "the model's backend failed; the operator's log has the reason";
                Problem::new(StatusCode::BAD_GATEWAY, "server_error", message).code("upstream_failed")
            }
        }
    }
}

impl From<FeedbackError> for Problem {
    fn from(error: FeedbackError) -> Problem {
        match error {
            FeedbackError::Unknown => Problem::unknown_request(),
            FeedbackError::Store(ref error) => Problem::forgetful(error),
            FeedbackError::Fickle(wait) => Problem::fickle(error.to_string(), wait),
        }
    }
}
