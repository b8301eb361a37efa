//! Values on their way to columns and back.

/// PostgreSQL's texts have no zeros, and a caller's name that has one must not stop everybody's entries.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

/// The ledger keeps amounts far below the greatest number of a column.
pub(super) fn size(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The tables hold nothing below zero.
pub(super) fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
