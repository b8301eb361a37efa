//! A small layer over the two databases: statements, rows, connections and transactions.
//!
//! The stores write their statements once, against this layer. It is thin on purpose: where the databases' SQL differs, a
//! store asks for the [`SqlDialect`] and says so itself.

mod connection;
mod database;
mod dialect;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "without_postgres.rs"]
mod postgres;
mod row;
mod session;
mod statement;
mod text;
mod value;

pub(super) use connection::SqlConnection;
pub(super) use database::SqlDatabase;
pub(super) use dialect::SqlDialect;
pub(super) use row::{FromColumn, SqlRow, column_error, decode_error};
#[cfg(feature = "postgres")]
pub(super) use session::BEGIN_SNAPSHOT;
pub(super) use session::Session;
pub(super) use statement::{STATEMENTS_MAX, Statement};
pub(super) use text::{SqlText, sql};
pub(super) use value::{SqlValue, ToSqlValue, from_column, to_column};
