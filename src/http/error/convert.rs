//! Turns the errors of the gateway and of the crates below it into an `ApiError` with its status.

use std::time::Duration;

use axum::http::StatusCode;

use crate::gateway::{Denial, FeedbackError, RequestRefusal};
use stint_backend::{
    ENGINE_RESTARTING, FIRST_BYTE_TIMEOUT, Failure, Fault, REQUEST_TOO_LARGE, Retry, UPSTREAM_RATE_LIMITED,
    UpstreamErrorCode,
};
use stint_decide::plan;
use stint_ledger::{ReserveError, Shortfall};
use stint_sessions::agent::HistoryTooLong;
use stint_sessions::idempotency::BeginError;
use stint_types::tenant::KeyChangeError;
use stint_types::units::RequestId;

use super::ApiError;
use super::codes;
use crate::http::framing::FramingError;

/// When to try again, where nothing says so.
pub(super) const SHORTLY: Duration = Duration::from_secs(5);

impl From<Denial> for ApiError {
    fn from(Denial { refusal, episode }: Denial) -> ApiError {
        ApiError::from(*refusal).with_episode(episode.as_ref())
    }
}

impl From<RequestRefusal> for ApiError {
    fn from(refusal: RequestRefusal) -> ApiError {
        let message = refusal.to_string();
        match refusal {
            RequestRefusal::UnknownModel { .. } => {
                ApiError::not_found(message).with_code(codes::MODEL_NOT_FOUND).with_param("model")
            }
            RequestRefusal::SeveralEmbedders(_) => ApiError::invalid(None, message).with_param("model"),
            RequestRefusal::WrongSpecialty { .. } => {
                ApiError::invalid(None, message).with_code(codes::MODEL_NOT_CAPABLE).with_param("model")
            }
            RequestRefusal::TooManyChoices { .. } => ApiError::invalid(None, message).with_param("n"),
            RequestRefusal::Plan(refusal) => refusal.into(),
            RequestRefusal::LimitExceeded(ReserveError::Shortfall(shortfall)) => shortfall.into(),
            RequestRefusal::LimitExceeded(ReserveError::TooLarge) => {
                ApiError::invalid(None, message).with_code(codes::BUDGET_TOO_LARGE)
            }
            RequestRefusal::LimitExceeded(_) | RequestRefusal::Ledger(_) => {
                ApiError::overloaded(message, SHORTLY)
            }
            RequestRefusal::Idempotency(BeginError::Taken) => ApiError::key_in_flight(),
            RequestRefusal::Idempotency(BeginError::Store(_)) => ApiError::overloaded(message, SHORTLY),
            RequestRefusal::Overloaded { retry_after } | RequestRefusal::CoolingDown { retry_after } => {
                ApiError::overloaded(message, retry_after)
            }
            RequestRefusal::CredentialRefused => ApiError::credential_refused(message),
            RequestRefusal::RateLimited { retry_after } => ApiError::rate_exceeded(message, retry_after),
            RequestRefusal::EpisodeBusy { retry_after, .. } => ApiError::episode_busy(message, retry_after),
            RequestRefusal::FundsReserved { shortfall, retry_after } => {
                ApiError::quota_reserved(message, shortfall, retry_after)
            }
            RequestRefusal::EpisodeUnavailable { retry_after, .. } => {
                ApiError::overloaded(message, retry_after)
            }
            RequestRefusal::TooLong(HistoryTooLong { member, .. }) => {
                ApiError::invalid(None, message).with_code(codes::CONTEXT_LENGTH_EXCEEDED).with_param(member)
            }
            RequestRefusal::TooManyTools { .. } => {
                ApiError::invalid(None, message).with_param("budget.tool_calls")
            }
            RequestRefusal::OtherKeysEpisode { .. } => {
                ApiError::invalid(None, message).with_param("budget.episode")
            }
            RequestRefusal::Stopping | RequestRefusal::CutOff => {
                ApiError::overloaded(message, Duration::from_secs(1)).with_code(codes::SHUTTING_DOWN)
            }
            RequestRefusal::Failed(failure) => failure.into(),
            RequestRefusal::Incapable { failure, member } => ApiError::from(*failure).with_param(member),
        }
    }
}

