//! Opening quota windows: what was used in them before is summed up.

use sqlx::{PgConnection, Row};

use crate::sql::from_column;
use stint_ledger::{ReplicaEpoch, WindowOpening};
use stint_types::units::Facet;

use super::quota_windows::WindowColumns;

/// Makes windows where they are missing. What was used in them before, when there was no such limit yet, is granted from the
/// start. Each live replica has what it used as its lease.
pub(super) async fn create_windows(
    connection: &mut PgConnection,
    openings: &[WindowOpening],
) -> Result<(), sqlx::Error> {
    let statement = "\
        INSERT INTO purses (account, facet, name, unit, period, begins, ends) \
        SELECT * FROM UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[]) \
        ORDER BY 1, 2, 4, 5, 6, 3 ON CONFLICT DO NOTHING RETURNING id";
    let names = WindowColumns(openings.iter().map(|opening| &opening.window).collect());
    let created: Vec<i64> = sqlx::query_scalar(statement)
        .bind(names.accounts())
        .bind(names.facets())
        .bind(names.names())
        .bind(names.units())
        .bind(names.periods())
        .bind(names.begins())
        .bind(names.ends())
        .fetch_all(&mut *connection)
        .await?;
    if created.is_empty() {
        return Ok(());
    }
    // No replica is reclaimed between what is read and what is written.
    sqlx::query("SELECT 1 FROM replicas WHERE NOT is_over ORDER BY epoch FOR KEY SHARE")
        .fetch_all(&mut *connection)
        .await?;
    if openings.iter().any(is_of_episode) {
        sqlx::query(STEPS).bind(&created).execute(&mut *connection).await?;
    }
    if openings.iter().all(is_of_episode) {
        return Ok(());
    }
    sqlx::query(REQUESTS).bind(&created).execute(connection).await.map(drop)
}

/// What requests used of the other windows. Once one window of a limit exists, nothing is used of the limit without a window.
const REQUESTS: &str = "\
    WITH used AS ( \
        SELECT p.id AS purse, u.epoch, r.epoch IS NOT NULL AS is_alive, sum(CASE p.unit \
            WHEN 'money' THEN u.money WHEN 'thinking' THEN u.thinking WHEN 'requests' THEN u.requests \
            WHEN 'tool_calls' THEN u.tool_calls ELSE u.concurrency END)::bigint AS amount \
        FROM purses p JOIN uses u \
          ON (u.account = p.account OR starts_with(u.account, p.account || '/')) \
         AND u.admitted_at >= p.begins AND (p.ends IS NULL OR u.admitted_at < p.ends) \
         AND CASE p.facet WHEN 'whole' THEN TRUE WHEN 'model' THEN u.model = p.name \
                 WHEN 'user' THEN coalesce(u.end_user, '') = p.name ELSE u.tag = p.name END \
         AND u.admitted_at < coalesce( \
                 (SELECT (extract(epoch FROM min(q.created_at)) * 1000)::bigint FROM purses q \
                  WHERE (q.account, q.facet, q.unit, q.period, q.begins) \
                      = (p.account, p.facet, p.unit, p.period, p.begins) AND NOT q.id = ANY($1) \
                    AND p.facet = 'user'), \
                 9223372036854775807) \
        LEFT JOIN replicas r ON r.epoch = u.epoch AND NOT r.is_over \
        WHERE p.id = ANY($1) AND p.facet NOT IN ('episode', 'tool') GROUP BY 1, 2, 3), \
    cut AS ( \
        INSERT INTO slices (purse, epoch, amount) SELECT purse, epoch, amount FROM used WHERE is_alive) \
    UPDATE purses p SET granted = total.amount \
    FROM (SELECT purse, sum(amount)::bigint AS amount FROM used GROUP BY 1) total WHERE p.id = total.purse";

/// What the steps of episodes used of their windows. With an offset, each episode's rows are looked up by themselves. Without it
/// all requests that there ever were would be walked.
pub(crate) const STEPS: &str = "\
    WITH used AS ( \
        SELECT p.id AS purse, u.epoch, r.epoch IS NOT NULL AS is_alive, sum(CASE p.unit \
            WHEN 'money' THEN u.money WHEN 'thinking' THEN u.thinking WHEN 'requests' THEN u.turns \
            ELSE CASE p.facet WHEN 'tool' THEN calls_of(u.tools, substr(p.name, strpos(p.name, E'\\n') + 1)) \
                 ELSE u.tool_calls END END)::bigint AS amount \
        FROM purses p CROSS JOIN LATERAL ( \
            SELECT * FROM uses WHERE account = p.account AND episode = split_part(p.name, E'\\n', 1) OFFSET 0) u \
        LEFT JOIN replicas r ON r.epoch = u.epoch AND NOT r.is_over \
        WHERE p.id = ANY($1) AND p.facet IN ('episode', 'tool') GROUP BY 1, 2, 3), \
    cut AS ( \
        INSERT INTO slices (purse, epoch, amount) SELECT purse, epoch, amount FROM used WHERE is_alive) \
    UPDATE purses p SET granted = total.amount \
    FROM (SELECT purse, sum(amount)::bigint AS amount FROM used GROUP BY 1) total WHERE p.id = total.purse";

