//! The tables of a `SQLite` file, and bringing them up to date.

use std::path::Path;

use sqlx::SqliteConnection;
use sqlx::migrate::MigrateError;

use crate::StorageError;
use crate::migrations::{MigrationFile, migrator};

/// The files of `migrations/sqlite`, in their order. A file that was released never changes.
pub(crate) const MIGRATIONS: &[MigrationFile] = &[
    (1, "ledger", include_str!("../../../../migrations/sqlite/0001_ledger.sql")),
    (2, "accounts", include_str!("../../../../migrations/sqlite/0002_accounts.sql")),
    (3, "keys", include_str!("../../../../migrations/sqlite/0003_keys.sql")),
    (4, "seals", include_str!("../../../../migrations/sqlite/0004_seals.sql")),
    (5, "idempotency", include_str!("../../../../migrations/sqlite/0005_idempotency.sql")),
    (6, "priority", include_str!("../../../../migrations/sqlite/0006_priority.sql")),
    (7, "history", include_str!("../../../../migrations/sqlite/0007_history.sql")),
    (8, "episodes", include_str!("../../../../migrations/sqlite/0008_episodes.sql")),
    (9, "runs", include_str!("../../../../migrations/sqlite/0009_runs.sql")),
    (10, "responses", include_str!("../../../../migrations/sqlite/0010_responses.sql")),
    (11, "readings", include_str!("../../../../migrations/sqlite/0011_readings.sql")),
    (12, "route_turns", include_str!("../../../../migrations/sqlite/0012_route_turns.sql")),
    (13, "conversations", include_str!("../../../../migrations/sqlite/0013_conversations.sql")),
    (14, "beside_turns", include_str!("../../../../migrations/sqlite/0014_beside_turns.sql")),
    (15, "parts", include_str!("../../../../migrations/sqlite/0015_parts.sql")),
    (16, "episode_raises", include_str!("../../../../migrations/sqlite/0016_episode_raises.sql")),
    (17, "rates", include_str!("../../../../migrations/sqlite/0017_rates.sql")),
    (18, "additions", include_str!("../../../../migrations/sqlite/0018_additions.sql")),
    (19, "admin_changes", include_str!("../../../../migrations/sqlite/0019_admin_changes.sql")),
    (20, "owning_keys", include_str!("../../../../migrations/sqlite/0020_owning_keys.sql")),
    (21, "owned_answers", include_str!("../../../../migrations/sqlite/0021_owned_answers.sql")),
    (22, "packed_records", include_str!("../../../../migrations/sqlite/0022_packed_records.sql")),
];

/// Runs the files that were not run yet.
pub(super) async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), StorageError> {
    let path = path.to_owned();
    // Its `run` would make this future impossible to spawn ("not general enough").
    match migrator(MIGRATIONS).run_direct(None, connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => Err(StorageError::Newer { path, version }),
        Err(MigrateError::Execute(source)) => Err(StorageError::Open { path, source }),
        Err(source) => Err(StorageError::Migrate { path, source }),
    }
}
