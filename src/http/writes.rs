//! Endpoints that write into the database beside any request: within the rate of their account, and in its turn.

use stint_types::tasks::Turn;
use stint_types::tenant::Tenant;

use super::api_state::ApiState;
use super::error::ApiError;

/// Whether an account may write now. It is asked before a body is read.
///
/// # Errors
/// 429, with the time until it may.
pub(super) fn check(service: &ApiState, tenant: &Tenant) -> Result<(), ApiError> {
    service.conversations.writes().check(&tenant.account).map_err(|wait| {
        let message = "this account writes more conversations and feedback than [responses] write_rate allows; try again when \
                       Retry-After says";
        ApiError::rate_exceeded(message.to_owned(), wait)
    })
}

/// Waits for an account's turn to write so many bytes.
pub(super) async fn begin(service: &ApiState, tenant: &Tenant, bytes: usize) -> Turn {
    service.conversations.writes().begin(&tenant.account, bytes).await
}
