//! The journal's rows in either database: how entries are written and read, summed up, and covered by seals.
//!
//! The folders `sqlite` and `postgres` implement the trait `Journal` with this.

mod model_spend;
mod open_reservations;
mod records;
mod seals;
mod sums;
mod tables;
mod tool_counts;
mod usage_sums;

pub(super) use open_reservations::{OPEN_COLUMNS, dispatch_entry};
pub(super) use records::{each_record, read_records};
pub(super) use seals::{RollupKey, last_seal, newest_resolution, read_rollups, read_seals, write_seal};
#[cfg(test)]
pub(super) use sums::{BALANCES, BETWEEN, EPISODE_USAGE};
pub(super) use sums::{balances, episode_usage, spend_between, spend_since, usage};
pub(super) use tables::{
    Cell, EXTENSIONS, METERINGS, RESERVATIONS, RESOLUTION_PARTS, RESOLUTIONS, SortedEntries, Table,
};
