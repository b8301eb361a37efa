//! Quota windows and the leases of them, as rows of the tables `purses` and `slices`.

use std::borrow::Cow;

use sqlx::{PgConnection, Row};

use crate::sql::{from_column, to_column};
use stint_ledger::{AccountId, LeaseAdjustment, QuotaBalance, QuotaWindow, ReplicaEpoch};
use stint_types::units::{Facet, Timestamp, Unit, Window};

use super::text::clean;

/// A window that is locked, and its balance then.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockedWindow {
    id: i64,
    pub(super) balance: QuotaBalance,
}

/// The columns that name windows.
pub(super) struct WindowColumns<'w>(pub(super) Vec<&'w QuotaWindow>);

impl WindowColumns<'_> {
    pub(super) fn accounts(&self) -> Vec<String> {
        self.0.iter().map(|window| clean(window.account.as_str())).collect()
    }

    pub(super) fn facets(&self) -> Vec<&'static str> {
        self.0.iter().map(|window| facet_columns(&window.facet).0).collect()
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|window| clean(&facet_columns(&window.facet).1)).collect()
    }

    pub(super) fn units(&self) -> Vec<&'static str> {
        self.0.iter().map(|window| window.unit.as_str()).collect()
    }

    pub(super) fn periods(&self) -> Vec<String> {
        self.0.iter().map(|window| window.window.to_string()).collect()
    }

    pub(super) fn begins(&self) -> Vec<i64> {
        self.0.iter().map(|window| window.begins.0).collect()
    }

    pub(super) fn ends(&self) -> Vec<Option<i64>> {
        self.0.iter().map(|window| window.ends.map(|end| end.0)).collect()
    }
}

/// Locks windows, always in the same order, so that there is no deadlock. Where some are missing, returns their places.
pub(super) async fn lock_windows(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    windows: &[QuotaWindow],
) -> Result<Result<Vec<LockedWindow>, Vec<usize>>, sqlx::Error> {
    let statement = "\
        SELECT p.id, p.granted, w.place FROM purses p \
        JOIN UNNEST($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[]) \
             WITH ORDINALITY AS w (account, facet, name, unit, period, begins, place) \
          USING (account, facet, name, unit, period, begins) \
        ORDER BY p.id FOR UPDATE OF p";
    let names = WindowColumns(windows.iter().collect());
    let rows = sqlx::query(statement)
        .bind(names.accounts())
        .bind(names.facets())
        .bind(names.names())
        .bind(names.units())
        .bind(names.periods())
        .bind(names.begins())
        .fetch_all(&mut *connection)
        .await?;
    let mut found = Vec::new();
    for row in rows {
        let granted = from_column(row.try_get("granted")?);
        let balance = QuotaBalance { granted, ..QuotaBalance::default() };
        found.push((row.try_get::<i64, _>("place")?, LockedWindow { id: row.try_get("id")?, balance }));
    }
    found.sort_by_key(|(place, _)| *place);
    let missing = missing(windows.len(), &found);
    if !missing.is_empty() {
        return Ok(Err(missing));
    }
    let mut locked: Vec<LockedWindow> = found.into_iter().map(|(_, locked)| locked).collect();
    read_leases(connection, epoch, &mut locked).await?;
    Ok(Ok(locked))
}

/// Places are counted from one.
fn missing(size: usize, found: &[(i64, LockedWindow)]) -> Vec<usize> {
    let is_there = |at: usize| found.iter().any(|(place, _)| usize::try_from(*place) == Ok(at + 1));
    if size == found.len() { Vec::new() } else { (0..size).filter(|at| !is_there(*at)).collect() }
}

/// A statement of its own: it sees what was committed when the locks were acquired.
async fn read_leases(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    locked: &mut [LockedWindow],
) -> Result<(), sqlx::Error> {
    let statement = "\
        SELECT w.place, \
               coalesce(sum(s.amount) FILTER (WHERE s.epoch = $1), 0)::bigint AS slice, \
               coalesce(sum(s.amount) FILTER (WHERE s.epoch <> $1), 0)::bigint AS others, \
               coalesce(bool_and(s.epoch = $1 OR s.amount = 0 OR s.trimmed_at = 'infinity'), TRUE) AS is_final, \
               coalesce(bool_or(s.epoch <> $1 AND s.amount > 0 AND s.trimmed_at < p.recalled_at \
                                AND r.expires_at > bank_clock()), FALSE) AS is_awaited, \
               (SELECT count(*) FROM replicas WHERE NOT is_over) AS replicas \
        FROM UNNEST($2::bigint[]) WITH ORDINALITY AS w (id, place) \
        JOIN purses p ON p.id = w.id \
        LEFT JOIN slices s ON s.purse = p.id \
        LEFT JOIN replicas r ON r.epoch = s.epoch \
        GROUP BY w.place ORDER BY w.place";
    let ids: Vec<i64> = locked.iter().map(|one| one.id).collect();
    let rows = sqlx::query(statement).bind(epoch.0).bind(ids).fetch_all(connection).await?;
    for (row, one) in rows.iter().zip(locked) {
        one.balance.own = from_column(row.try_get("slice")?);
        one.balance.others = from_column(row.try_get("others")?);
        one.balance.is_final = row.try_get("is_final")?;
        one.balance.is_recall_pending = row.try_get("is_awaited")?;
        one.balance.replicas = from_column(row.try_get("replicas")?);
    }
    Ok(())
}

