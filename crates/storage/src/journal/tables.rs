//! The tables of the journal: each column's name beside the value that it has for an entry.
//!
//! Each database inserts many rows in the way that is fastest there, and reads the columns from here.

use crate::sql::{SqlText, to_column};
use stint_ledger::{DispatchEntry, ExtensionEntry, JournalEntry, MeterEntry, ResolutionEntry};

use super::model_spend::{ModelSpendRow, model_spend_rows};
use super::tool_counts;

/// A table, and how a row of it is made of an entry.
pub(crate) struct Table<E: 'static> {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column<E>],
    /// Rows are only inserted for reservations (the first column) that are not resolved yet.
    pub(crate) is_for_unresolved: bool,
}

/// A column, and its value for an entry.
pub(crate) struct Column<E> {
    pub(crate) name: &'static str,
    pub(crate) cell: Cell<E>,
}

/// A value for an entry, by its type. `None` is NULL.
pub(crate) enum Cell<E> {
    Int(fn(&E) -> Option<i64>),
    Text(fn(&E) -> Option<String>),
    Bytes(fn(&E) -> Vec<u8>),
}

const fn bytes<E>(name: &'static str, value: fn(&E) -> Vec<u8>) -> Column<E> {
    Column { name, cell: Cell::Bytes(value) }
}

const fn text<E>(name: &'static str, value: fn(&E) -> Option<String>) -> Column<E> {
    Column { name, cell: Cell::Text(value) }
}

const fn int<E>(name: &'static str, value: fn(&E) -> Option<i64>) -> Column<E> {
    Column { name, cell: Cell::Int(value) }
}

/// Dispatched requests. PostgreSQL has a column `epoch` before these.
pub(crate) const RESERVATIONS: Table<DispatchEntry> = Table {
    name: "reservations",
    is_for_unresolved: false,
    columns: &[
        bytes("id", |row| row.id.as_bytes().to_vec()),
        text("account", |row| Some(row.account.as_str().to_owned())),
        text("model", |row| owned(row.about.model.as_deref())),
        text("end_user", |row| owned(row.about.user.as_deref())),
        text("tag", |row| owned(row.about.tag.as_deref())),
        int("money", |row| whole(row.held.money.0)),
        int("thinking", |row| whole(row.held.thinking.0)),
        int("tool_calls", |row| whole(row.held.tool_calls.0)),
        int("price_input", |row| whole(row.prices?.input.per_million_tokens.0)),
        int("price_output", |row| whole(row.prices?.output.per_million_tokens.0)),
        text("if_abandoned", |row| Some(row.if_abandoned.as_str().to_owned())),
        int("admitted_at", |row| Some(row.admitted.0)),
        int("expires_at", |row| Some(row.expires.0)),
        text("episode", |row| row.about.episode.as_ref().map(ToString::to_string)),
        text("tools", |row| tool_counts::to_json(&row.tools)),
        int("tools_cost", |row| whole(row.tools_cost.0)),
        int("turns", |row| Some(i64::from(!row.about.beside_turns))),
        int("rate_read", |row| whole(row.rate?.prompt_cost.0)),
        int("rate_money", |row| whole(row.rate?.per_second.money.0)),
        int("rate_thinking", |row| whole(row.rate?.per_second.thinking.0)),
    ],
};

/// What was reserved later for a request that continues.
pub(crate) const EXTENSIONS: Table<ExtensionEntry> = Table {
    name: "extensions",
    is_for_unresolved: false,
    columns: &[
        bytes("reservation", |row| row.id.as_bytes().to_vec()),
        int("step", |row| Some(i64::from(row.step))),
        text("model", |row| owned(row.model.as_deref())),
        int("money", |row| whole(row.more.money.0)),
        int("thinking", |row| whole(row.more.thinking.0)),
        int("tool_calls", |row| whole(row.more.tool_calls.0)),
    ],
};

/// What a request was seen to have used while it ran.
pub(crate) const METERINGS: Table<MeterEntry> = Table {
    name: "meterings",
    is_for_unresolved: false,
    columns: &[
        bytes("reservation", |row| row.id.as_bytes().to_vec()),
        int("step", |row| Some(i64::from(row.step))),
        int("money", |row| whole(row.spent.money.0)),
        int("thinking", |row| whole(row.spent.thinking.0)),
        int("tool_calls", |row| whole(row.spent.tool_calls.0)),
        int("metered_at", |row| Some(row.at?.0)),
    ],
};

