//! PostgreSQL behind the traits of this layer.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use sqlx::postgres::PgRow;
use sqlx::{ColumnIndex, Decode, PgConnection, Postgres, Type};

use super::connection::SqlConnection;
use super::dialect::SqlDialect;
use super::row::SqlRow;
use super::statement::Statement;

/// What a column of PostgreSQL can be read as.
pub(crate) trait PostgresValue<'r>: Decode<'r, Postgres> + Type<Postgres> {}

impl<'r, T: Decode<'r, Postgres> + Type<Postgres>> PostgresValue<'r> for T {}

/// A column's name or its place in PostgreSQL.
pub(crate) trait PostgresColumn: ColumnIndex<PgRow> {}

impl<T: ColumnIndex<PgRow>> PostgresColumn for T {}

impl SqlConnection for PgConnection {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Postgres
    }

    fn execute(&mut self, statement: Statement) -> BoxFuture<'_, Result<u64, sqlx::Error>> {
        async move { Ok(statement.into_query::<Postgres>()?.execute(self).await?.rows_affected()) }.boxed()
    }

    fn fetch_all(&mut self, statement: Statement) -> BoxFuture<'_, Result<Vec<SqlRow>, sqlx::Error>> {
        async move {
            let rows = statement.into_query::<Postgres>()?.fetch_all(self).await?;
            Ok(rows.into_iter().map(SqlRow::Postgres).collect())
        }
        .boxed()
    }

    fn fetch_optional(&mut self, statement: Statement) -> BoxFuture<'_, Result<Option<SqlRow>, sqlx::Error>> {
        async move {
            let row = statement.into_query::<Postgres>()?.fetch_optional(self).await?;
            Ok(row.map(SqlRow::Postgres))
        }
        .boxed()
    }
}
