//! Makes the dispatch of a request durable before anything is sent upstream.

use std::time::Duration;

use tokio::time::Instant;

use stint_ledger::{Ledger, Reservation};
use stint_sessions::idempotency::IdempotencyTicket;

use super::refusal::RequestRefusal;

/// How long after its deadline a reservation is held for a request that does not come back.
pub(crate) const EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// Makes durable what must be before anything is sent. The idempotency key goes first: a crash in between costs the
/// caller an answer, never a second charge.
pub(crate) async fn record_dispatch(
    ledger: &Ledger,
    ticket: Option<&IdempotencyTicket>,
    deadline: Instant,
    reservation: &mut Reservation,
) -> Result<(), RequestRefusal> {
    let Some(ticket) = ticket else {
        return reservation.dispatch().await.map_err(RequestRefusal::Ledger);
    };
    let now = ledger.now();
    let until = now + deadline.saturating_duration_since(Instant::now()) + EXPIRY_MARGIN;
    ticket.begin(reservation.id(), now, until).await?;
    reservation.dispatch().await.map_err(RequestRefusal::Ledger)?;
    ticket.mark_sent();
    Ok(())
}
