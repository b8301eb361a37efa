//! Tables whose rows belong to accounts, and of whose bytes another table has each account's sum: responses and conversations.

use stint_types::tenant::KeyId;
use stint_types::units::AccountId;

use super::sql::{SqlConnection, SqlDialect, Statement, sql, to_column};

/// Such a table. It has the columns `account`, `id`, `key_id` and `bytes`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccountTable {
    pub(crate) name: &'static str,
    /// The column with the time by which a row is old.
    pub(crate) age: &'static str,
    /// The table with each account's sum. Triggers keep it.
    pub(crate) sums: &'static str,
}

impl AccountTable {
    /// Deletes one row.
    pub(crate) fn delete(self, account: &AccountId, id: &[u8]) -> Statement {
        let sql = sql("DELETE FROM {} WHERE account = $1 AND id = $2", &[&self.name]);
        Statement::new(sql).bind(account).bind(id)
    }

    /// Deletes some rows of that account, of that key or of any. What another transaction holds is waited for.
    pub(crate) fn delete_some_of(
        self,
        account: &AccountId,
        key: Option<KeyId>,
        dialect: SqlDialect,
    ) -> Statement {
        let of_key = if key.is_some() { " AND key_id = $2" } else { "" };
        let sql = sql(
            "DELETE FROM {} WHERE (account, id) IN (SELECT account, id FROM {} WHERE account = $1{} \
                ORDER BY id LIMIT 64{})",
            &[&self.name, &self.name, &of_key, &dialect.for_update()],
        );
        let statement = Statement::new(sql).bind(account);
        if key.is_some() { statement.bind(key) } else { statement }
    }

    /// Deletes the account's oldest rows until it keeps to its limit; the one that is kept is not deleted.
    pub(crate) async fn make_room(
        self,
        account: &AccountId,
        kept: &[u8],
        most: u64,
        connection: &mut dyn SqlConnection,
    ) -> Result<(), sqlx::Error> {
        loop {
            // Nobody changes the sum before this transaction ends. What it has changed is locked already, but it may have
            // changed nothing: a row that was there stays as it is.
            let sql = sql(
                "SELECT bytes FROM {} WHERE account = $1{}",
                &[&self.sums, &connection.dialect().for_update()],
            );
            let bytes: i64 = connection.fetch_one(Statement::new(sql).bind(account)).await?.get("bytes")?;
            let surplus = bytes.saturating_sub(to_column(most));
            if surplus <= 0 || !self.delete_oldest(account, kept, surplus, connection).await? {
                return Ok(());
            }
        }
    }

    /// Deletes until so many bytes are free, some rows at a time; false if there are none.
    async fn delete_oldest(
        self,
        account: &AccountId,
        kept: &[u8],
        bytes: i64,
        connection: &mut dyn SqlConnection,
    ) -> Result<bool, sqlx::Error> {
        // Rows that another transaction has locked are left to it. So a transaction that waits for a row has nothing yet
        // that others wait for, and there is no deadlock.
        let sql = sql(
            "SELECT id, bytes FROM {} WHERE account = $1 AND id <> $2 ORDER BY {}, id LIMIT 64{}",
            &[&self.name, &self.age, &connection.dialect().for_update_skip_locked()],
        );
        let rows = connection.fetch_all(Statement::new(sql).bind(account).bind(kept)).await?;
        let mut free = 0;
        for row in &rows {
            if free >= bytes {
                break;
            }
            free += row.get::<i64>("bytes")?;
            connection.execute(self.delete(account, row.get("id")?)).await?;
        }
        Ok(!rows.is_empty())
    }
}
