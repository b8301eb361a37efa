//! Databases behind the traits of the modules below; the only SQL.

mod error;
mod file;
mod rows;
mod settings;
mod sqlite;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use error::StorageError;
pub use settings::{Settings, Synchronous};
pub use sqlite::SqliteJournal;

use crate::ledger::{Journal, MemoryJournal};

/// Opens the ledger's journal; `:memory:` is one that the process takes with it when it ends.
pub async fn open(settings: &Settings) -> Result<Arc<dyn Journal>, StorageError> {
    if settings.path.as_os_str() == ":memory:" {
        return Ok(Arc::new(MemoryJournal::default()));
    }
    Ok(Arc::new(SqliteJournal::open(settings).await?))
}
