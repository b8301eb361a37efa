//! Verifying the books in a database of PostgreSQL.

use sqlx::PgConnection;

use crate::audit::{self, Invariant, VerifyReport};

const OPEN: &str = "\
    SELECT count(*) FROM reservations v \
    WHERE NOT EXISTS (SELECT 1 FROM resolutions r WHERE r.reservation = v.id)";

/// What must not be, and how to find it. `?` stands for what is found.
const INVARIANTS: [Invariant; 11] = [
    (
        "the reservation ? has a negative amount",
        "SELECT encode(id, 'hex') FROM reservations \
         WHERE least(money, thinking, tool_calls, price_input, price_output, tools_cost) < 0",
    ),
    (
        "an extension of ? has a negative amount",
        "SELECT encode(reservation, 'hex') FROM extensions WHERE least(money, thinking, tool_calls) < 0",
    ),
    (
        "a metering of ? has a negative amount",
        "SELECT encode(reservation, 'hex') FROM meterings WHERE least(money, thinking, tool_calls) < 0",
    ),
    (
        "the resolution of ? has a negative amount",
        "SELECT encode(reservation, 'hex') FROM resolutions \
         WHERE least(money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, \
                     prompt, overhead, solution, other, tools_cost) < 0",
    ),
    (
        "a part of ? has a negative amount",
        "SELECT encode(reservation, 'hex') FROM resolution_parts \
         WHERE least(money, thinking, prompt, overhead, solution, other) < 0",
    ),
    (
        "there is a part of ?, and no resolution",
        "SELECT DISTINCT encode(reservation, 'hex') FROM resolution_parts p \
         WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = p.reservation)",
    ),
    (
        "? is resolved more than once",
        "SELECT encode(reservation, 'hex') FROM resolutions GROUP BY reservation HAVING count(*) > 1",
    ),
    (
        "there is an extension of ?, and no such reservation",
        "SELECT DISTINCT encode(reservation, 'hex') FROM extensions e \
         WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE id = e.reservation)",
    ),
    (
        "there is a metering of ?, and no such reservation",
        "SELECT DISTINCT encode(reservation, 'hex') FROM meterings m \
         WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE id = m.reservation)",
    ),
    (
        "? has no resolution, though all was posted that its replica left open",
        "SELECT encode(v.id, 'hex') FROM reservations v JOIN replicas r ON r.epoch = v.epoch \
         WHERE r.is_over AND NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = v.id)",
    ),
    (
        "the run ? is raised by something else than the sum of its entries",
        "SELECT account || ' ' || id FROM (SELECT account, id, limits::jsonb -> 'raised' AS raised FROM episodes) e WHERE \
            (coalesce((raised ->> 'cost')::numeric, 0), coalesce((raised ->> 'thinking')::numeric, 0), \
             coalesce((raised ->> 'turns')::numeric, 0), coalesce((raised ->> 'calls')::numeric, 0), \
             coalesce((raised ->> 'raises')::numeric, 0), coalesce((raised ->> 'is_end')::boolean, false)::int::numeric, \
             coalesce((SELECT sum(value::numeric) FROM jsonb_each_text(coalesce(raised -> 'tools', '{}'))), 0)) \
            <> (SELECT coalesce(sum(money), 0)::numeric, coalesce(sum(thinking), 0)::numeric, \
                       coalesce(sum(turns), 0)::numeric, coalesce(sum(tool_calls), 0)::numeric, count(*)::numeric, \
                       coalesce(max(is_end), 0)::numeric, \
                       coalesce(sum((SELECT sum(value::numeric) FROM jsonb_each_text(r.tools::jsonb))), 0) \
                FROM episode_raises r WHERE r.account = e.account AND r.episode = e.id)",
    ),
];

/// Recomputes everything, within a transaction whose every statement sees the same moment.
pub(super) async fn verify(connection: &mut PgConnection) -> Result<VerifyReport, sqlx::Error> {
    audit::verify(Vec::new(), &INVARIANTS, OPEN, connection).await
}
