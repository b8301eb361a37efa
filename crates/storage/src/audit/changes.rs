//! The log of what admins changed, against its own chain of hashes.

use crate::keys::audit_rows::{read_after, read_head};
use crate::sql::SqlConnection;
use stint_types::tenant::AuditHash;

use super::verify::VerifyReport;

/// How many entries are read at once.
const BATCH: u32 = 1000;

/// Walks the whole log. What follows a difference is not looked at: its chain is another.
pub(super) async fn verify_changes(
    report: &mut VerifyReport,
    connection: &mut dyn SqlConnection,
) -> Result<(), sqlx::Error> {
    let (mut number, mut hash) = (0, AuditHash::default());
    loop {
        let batch = read_after(number, BATCH, connection).await?;
        if batch.is_empty() {
            break;
        }
        for record in batch {
            number += 1;
            hash = hash.after(number, &record.entry);
            if record.number != number {
                report.add_difference(format!("the admins' change {number} is not there"));
                return Ok(());
            }
            if record.hash != hash {
                report.add_difference(format!("the admins' change {number} is not as it was written"));
                return Ok(());
            }
            report.changes += 1;
        }
    }
    if read_head(connection).await? != (number, hash) {
        report.add_difference(format!("the admins' changes end with {number}, and there were others"));
    }
    Ok(())
}
