//! Keys and the terms of accounts, in statements that both databases take.

/// The functions that read and write them, for one database's connections and rows.
macro_rules! key_statements {
    ($connection:ty, $row:ty) => {
        use std::str::FromStr;

        use sqlx::Row;

        use crate::tenant::{
            KeyAccess, KeyHash, KeyId, KeyRecord, Percent, RetiredSecret, LimitSelector, KeyStoreState, TenantLimit, AccountTerms,
        };
        use crate::units::{AccountId, Amount, Priority, Timestamp, Unit, Window};

        /// All of it as of one moment, in a transaction.
        async fn stored(connection: &mut $connection) -> Result<KeyStoreState, sqlx::Error> {
            Ok(KeyStoreState {
                version: version(&mut *connection).await?,
                keys: keys(&mut *connection).await?.into_iter().map(|key| (key.id, key)).collect(),
                terms: terms(&mut *connection)
                    .await?
                    .into_iter()
                    .map(|terms| (terms.account.clone(), terms))
                    .collect(),
            })
        }

        /// Makes changes in a transaction; false where somebody else did in between.
        async fn change(
            connection: &mut $connection,
            seen: StoreVersion,
            changes: &[KeyStoreChange],
        ) -> Result<bool, sqlx::Error> {
            let next = sqlx::query("UPDATE keys_version SET version = version + 1 WHERE version = $1")
                .bind(column(seen.0))
                .execute(&mut *connection);
            if next.await?.rows_affected() == 0 {
                return Ok(false);
            }
            for change in changes {
                match change {
                    KeyStoreChange::PutKey(key) => put_key(connection, key).await?,
                    KeyStoreChange::PutTerms(terms) => put_terms(connection, terms).await?,
                    KeyStoreChange::RemoveTerms(account) => drop_terms(connection, account).await?,
                }
            }
            Ok(true)
        }

        async fn version(connection: &mut $connection) -> Result<StoreVersion, sqlx::Error> {
            let row = sqlx::query("SELECT version FROM keys_version").fetch_one(connection).await?;
            whole(&row, "version").map(StoreVersion)
        }

        async fn keys(connection: &mut $connection) -> Result<Vec<KeyRecord>, sqlx::Error> {
            let read =
                sqlx::query("SELECT id, account, admin, priority, created_at, expires_at, revoked_at FROM keys ORDER BY id");
            let mut keys: Vec<KeyRecord> =
                read.fetch_all(&mut *connection).await?.iter().map(key).collect::<Result<_, _>>()?;
            let read = sqlx::query("SELECT key, hash, until FROM key_secrets ORDER BY key, position");
            for row in &read.fetch_all(&mut *connection).await? {
                let (hash, until) = (hash(row, "hash")?, row.try_get::<Option<i64>, _>("until")?);
                if let Some(key) = of_row(&mut keys, row)? {
                    match until {
                        Some(until) => key.retired.push(RetiredSecret { hash, until: Timestamp(until) }),
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
        fn key(row: &$row) -> Result<KeyRecord, sqlx::Error> {
            let time = |name: &str| Ok::<_, sqlx::Error>(row.try_get::<Option<i64>, _>(name)?.map(Timestamp));
            Ok(KeyRecord {
                id: parsed(row, "id")?,
                account: AccountId::new(row.try_get::<String, _>("account")?),
                hash: NOTHING,
                retired: Vec::new(),
                access: KeyAccess { admin: row.try_get::<i64, _>("admin")? == 1, ..KeyAccess::default() },
                priority: priority(row)?,
                created: Timestamp(row.try_get("created_at")?),
                expires: time("expires_at")?,
                revoked: time("revoked_at")?,
            })
        }

        fn priority(row: &$row) -> Result<Priority, sqlx::Error> {
            let word: String = row.try_get("priority")?;
            Priority::named(&word).ok_or_else(|| wrong("priority", "an unknown priority"))
        }

        /// The key that a row belongs to, among keys in the order of their ids.
        fn of_row<'k>(keys: &'k mut [KeyRecord], row: &$row) -> Result<Option<&'k mut KeyRecord>, sqlx::Error> {
            let id: KeyId = parsed(row, "key")?;
            let place = keys.binary_search_by_key(&id, |key| key.id).ok();
            Ok(place.and_then(|place| keys.get_mut(place)))
        }

        async fn terms(connection: &mut $connection) -> Result<Vec<AccountTerms>, sqlx::Error> {
            let read = sqlx::query("SELECT account, time_zone, warn_at FROM account_terms ORDER BY account");
            let mut all: Vec<AccountTerms> =
                read.fetch_all(&mut *connection).await?.iter().map(terms_of).collect::<Result<_, _>>()?;
            let read = sqlx::query(
                "SELECT account, unit, max, per, scope, name FROM account_limits ORDER BY account, position",
            );
            for row in &read.fetch_all(&mut *connection).await? {
                let account: String = row.try_get("account")?;
                let place = all.binary_search_by(|terms| terms.account.as_str().cmp(&account)).ok();
                if let Some(terms) = place.and_then(|place| all.get_mut(place)) {
                    terms.limits.push(limit(row)?);
                }
            }
            Ok(all)
        }

        async fn put_key(connection: &mut $connection, key: &KeyRecord) -> Result<(), sqlx::Error> {
            let id = key.id.to_string();
            sqlx::query(
                "INSERT INTO keys (id, account, admin, created_at, expires_at, revoked_at, priority) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7) \
                 ON CONFLICT (id) DO UPDATE SET account = excluded.account, admin = excluded.admin, \
                 priority = excluded.priority, created_at = excluded.created_at, expires_at = excluded.expires_at, revoked_at = excluded.revoked_at",
            )
            .bind(&id)
            .bind(key.account.as_str())
            .bind(i64::from(key.access.admin))
            .bind(key.created.0)
            .bind(key.expires.map(|time| time.0))
            .bind(key.revoked.map(|time| time.0))
            .bind(key.priority.as_str())
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

        async fn put_terms(connection: &mut $connection, terms: &AccountTerms) -> Result<(), sqlx::Error> {
            drop_terms(connection, &terms.account).await?;
            let account = terms.account.as_str();
            sqlx::query("INSERT INTO account_terms (account, time_zone, warn_at) VALUES ($1, $2, $3)")
                .bind(account)
                .bind(terms.zone.name())
                .bind(i64::from(terms.warn_at.get()))
                .execute(&mut *connection)
                .await?;
            for (position, limit) in (0_i64..).zip(&terms.limits) {
                let (scope, name) = scope_words(&limit.scope);
                sqlx::query(
                    "INSERT INTO account_limits (account, position, unit, max, per, scope, name) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7)",
                )
                .bind(account)
                .bind(position)
                .bind(limit.max.unit().as_str())
                .bind(column(limit.max.size()))
                .bind(limit.window.to_string())
                .bind(scope)
                .bind(name)
                .execute(&mut *connection)
                .await?;
            }
            Ok(())
        }

        async fn drop_terms(connection: &mut $connection, account: &AccountId) -> Result<(), sqlx::Error> {
            for delete in
                ["DELETE FROM account_limits WHERE account = $1", "DELETE FROM account_terms WHERE account = $1"]
            {
                sqlx::query(delete).bind(account.as_str()).execute(&mut *connection).await?;
            }
            Ok(())
        }

        /// In place of a hash until it is read; no secret has it.
        const NOTHING: KeyHash = KeyHash::from_bytes([0; 32]);

        /// A count as a column holds it. One beyond that is more than anybody spends.
        fn column(count: u64) -> i64 {
            i64::try_from(count).unwrap_or(i64::MAX)
        }

        /// A whole number that is not negative.
        fn whole(row: &$row, name: &str) -> Result<u64, sqlx::Error> {
            u64::try_from(row.try_get::<i64, _>(name)?).map_err(|error| wrong(name, error))
        }

        /// A text that means something.
        fn parsed<T: FromStr>(row: &$row, name: &str) -> Result<T, sqlx::Error>
        where
            T::Err: std::error::Error + Send + Sync + 'static,
        {
            row.try_get::<String, _>(name)?.parse().map_err(|error: T::Err| wrong(name, error))
        }

        fn hash(row: &$row, name: &str) -> Result<KeyHash, sqlx::Error> {
            let bytes: Vec<u8> = row.try_get(name)?;
            let bytes = <[u8; 32]>::try_from(bytes).map_err(|_| wrong(name, "not a hash"))?;
            Ok(KeyHash::from_bytes(bytes))
        }

        /// Terms without their limits.
        fn terms_of(row: &$row) -> Result<AccountTerms, sqlx::Error> {
            Ok(AccountTerms {
                account: AccountId::new(row.try_get::<String, _>("account")?),
                limits: Vec::new(),
                zone: parsed(row, "time_zone")?,
                warn_at: Percent::try_from(whole(row, "warn_at")?).map_err(|error| wrong("warn_at", error))?,
            })
        }

        fn limit(row: &$row) -> Result<TenantLimit, sqlx::Error> {
            let (unit, per): (String, String) = (row.try_get("unit")?, row.try_get("per")?);
            let unit = Unit::ALL.into_iter().find(|known| known.as_str() == unit);
            let window = Window::ALL.into_iter().find(|known| known.to_string() == per);
            let (Some(unit), Some(window)) = (unit, window) else { return Err(wrong("unit", "an unknown limit")) };
            Ok(TenantLimit::new(window, Amount::new(unit, whole(row, "max")?)).with_selector(scope(row)?))
        }

        /// A scope's word, and the name that goes with it.
        fn scope_words(scope: &LimitSelector) -> (&'static str, Option<&str>) {
            match scope {
                LimitSelector::All => ("all", None),
                LimitSelector::Model(name) => ("model", Some(name)),
                LimitSelector::EachUser => ("user", None),
                LimitSelector::Tag(name) => ("tag", Some(name)),
            }
        }

        fn scope(row: &$row) -> Result<LimitSelector, sqlx::Error> {
            let (word, name): (String, Option<String>) = (row.try_get("scope")?, row.try_get("name")?);
            match (word.as_str(), name) {
                ("all", None) => Ok(LimitSelector::All),
                ("user", None) => Ok(LimitSelector::EachUser),
                ("model", Some(name)) => Ok(LimitSelector::Model(name.into())),
                ("tag", Some(name)) => Ok(LimitSelector::Tag(name.into())),
                _ => Err(wrong("scope", "an unknown scope")),
            }
        }

        fn wrong(name: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
            sqlx::Error::ColumnDecode { index: name.to_owned(), source: source.into() }
        }
    };
}

pub(super) use key_statements;
