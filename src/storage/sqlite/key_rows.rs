//! Between keys and terms and their rows.

use std::str::FromStr;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::tenant::{KeyHash, Percent, Scope, TenantLimit, Terms};
use crate::units::{AccountId, Amount, Unit, Window};

/// In place of a hash until it is read; no secret has it.
pub(super) const NOTHING: KeyHash = KeyHash::from_bytes([0; 32]);

/// A count as a column holds it. One beyond that is more than anybody spends.
pub(super) fn column(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A whole number that is not negative.
pub(super) fn whole(row: &SqliteRow, name: &str) -> Result<u64, sqlx::Error> {
    u64::try_from(row.try_get::<i64, _>(name)?).map_err(|error| wrong(name, error))
}

/// A text that means something.
pub(super) fn parsed<T: FromStr>(row: &SqliteRow, name: &str) -> Result<T, sqlx::Error>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.try_get::<String, _>(name)?.parse().map_err(|error: T::Err| wrong(name, error))
}

pub(super) fn hash(row: &SqliteRow, name: &str) -> Result<KeyHash, sqlx::Error> {
    let bytes: Vec<u8> = row.try_get(name)?;
    let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| wrong(name, "not a hash"))?;
    Ok(KeyHash::from_bytes(bytes))
}

/// Terms without their limits.
pub(super) fn terms(row: &SqliteRow) -> Result<Terms, sqlx::Error> {
    Ok(Terms {
        account: AccountId::new(row.try_get::<String, _>("account")?),
        limits: Vec::new(),
        zone: parsed(row, "time_zone")?,
        warn_at: Percent::try_from(whole(row, "warn_at")?).map_err(|error| wrong("warn_at", error))?,
    })
}

pub(super) fn limit(row: &SqliteRow) -> Result<TenantLimit, sqlx::Error> {
    let (unit, per): (String, String) = (row.try_get("unit")?, row.try_get("per")?);
    let unit = Unit::ALL.into_iter().find(|known| known.word() == unit);
    let window = Window::ALL.into_iter().find(|known| known.to_string() == per);
    let (Some(unit), Some(window)) = (unit, window) else { return Err(wrong("unit", "an unknown limit")) };
    Ok(TenantLimit::new(window, Amount::new(unit, whole(row, "max")?)).on(scope(row)?))
}

/// A scope's word, and the name that goes with it.
pub(super) fn scope_words(scope: &Scope) -> (&'static str, Option<&str>) {
    match scope {
        Scope::All => ("all", None),
        Scope::Model(name) => ("model", Some(name)),
        Scope::EachUser => ("user", None),
        Scope::Tag(name) => ("tag", Some(name)),
    }
}

fn scope(row: &SqliteRow) -> Result<Scope, sqlx::Error> {
    let (word, name): (String, Option<String>) = (row.try_get("scope")?, row.try_get("name")?);
    match (word.as_str(), name) {
        ("all", None) => Ok(Scope::All),
        ("user", None) => Ok(Scope::EachUser),
        ("model", Some(name)) => Ok(Scope::Model(name.into())),
        ("tag", Some(name)) => Ok(Scope::Tag(name.into())),
        _ => Err(wrong("scope", "an unknown scope")),
    }
}

fn wrong(name: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: name.to_owned(), source: source.into() }
}
