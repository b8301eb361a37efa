//! Keys with their secrets and scopes, as rows.

use crate::sql::{SqlConnection, SqlRow, Statement, column_error, sql};
use stint_types::tenant::{AdminRole, KeyAccess, KeyHash, KeyId, KeyRecord, RetiredSecret};
use stint_types::units::{Priority, Timestamp};

const KEY_COLUMNS: &str = "id, account, admin, role, priority, created_at, expires_at, revoked_at";

const SECRETS: &str = "SELECT key, hash, until FROM key_secrets ORDER BY key, position";

const SCOPES: &str = "SELECT key, kind, name FROM key_scopes ORDER BY key, kind, position";

const KEY_VALUES: &str = "\
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
    ON CONFLICT (id) DO UPDATE SET account = excluded.account, admin = excluded.admin, role = excluded.role, \
        priority = excluded.priority, created_at = excluded.created_at, \
        expires_at = excluded.expires_at, revoked_at = excluded.revoked_at";

const PUT_SECRET: &str = "INSERT INTO key_secrets (hash, key, position, until) VALUES ($1, $2, $3, $4)";

const PUT_SCOPE: &str = "INSERT INTO key_scopes (key, kind, position, name) VALUES ($1, $2, $3, $4)";

/// In place of a hash until it is read; no secret has it.
const NO_HASH: KeyHash = KeyHash::from_bytes([0; 32]);

/// All keys, in the order of their ids.
pub(super) async fn read_keys(connection: &mut dyn SqlConnection) -> Result<Vec<KeyRecord>, sqlx::Error> {
    let find = Statement::new(sql("SELECT {} FROM keys ORDER BY id", &[&KEY_COLUMNS]));
    let rows = connection.fetch_all(find).await?;
    let mut keys = rows.iter().map(key).collect::<Result<Vec<_>, _>>()?;
    for row in &connection.fetch_all(Statement::new(SECRETS)).await? {
        let (hash, until) = (KeyHash::from_bytes(row.bytes("hash")?), row.get::<Option<i64>>("until")?);
        if let Some(key) = key_of(row, &mut keys)? {
            match until {
                Some(until) => key.retired.push(RetiredSecret { hash, until: Timestamp(until) }),
                None => key.hash = hash,
            }
        }
    }
    for row in &connection.fetch_all(Statement::new(SCOPES)).await? {
        let (kind, name): (&str, &str) = (row.get("kind")?, row.get("name")?);
        if let Some(key) = key_of(row, &mut keys)? {
            match kind {
                "model" => key.access.models.push(name.into()),
                _ => key.access.routes.push(name.into()),
            }
        }
    }
    Ok(keys)
}

/// Writes a key in place of what was there.
pub(super) async fn put_key(key: &KeyRecord, connection: &mut dyn SqlConnection) -> Result<(), sqlx::Error> {
    let id = key.id.to_string();
    let put = Statement::new(sql("INSERT INTO keys ({}) {}", &[&KEY_COLUMNS, &KEY_VALUES])).bind(&*id);
    let (is_all, lesser) = role_columns(key.access.role);
    let put = put.bind(&key.account).bind(i64::from(is_all)).bind(lesser).bind(key.priority.as_str());
    let put = put.bind(key.created).bind(key.expires).bind(key.revoked);
    connection.execute(put).await?;
    for delete in ["DELETE FROM key_secrets WHERE key = $1", "DELETE FROM key_scopes WHERE key = $1"] {
        connection.execute(Statement::new(delete).bind(&*id)).await?;
    }
    let retired = key.retired.iter().map(|retired| (retired.hash, Some(retired.until)));
    for (position, (hash, until)) in (0_i64..).zip(retired.chain([(key.hash, None)])) {
        let put = Statement::new(PUT_SECRET).bind(&hash.as_bytes()[..]).bind(&*id);
        connection.execute(put.bind(position).bind(until)).await?;
    }
    for (kind, names) in [("model", &key.access.models), ("route", &key.access.routes)] {
        for (position, name) in (0_i64..).zip(names) {
            let put = Statement::new(PUT_SCOPE).bind(&*id).bind(kind).bind(position).bind(&**name);
            connection.execute(put).await?;
        }
    }
    Ok(())
}

/// What an earlier version reads, which knows one role alone, and a lesser role, which it does not see.
fn role_columns(role: Option<AdminRole>) -> (bool, Option<&'static str>) {
    match role {
        Some(AdminRole::All) => (true, None),
        lesser => (false, lesser.map(AdminRole::as_str)),
    }
}

fn role(row: &SqlRow) -> Result<Option<AdminRole>, sqlx::Error> {
    if row.get::<i64>("admin")? == 1 {
        return Ok(Some(AdminRole::All));
    }
    let Some(word) = row.get::<Option<&str>>("role")? else { return Ok(None) };
    AdminRole::named(word).map(Some).ok_or_else(|| column_error("role", "an unknown role"))
}

/// A key without its secrets and scopes.
fn key(row: &SqlRow) -> Result<KeyRecord, sqlx::Error> {
    let time = |column| Ok::<_, sqlx::Error>(row.get::<Option<i64>>(column)?.map(Timestamp));
    Ok(KeyRecord {
        id: row.parsed("id")?,
        account: row.account("account")?,
        hash: NO_HASH,
        retired: Vec::new(),
        access: KeyAccess { role: role(row)?, ..KeyAccess::default() },
        priority: Priority::named(row.get("priority")?)
            .ok_or_else(|| column_error("priority", "an unknown priority"))?,
        created: row.time("created_at")?,
        expires: time("expires_at")?,
        revoked: time("revoked_at")?,
    })
}

/// The key that a row belongs to, among keys in the order of their ids.
fn key_of<'k>(row: &SqlRow, keys: &'k mut [KeyRecord]) -> Result<Option<&'k mut KeyRecord>, sqlx::Error> {
    let id: KeyId = row.parsed("key")?;
    let place = keys.binary_search_by_key(&id, |key| key.id).ok();
    Ok(place.and_then(|place| keys.get_mut(place)))
}
