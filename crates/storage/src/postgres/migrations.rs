//! The tables of a database in PostgreSQL, and bringing them up to date.

use sqlx::PgConnection;
use sqlx::migrate::MigrateError;

use crate::StorageError;
use crate::migrations::{MigrationFile, migrator};

/// The files of `migrations/postgres`, in their order. A file that was released never changes.
pub(crate) const MIGRATIONS: &[MigrationFile] = &[
    (1, "ledger", include_str!("../../../../migrations/postgres/0001_ledger.sql")),
    (2, "keys", include_str!("../../../../migrations/postgres/0002_keys.sql")),
    (3, "idempotency", include_str!("../../../../migrations/postgres/0003_idempotency.sql")),
    (4, "seals", include_str!("../../../../migrations/postgres/0004_seals.sql")),
    (5, "bank_clock", include_str!("../../../../migrations/postgres/0005_bank_clock.sql")),
    (6, "priority", include_str!("../../../../migrations/postgres/0006_priority.sql")),
    (7, "history", include_str!("../../../../migrations/postgres/0007_history.sql")),
    (8, "episodes", include_str!("../../../../migrations/postgres/0008_episodes.sql")),
    (9, "runs", include_str!("../../../../migrations/postgres/0009_runs.sql")),
    (10, "responses", include_str!("../../../../migrations/postgres/0010_responses.sql")),
    (11, "readings", include_str!("../../../../migrations/postgres/0011_readings.sql")),
    (12, "route_turns", include_str!("../../../../migrations/postgres/0012_route_turns.sql")),
    (13, "conversations", include_str!("../../../../migrations/postgres/0013_conversations.sql")),
    (14, "beside_turns", include_str!("../../../../migrations/postgres/0014_beside_turns.sql")),
    (15, "parts", include_str!("../../../../migrations/postgres/0015_parts.sql")),
    (16, "response_bytes", include_str!("../../../../migrations/postgres/0016_response_bytes.sql")),
    (17, "episode_raises", include_str!("../../../../migrations/postgres/0017_episode_raises.sql")),
    (18, "rates", include_str!("../../../../migrations/postgres/0018_rates.sql")),
    (19, "additions", include_str!("../../../../migrations/postgres/0019_additions.sql")),
    (20, "admin_changes", include_str!("../../../../migrations/postgres/0020_admin_changes.sql")),
    (21, "owning_keys", include_str!("../../../../migrations/postgres/0021_owning_keys.sql")),
    (22, "owned_answers", include_str!("../../../../migrations/postgres/0022_owned_answers.sql")),
    (23, "packed_records", include_str!("../../../../migrations/postgres/0023_packed_records.sql")),
    (24, "response_order", include_str!("../../../../migrations/postgres/0024_response_order.sql")),
];

/// Runs the files that were not run yet. Replicas that start at once take turns: it holds a lock of the database meanwhile.
pub(super) async fn migrate(connection: &mut PgConnection, place: &str) -> Result<(), StorageError> {
    match migrator(MIGRATIONS).run_direct(None, connection, false).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(version)) => {
            Err(StorageError::Newer { path: place.into(), version })
        }
        Err(source) => Err(StorageError::Migrate { path: place.into(), source }),
    }
}
