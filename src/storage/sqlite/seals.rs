//! Making seals in `SQLite`, and reading them back.

use crate::ledger::SealBuilder;
use crate::storage::books::seal_statements;

use super::Sqlite;
use super::records::records;

seal_statements!(sqlx::Sqlite, sqlx::SqliteConnection, sqlx::sqlite::SqliteRow);

/// Seals the oldest resolutions that are not sealed yet. What they come to is read and summed up beside the writer;
/// it is held for one short transaction, in which a seal that another made meanwhile is a conflict.
pub(super) async fn seal(database: &Sqlite, now: Timestamp) -> Result<Option<Seal>, sqlx::Error> {
    let (previous, newest) = {
        let mut reader = database.slow_reader().await;
        (last(&mut reader).await?, newest(&mut reader).await?)
    };
    let mut sealing = SealBuilder::after(previous.as_ref());
    while sealing.remaining() > 0 {
        // Others may read between the parts; what is sealed here does not change any more.
        let part =
            records(&mut *database.slow_reader().await, sealing.through(), newest, sealing.remaining())
                .await?;
        if part.is_empty() {
            break;
        }
        part.iter().for_each(|record| sealing.add(record));
    }
    let Some((seal, rollups)) = sealing.finish(now) else { return Ok(None) };
    let mut writer = database.writer().await?;
    let mut transaction = database.begin(&mut writer).await?;
    write(&mut transaction, &seal, rollups).await?;
    transaction.commit().await?;
    Ok(Some(seal))
}
