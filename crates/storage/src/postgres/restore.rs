//! Putting a backup into an empty database.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{PostgresSettings, StorageError, VerifyReport};

use super::archive::PostgresArchive;
use super::database::Postgres;
use super::import::import;
use super::tools::PostgresTool;

/// Whether there is anything in our schema.
const IS_OCCUPIED: &str = "\
    SELECT EXISTS (SELECT 1 FROM pg_class c WHERE relnamespace = to_regnamespace(current_schema()) \
                      AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') \
                      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')) \
        OR EXISTS (SELECT 1 FROM pg_proc p WHERE p.pronamespace = to_regnamespace(current_schema()) \
                      AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e'))";

/// Everything that was put into our schema, which was empty before; what belongs to an extension was there.
const EMPTY: &str = "\
    DO $$ DECLARE one TEXT; BEGIN \
        FOR one IN SELECT oid::regclass::text FROM pg_class c \
                   WHERE relnamespace = to_regnamespace(current_schema()) AND relkind IN ('r', 'p') \
                     AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e') LOOP \
            EXECUTE 'DROP TABLE IF EXISTS ' || one || ' CASCADE'; \
        END LOOP; \
        FOR one IN SELECT p.oid::regprocedure::text FROM pg_proc p \
                   WHERE p.pronamespace = to_regnamespace(current_schema()) \
                     AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') LOOP \
            EXECUTE 'DROP ROUTINE IF EXISTS ' || one || ' CASCADE'; \
        END LOOP; \
    END $$";

/// Puts a backup into a database that is empty, and verifies it. The backup is one of PostgreSQL, or a file of `SQLite`. Returns where
/// the database is, and what verifying it came to.
///
/// # Errors
/// When the database is not empty, `pg_restore` cannot be had, or the backup is wrong. The database is empty then as before.
pub(crate) async fn restore(
    backup: &Path,
    settings: &PostgresSettings,
) -> Result<(String, VerifyReport), StorageError> {
    if is_sqlite(backup) {
        return import(backup, settings).await;
    }
    let mut target = PostgresArchive::open_any(settings).await?;
    if is_occupied(&mut target).await? {
        return Err(StorageError::NotEmpty(target.address().place.clone()));
    }
    unpack(backup, &mut target).await?;
    let checked = checked(backup, settings, &mut target).await;
    if checked.is_err() {
        // Why the backup is refused matters more than why something of it stays.
        let _ = sqlx::raw_sql(EMPTY).execute(target.connection()).await;
    }
    Ok((target.address().place.clone(), checked?))
}

/// Whether there is anything in our schema but what belongs to an extension.
pub(super) async fn is_occupied(target: &mut PostgresArchive) -> Result<bool, StorageError> {
    let is_occupied = sqlx::query_scalar(IS_OCCUPIED).fetch_one(target.connection()).await;
    is_occupied.map_err(|source| target.read_error(source))
}

/// Whether it begins as a `SQLite` file does (<https://www.sqlite.org/fileformat.html>, section 1.3).
fn is_sqlite(backup: &Path) -> bool {
    let mut begin = [0; 16];
    let read = File::open(backup).and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == *b"SQLite format 3\0"
}

/// What `pg_dump` wrote, by `pg_restore`.
async fn unpack(backup: &Path, target: &mut PostgresArchive) -> Result<(), StorageError> {
    let (schema, version) = target.home().await?;
    PostgresTool::Restore.check(target.address(), version).await?;
    let arguments = vec![
        // The environment says which database it is.
        "--dbname=".into(),
        "--single-transaction".into(),
        "--exit-on-error".into(),
        "--no-owner".into(),
        "--no-privileges".into(),
        format!("--schema={schema}").into(),
        backup.into(),
    ];
    PostgresTool::Restore.run(target.address(), arguments, None).await
}

/// Brings the tables to this version, and verifies that the books are right.
async fn checked(
    backup: &Path,
    settings: &PostgresSettings,
    target: &mut PostgresArchive,
) -> Result<VerifyReport, StorageError> {
    let versions = target.versions().await.map_err(|source| target.read_error(source))?;
    if versions.is_empty() {
        return Err(StorageError::Foreign(backup.to_owned()));
    }
    drop(Postgres::open(settings).await?);
    let report = PostgresArchive::open(settings).await?.verify().await?;
    match report.differences.first() {
        None => Ok(report),
        Some(first) => {
            let (path, first, found) = (backup.to_owned(), first.clone(), report.found);
            Err(StorageError::Wrong { path, first, found })
        }
    }
}
