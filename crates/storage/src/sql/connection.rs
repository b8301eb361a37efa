//! Running statements on a connection to either database.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;

use super::dialect::SqlDialect;
use super::row::SqlRow;
use super::statement::Statement;

/// A connection to either database.
pub(crate) trait SqlConnection: Send {
    fn dialect(&self) -> SqlDialect;

    /// Runs a statement; returns how many rows it changed.
    fn execute(&mut self, statement: Statement) -> BoxFuture<'_, Result<u64, sqlx::Error>>;

    /// All rows of a statement. It runs to its end: a change that returns rows is committed only there in `SQLite`, and an
    /// error of that would be lost to a reader that leaves after the first row.
    fn fetch_all(&mut self, statement: Statement) -> BoxFuture<'_, Result<Vec<SqlRow>, sqlx::Error>>;

    /// The first row of a statement that reads.
    fn fetch_optional(&mut self, statement: Statement) -> BoxFuture<'_, Result<Option<SqlRow>, sqlx::Error>>;
}

impl dyn SqlConnection + '_ {
    /// The row of a statement that always has one.
    pub(crate) async fn fetch_one(&mut self, statement: Statement) -> Result<SqlRow, sqlx::Error> {
        self.fetch_optional(statement).await?.ok_or(sqlx::Error::RowNotFound)
    }

    /// The row that a change returns, if it changed one.
    pub(crate) async fn fetch_changed(
        &mut self,
        statement: Statement,
    ) -> Result<Option<SqlRow>, sqlx::Error> {
        Ok(self.fetch_all(statement).await?.pop())
    }
}

impl SqlConnection for SqliteConnection {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    fn execute(&mut self, statement: Statement) -> BoxFuture<'_, Result<u64, sqlx::Error>> {
        async move { Ok(statement.into_query::<sqlx::Sqlite>()?.execute(self).await?.rows_affected()) }
            .boxed()
    }

    fn fetch_all(&mut self, statement: Statement) -> BoxFuture<'_, Result<Vec<SqlRow>, sqlx::Error>> {
        async move {
            let rows = statement.into_query::<sqlx::Sqlite>()?.fetch_all(self).await?;
            Ok(rows.into_iter().map(SqlRow::Sqlite).collect())
        }
        .boxed()
    }

    fn fetch_optional(&mut self, statement: Statement) -> BoxFuture<'_, Result<Option<SqlRow>, sqlx::Error>> {
        async move {
            let row = statement.into_query::<sqlx::Sqlite>()?.fetch_optional(self).await?;
            Ok(row.map(SqlRow::Sqlite))
        }
        .boxed()
    }
}
