//! Making seals in `SQLite`.

use crate::journal::{last_seal, newest_resolution, read_records, write_seal};
use crate::sql::SqlDatabase;
use stint_ledger::{Seal, SealBuilder};
use stint_types::units::Timestamp;

use super::database::Sqlite;

/// Seals the oldest resolutions that are not sealed yet. They are read and summed up beside the writer. The writer is held
/// for one short transaction, in which a seal that another made meanwhile is a conflict.
pub(super) async fn seal(database: &Sqlite, now: Timestamp) -> Result<Option<Seal>, sqlx::Error> {
    let (previous, newest) = {
        let mut reader = database.slow_reader().await?;
        (last_seal(&mut *reader).await?, newest_resolution(&mut *reader).await?)
    };
    let mut sealing = SealBuilder::after(previous.as_ref());
    while sealing.remaining() > 0 {
        // Others may read between the parts; what is sealed here does not change any more.
        let (after, most) = (sealing.through(), sealing.remaining());
        let part = read_records(after, newest, most, &mut *database.slow_reader().await?).await?;
        if part.is_empty() {
            break;
        }
        part.iter().for_each(|record| sealing.add(record));
    }
    let Some((seal, rollups)) = sealing.finish(now) else { return Ok(None) };
    let mut writer = database.writer().await?;
    let mut transaction = writer.begin().await?;
    write_seal(&seal, rollups, &mut *transaction).await?;
    transaction.commit().await?;
    Ok(Some(seal))
}
