//! The daily seal of a running server.

use std::time::Duration;

use stint_ledger::Ledger;
use stint_types::tasks::Tasks;

/// How often it is seen whether a new day has begun.
const CHECK_INTERVAL: Duration = Duration::from_secs(600);

/// Seals the books at the start where a day was missed, and then once a day. A day begins for nobody's request: it
/// runs beside them, and what fails is tried again.
pub(super) fn seal_daily(work: &Tasks, ledger: &Ledger) {
    let (ledger, stopping) = (ledger.clone(), work.stopping());
    work.spawn(async move {
        tokio::pin!(stopping);
        loop {
            let sealed = tokio::select! {
                biased;
                () = &mut stopping => return,
                sealed = ledger.seal_daily(ledger.now()) => sealed,
            };
            match sealed {
                Ok(seals) => seals.iter().for_each(|seal| {
                    let (seal, resolutions, hash) = (seal.number, seal.resolutions, seal.hex());
                    tracing::info!(seal, resolutions, hash, "the books are sealed");
                }),
                Err(error) => tracing::error!(%error, "the books could not be sealed; trying again"),
            }
            tokio::select! {
                () = &mut stopping => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
        }
    });
}
