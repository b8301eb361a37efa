//! Resolutions with all that led to them, in `SQLite`.

use crate::storage::books::record_statements;

record_statements!(sqlx::Sqlite, sqlx::SqliteConnection, sqlx::sqlite::SqliteRow, "CROSS JOIN");
