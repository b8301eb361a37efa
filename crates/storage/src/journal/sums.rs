//! Sums of what was spent and used: from the rollups of sealed resolutions, and from the resolutions themselves where they are
//! not sealed yet.

use std::sync::LazyLock;

use crate::sql::{Session, SqlConnection, SqlRow, SqlText, Statement, sql};
use stint_ledger::{
    AccountId, AccountSpend, Amounts, EpisodeUsage, GroupUsage, RequestScope, RollupSpan, UsageGroup,
    UsageQuery,
};
use stint_types::units::{Count, EpisodeId, Timestamp};

use super::tool_counts;
use super::usage_sums::{spent, usage_sums};

/// The columns of `rollups` that are summed up.
const ROLLUP_SUMS: &str = "money, thinking, tool_calls, requests, overrun_money, settled";

/// The same of `resolutions`.
const RESOLUTION_SUMS: &str = "money, thinking, tool_calls, CASE WHEN how = 'voided' THEN 0 ELSE 1 END, \
                               overrun_money, CASE WHEN how = 'settled' THEN 1 ELSE 0 END";

/// The sums of those, under the names that `usage_sums` reads.
const SUMMED: &str = "\
    CAST(sum(money) AS BIGINT) AS money, CAST(sum(thinking) AS BIGINT) AS thinking, \
    CAST(sum(tool_calls) AS BIGINT) AS tool_calls, CAST(sum(requests) AS BIGINT) AS requests, \
    CAST(sum(overrun_money) AS BIGINT) AS overrun, CAST(sum(settled) AS BIGINT) AS settled";

/// The number of the last resolution that is sealed.
const SEALED: &str = "(SELECT coalesce(max(through), 0) FROM seals)";

const GROUPED: &str = "GROUP BY 1, 2, 3, 4 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4 NULLS FIRST";

/// What was charged for requests admitted from $1 until before $6.
///
/// Sealed requests count in the rollup of their day between $3 and $4, where days of UTC begin. On both sides, until $2 and $5,
/// where quarters of an hour begin, they count in the rollup of their quarter. At both ends each request counts itself, and
/// so does each that is not sealed yet.
static CHARGED: LazyLock<SqlText> = LazyLock::new(|| {
    let rollups = |span: RollupSpan, from: &'static str, to: &'static str| {
        let length = span.length();
        sql(
            "SELECT account, model, end_user, tag, start, {}, prompt, overhead, solution, other \
             FROM rollups WHERE part_of IS NULL AND span = {} AND start >= {} AND start < {}",
            &[&ROLLUP_SUMS, &length, &from, &to],
        )
    };
    // The plus keeps the planner from walking all that is not sealed, which is everything before the first seal.
    let resolutions = |from: &'static str, to: &'static str, comparison: &'static str| {
        sql(
            "SELECT account, model, end_user, tag, admitted_at - admitted_at % 900000, {}, \
                    prompt, overhead, solution, other \
             FROM resolutions WHERE admitted_at >= {} AND admitted_at < {} AND +number {} {}",
            &[&RESOLUTION_SUMS, &from, &to, &comparison, &SEALED],
        )
    };
    let parts = [
        rollups(RollupSpan::Day, "$3", "$4"),
        rollups(RollupSpan::Quarter, "$2", "$3"),
        rollups(RollupSpan::Quarter, "$4", "$5"),
        resolutions("$1", "$2", "<="),
        resolutions("$5", "$6", "<="),
        resolutions("$1", "$6", ">"),
    ];
    SqlText::joined(parts, " UNION ALL ")
});

/// What other models took of that than the one that answered, by the same times. Nothing, unless it is told apart by model
/// ($10).
static PARTS: LazyLock<SqlText> = LazyLock::new(|| {
    let rollups = |span: RollupSpan, from: &'static str, to: &'static str| {
        let length = span.length();
        sql(
            "SELECT account, model, part_of, start, money, thinking, prompt, overhead, solution, other \
             FROM rollups \
             WHERE $10 AND part_of IS NOT NULL AND span = {} AND start >= {} AND start < {}",
            &[&length, &from, &to],
        )
    };
    let resolutions = sql(
        "SELECT r.account, p.model, coalesce(r.model, ''), r.admitted_at - r.admitted_at % 900000, \
                p.money, p.thinking, p.prompt, p.overhead, p.solution, p.other \
         FROM resolutions r JOIN resolution_parts p ON p.reservation = r.reservation \
         WHERE $10 AND r.admitted_at >= $1 AND r.admitted_at < $6 \
           AND (r.admitted_at < $2 OR r.admitted_at >= $5 OR +r.number > {})",
        &[&SEALED],
    );
    let parts = [
        rollups(RollupSpan::Day, "$3", "$4"),
        rollups(RollupSpan::Quarter, "$2", "$3"),
        rollups(RollupSpan::Quarter, "$4", "$5"),
        resolutions,
    ];
    SqlText::joined(parts, " UNION ALL ")
});

