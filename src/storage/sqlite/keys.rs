//! Keys and the terms of accounts in `SQLite`.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection};

use crate::tenant::{
    Access, Change, KeyId, KeyRecord, KeyStore, KeyStoreError, Retired, Stored, Terms, Version,
};
use crate::units::{AccountId, Timestamp};

use super::Sqlite;
use super::key_rows::{self as rows, column, parsed};

/// The keys in a `SQLite` file.
#[derive(Debug)]
pub struct SqliteKeyStore {
    database: Arc<Sqlite>,
}

impl SqliteKeyStore {
    /// The keys of this file.
    pub fn new(database: Arc<Sqlite>) -> SqliteKeyStore {
        SqliteKeyStore { database }
    }

    async fn change(&self, seen: Version, changes: &[Change]) -> Result<bool, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = self.database.begin(&mut writer).await?;
        let next = sqlx::query("UPDATE keys_version SET version = version + 1 WHERE version = $1")
            .bind(column(seen.0))
            .execute(&mut *transaction);
        if next.await?.rows_affected() == 0 {
            return Ok(false);
        }
        for change in changes {
            match change {
                Change::Key(key) => put_key(&mut transaction, key).await?,
                Change::Terms(terms) => put_terms(&mut transaction, terms).await?,
                Change::NoTerms(account) => drop_terms(&mut transaction, account).await?,
            }
        }
        transaction.commit().await?;
        Ok(true)
    }

    async fn read(&self) -> Result<Stored, sqlx::Error> {
        let mut reader = self.database.reader().await;
        // One transaction, so that all of it is of one moment.
        let mut transaction = reader.begin().await?;
        let stored = Stored {
            version: version(&mut transaction).await?,
            keys: keys(&mut transaction).await?.into_iter().map(|key| (key.id, key)).collect(),
            terms: terms(&mut transaction)
                .await?
                .into_iter()
                .map(|terms| (terms.account.clone(), terms))
                .collect(),
        };
        transaction.commit().await?;
        Ok(stored)
    }

    fn failed(&self, source: sqlx::Error) -> KeyStoreError {
        KeyStoreError::failed(format!("the keys in {} failed", self.database.settings.path.display()), source)
    }
}

impl KeyStore for SqliteKeyStore {
    fn load(&self) -> BoxFuture<'_, Result<Stored, KeyStoreError>> {
        async { self.read().await.map_err(|source| self.failed(source)) }.boxed()
    }

    fn version(&self) -> BoxFuture<'_, Result<Version, KeyStoreError>> {
        async {
            let read = version(&mut *self.database.reader().await).await;
            read.map_err(|source| self.failed(source))
        }
        .boxed()
    }

    fn apply<'a>(&'a self, seen: Version, changes: &'a [Change]) -> BoxFuture<'a, Result<(), KeyStoreError>> {
        async move {
            match self.change(seen, changes).await {
                Ok(true) => Ok(()),
                Ok(false) => Err(KeyStoreError::Moved),
                Err(source) => Err(self.failed(source)),
            }
        }
        .boxed()
    }
}

async fn version(connection: &mut SqliteConnection) -> Result<Version, sqlx::Error> {
    let row = sqlx::query("SELECT version FROM keys_version").fetch_one(connection).await?;
    rows::whole(&row, "version").map(Version)
}

async fn keys(connection: &mut SqliteConnection) -> Result<Vec<KeyRecord>, sqlx::Error> {
    let read =
        sqlx::query("SELECT id, account, admin, created_at, expires_at, revoked_at FROM keys ORDER BY id");
    let mut keys: Vec<KeyRecord> =
        read.fetch_all(&mut *connection).await?.iter().map(key).collect::<Result<_, _>>()?;
    let read = sqlx::query("SELECT key, hash, until FROM key_secrets ORDER BY key, position");
    for row in &read.fetch_all(&mut *connection).await? {
        let (hash, until) = (rows::hash(row, "hash")?, row.try_get::<Option<i64>, _>("until")?);
        if let Some(key) = of_row(&mut keys, row)? {
            match until {
                Some(until) => key.retired.push(Retired { hash, until: Timestamp(until) }),
                None => key.hash = hash,
            }
        }
    }
    let read = sqlx::query("SELECT key, kind, name FROM key_scopes ORDER BY key, kind, position");
    for row in &read.fetch_all(&mut *connection).await? {
        let (kind, name): (String, String) = (row.try_get("kind")?, row.try_get("name")?);
        if let Some(key) = of_row(&mut keys, row)? {
            match kind.as_str() {
                "model" => key.access.models.push(name.into()),
                _ => key.access.routes.push(name.into()),
            }
        }
    }
    Ok(keys)
}