/// What one epoch of a replica used of them and resolved before it began to count them.
pub(crate) const STEPS_BEFORE: &str = "\
    SELECT coalesce(sum(CASE w.unit \
            WHEN 'money' THEN r.money WHEN 'thinking' THEN r.thinking \
            WHEN 'requests' THEN (r.how <> 'voided')::int * r.turns \
            ELSE CASE w.facet WHEN 'tool' THEN calls_of(r.tools, substr(w.name, strpos(w.name, E'\\n') + 1)) \
                 ELSE r.tool_calls END END), 0)::bigint AS used \
    FROM UNNEST($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) \
         WITH ORDINALITY AS w (account, facet, name, unit, counted_since, place) \
    LEFT JOIN LATERAL ( \
        SELECT r.* FROM resolutions r JOIN reservations v ON v.id = r.reservation \
        WHERE r.account = w.account AND r.episode = split_part(w.name, E'\\n', 1) \
          AND v.epoch = $1 AND r.resolved_at < w.counted_since OFFSET 0) r ON TRUE \
    GROUP BY w.place ORDER BY w.place";

fn is_of_episode(opening: &WindowOpening) -> bool {
    matches!(opening.window.facet, Facet::Episode(_) | Facet::Tool(..))
}

/// What an epoch used of each window and resolved before it began to count that part of the account. These rows do not
/// change any more.
pub(super) async fn prior_usage(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    openings: &[WindowOpening],
) -> Result<Vec<u64>, sqlx::Error> {
    let (mut of_episodes, mut others) = (Vec::new(), Vec::new());
    for opening in openings {
        if is_of_episode(opening) { &mut of_episodes } else { &mut others }.push(opening);
    }
    let steps = episode_prior_usage(connection, epoch, &of_episodes).await?;
    let (mut steps, mut others) =
        (steps.into_iter(), account_prior_usage(connection, epoch, &others).await?.into_iter());
    let used = openings.iter().map(|one| if is_of_episode(one) { steps.next() } else { others.next() });
    Ok(used.map(Option::unwrap_or_default).collect())
}

async fn episode_prior_usage(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    openings: &[&WindowOpening],
) -> Result<Vec<u64>, sqlx::Error> {
    if openings.iter().all(|opening| opening.counted_since.is_none()) {
        return Ok(vec![0; openings.len()]);
    }
    let names = WindowColumns(openings.iter().map(|opening| &opening.window).collect());
    let since = openings.iter().map(|opening| opening.counted_since.map(|since| since.0));
    let rows = sqlx::query(STEPS_BEFORE)
        .bind(epoch.0)
        .bind(names.accounts())
        .bind(names.facets())
        .bind(names.names())
        .bind(names.units())
        .bind(since.collect::<Vec<Option<i64>>>())
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| row.try_get("used").map(from_column)).collect()
}

async fn account_prior_usage(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    openings: &[&WindowOpening],
) -> Result<Vec<u64>, sqlx::Error> {
    if openings.iter().all(|opening| opening.counted_since.is_none()) {
        return Ok(vec![0; openings.len()]);
    }
    let statement = "\
        WITH mine AS MATERIALIZED ( \
            SELECT r.* FROM resolutions r JOIN reservations v ON v.id = r.reservation WHERE v.epoch = $1) \
        SELECT coalesce(sum(CASE w.unit \
                WHEN 'money' THEN r.money WHEN 'thinking' THEN r.thinking WHEN 'tool_calls' THEN r.tool_calls \
                WHEN 'requests' THEN (r.how <> 'voided')::int ELSE 0 END), 0)::bigint AS used \
        FROM UNNEST($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[]) \
             WITH ORDINALITY AS w (account, facet, name, unit, begins, ends, counted_since, place) \
        LEFT JOIN mine r \
          ON (r.account = w.account OR starts_with(r.account, w.account || '/')) \
         AND r.admitted_at >= w.begins AND (w.ends IS NULL OR r.admitted_at < w.ends) \
         AND r.resolved_at < w.counted_since \
         AND CASE w.facet WHEN 'whole' THEN TRUE WHEN 'model' THEN r.model = w.name \
                 WHEN 'user' THEN coalesce(r.end_user, '') = w.name ELSE r.tag = w.name END \
        GROUP BY w.place ORDER BY w.place";
    let names = WindowColumns(openings.iter().map(|opening| &opening.window).collect());
    let since = openings.iter().map(|opening| opening.counted_since.map(|since| since.0));
    let rows = sqlx::query(statement)
        .bind(epoch.0)
        .bind(names.accounts())
        .bind(names.facets())
        .bind(names.names())
        .bind(names.units())
        .bind(names.begins())
        .bind(names.ends())
        .bind(since.collect::<Vec<Option<i64>>>())
        .fetch_all(connection)
        .await?;
    rows.iter().map(|row| row.try_get("used").map(from_column)).collect()
}
