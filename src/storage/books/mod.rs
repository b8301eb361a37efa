//! The books as both databases have them: how they are read, sealed and summed up, and recomputed from all entries.

mod describe;
mod parts;
mod records;
mod seals;
mod sums;
mod verify;

use std::io;
use std::sync::Arc;

use crate::ledger::{AccountId, AccountSpend, RequestScope, ResolutionRecord, Seal, UsageSums};
use crate::units::Timestamp;

pub(super) use parts::{ModelSpendRow, parts_of};
pub(super) use records::record_statements;
pub(super) use seals::seal_statements;
pub(super) use sums::{BALANCES, BETWEEN, SPENT, STEPS, USAGE, sum_statements, whole};
pub use verify::VerifyReport;
pub(super) use verify::verify;

/// A line of a seal's rollups: how long its time is, in milliseconds, what it is of, and what that comes to.
pub(super) type RollupRow = (i64, (Timestamp, AccountId, RequestScope, Option<Arc<str>>), UsageSums);

/// Books as they were at one moment, for as long as this is read.
pub(super) trait LedgerSnapshot {
    /// The next resolutions after one number, up to another, with all that led to them; none, when there are no more. At
    /// most so many.
    async fn records(
        &mut self,
        after: i64,
        through: i64,
        most: usize,
    ) -> Result<Vec<ResolutionRecord>, sqlx::Error>;

    /// The number of the last resolution; 0 where there is none.
    async fn newest(&mut self) -> Result<i64, sqlx::Error>;

    /// All seals, the oldest first.
    async fn seals(&mut self) -> Result<Vec<Seal>, sqlx::Error>;

    /// The sums of one seal, in their order.
    async fn rollups(&mut self, seal: i64) -> Result<Vec<RollupRow>, sqlx::Error>;

    /// What each account spent over all time, as a start reads it.
    async fn balances(&mut self) -> Result<Vec<AccountSpend>, sqlx::Error>;

    /// How many reservations have no resolution.
    async fn open(&mut self) -> Result<u64, sqlx::Error>;

    /// What must not be and can be seen without recomputing anything, each in words.
    async fn flaws(&mut self) -> Result<Vec<String>, sqlx::Error>;
}

/// Shows every resolution with all that led to it, in their order.
pub(super) async fn each(
    snapshot: &mut impl LedgerSnapshot,
    mut show: impl FnMut(&ResolutionRecord) -> io::Result<()>,
) -> Result<(), sqlx::Error> {
    let (newest, mut shown) = (snapshot.newest().await?, 0);
    loop {
        let part = snapshot.records(shown, newest, usize::MAX).await?;
        let Some(last) = part.last() else { return Ok(()) };
        shown = last.number;
        for record in &part {
            show(record)?;
        }
    }
}