/// A key without its secrets and scopes.
fn key(row: &SqliteRow) -> Result<KeyRecord, sqlx::Error> {
    let time = |name: &str| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(name)?.map(Timestamp));
    Ok(KeyRecord {
        id: parsed(row, "id")?,
        account: AccountId::new(row.try_get::<String, _>("account")?),
        hash: rows::NOTHING,
        retired: Vec::new(),
        access: Access { admin: row.try_get::<i64, _>("admin")? == 1, ..Access::default() },
        created: Timestamp(row.try_get("created_at")?),
        expires: time("expires_at")?,
        revoked: time("revoked_at")?,
    })
}

/// The key that a row belongs to, among keys in the order of their ids.
fn of_row<'k>(keys: &'k mut [KeyRecord], row: &SqliteRow) -> Result<Option<&'k mut KeyRecord>, sqlx::Error> {
    let id: KeyId = parsed(row, "key")?;
    let place = keys.binary_search_by_key(&id, |key| key.id).ok();
    Ok(place.and_then(|place| keys.get_mut(place)))
}

async fn terms(connection: &mut SqliteConnection) -> Result<Vec<Terms>, sqlx::Error> {
    let read = sqlx::query("SELECT account, time_zone, warn_at FROM account_terms ORDER BY account");
    let mut all: Vec<Terms> =
        read.fetch_all(&mut *connection).await?.iter().map(rows::terms).collect::<Result<_, _>>()?;
    let read = sqlx::query(
        "SELECT account, unit, max, per, scope, name FROM account_limits ORDER BY account, position",
    );
    for row in &read.fetch_all(&mut *connection).await? {
        let account: String = row.try_get("account")?;
        let place = all.binary_search_by(|terms| terms.account.as_str().cmp(&account)).ok();
        if let Some(terms) = place.and_then(|place| all.get_mut(place)) {
            terms.limits.push(rows::limit(row)?);
        }
    }
    Ok(all)
}

async fn put_key(connection: &mut SqliteConnection, key: &KeyRecord) -> Result<(), sqlx::Error> {
    let id = key.id.to_string();
    sqlx::query(
        "INSERT INTO keys (id, account, admin, created_at, expires_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6) \
         ON CONFLICT (id) DO UPDATE SET account = excluded.account, admin = excluded.admin, \
         created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at",
    )
    .bind(&id)
    .bind(key.account.as_str())
    .bind(i64::from(key.access.admin))
    .bind(key.created.0)
    .bind(key.expires.map(|time| time.0))
    .bind(key.revoked.map(|time| time.0))
    .execute(&mut *connection)
    .await?;
    for delete in ["DELETE FROM key_secrets WHERE key = $1", "DELETE FROM key_scopes WHERE key = $1"] {
        sqlx::query(delete).bind(&id).execute(&mut *connection).await?;
    }
    let retired = key.retired.iter().map(|retired| (retired.hash, Some(retired.until.0)));
    for (position, (hash, until)) in (0_i64..).zip(retired.chain([(key.hash, None)])) {
        sqlx::query("INSERT INTO key_secrets (hash, key, position, until) VALUES ($1, $2, $3, $4)")
            .bind(hash.as_bytes().to_vec())
            .bind(&id)
            .bind(position)
            .bind(until)
            .execute(&mut *connection)
            .await?;
    }
    for (kind, names) in [("model", &key.access.models), ("route", &key.access.routes)] {
        for (position, name) in (0_i64..).zip(names) {
            sqlx::query("INSERT INTO key_scopes (key, kind, position, name) VALUES ($1, $2, $3, $4)")
                .bind(&id)
                .bind(kind)
                .bind(position)
                .bind(&**name)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

async fn put_terms(connection: &mut SqliteConnection, terms: &Terms) -> Result<(), sqlx::Error> {
    drop_terms(connection, &terms.account).await?;
    let account = terms.account.as_str();
    sqlx::query("INSERT INTO account_terms (account, time_zone, warn_at) VALUES ($1, $2, $3)")
        .bind(account)
        .bind(terms.zone.name())
        .bind(i64::from(terms.warn_at.get()))
        .execute(&mut *connection)
        .await?;
    for (position, limit) in (0_i64..).zip(&terms.limits) {
        let (scope, name) = rows::scope_words(&limit.scope);
        sqlx::query(
            "INSERT INTO account_limits (account, position, unit, max, per, scope, name) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(account)
        .bind(position)
        .bind(limit.max.unit().word())
        .bind(column(limit.max.size()))
        .bind(limit.window.to_string())
        .bind(scope)
        .bind(name)
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

async fn drop_terms(connection: &mut SqliteConnection, account: &AccountId) -> Result<(), sqlx::Error> {
    for delete in
        ["DELETE FROM account_limits WHERE account = $1", "DELETE FROM account_terms WHERE account = $1"]
    {
        sqlx::query(delete).bind(account.as_str()).execute(&mut *connection).await?;
    }
    Ok(())
}