/// Sets the leases to these amounts; returns the balances after that.
pub(super) async fn adjust_leases(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    locked: &[LockedWindow],
    orders: &[LeaseAdjustment],
) -> Result<Vec<QuotaBalance>, sqlx::Error> {
    let balances: Vec<QuotaBalance> = locked
        .iter()
        .zip(orders)
        .map(|(LockedWindow { balance, .. }, order)| {
            let granted = balance.granted.saturating_sub(balance.own).saturating_add(order.amount);
            QuotaBalance { granted, own: order.amount, ..*balance }
        })
        .collect();
    let statement = "\
        WITH ordered AS ( \
            SELECT * FROM UNNEST($2::bigint[], $3::bigint[], $4::bigint[], $5::bool[], $6::bool[], $7::bool[]) \
                AS o (purse, amount, granted, is_tight, is_final, recalls)), \
        cut AS ( \
            INSERT INTO slices (purse, epoch, amount, trimmed_at) \
            SELECT purse, $1, amount, CASE WHEN is_final THEN 'infinity' WHEN is_tight THEN bank_clock() \
                                      ELSE '-infinity' END FROM ordered \
            ON CONFLICT (purse, epoch) DO UPDATE \
            SET amount = EXCLUDED.amount, \
                trimmed_at = greatest(nullif(slices.trimmed_at, 'infinity'), EXCLUDED.trimmed_at)) \
        UPDATE purses p SET granted = o.granted, changed_at = bank_clock(), \
               recalled_at = CASE WHEN o.recalls THEN bank_clock() ELSE p.recalled_at END \
        FROM ordered o WHERE p.id = o.purse";
    sqlx::query(statement)
        .bind(epoch.0)
        .bind(locked.iter().map(|one| one.id).collect::<Vec<i64>>())
        .bind(orders.iter().map(|order| to_column(order.amount)).collect::<Vec<i64>>())
        .bind(balances.iter().map(|balance| to_column(balance.granted)).collect::<Vec<i64>>())
        .bind(orders.iter().map(|order| order.is_tight).collect::<Vec<bool>>())
        .bind(orders.iter().map(|order| order.is_final).collect::<Vec<bool>>())
        .bind(orders.iter().map(|order| order.is_recalling).collect::<Vec<bool>>())
        .execute(connection)
        .await?;
    Ok(balances)
}

/// Windows that have changed since then and are not over. Not those of episodes, which are only read when the episode
/// continues.
pub(super) async fn changed_windows(
    connection: &mut PgConnection,
    epoch: ReplicaEpoch,
    since_micros: i64,
    now: Timestamp,
) -> Result<Vec<(QuotaWindow, QuotaBalance)>, sqlx::Error> {
    let statement = "\
        SELECT p.account, p.facet, p.name, p.unit, p.period, p.begins, p.ends, p.granted, \
               coalesce(s.amount, 0) AS slice \
        FROM purses p LEFT JOIN slices s ON s.purse = p.id AND s.epoch = $1 \
        WHERE p.changed_at > to_timestamp($2::bigint / 1000000.0) AND (p.ends IS NULL OR p.ends > $3) \
          AND p.facet NOT IN ('episode', 'tool')";
    let rows =
        sqlx::query(statement).bind(epoch.0).bind(since_micros).bind(now.0).fetch_all(connection).await?;
    let mut windows = Vec::new();
    for row in rows {
        let Some((facet, unit, window)) = parse_columns(
            row.try_get("facet")?,
            row.try_get("name")?,
            row.try_get("unit")?,
            row.try_get("period")?,
        ) else {
            // A newer version wrote it.
            continue;
        };
        let account = AccountId::new(row.try_get::<&str, _>("account")?);
        let begins = Timestamp(row.try_get("begins")?);
        let ends = row.try_get::<Option<i64>, _>("ends")?.map(Timestamp);
        let (granted, own) = (from_column(row.try_get("granted")?), from_column(row.try_get("slice")?));
        let balance = QuotaBalance { granted, own, ..QuotaBalance::default() };
        windows.push((QuotaWindow { account, facet, unit, window, begins, ends }, balance));
    }
    Ok(windows)
}

/// A tool's name follows its episode's, which has no line break.
fn facet_columns(facet: &Facet) -> (&'static str, Cow<'_, str>) {
    match facet {
        Facet::Whole => ("whole", "".into()),
        Facet::Model(name) => ("model", (&**name).into()),
        Facet::User(name) => ("user", (&**name).into()),
        Facet::Tag(name) => ("tag", (&**name).into()),
        Facet::Episode(episode) => ("episode", episode.as_str().into()),
        Facet::Tool(episode, tool) => ("tool", format!("{episode}\n{tool}").into()),
    }
}

fn parse_columns(facet: &str, name: &str, unit: &str, period: &str) -> Option<(Facet, Unit, Window)> {
    let facet = match facet {
        "whole" => Facet::Whole,
        "model" => Facet::Model(name.into()),
        "user" => Facet::User(name.into()),
        "tag" => Facet::Tag(name.into()),
        _ => return None,
    };
    let windows = [Window::Minute, Window::Hour, Window::Day, Window::Week, Window::Month, Window::Total];
    let window = windows.into_iter().find(|window| window.to_string() == period)?;
    Some((facet, Unit::ALL.into_iter().find(|known| known.as_str() == unit)?, window))
}
