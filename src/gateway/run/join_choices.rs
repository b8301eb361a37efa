//! Runs all choices of a request at once, where none is checked before it is delivered.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::execute::{ChoiceError, Meter};
use stint_types::chat::FinishReason;

/// How long choices are waited for that were sent beside one that was refused.
const SIBLING_PATIENCE: Duration = Duration::from_secs(1);

/// Runs all to their ends, or to the first failure. Where that was refused before a model saw it, the others very likely
/// were too: they are let hear it, so that nothing is booked for what was never sent.
pub(crate) async fn join_all(
    mut runs: impl Iterator<Item = impl Future<Output = Result<FinishReason, ChoiceError>>>,
    meters: &[Meter],
) -> Result<Vec<FinishReason>, ChoiceError> {
    if meters.len() == 1 {
        // One alone has nobody to be waited for.
        let only = runs.next().map(Box::pin);
        return match only {
            Some(run) => Ok(vec![run.await?]),
            None => Ok(Vec::new()),
        };
    }
    let mut runs: FuturesUnordered<_> =
        runs.enumerate().map(|(at, run)| async move { (at, run.await) }).collect();
    let mut finishes = Vec::new();
    while let Some((at, ended)) = runs.next().await {
        match ended {
            Ok(finish) => finishes.push((at, finish)),
            Err(ChoiceError::Failed(failure)) if failure.unsent => {
                let answered = poll_fn(|cx| {
                    while let Poll::Ready(Some(_)) = runs.poll_next_unpin(cx) {}
                    if meters.iter().all(Meter::has_response) { Poll::Ready(()) } else { Poll::Pending }
                });
                let _ = tokio::time::timeout(SIBLING_PATIENCE, answered).await;
                return Err(ChoiceError::Failed(failure));
            }
            Err(halt) => return Err(halt),
        }
    }
    finishes.sort_unstable_by_key(|(at, _)| *at);
    Ok(finishes.into_iter().map(|(_, finish)| finish).collect())
}
