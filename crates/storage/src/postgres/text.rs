//! Prepares texts for columns.

/// PostgreSQL's texts have no zeros, and a caller's name that has one must not stop everybody's entries.
pub(super) fn clean(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}
