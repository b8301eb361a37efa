//! A snapshot as plain text.

use crate::app::output::align_columns;

use super::columns;
use super::snapshot::Snapshot;

/// The whole of it, each table under its head.
pub(super) fn text(snapshot: &Snapshot) -> String {
    let mut parts = vec![columns::summary(snapshot, None).join("\n")];
    let mut more = |head: &[&str], rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let head = head.iter().map(|cell| (*cell).to_owned()).collect();
            let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
            parts.push(align_columns(&rows, head_texts(&rows)));
        }
    };
    more(&columns::REQUESTS, snapshot.requests.iter().map(|one| columns::request(one).to_vec()).collect());
    more(&columns::TARGETS, snapshot.targets.iter().map(|one| columns::target(one).to_vec()).collect());
    more(&columns::LIMITS, snapshot.limits.iter().map(|one| columns::limit(one).to_vec()).collect());
    parts.join("\n\n")
}

/// The first columns are names in each table, the others numbers.
fn head_texts(rows: &[Vec<String>]) -> usize {
    if rows.first().is_some_and(|head| head.len() == columns::LIMITS.len()) { 2 } else { 3 }
}
