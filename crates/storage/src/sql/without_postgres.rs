//! In a build without PostgreSQL nothing more is asked of a column.

/// What a column of PostgreSQL can be read as.
pub(crate) trait PostgresValue<'r> {}

impl<T> PostgresValue<'_> for T {}

/// A column's name or its place in PostgreSQL.
pub(crate) trait PostgresColumn {}

impl<T> PostgresColumn for T {}
