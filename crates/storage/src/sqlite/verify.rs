//! Verifying the books in a file of `SQLite`.

use sqlx::SqliteConnection;

use crate::audit::{self, Invariant, VerifyReport};
use crate::sql::{SqlConnection, Statement};

const OPEN: &str = "SELECT count(*) FROM open_reservations";

/// What must not be, and how to find it. `?` stands for what is found.
const INVARIANTS: [Invariant; 11] = [
    (
        "the reservation ? has a negative amount",
        "SELECT lower(hex(id)) FROM reservations \
         WHERE min(money, thinking, tool_calls, coalesce(price_input, 0), coalesce(price_output, 0), tools_cost) < 0",
    ),
    (
        "an extension of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM extensions WHERE min(money, thinking, tool_calls) < 0",
    ),
    (
        "a metering of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM meterings WHERE min(money, thinking, tool_calls) < 0",
    ),
    (
        "the resolution of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM resolutions \
         WHERE min(money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, \
                   prompt, overhead, solution, other, tools_cost) < 0",
    ),
    (
        "a part of ? has a negative amount",
        "SELECT lower(hex(reservation)) FROM resolution_parts \
         WHERE min(money, thinking, prompt, overhead, solution, other) < 0",
    ),
    (
        "there is a part of ?, and no resolution",
        "SELECT DISTINCT lower(hex(reservation)) FROM resolution_parts p \
         WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = p.reservation)",
    ),
    (
        "? is resolved more than once",
        "SELECT lower(hex(reservation)) FROM resolutions NOT INDEXED GROUP BY reservation HAVING count(*) > 1",
    ),
    (
        "? has neither a resolution nor a place among the open reservations",
        "SELECT lower(hex(id)) FROM reservations r \
         WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = r.id) \
           AND NOT EXISTS (SELECT 1 FROM open_reservations WHERE reservation = r.id)",
    ),
    (
        "? is among the open reservations and is resolved",
        "SELECT lower(hex(reservation)) FROM open_reservations o \
         WHERE EXISTS (SELECT 1 FROM resolutions WHERE reservation = o.reservation)",
    ),
    (
        "? is among the open reservations and is none",
        "SELECT lower(hex(reservation)) FROM open_reservations o \
         WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE id = o.reservation)",
    ),
    (
        "the run ? is raised by something else than the sum of its entries",
        "SELECT account || ' ' || id FROM episodes e WHERE \
            (coalesce(json_extract(limits, '$.raised.cost'), 0), coalesce(json_extract(limits, '$.raised.thinking'), 0), \
             coalesce(json_extract(limits, '$.raised.turns'), 0), coalesce(json_extract(limits, '$.raised.calls'), 0), \
             coalesce(json_extract(limits, '$.raised.raises'), 0), coalesce(json_extract(limits, '$.raised.is_end'), 0), \
             coalesce((SELECT sum(value) FROM json_each(e.limits, '$.raised.tools')), 0)) \
            <> (SELECT coalesce(sum(money), 0), coalesce(sum(thinking), 0), coalesce(sum(turns), 0), \
                       coalesce(sum(tool_calls), 0), count(*), coalesce(max(is_end), 0), \
                       coalesce(sum((SELECT sum(value) FROM json_each(r.tools))), 0) \
                FROM episode_raises r WHERE r.account = e.account AND r.episode = e.id)",
    ),
];

/// Recomputes everything, within a transaction.
pub(super) async fn verify(connection: &mut SqliteConnection) -> Result<VerifyReport, sqlx::Error> {
    let flaws = check_file(connection).await?;
    audit::verify(flaws, &INVARIANTS, OPEN, connection).await
}

/// What the database itself finds.
async fn check_file(connection: &mut dyn SqlConnection) -> Result<Vec<String>, sqlx::Error> {
    let mut flaws = Vec::new();
    for row in connection.fetch_all(Statement::new("PRAGMA integrity_check(20)")).await? {
        match row.get(0)? {
            "ok" => {}
            broken => flaws.push(format!("the file: {broken}")),
        }
    }
    for row in connection.fetch_all(Statement::new("PRAGMA foreign_key_check")).await? {
        let (table, parent): (&str, &str) = (row.get(0)?, row.get(2)?);
        flaws.push(format!("a row of {table} refers to a row of {parent} that is not there"));
    }
    Ok(flaws)
}