impl From<FramingError> for ApiError {
    fn from(error: FramingError) -> ApiError {
        match error {
            FramingError::HeadTooLarge(_) | FramingError::TooManyHeaders(_) => {
                ApiError::head_too_large(error.to_string())
            }
            FramingError::LineEnd
            | FramingError::HeaderLine
            | FramingError::TransferEncoding
            | FramingError::OldVersion
            | FramingError::TwoLengths
            | FramingError::ContentLength
            | FramingError::Chunk => ApiError::invalid(None, error.to_string()).with_code(codes::BAD_FRAMING),
        }
    }
}

impl From<KeyChangeError> for ApiError {
    fn from(refused: KeyChangeError) -> ApiError {
        let message = refused.to_string();
        match refused {
            KeyChangeError::Unknown(_) | KeyChangeError::UnknownAccount(_) => ApiError::not_found(message),
            KeyChangeError::Declared(_) => {
                ApiError::state_conflict(message, codes::DECLARED_IN_CONFIGURATION)
            }
            KeyChangeError::RoleTooLow { .. } => ApiError::forbidden(&message).with_code(codes::ROLE_TOO_LOW),
            KeyChangeError::NotAdmin(_) => ApiError::forbidden(&message).with_code(codes::NOT_ADMIN),
            KeyChangeError::OfTokens(..) => ApiError::state_conflict(message, codes::RESERVED_FOR_TOKENS),
            KeyChangeError::Exists(_) => ApiError::state_conflict(message, codes::ALREADY_EXISTS),
            KeyChangeError::Revoked(_) => ApiError::state_conflict(message, codes::REVOKED),
            KeyChangeError::Replaced(_) | KeyChangeError::SameSecret(..) => {
                ApiError::state_conflict(message, codes::SECRET_IN_USE)
            }
            KeyChangeError::Several(_) | KeyChangeError::TwoSecrets(_) | KeyChangeError::Trusted(_) => {
                ApiError::state_conflict(message, codes::CONFLICT)
            }
            KeyChangeError::Keys(_) | KeyChangeError::Secret(_) => {
                ApiError::internal(RequestId::new(), &message)
            }
            KeyChangeError::Store(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "keys could not be stored");
                let message = "the keys cannot be read or changed right now; try again shortly";
                ApiError::overloaded(message.to_owned(), Duration::from_secs(1))
            }
        }
    }
}

impl From<Shortfall> for ApiError {
    fn from(shortfall: Shortfall) -> ApiError {
        let message = shortfall.to_string();
        let Shortfall { limit, needed, left, resets_at } = shortfall;
        ApiError::quota_exceeded(message, &limit, needed, left, resets_at)
    }
}

impl From<plan::PlanRefusal> for ApiError {
    fn from(refusal: plan::PlanRefusal) -> ApiError {
        let message = refusal.to_string();
        match refusal {
            plan::PlanRefusal::Unhealthy => ApiError::overloaded(message, SHORTLY),
            plan::PlanRefusal::InsufficientQuota {
                limit, needed, left, resets_at, exceeds_limit, ..
            } => {
                let problem = ApiError::quota_exceeded(message, &limit, needed, left, resets_at);
                if exceeds_limit { problem.beyond_limit() } else { problem }
            }
            other => {
                let problem = ApiError::invalid(None, message).with_code(codes::named(other.code()));
                other.member().into_iter().fold(problem, ApiError::with_param)
            }
        }
    }
}

impl ApiError {
    /// The same in the upstream's own terms, where there is no code of ours that says more.
    fn stating(mut self, UpstreamErrorCode { code, param }: UpstreamErrorCode) -> ApiError {
        if self.0.code.as_deref() == Some(codes::UPSTREAM_REFUSED.word) {
            self.0.code = code.map(Into::into).or(self.0.code.take());
        }
        self.0.param = param.or(self.0.param.take());
        self
    }

    /// 502, for good: a refused key and an empty account stay what they are until the operator mends them.
    fn credential_refused(message: String) -> ApiError {
        let mut problem = ApiError::new(StatusCode::BAD_GATEWAY, "server_error", message);
        problem.0.is_final = true;
        problem.with_code(codes::UPSTREAM_FAILED)
    }
}

