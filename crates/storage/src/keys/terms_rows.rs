//! The terms of accounts with their limits, as rows.

use crate::sql::{SqlConnection, SqlRow, Statement, column_error, sql};
use stint_types::tenant::{AccountTerms, LimitSelector, Percent, TenantLimit};
use stint_types::units::{AccountId, Amount, Unit, Window};

const TERMS_COLUMNS: &str = "account, time_zone, warn_at";

const LIMIT_COLUMNS: &str = "account, position, unit, max, per, scope, name";

/// The terms of all accounts, in the order of the accounts' names.
pub(super) async fn read_terms(connection: &mut dyn SqlConnection) -> Result<Vec<AccountTerms>, sqlx::Error> {
    let find = Statement::new(sql("SELECT {} FROM account_terms ORDER BY account", &[&TERMS_COLUMNS]));
    let rows = connection.fetch_all(find).await?;
    let mut all = rows.iter().map(terms).collect::<Result<Vec<_>, _>>()?;
    let find = sql("SELECT {} FROM account_limits ORDER BY account, position", &[&LIMIT_COLUMNS]);
    for row in &connection.fetch_all(Statement::new(find)).await? {
        let account: &str = row.get("account")?;
        let place = all.binary_search_by(|terms| terms.account.as_str().cmp(account)).ok();
        if let Some(terms) = place.and_then(|place| all.get_mut(place)) {
            terms.limits.push(limit(row)?);
        }
    }
    Ok(all)
}

/// Writes an account's terms in place of those that were there.
pub(super) async fn put_terms(
    terms: &AccountTerms,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    delete_terms(&terms.account, connection).await?;
    let put = sql("INSERT INTO account_terms ({}) VALUES ($1, $2, $3)", &[&TERMS_COLUMNS]);
    let put = Statement::new(put).bind(&terms.account).bind(terms.zone.name());
    connection.execute(put.bind(i64::from(terms.warn_at.get()))).await?;
    for (position, limit) in (0_i64..).zip(&terms.limits) {
        let (scope, name) = selector_columns(&limit.scope);
        let put =
            sql("INSERT INTO account_limits ({}) VALUES ($1, $2, $3, $4, $5, $6, $7)", &[&LIMIT_COLUMNS]);
        let put = Statement::new(put).bind(&terms.account).bind(position);
        let put = put.bind(limit.max.unit().as_str()).bind(limit.max.size()).bind(limit.window.to_string());
        connection.execute(put.bind(scope).bind(name)).await?;
    }
    Ok(())
}

/// Deletes an account's terms.
pub(super) async fn delete_terms(
    account: &AccountId,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    for delete in
        ["DELETE FROM account_limits WHERE account = $1", "DELETE FROM account_terms WHERE account = $1"]
    {
        connection.execute(Statement::new(delete).bind(account)).await?;
    }
    Ok(())
}

/// Terms without their limits.
fn terms(row: &SqlRow) -> Result<AccountTerms, sqlx::Error> {
    Ok(AccountTerms {
        account: row.account("account")?,
        limits: Vec::new(),
        zone: row.parsed("time_zone")?,
        warn_at: Percent::try_from(whole(row, "warn_at")?).map_err(|error| column_error("warn_at", error))?,
    })
}

fn limit(row: &SqlRow) -> Result<TenantLimit, sqlx::Error> {
    let (unit, per): (&str, &str) = (row.get("unit")?, row.get("per")?);
    let unit = Unit::ALL.into_iter().find(|known| known.as_str() == unit);
    let window = Window::ALL.into_iter().find(|known| known.to_string() == per);
    let (Some(unit), Some(window)) = (unit, window) else {
        return Err(column_error("unit", "an unknown limit"));
    };
    Ok(TenantLimit::new(window, Amount::new(unit, whole(row, "max")?)).with_selector(selector(row)?))
}

/// A selector's word, and the name that goes with it.
fn selector_columns(selector: &LimitSelector) -> (&'static str, Option<&str>) {
    match selector {
        LimitSelector::All => ("all", None),
        LimitSelector::Model(name) => ("model", Some(name)),
        LimitSelector::EachUser => ("user", None),
        LimitSelector::Tag(name) => ("tag", Some(name)),
    }
}

fn selector(row: &SqlRow) -> Result<LimitSelector, sqlx::Error> {
    match (row.get("scope")?, row.get::<Option<&str>>("name")?) {
        ("all", None) => Ok(LimitSelector::All),
        ("user", None) => Ok(LimitSelector::EachUser),
        ("model", Some(name)) => Ok(LimitSelector::Model(name.into())),
        ("tag", Some(name)) => Ok(LimitSelector::Tag(name.into())),
        _ => Err(column_error("scope", "an unknown scope")),
    }
}

/// A number that must not be negative.
fn whole(row: &SqlRow, column: &str) -> Result<u64, sqlx::Error> {
    u64::try_from(row.get::<i64>(column)?).map_err(|error| column_error(column, error))
}
