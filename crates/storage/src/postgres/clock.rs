//! The clock that all replicas go by.

use sqlx::{PgConnection, Row};

use stint_types::units::Timestamp;

/// Clocks that are set right differ by less, in milliseconds.
const SKEW_MIN: u64 = 60_000;

/// A moment of this machine's clock by that of the database, where the two differ by minutes: a machine whose clock is wrong must not
/// delete what is still to be kept.
pub(super) fn without_skew(at: Timestamp, here: Timestamp, there: Timestamp) -> Timestamp {
    let skew = there.0.saturating_sub(here.0);
    if skew.unsigned_abs() < SKEW_MIN { at } else { Timestamp(at.0.saturating_add(skew)) }
}

/// The database's clock.
pub(super) async fn read_clock(connection: &mut PgConnection) -> Result<Timestamp, sqlx::Error> {
    let statement = "SELECT floor(extract(epoch FROM bank_clock()) * 1000)::bigint AS now";
    let row = sqlx::query(statement).fetch_one(connection).await?;
    Ok(Timestamp(row.try_get("now")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_clock_is_put_right_and_one_that_is_nearly_right_is_taken() {
        let (hour, year) = (3_600_000, 365 * 86_400_000);
        let there = Timestamp(50 * year);
        let check = |ahead: i64, expected: i64| {
            let here = Timestamp(there.0 + ahead);
            let before = Timestamp(here.0 - hour);
            assert_eq!(without_skew(before, here, there), Timestamp(expected), "{ahead}");
        };
        check(0, there.0 - hour);
        check(500, there.0 - hour + 500);
        check(year, there.0 - hour);
        check(-year, there.0 - hour);
    }
}