/// Callers never see our insides: whose fault it was, and what they can do.
impl From<Failure> for ApiError {
    fn from(failure: Failure) -> ApiError {
        match failure.fault {
            Fault::Caller if let Some(member) = failure.member => {
                ApiError::invalid(None, failure.for_caller()).with_param(member)
            }
            Fault::Caller if failure.code == Some(REQUEST_TOO_LARGE) => {
                let (status, message) = (StatusCode::PAYLOAD_TOO_LARGE, failure.message);
                let mut problem = ApiError::new(status, "invalid_request_error", message);
                problem.0.is_final = true;
                problem.with_code(codes::REQUEST_TOO_LARGE)
            }
            Fault::Caller => {
                let problem = ApiError::invalid(None, failure.for_caller())
                    .with_code(failure.code.map_or(codes::UPSTREAM_REFUSED, codes::named));
                failure.upstream_code.into_iter().fold(problem, |problem, stated| problem.stating(*stated))
            }
            Fault::Overload => of_overload(&failure),
            Fault::Timeout => of_timeout(failure),
            // Another try would most likely be answered alike, and cost as much.
            Fault::Backend if failure.code == Some(codes::NO_ANSWER.word) => {
                let mut problem = ApiError::new(StatusCode::BAD_GATEWAY, "server_error", failure.message);
                problem.0.is_final = true;
                problem.with_code(codes::NO_ANSWER)
            }
            // It has said when it is back.
            Fault::Backend if failure.code == Some(ENGINE_RESTARTING) => {
                let message = "the model's engine failed and is started again; try again shortly";
                ApiError::overloaded(message.to_owned(), failure.retry_after.unwrap_or(SHORTLY))
                    .with_code(codes::ENGINE_RESTARTING)
            }
            Fault::Gateway => {
                let message = "the gateway has no room for another connection right now; try again shortly";
                ApiError::overloaded(message.to_owned(), failure.retry_after.unwrap_or(SHORTLY))
            }
            Fault::Credential => {
                let message = "the model's provider refuses this gateway's own key or account; only its operator can mend that";
                ApiError::credential_refused(message.to_owned())
            }
            Fault::Backend => of_backend(failure.retry),
        }
    }
}

/// An unknown model, for one, stays unknown until the operator mends that.
fn of_backend(retry: Retry) -> ApiError {
    let is_final = retry < Retry::Again;
    let message = if is_final {
        "the model's backend does not serve this, however often it is asked; the operator's log has the reason"
    } else {
        "the model's backend failed; the operator's log has the reason"
    };
    let mut problem = ApiError::new(StatusCode::BAD_GATEWAY, "server_error", message);
    problem.0.is_final = is_final;
    problem.with_code(codes::UPSTREAM_FAILED)
}

/// The model has no room, or its provider gives none.
fn of_overload(failure: &Failure) -> ApiError {
    let is_rate = failure.code == Some(UPSTREAM_RATE_LIMITED);
    let usual = if is_rate { SHORTLY } else { Duration::from_secs(1) };
    let wait = failure.retry_after.unwrap_or(usual);
    let in_seconds = format!("in {} s", wait.as_millis().div_ceil(1_000).max(1));
    if is_rate {
        let message = format!("the model's provider has reached its rate limit; try again {in_seconds}");
        return ApiError::rate_exceeded(message, wait);
    }
    let when = if wait <= SHORTLY { "shortly" } else { &*in_seconds };
    ApiError::overloaded(format!("the model has no room right now; try again {when}"), wait)
}

/// What took too long, and who can allow it more time.
fn of_timeout(failure: Failure) -> ApiError {
    let timed_out = |message: String| ApiError::new(StatusCode::GATEWAY_TIMEOUT, "server_error", message);
    // Another try would meet the same deadline, and cost as much.
    if failure.code == Some(codes::DEADLINE_EXCEEDED.word) {
        let message = "nothing of the answer came before the deadline; state a later one in budget.deadline_ms, or ask for less \
                       thinking. Who states none has time_max of [gateway] in the gateway's configuration";
        let mut problem = timed_out(message.to_owned());
        problem.0.is_final = true;
        return problem.with_code(codes::DEADLINE_EXCEEDED);
    }
    // The message says what to raise. A server that reads for long is not to be given more of the same to read.
    if failure.code == Some(FIRST_BYTE_TIMEOUT) {
        let mut problem = timed_out(failure.message);
        problem.0.is_final = failure.retry < Retry::Again;
        return problem.with_code(codes::UPSTREAM_TIMEOUT);
    }
    timed_out("the model took too long; try again, or allow it more time".to_owned())
        .with_code(codes::UPSTREAM_TIMEOUT)
}

