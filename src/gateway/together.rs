//! All choices of a request at once, where none is looked at before it is delivered.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::chat::Finish;
use crate::execute::{Halt, Meter};

/// How long choices are waited for that were sent beside one that was refused.
const BESIDE: Duration = Duration::from_secs(1);

/// Runs all to their ends, or to the first failure. Where that was refused before a model saw it, the others very likely
/// were too: they are let hear it, so that nothing is booked for what was never sent.
pub(super) async fn all(
    runs: impl Iterator<Item = impl Future<Output = Result<Finish, Halt>>>,
    meters: &[Meter],
) -> Result<Vec<Finish>, Halt> {
    let mut runs: FuturesUnordered<_> =
        runs.enumerate().map(|(at, run)| async move { (at, run.await) }).collect();
    let mut finishes = Vec::new();
    while let Some((at, ended)) = runs.next().await {
        match ended {
            Ok(finish) => finishes.push((at, finish)),
            Err(Halt::Failed(failure)) if failure.unsent => {
                let heard = poll_fn(|cx| {
                    while let Poll::Ready(Some(_)) = runs.poll_next_unpin(cx) {}
                    if meters.iter().all(Meter::is_heard) { Poll::Ready(()) } else { Poll::Pending }
                });
                let _ = tokio::time::timeout(BESIDE, heard).await;
                return Err(Halt::Failed(failure));
            }
            Err(halt) => return Err(halt),
        }
    }
    finishes.sort_unstable_by_key(|(at, _)| *at);
    Ok(finishes.into_iter().map(|(_, finish)| finish).collect())
}
