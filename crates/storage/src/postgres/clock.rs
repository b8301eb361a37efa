//! The clock that all replicas go by.

use sqlx::{PgConnection, Row};

use stint_types::units::Timestamp;

/// The database's clock.
pub(super) async fn read_clock(connection: &mut PgConnection) -> Result<Timestamp, sqlx::Error> {
    let statement = "SELECT floor(extract(epoch FROM bank_clock()) * 1000)::bigint AS now";
    let row = sqlx::query(statement).fetch_one(connection).await?;
    Ok(Timestamp(row.try_get("now")?))
}
