//! An attempt whose events are not shown before it is known to be the answer.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::backend::fleet::Permit;
use crate::catalog::Offer;
use crate::execute::{ChoiceProgress, Meter};

use super::running_request::{RunningRequest, choices, meters};
use crate::gateway::RequestUpdate;
use crate::gateway::finish::AttemptResult;

/// An attempt under way whose events wait for somebody to take them. Dropping it cancels its backend.
pub(in crate::gateway) struct BufferedAttempt<'r> {
    run: BoxFuture<'r, AttemptResult>,
    ended: Option<AttemptResult>,
    updates: mpsc::Receiver<RequestUpdate>,
    /// What it has taken so far.
    pub(in crate::gateway) meters: Vec<Meter>,
}

/// What comes of an attempt next.
pub(in crate::gateway) enum AttemptEvent {
    /// An event, to be shown.
    Update(RequestUpdate),
    /// Its end; nothing comes after it.
    Ended(AttemptResult),
}

impl<'r> BufferedAttempt<'r> {
    pub(in crate::gateway) fn new(
        flying: &RunningRequest,
        seat: &Permit,
        offer: &Offer,
        progress: &'r mut [ChoiceProgress],
    ) -> BufferedAttempt<'r> {
        let (own, said) = mpsc::channel(flying.parts.settings.events_max);
        let jobs = flying.jobs(seat, offer, &flying.request);
        let meters = meters(progress);
        let run = async move { choices(&jobs, progress, &own).await }.boxed();
        BufferedAttempt { run, ended: None, updates: said, meters }
    }

    /// Everything that it says, and then how it ended. Nothing is lost where this is dropped while it waits.
    pub(in crate::gateway) async fn next_event(&mut self) -> AttemptEvent {
        loop {
            tokio::select! {
                biased;
                said = self.updates.recv() => match said {
                    Some(report) => return AttemptEvent::Update(report),
                    // Its end of the line is gone: it has ended.
                    None => return AttemptEvent::Ended(self.ended.take().unwrap_or(AttemptResult::HungUp)),
                },
                landing = &mut self.run, if self.ended.is_none() => self.ended = Some(landing),
            }
        }
    }
}