/// What other models took of a request than the one that answered. Inserted before its resolution.
pub(crate) const RESOLUTION_PARTS: Table<ModelSpendRow> = Table {
    name: "resolution_parts",
    is_for_unresolved: true,
    columns: &[
        bytes("reservation", |row| row.id.as_bytes().to_vec()),
        text("model", |row| Some(row.model.to_string())),
        int("money", |row| whole(row.spend.money.0)),
        int("thinking", |row| whole(row.spend.thinking.0)),
        int("prompt", |row| whole(row.spend.prompt.0)),
        int("overhead", |row| whole(row.spend.overhead.0)),
        int("solution", |row| whole(row.spend.solution.0)),
        int("other", |row| whole(row.spend.other.0)),
    ],
};

/// How requests ended.
pub(crate) const RESOLUTIONS: Table<ResolutionEntry> = Table {
    name: "resolutions",
    is_for_unresolved: false,
    columns: &[
        bytes("reservation", |row| row.id.as_bytes().to_vec()),
        text("how", |row| Some(row.how.as_str().to_owned())),
        text("account", |row| Some(row.account.as_str().to_owned())),
        text("model", |row| owned(row.about.model.as_deref())),
        text("end_user", |row| owned(row.about.user.as_deref())),
        text("tag", |row| owned(row.about.tag.as_deref())),
        int("admitted_at", |row| Some(row.admitted.0)),
        int("resolved_at", |row| Some(row.at.0)),
        int("money", |row| whole(row.spent.money.0)),
        int("thinking", |row| whole(row.spent.thinking.0)),
        int("tool_calls", |row| whole(row.spent.tool_calls.0)),
        int("overrun_money", |row| whole(row.overrun.money.0)),
        int("overrun_thinking", |row| whole(row.overrun.thinking.0)),
        int("overrun_tool_calls", |row| whole(row.overrun.tool_calls.0)),
        int("prompt", |row| whole(row.detail.prompt.0)),
        int("overhead", |row| whole(row.detail.overhead.0)),
        int("solution", |row| whole(row.detail.solution.0)),
        int("other", |row| whole(row.detail.other.0)),
        text("outcome", |row| Some(row.detail.outcome.to_string())),
        text("episode", |row| row.about.episode.as_ref().map(ToString::to_string)),
        text("tools", |row| tool_counts::to_json(&row.detail.tools)),
        int("tools_cost", |row| whole(row.detail.tools_cost.0)),
        int("turns", |row| Some(i64::from(!row.about.beside_turns))),
    ],
};

impl<E> Table<E> {
    /// The names of the columns, with commas.
    pub(crate) fn column_names(&self) -> SqlText {
        SqlText::joined(self.columns.iter().map(|column| column.name), ", ")
    }
}

/// Entries by their tables, in the order in which they are inserted: what is referred to comes first.
#[derive(Default)]
pub(crate) struct SortedEntries<'e> {
    pub(crate) dispatched: Vec<&'e DispatchEntry>,
    pub(crate) extended: Vec<&'e ExtensionEntry>,
    pub(crate) metered: Vec<&'e MeterEntry>,
    pub(crate) parts: Vec<ModelSpendRow>,
    pub(crate) resolved: Vec<&'e ResolutionEntry>,
}

impl<'e> SortedEntries<'e> {
    pub(crate) fn of(entries: &'e [JournalEntry]) -> SortedEntries<'e> {
        let mut sorted = SortedEntries::default();
        for entry in entries {
            match entry {
                JournalEntry::Dispatched(row) => sorted.dispatched.push(row),
                JournalEntry::Extended(row) => sorted.extended.push(row),
                JournalEntry::Metered(row) => sorted.metered.push(row),
                JournalEntry::Resolved(row) => sorted.resolved.push(row),
            }
        }
        sorted.parts = model_spend_rows(&sorted.resolved);
        sorted
    }
}

fn owned(name: Option<&str>) -> Option<String> {
    name.map(str::to_owned)
}

fn whole(number: u64) -> Option<i64> {
    Some(to_column(number))
}
