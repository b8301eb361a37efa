//! Sums of what was spent and used, in PostgreSQL.

use sqlx::postgres::{PgArguments, PgRow};

use crate::storage::books::sum_statements;

use super::BEGIN_SNAPSHOT;

sum_statements!(sqlx::Postgres, PgArguments, sqlx::PgConnection, PgRow, BEGIN_SNAPSHOT);
