//! Reclaiming a replica: its open reservations are posted, and what it did not use of its leases goes back.

use sqlx::PgConnection;

use stint_ledger::{JournalEntry, ReplicaEpoch};
use stint_types::units::Timestamp;

use super::insert::insert;
use super::journal::read_unresolved;

/// A replica whose lease has expired. Nobody else reclaims it meanwhile, and its own transactions have ended.
pub(super) async fn lock_expired(connection: &mut PgConnection) -> Result<Option<ReplicaEpoch>, sqlx::Error> {
    let statement = "\
        SELECT epoch FROM replicas WHERE NOT is_over AND expires_at < bank_clock() \
        ORDER BY epoch LIMIT 1 FOR UPDATE SKIP LOCKED";
    Ok(sqlx::query_scalar(statement).fetch_optional(connection).await?.map(ReplicaEpoch))
}

/// The replica's own row, where its epoch is not over yet.
pub(super) async fn lock_own(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
) -> Result<bool, sqlx::Error> {
    let statement = "SELECT 1 FROM replicas WHERE epoch = $1 AND NOT is_over FOR UPDATE";
    Ok(sqlx::query(statement).bind(epoch.0).fetch_optional(connection).await?.is_some())
}

/// Ends an epoch, whose row is locked. Returns what it left open, as it is posted.
pub(super) async fn reclaim(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    now: Timestamp,
) -> Result<Vec<JournalEntry>, sqlx::Error> {
    let over = sqlx::query("UPDATE replicas SET is_over = TRUE WHERE epoch = $1").bind(epoch.0);
    over.execute(&mut *connection).await?;
    let open = read_unresolved(Some(epoch.0), connection).await?;
    let posted: Vec<_> = open.into_iter().map(|entry| JournalEntry::posted(entry, now)).collect();
    insert(connection, Some(epoch.0), &posted).await?;
    release_leases(connection, epoch, now).await?;
    Ok(posted)
}

async fn release_leases(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    now: Timestamp,
) -> Result<(), sqlx::Error> {
    // Nobody takes from windows that have ended; there are many of them.
    let ended = "DELETE FROM slices s USING purses p WHERE p.id = s.purse AND s.epoch = $1 AND p.ends <= $2";
    sqlx::query(ended).bind(epoch.0).bind(now.0).execute(&mut *connection).await?;
    // In the order in which everybody locks them.
    let lock = "SELECT p.id FROM purses p JOIN slices s ON s.purse = p.id WHERE s.epoch = $1 \
                ORDER BY p.id FOR UPDATE OF p";
    sqlx::query(lock).bind(epoch.0).fetch_all(&mut *connection).await?;
    loop {
        let page = sqlx::query(RELEASE_EPISODE_LEASES)
            .bind(epoch.0)
            .bind(EPISODE_PAGE)
            .execute(&mut *connection)
            .await?;
        if page.rows_affected() == 0 {
            break;
        }
    }
    // A statement of its own: it sees what was committed when the locks were had. No window begins within a minute.
    let give_back = "\
        WITH mine AS MATERIALIZED ( \
            SELECT account, model, end_user, tag, admitted_at - admitted_at % 60000 AS minute, \
                   sum(money) AS money, sum(thinking) AS thinking, sum(tool_calls) AS tool_calls, \
                   sum(requests) AS requests \
            FROM uses WHERE epoch = $1 GROUP BY 1, 2, 3, 4, 5), \
        used AS ( \
            SELECT s.purse, s.amount, coalesce(sum(CASE p.unit \
                WHEN 'money' THEN u.money WHEN 'thinking' THEN u.thinking WHEN 'requests' THEN u.requests \
                WHEN 'tool_calls' THEN u.tool_calls ELSE 0 END), 0)::bigint AS used \
            FROM slices s JOIN purses p ON p.id = s.purse LEFT JOIN mine u \
              ON (u.account = p.account OR starts_with(u.account, p.account || '/')) \
             AND u.minute >= p.begins AND (p.ends IS NULL OR u.minute < p.ends) \
             AND CASE p.facet WHEN 'whole' THEN TRUE WHEN 'model' THEN u.model = p.name \
                     WHEN 'user' THEN coalesce(u.end_user, '') = p.name ELSE u.tag = p.name END \
            WHERE s.epoch = $1 GROUP BY 1, 2), \
        gone AS (DELETE FROM slices WHERE epoch = $1) \
        UPDATE purses p SET granted = greatest(0, p.granted - u.amount + u.used), changed_at = bank_clock() \
        FROM used u WHERE p.id = u.purse";
    sqlx::query(give_back).bind(epoch.0).execute(connection).await.map(drop)
}

/// How many leases of episodes' windows are released at once. Each is looked up by its episode's own rows, of which there may be
/// many.
const EPISODE_PAGE: i64 = 256;

/// Releases so many leases of episodes' windows.
pub(crate) const RELEASE_EPISODE_LEASES: &str = "\
    WITH page AS MATERIALIZED ( \
        SELECT s.purse, s.amount, p.account, p.unit, p.facet, split_part(p.name, E'\\n', 1) AS run, \
               substr(p.name, strpos(p.name, E'\\n') + 1) AS tool \
        FROM slices s JOIN purses p ON p.id = s.purse \
        WHERE s.epoch = $1 AND p.facet IN ('episode', 'tool') ORDER BY s.purse LIMIT $2), \
    used AS ( \
        SELECT p.purse, p.amount, used.used FROM page p CROSS JOIN LATERAL ( \
            SELECT coalesce(sum(CASE p.unit \
                WHEN 'money' THEN u.money WHEN 'thinking' THEN u.thinking WHEN 'requests' THEN u.turns \
                ELSE CASE p.facet WHEN 'tool' THEN calls_of(u.tools, p.tool) ELSE u.tool_calls END \
                END), 0)::bigint AS used \
            FROM (SELECT * FROM uses WHERE account = p.account AND episode = p.run OFFSET 0) u \
            WHERE u.epoch = $1) used), \
    gone AS (DELETE FROM slices s USING used u WHERE s.purse = u.purse AND s.epoch = $1) \
    UPDATE purses p SET granted = greatest(0, p.granted - u.amount + u.used), changed_at = bank_clock() \
    FROM used u WHERE p.id = u.purse";

/// Deletes windows that ended long ago; no request takes that long. And those of episodes that were not asked for that
/// long: where one continues, they are rebuilt from the rows.
pub(super) async fn prune_windows(connection: &mut PgConnection, now: Timestamp) -> Result<(), sqlx::Error> {
    const IDLE: &str = "\
        DELETE FROM purses WHERE id IN ( \
            SELECT id FROM purses \
            WHERE facet IN ('episode', 'tool') AND changed_at < bank_clock() - interval '1 day' \
            ORDER BY changed_at LIMIT 5000 FOR UPDATE SKIP LOCKED)";
    sqlx::query(IDLE).execute(&mut *connection).await?;
    const LONG_AGO: i64 = 24 * 3600 * 1000;
    let forget = sqlx::query("DELETE FROM purses WHERE ends < $1").bind(now.0.saturating_sub(LONG_AGO));
    forget.execute(connection).await.map(drop)
}
