//! Seals the journal once for each day of UTC. A task of the application calls this.

use crate::accounts::LedgerError;
use crate::rows::RollupSpan;
use crate::seal::Seal;
use stint_types::units::Timestamp;

use super::ledger::Ledger;

impl Ledger {
    /// Seals what was resolved until now, if the last seal is of another day; gives back the seals that were made.
    ///
    /// # Errors
    /// When the journal fails; the seals that were made before stand.
    pub async fn seal_daily(&self, now: Timestamp) -> Result<Vec<Seal>, LedgerError> {
        let last = self.core.journal().last_seal().await?;
        let day = |moment: Timestamp| RollupSpan::Day.start(moment);
        match last {
            Some(last) if day(last.at) == day(now) => Ok(Vec::new()),
            _ => self.seal(now).await,
        }
    }

    /// Seals what was resolved until now; gives back the seals that were made.
    ///
    /// # Errors
    /// When the journal fails; the seals that were made before stand.
    pub async fn seal(&self, now: Timestamp) -> Result<Vec<Seal>, LedgerError> {
        let mut seals = Vec::new();
        while let Some(seal) = self.core.journal().seal(now).await? {
            let is_full = seal.is_full();
            seals.push(seal);
            // What comes while this runs is for the next day.
            if !is_full {
                break;
            }
        }
        Ok(seals)
    }
}
