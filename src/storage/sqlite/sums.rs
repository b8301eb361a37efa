//! Sums of what was spent and used, in `SQLite`.

use sqlx::sqlite::{SqliteArguments, SqliteRow};

use crate::storage::books::sum_statements;

sum_statements!(sqlx::Sqlite, SqliteArguments, sqlx::SqliteConnection, SqliteRow, "BEGIN");
