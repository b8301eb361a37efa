//! Resolutions with all that led to them, in PostgreSQL.

use crate::storage::books::record_statements;

record_statements!(sqlx::Postgres, sqlx::PgConnection, sqlx::postgres::PgRow, "JOIN");