/// By the quarter of an hour in which a request was admitted, but no earlier than asked for.
static SINCE: LazyLock<SqlText> = LazyLock::new(|| {
    sql(
        "SELECT account, model, end_user, tag, CASE WHEN start < $1 THEN $1 ELSE start END AS since, {} \
         FROM ({}) AS charged \
         GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2 NULLS FIRST, 3 NULLS FIRST, 4 NULLS FIRST, 5",
        &[&SUMMED, &*CHARGED],
    )
});

/// All at once.
pub(crate) static BETWEEN: LazyLock<SqlText> = LazyLock::new(|| {
    sql(
        "SELECT account, model, end_user, tag, CAST($1 AS BIGINT) AS since, {} FROM ({}) AS charged {}",
        &[&SUMMED, &*CHARGED, &GROUPED],
    )
});

/// Over all time.
pub(crate) static BALANCES: LazyLock<SqlText> = LazyLock::new(|| {
    sql(
        "SELECT account, model, end_user, tag, CAST(-9223372036854775808 AS BIGINT) AS since, {} \
         FROM (SELECT account, model, end_user, tag, {} \
               FROM rollups WHERE part_of IS NULL AND span = 0 \
               UNION ALL \
               SELECT account, model, end_user, tag, {} \
               FROM resolutions WHERE number > {}) AS charged {}",
        &[&SUMMED, &ROLLUP_SUMS, &RESOLUTION_SUMS, &SEALED, &GROUPED],
    )
});

/// Of the account $7 and all below it, by day ($8), account ($9) and model ($10), after the group ($11, $12, $13). By
/// model, a part counts for the model that took it, and no longer for the one that answered.
static USAGE: LazyLock<SqlText> = LazyLock::new(|| {
    sql(
        "WITH parts AS ({}) \
         SELECT day, key, model, CAST(sum(prompt) AS BIGINT) AS prompt, CAST(sum(overhead) AS BIGINT) AS overhead, \
                CAST(sum(solution) AS BIGINT) AS solution, CAST(sum(other) AS BIGINT) AS other, {} \
         FROM (SELECT CASE WHEN $8 THEN start - start % 86400000 ELSE 0 END AS day, \
                      CASE WHEN $9 THEN account ELSE '' END AS key, \
                      CASE WHEN $10 THEN coalesce(model, '') ELSE '' END AS model, \
                      {}, prompt, overhead, solution, other \
               FROM ({} \
                     UNION ALL \
                     SELECT account, model, NULL, NULL, start, money, thinking, 0, 0, 0, 0, \
                            prompt, overhead, solution, other FROM parts \
                     UNION ALL \
                     SELECT account, part_of, NULL, NULL, start, -money, -thinking, 0, 0, 0, 0, \
                            -prompt, -overhead, -solution, -other FROM parts) AS charged \
               WHERE CAST($7 AS TEXT) IS NULL OR account = $7 \
                     OR substr(account, 1, length($7) + 1) = $7 || '/') AS grouped \
         WHERE NOT $14 OR (day, key, model) > ($11, $12, $13) \
         GROUP BY 1, 2, 3 ORDER BY 1, 2, 3 LIMIT $15",
        &[&*PARTS, &SUMMED, &ROLLUP_SUMS, &*CHARGED],
    )
});

/// What the requests of the episode $2 of the account $1 took that are resolved.
pub(crate) const EPISODE_USAGE: &str = "\
    SELECT how, money, thinking, tool_calls, tools, turns FROM resolutions WHERE account = $1 AND episode = $2";

