//! A statement and its values.

use sqlx::database::HasStatementCache;
use sqlx::query::Query;
use sqlx::{Arguments, Database, Encode, IntoArguments, Type};

use super::dialect::SqlDialect;
use super::text::SqlText;
use super::value::{SqlValue, ToSqlValue};

/// A statement for either database. Its parameters are written `$1`, `$2` and so on.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    sql: SqlText,
    values: Vec<SqlValue>,
    /// A connection keeps it prepared for the next time.
    is_kept: bool,
}

/// The most values of a list of rows whose statement is kept: a settlement's rows have fifty. With what [`STATEMENTS_MAX`] says a
/// connection's statements take a few megabytes at most.
const KEPT_VALUES_MAX: usize = 512;
/// How many statements a connection keeps prepared.
pub(crate) const STATEMENTS_MAX: usize = 200;

impl Statement {
    /// A statement without values yet.
    pub(crate) fn new(sql: impl Into<SqlText>) -> Statement {
        Statement { sql: sql.into(), values: Vec::new(), is_kept: true }
    }

    /// The value of the next parameter.
    pub(crate) fn bind(mut self, value: impl ToSqlValue) -> Statement {
        self.values.push(value.to_sql());
        self
    }

    /// A statement with a list of rows in the middle, each in parentheses and of so many values.
    ///
    /// `SQLite` takes 32,766 values in one statement, PostgreSQL 65,535. Short batches come in few lengths, and their statements
    /// are kept: to prepare one takes as long as to run it. Long ones differ in length, and there is little to gain from that.
    pub(crate) fn with_rows(
        dialect: SqlDialect,
        before: impl Into<SqlText>,
        columns: usize,
        values: Vec<SqlValue>,
        after: impl Into<SqlText>,
    ) -> Statement {
        let (mut sql, after) = (before.into(), after.into());
        sql.reserve(7 * values.len() + after.len());
        for place in 0..values.len() {
            let is_first = place % columns == 0;
            // `SQLite` looks up each name among all names before it, so there the parameters of long lists have none.
            let opening = match dialect {
                SqlDialect::Sqlite if place == 0 => "(?",
                SqlDialect::Sqlite if is_first => "), (?",
                SqlDialect::Sqlite => ", ?",
                SqlDialect::Postgres if place == 0 => "($",
                SqlDialect::Postgres if is_first => "), ($",
                SqlDialect::Postgres => ", $",
            };
            sql.push(&opening);
            if dialect == SqlDialect::Postgres {
                sql.push(&(place + 1));
            }
        }
        sql.push(&")");
        sql.push(&after);
        let is_kept = values.len() <= KEPT_VALUES_MAX;
        Statement { sql, values, is_kept }
    }

    /// Several statements as one, each of which ends before the next begins. For `SQLite` alone, and of parameters without names:
    /// those of one statement follow those of the one before it.
    pub(crate) fn together(statements: Vec<Statement>) -> Statement {
        let mut all = Statement { sql: SqlText::default(), values: Vec::new(), is_kept: true };
        all.sql.reserve(statements.iter().map(|statement| statement.sql.len() + 2).sum());
        all.values.reserve_exact(statements.iter().map(|statement| statement.values.len()).sum());
        for (place, mut statement) in statements.into_iter().enumerate() {
            if place > 0 {
                all.sql.push(&"; ");
            }
            all.sql.push(&statement.sql);
            all.values.append(&mut statement.values);
            all.is_kept &= statement.is_kept;
        }
        all.is_kept &= all.values.len() <= KEPT_VALUES_MAX;
        all
    }

    /// The same for one of the databases.
    pub(super) fn into_query<D>(self) -> Result<Query<'static, D, D::Arguments>, sqlx::Error>
    where
        D: Database<Arguments: IntoArguments<D>> + HasStatementCache,
        for<'q> Option<i64>: Encode<'q, D> + Type<D>,
        for<'q> Option<f64>: Encode<'q, D> + Type<D>,
        for<'q> Option<bool>: Encode<'q, D> + Type<D>,
        for<'q> Option<String>: Encode<'q, D> + Type<D>,
        for<'q> Option<Vec<u8>>: Encode<'q, D> + Type<D>,
    {
        // Not with `Query::bind`: it moves the whole query for each of the thousands of values of a batch.
        let mut arguments = D::Arguments::default();
        arguments.reserve(self.values.len(), 0);
        let added = self.values.into_iter().try_for_each(|value| match value {
            SqlValue::Int(value) => arguments.add(value),
            SqlValue::Real(value) => arguments.add(value),
            SqlValue::Bool(value) => arguments.add(value),
            SqlValue::Text(value) => arguments.add(value),
            SqlValue::Bytes(value) => arguments.add(value),
        });
        added.map_err(sqlx::Error::Encode)?;
        Ok(sqlx::query_with(self.sql.into_driver::<D>(), arguments).persistent(self.is_kept))
    }
}
