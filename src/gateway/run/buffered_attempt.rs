//! An attempt whose events are held back until it is known to be the answer.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::execute::{ChoiceProgress, EventReceiver, Meter, event_channel};
use crate::gateway::RequestUpdate;
use crate::gateway::request::RequestContext;
use stint_backend::fleet::Permit;
use stint_types::catalog::Offer;
use stint_types::units::Tokens;

use super::attempt_result::AttemptResult;
use super::choices::{jobs, meters, run_choices};

/// A running attempt whose events wait until they are taken. Dropping it cancels its backend.
pub(super) struct BufferedAttempt<'r> {
    run: BoxFuture<'r, AttemptResult>,
    ended: Option<AttemptResult>,
    updates: EventReceiver<RequestUpdate>,
    /// What it has taken so far.
    pub(super) meters: Vec<Meter>,
}

/// What comes of an attempt next.
pub(super) enum AttemptEvent {
    /// An event, to be shown.
    Update(RequestUpdate),
    /// Its end; nothing comes after it.
    Ended(AttemptResult),
}

impl<'r> BufferedAttempt<'r> {
    pub(super) fn new(
        context: &RequestContext,
        permit: &Permit,
        offer: &Offer,
        progress: &'r mut [ChoiceProgress],
    ) -> BufferedAttempt<'r> {
        let (own, updates) = event_channel(context.parts().settings.events);
        let jobs = jobs(context, permit, offer, &context.request);
        let meters = meters(progress);
        let run = async move { run_choices(&jobs, progress, &own).await }.boxed();
        BufferedAttempt { run, ended: None, updates, meters }
    }

    /// Whether any of its choices has written something, seen or held back.
    pub(super) fn has_written(&self) -> bool {
        self.meters.iter().map(Meter::read).any(|spent| spent.thinking + spent.solution > Tokens::ZERO)
    }

    /// Everything that it writes, and then how it ended. Cancellation safe: no event is lost if this is dropped while it
    /// waits.
    pub(super) async fn next_event(&mut self) -> AttemptEvent {
        loop {
            tokio::select! {
                biased;
                update = self.updates.recv() => match update {
                    Some(update) => return AttemptEvent::Update(update),
                    // Its end of the channel is gone: it has ended.
                    None => return AttemptEvent::Ended(self.ended.take().unwrap_or(AttemptResult::HungUp)),
                },
                result = &mut self.run, if self.ended.is_none() => self.ended = Some(result),
            }
        }
    }
}
