//! Rows, and how their columns are read.

use std::error::Error;
use std::str::FromStr;

#[cfg(feature = "postgres")]
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{ColumnIndex, Decode, Row, Sqlite, Type};

use stint_types::units::{AccountId, Count, Money, RequestId, Timestamp, Tokens};

use super::postgres::{PostgresColumn, PostgresValue};
use super::value::from_column;

/// A row of either database.
pub(crate) enum SqlRow {
    Sqlite(SqliteRow),
    #[cfg(feature = "postgres")]
    Postgres(PgRow),
}

/// What a column of either database can be read as.
pub(crate) trait FromColumn<'r>: Decode<'r, Sqlite> + Type<Sqlite> + PostgresValue<'r> {}

impl<'r, T> FromColumn<'r> for T where T: Decode<'r, Sqlite> + Type<Sqlite> + PostgresValue<'r> {}

/// A column's name or its place.
pub(crate) trait ColumnKey: ColumnIndex<SqliteRow> + PostgresColumn {}

impl<T: ColumnIndex<SqliteRow> + PostgresColumn> ColumnKey for T {}

impl SqlRow {
    /// A column's value.
    pub(crate) fn get<'r, T: FromColumn<'r>>(&'r self, column: impl ColumnKey) -> Result<T, sqlx::Error> {
        match self {
            SqlRow::Sqlite(row) => row.try_get(column),
            #[cfg(feature = "postgres")]
            SqlRow::Postgres(row) => row.try_get(column),
        }
    }

    /// A number of a column that holds nothing below zero.
    pub(crate) fn number(&self, column: impl ColumnKey) -> Result<u64, sqlx::Error> {
        self.get(column).map(from_column)
    }

    pub(crate) fn count(&self, column: impl ColumnKey) -> Result<Count, sqlx::Error> {
        self.number(column).map(Count)
    }

    pub(crate) fn money(&self, column: impl ColumnKey) -> Result<Money, sqlx::Error> {
        self.number(column).map(Money)
    }

    pub(crate) fn tokens(&self, column: impl ColumnKey) -> Result<Tokens, sqlx::Error> {
        self.number(column).map(Tokens)
    }

    pub(crate) fn time(&self, column: impl ColumnKey) -> Result<Timestamp, sqlx::Error> {
        self.get(column).map(Timestamp)
    }

    pub(crate) fn account(&self, column: impl ColumnKey) -> Result<AccountId, sqlx::Error> {
        self.get(column).map(|name: &str| AccountId::new(name))
    }

    pub(crate) fn request(&self, column: impl ColumnKey) -> Result<RequestId, sqlx::Error> {
        self.bytes(column).map(RequestId::from_bytes)
    }

    /// A column of exactly `N` bytes.
    pub(crate) fn bytes<const N: usize>(&self, column: impl ColumnKey) -> Result<[u8; N], sqlx::Error> {
        self.get::<&[u8]>(column)?.try_into().map_err(decode_error)
    }

    /// A text that stands for something else, such as a name.
    pub(crate) fn parsed<T>(&self, column: impl ColumnKey) -> Result<T, sqlx::Error>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        self.get::<&str>(column)?.parse().map_err(decode_error)
    }

    /// The same of a column that may be NULL.
    pub(crate) fn parsed_or_null<T>(&self, column: impl ColumnKey) -> Result<Option<T>, sqlx::Error>
    where
        T: FromStr<Err: Error + Send + Sync + 'static>,
    {
        self.get::<Option<&str>>(column)?.map(str::parse).transpose().map_err(decode_error)
    }
}

/// The error for a column whose value cannot be what it is read as.
pub(crate) fn decode_error(error: impl Into<Box<dyn Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(error.into())
}

/// The same, with the column's name.
pub(crate) fn column_error(column: &str, error: impl Into<Box<dyn Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: column.to_owned(), source: error.into() }
}
