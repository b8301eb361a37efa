//! The store of responses that callers may continue from: the table `responses` of either database.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};

use stint_sessions::agent::stored::{ResponseChain, ResponseStore, ResponsesError, StoredResponse};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId, Timestamp};

use super::account_table::AccountTable;
use super::sql::{SqlDatabase, SqlRow, Statement, sql};

/// A response that is there already stays as it is.
const INSERT: &str = "\
    INSERT INTO responses (account, id, stored_at, previous, episode, input, output, told, bytes, key_id) \
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (account, id) DO NOTHING";

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

const RESPONSES: AccountTable = AccountTable { name: "responses", age: "stored_at", sums: "response_bytes" };

/// Responses in a database.
#[derive(Debug)]
pub(super) struct SqlResponseStore {
    database: Arc<dyn SqlDatabase>,
}

impl SqlResponseStore {
    pub(super) fn new(database: Arc<dyn SqlDatabase>) -> SqlResponseStore {
        SqlResponseStore { database }
    }

    /// In one transaction, an account after the other.
    async fn insert(&self, responses: &[StoredResponse], account_max: u64) -> Result<(), sqlx::Error> {
        let mut writer = self.database.writer().await?;
        let mut transaction = writer.begin().await?;
        for of_account in responses.chunk_by(|one, next| one.account == next.account) {
            for response in of_account {
                transaction.execute(insertion(response)).await?;
            }
            if let Some(last) = of_account.last() {
                RESPONSES
                    .make_room(&last.account, last.id.as_bytes(), account_max, &mut *transaction)
                    .await?;
            }
        }
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
        let before = self.database.by_own_clock(before).await?;
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
        let dialect = writer.dialect();
        writer.execute(RESPONSES.delete_some_of(account, key, dialect)).await
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
        responses: &'a [StoredResponse],
        account_max: u64,
    ) -> BoxFuture<'a, Result<(), ResponsesError>> {
        self.answer(self.insert(responses, account_max))
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
        let delete = RESPONSES.delete(account, id.as_bytes());
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
