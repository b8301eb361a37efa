//! The store of responses that callers may continue from: the table `responses` of either database.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};

use stint_sessions::agent::stored::{ResponseChain, ResponseStore, ResponsesError, StoredResponse};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::sql::{SqlConnection, SqlDatabase, SqlRow, Statement, sql, to_column};

/// A response that is there already stays as it is.
const INSERT: &str = "\
    INSERT INTO responses (account, id, stored_at, previous, episode, input, output, told, bytes, key_id) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (account, id) DO NOTHING";

const ACCOUNT_BYTES: &str = "SELECT bytes FROM response_bytes WHERE account = $1";

/// Of the table `r`.
const COLUMNS: &str =
    "r.account, r.id, r.stored_at, r.previous, r.episode, r.input, r.output, r.told, r.key_id";

const CHAIN: &str = "\
    WITH RECURSIVE chain (id, previous, depth, total) AS ( \
        SELECT id, previous, 1, bytes FROM responses WHERE account = $1 AND id = $2 AND stored_at >= $3 \
        UNION ALL \
        SELECT link.id, link.previous, chain.depth + 1, chain.total + link.bytes \
        FROM chain JOIN responses link ON link.account = $1 AND link.id = chain.previous \
        WHERE link.stored_at >= $3 AND chain.total <= $4)";

const DELETE: &str = "DELETE FROM responses WHERE account = $1 AND id = $2";

/// Responses in a database.
#[derive(Debug)]
pub(super) struct SqlResponseStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlResponseStore {
    pub(super) fn new(database: Arc<dyn SqlDatabase>) -> SqlResponseStore {
        SqlResponseStore { database }
    }

    async fn insert(&self, response: &StoredResponse, account_max: u64) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        transaction.execute(insertion(response)).await?;
        make_room(response, account_max, &mut *transaction).await?;
        transaction.commit().await
    }

    async fn read(
        &self,
        account: &AccountId,
        id: RequestId,
        since: Timestamp,
    ) -> Result<Option<StoredResponse>, sqlx::Error> {
        let sql = sql(
            "SELECT {} FROM responses r WHERE r.account = $1 AND r.id = $2 AND r.stored_at >= $3",
            &[&COLUMNS],
        );
        let find = Statement::new(sql).bind(account).bind(id).bind(since);
        let row = self.database.reader().await?.fetch_optional(find).await?;
        row.as_ref().map(response).transpose()
    }

    async fn read_chain(
        &self,
        account: &AccountId,
        id: RequestId,
        since: Timestamp,
        bytes_max: u64,
    ) -> Result<Option<ResponseChain>, sqlx::Error> {
        let sql = sql(
            "{} SELECT {} FROM chain JOIN responses r ON r.account = $1 AND r.id = chain.id \
             ORDER BY chain.depth",
            &[&CHAIN, &COLUMNS],
        );
        let find = Statement::new(sql).bind(account).bind(id).bind(since).bind(bytes_max);
        let rows = self.database.reader().await?.fetch_all(find).await?;
        let responses = rows.iter().map(response).collect::<Result<Vec<_>, _>>()?;
        Ok((!responses.is_empty()).then_some(ResponseChain { responses }))
    }

    async fn delete_before(&self, before: Timestamp, most: u32) -> Result<u64, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let sql = sql(
            "DELETE FROM responses WHERE (account, id) IN (SELECT account, id FROM responses \
                WHERE stored_at < $1 ORDER BY stored_at, id LIMIT $2{})",
            &[&writer.dialect().for_update_skip_locked()],
        );
        writer.execute(Statement::new(sql).bind(before).bind(most)).await
    }

    async fn delete_some(&self, account: &AccountId, key: Option<KeyId>) -> Result<u64, sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let statement = delete_some_of("responses", account, key, writer.dialect().for_update());
        writer.execute(statement).await
    }

    fn answer<'a, T: 'a>(
        &'a self,
        done: impl Future<Output = Result<T, sqlx::Error>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, ResponsesError>> {
        done.map_err(|source| ResponsesError::caused(self.database.failure(), source)).boxed()
    }
}

