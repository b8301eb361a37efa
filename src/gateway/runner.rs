//! An attempt whose events are not shown before it is known to be the answer.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::backend::fleet::Seat;
use crate::catalog::Offer;
use crate::execute::{Meter, Progress};

use super::Report;
use super::flying::{Flying, choices, meters};
use super::landing::Landing;

/// An attempt under way whose events wait for somebody to take them. Dropping it cancels its backend.
pub(super) struct Runner<'r> {
    run: BoxFuture<'r, Landing>,
    ended: Option<Landing>,
    said: mpsc::Receiver<Report>,
    /// What it has taken so far.
    pub(super) meters: Vec<Meter>,
}

/// What comes of an attempt next.
pub(super) enum News {
    /// An event, to be shown.
    Said(Report),
    /// Its end; nothing comes after it.
    Ended(Landing),
}

impl<'r> Runner<'r> {
    pub(super) fn new(
        flying: &Flying,
        seat: &Seat,
        offer: &Offer,
        progress: &'r mut [Progress],
    ) -> Runner<'r> {
        let (own, said) = mpsc::channel(flying.parts.settings.events_max);
        let jobs = flying.jobs(seat, offer, &flying.request);
        let meters = meters(progress);
        let run = async move { choices(&jobs, progress, &own).await }.boxed();
        Runner { run, ended: None, said, meters }
    }

    /// Everything that it says, and then how it ended. Nothing is lost where this is dropped while it waits.
    pub(super) async fn next(&mut self) -> News {
        loop {
            tokio::select! {
                biased;
                said = self.said.recv() => match said {
                    Some(report) => return News::Said(report),
                    // Its end of the line is gone: it has ended.
                    None => return News::Ended(self.ended.take().unwrap_or(Landing::HungUp)),
                },
                landing = &mut self.run, if self.ended.is_none() => self.ended = Some(landing),
            }
        }
    }
}