impl From<FeedbackError> for ApiError {
    fn from(error: FeedbackError) -> ApiError {
        match error {
            FeedbackError::Unknown => ApiError::unknown_request(),
            FeedbackError::Store(ref error) => ApiError::history_unavailable(error),
            FeedbackError::TooManyReversals(wait) => ApiError::rate_exceeded(error.to_string(), wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;

    use stint_types::units::{Amount, Limit, Money, Timestamp, Unit, Window};

    use super::*;

    #[test]
    fn a_refusal_is_told_by_the_upstreams_own_code_where_it_has_one() {
        let stated = |code: Option<&str>| {
            let code = code.map(str::to_owned);
            Some(Box::new(UpstreamErrorCode { code, param: Some("prompt".to_owned()) }))
        };
        let refused = || Failure::new(Fault::Caller, "no");
        let check = |failure: Failure, expected: &str| {
            let problem = ApiError::from(failure).to_json();
            assert_eq!(
                (&problem["error"]["code"], &problem["error"]["param"]),
                (&expected.into(), &"prompt".into())
            );
        };
        check(Failure { upstream_code: stated(Some("content_filter")), ..refused() }, "content_filter");
        check(Failure { upstream_code: stated(None), ..refused() }, "upstream_refused");
        let long = refused().code("context_length_exceeded");
        check(
            Failure { upstream_code: stated(Some("string_above_max_length")), ..long },
            "context_length_exceeded",
        );
    }

    #[test]
    fn a_pause_is_told_as_the_header_has_it_and_never_as_none() {
        let limited = Failure::new(Fault::Overload, "the upstream answered 429").code(UPSTREAM_RATE_LIMITED);
        let problem = ApiError::from(Failure { retry_after: Some(Duration::ZERO), ..limited });
        assert!(problem.message().ends_with("try again in 1 s"), "{}", problem.message());
    }

    #[test]
    fn more_than_a_whole_rate_is_not_to_be_tried_again() {
        let check = |exceeds_limit, code: &str, waits: bool| {
            let money = |nanos| Amount::Money(Money(nanos));
            let response = ApiError::from(plan::PlanRefusal::InsufficientQuota {
                limit: Box::new(Limit::of_key(Unit::Money, Window::Minute)),
                needed: money(2),
                left: money(1),
                resets_at: Some(Timestamp(7)),
                exceeds_limit,
                member: "max_tokens",
            });
            assert_eq!(response.to_json()["error"]["code"], code);
            let response = response.into_response();
            let has = |name: &str| response.headers().contains_key(name);
            assert_eq!((has("retry-after"), has("x-should-retry")), (waits, !waits));
        };
        check(false, "rate_limit_exceeded", true);
        check(true, "insufficient_quota", false);
    }

    #[test]
    fn nobody_is_asked_to_try_again_what_only_the_operator_can_mend() {
        let check = |failure: Failure, expected: Option<&str>| {
            let response = ApiError::from(failure).into_response();
            let told = response.headers().get("x-should-retry").map(|value| value.to_str().unwrap());
            assert_eq!((response.status(), told), (StatusCode::BAD_GATEWAY, expected));
        };
        check(Failure::new(Fault::Credential, "the upstream answered 401"), Some("false"));
        let unknown = || Failure::new(Fault::Backend, "the upstream answered 404").retry_elsewhere();
        check(unknown(), Some("false"));
        let told = ApiError::from(unknown()).to_json().to_string();
        assert!(told.contains("however often it is asked"), "{told}");
        check(Failure::new(Fault::Backend, "the upstream answered 500"), None);
        let resting = ApiError::from(RequestRefusal::CredentialRefused).into_response();
        assert_eq!(resting.status(), StatusCode::BAD_GATEWAY);
        assert_eq!(resting.headers()["x-should-retry"], "false");
        assert!(!resting.headers().contains_key("retry-after"));
    }
}
