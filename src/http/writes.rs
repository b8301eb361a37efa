//! Endpoints that write into the database beside any request: within the rate of their account, and in its turn.

use axum::body::HttpBody;

use stint_types::tasks::Turn;
use stint_types::tenant::Tenant;

use super::api_state::ApiState;
use super::error::ApiError;

/// What an account has taken of its rate for a write.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenWrite {
    bytes: usize,
}

/// Takes what a body says that it has from its account's rate, before it is read.
///
/// # Errors
/// 429, with the time until the account may write again.
pub(super) fn take(
    service: &ApiState,
    tenant: &Tenant,
    body: &impl HttpBody,
) -> Result<TakenWrite, ApiError> {
    let stated = body.size_hint().exact().unwrap_or(0);
    let bytes = usize::try_from(stated).unwrap_or(usize::MAX).min(service.settings.body_max);
    service.conversations.writes().take(&tenant.account, bytes).map_err(|wait| {
        let message = "this account writes more conversations and feedback than [responses] write_rate allows; try again when \
                       Retry-After says";
        ApiError::rate_exceeded(message.to_owned(), wait)
    })?;
    Ok(TakenWrite { bytes })
}

/// Waits for an account's turn to write so many bytes.
pub(super) async fn begin(service: &ApiState, tenant: &Tenant, taken: TakenWrite, bytes: usize) -> Turn {
    let more = bytes.saturating_sub(taken.bytes);
    service.conversations.writes().begin(&tenant.account, more).await
}
