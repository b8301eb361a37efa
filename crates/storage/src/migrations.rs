//! Bringing the tables of a database up to date.

use sqlx::SqlSafeStr;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// A file of the folder `migrations`: its number, its name and its text. A file that was released never changes.
pub(super) type MigrationFile = (i64, &'static str, &'static str);

/// What runs these files, each once.
pub(super) fn migrator(files: &[MigrationFile]) -> Migrator {
    let migrations = files.iter().map(|&(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.collect())
}