/// What each account spent since a moment, by the quarter of an hour.
pub(crate) async fn spend_since(
    since: Timestamp,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<AccountSpend>, sqlx::Error> {
    let statement = bound_between(&SINCE, since, Timestamp(i64::MAX), false);
    connection.fetch_all(statement).await?.iter().map(account_spend).collect()
}

/// What each account spent between each of these moments and the next, all as of one moment.
pub(crate) async fn spend_between(
    moments: &[Timestamp],
    mut session: Session<'_>,
) -> Result<Vec<AccountSpend>, sqlx::Error> {
    let mut snapshot = session.snapshot().await?;
    let mut all = Vec::new();
    for (place, &from) in moments.iter().enumerate() {
        let to = moments.get(place + 1).copied().unwrap_or(Timestamp(i64::MAX));
        for row in &snapshot.fetch_all(bound_between(&BETWEEN, from, to, true)).await? {
            all.push(account_spend(row)?);
        }
    }
    all.retain(AccountSpend::is_nonzero);
    snapshot.commit().await?;
    Ok(all)
}

/// What the requests of one episode took.
pub(crate) async fn episode_usage(
    account: &AccountId,
    episode: &EpisodeId,
    connection: &mut dyn SqlConnection,
) -> Result<EpisodeUsage, sqlx::Error> {
    let mut used = EpisodeUsage::default();
    let find = Statement::new(EPISODE_USAGE).bind(account).bind(episode);
    for row in &connection.fetch_all(find).await? {
        let is_voided = row.get::<&str>("how")? == "voided";
        let spent = Amounts {
            money: row.money("money")?,
            thinking: row.tokens("thinking")?,
            requests: if is_voided { Count::ZERO } else { row.count("turns")? },
            tool_calls: row.count("tool_calls")?,
        };
        used.add(spent, &tool_counts::from_json(spent.tool_calls, row.get("tools")?)?);
    }
    Ok(used)
}

/// What each account spent over all time.
pub(crate) async fn balances(connection: &mut dyn SqlConnection) -> Result<Vec<AccountSpend>, sqlx::Error> {
    connection.fetch_all(Statement::new(&*BALANCES)).await?.iter().map(account_spend).collect()
}

/// What was used, by group, in the order of the groups.
pub(crate) async fn usage(
    query: &UsageQuery,
    connection: &mut dyn SqlConnection,
) -> Result<Vec<GroupUsage>, sqlx::Error> {
    let after = query.after.clone().unwrap_or_default();
    let find = bound_between(&USAGE, query.from, query.to, true).bind(query.account.as_ref());
    let find = find.bind(query.by.day).bind(query.by.key).bind(query.by.model);
    let find = find.bind(after.day).bind(&*after.key).bind(&*after.model);
    let find = find.bind(query.after.is_some()).bind(query.limit);
    connection.fetch_all(find).await?.iter().map(group_usage).collect()
}

/// The first six parameters: when to begin and end, and between when quarters of an hour are whole, and days if they will do.
fn bound_between(sql: &'static SqlText, from: Timestamp, to: Timestamp, by_day: bool) -> Statement {
    let quarters = whole_spans(RollupSpan::Quarter, from, to);
    let days =
        if by_day { whole_spans(RollupSpan::Day, quarters.0, quarters.1) } else { (quarters.1, quarters.1) };
    let bounds = [from, quarters.0, days.0, days.1, quarters.1, to];
    bounds.into_iter().fold(Statement::new(sql), Statement::bind)
}

/// The whole spans between two moments: the first one's start and the last one's end.
fn whole_spans(span: RollupSpan, from: Timestamp, to: Timestamp) -> (Timestamp, Timestamp) {
    let first = span.next(from).min(to);
    (first, span.start(to).max(first))
}

fn account_spend(row: &SqlRow) -> Result<AccountSpend, sqlx::Error> {
    let name = |column| row.get::<Option<&str>>(column).map(|name| name.map(Into::into));
    Ok(AccountSpend {
        account: row.account("account")?,
        about: RequestScope {
            model: name("model")?,
            user: name("end_user")?,
            tag: name("tag")?,
            ..RequestScope::default()
        },
        since: row.time("since")?,
        spent: spent(row)?,
        overrun: row.money("overrun")?,
        settled: row.number("settled")?,
    })
}

fn group_usage(row: &SqlRow) -> Result<GroupUsage, sqlx::Error> {
    let (key, model) = (row.get::<&str>("key")?, row.get::<&str>("model")?);
    let group = UsageGroup { day: row.time("day")?, key: key.into(), model: model.into() };
    Ok(GroupUsage { group, sums: usage_sums(row)? })
}