impl ResponseStore for SqlResponseStore {
    fn keep<'a>(
        &'a self,
        response: &'a StoredResponse,
        account_max: u64,
    ) -> BoxFuture<'a, Result<(), ResponsesError>> {
        self.answer(self.insert(response, account_max))
    }

    fn find<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>> {
        self.answer(self.read(account, id, since))
    }

    fn chain<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
        since: Timestamp,
        bytes_max: u64,
    ) -> BoxFuture<'a, Result<Option<ResponseChain>, ResponsesError>> {
        self.answer(self.read_chain(account, id, since, bytes_max))
    }

    fn delete<'a>(
        &'a self,
        account: &'a AccountId,
        id: RequestId,
    ) -> BoxFuture<'a, Result<bool, ResponsesError>> {
        let delete = Statement::new(DELETE).bind(account).bind(id);
        self.answer(async move { Ok(self.database.writer().await?.execute(delete).await? > 0) })
    }

    fn delete_of<'a>(
        &'a self,
        account: &'a AccountId,
        key: Option<KeyId>,
    ) -> BoxFuture<'a, Result<u64, ResponsesError>> {
        self.answer(self.delete_some(account, key))
    }

    fn purge(&self, before: Timestamp, most: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        self.answer(self.delete_before(before, most))
    }
}

/// Deletes some rows of a table that has accounts, ids and keys: those of that account, of that key or of any. What another
/// transaction holds is waited for.
pub(super) fn delete_some_of(
    table: &'static str,
    account: &AccountId,
    key: Option<KeyId>,
    for_update: &'static str,
) -> Statement {
    let of_key = if key.is_some() { " AND key_id = $2" } else { "" };
    let sql = sql(
        "DELETE FROM {} WHERE (account, id) IN (SELECT account, id FROM {} WHERE account = $1{} \
            ORDER BY id LIMIT 64{})",
        &[&table, &table, &of_key, &for_update],
    );
    let statement = Statement::new(sql).bind(account);
    if key.is_some() { statement.bind(key) } else { statement }
}

/// Deletes the oldest responses of the new one's account until the account keeps to its limit.
async fn make_room(
    new: &StoredResponse,
    account_max: u64,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let most = to_column(account_max);
    loop {
        let find = Statement::new(ACCOUNT_BYTES).bind(&new.account);
        let bytes: i64 = connection.fetch_one(find).await?.get("bytes")?;
        if bytes <= most || !delete_oldest(new, bytes - most, connection).await? {
            return Ok(());
        }
    }
}

/// Deletes old responses of the account until so many bytes are free, some of them at a time; false if there are none.
async fn delete_oldest(
    new: &StoredResponse,
    bytes: i64,
    connection: &mut dyn SqlConnection,
) -> Result<bool, sqlx::Error> {
    // Responses that another transaction deletes at this moment are left to it.
    let sql = sql(
        "SELECT id, bytes FROM responses WHERE account = $1 AND id <> $2 ORDER BY stored_at, id LIMIT 64{}",
        &[&connection.dialect().for_update_skip_locked()],
    );
    let rows = connection.fetch_all(Statement::new(sql).bind(&new.account).bind(new.id)).await?;
    let mut free = 0;
    for row in &rows {
        if free >= bytes {
            break;
        }
        free += row.get::<i64>("bytes")?;
        let delete = Statement::new(DELETE).bind(&new.account).bind(row.request("id")?);
        connection.execute(delete).await?;
    }
    Ok(!rows.is_empty())
}

fn insertion(response: &StoredResponse) -> Statement {
    let StoredResponse { id, account, key, at, previous, episode, input, output, body } = response;
    let statement = Statement::new(INSERT).bind(account).bind(*id).bind(*at).bind(*previous);
    let statement = statement.bind(episode.as_ref()).bind(&**input).bind(&**output).bind(&**body);
    statement.bind(response.size()).bind(*key)
}

fn response(row: &SqlRow) -> Result<StoredResponse, sqlx::Error> {
    let text = |column| row.get::<String>(column).map(String::into_boxed_str);
    let previous = row.get::<Option<&[u8]>>("previous")?;
    Ok(StoredResponse {
        id: row.request("id")?,
        account: row.account("account")?,
        key: row.parsed_or_null("key_id")?,
        at: row.time("stored_at")?,
        previous: previous.map(|_| row.request("previous")).transpose()?,
        episode: row.parsed_or_null("episode")?,
        input: text("input")?,
        output: text("output")?,
        body: text("told")?,
    })
}
