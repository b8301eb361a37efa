//! Waiting for what parallel steps of a run have set aside: they give back what they do not use.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::agent::Wait;
use crate::gateway::{Gateway, Refusal};

/// How often is looked at what other replicas have given back, which nobody tells of.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// When to try again after waiting in vain.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How long a step may wait, and whether it did.
pub(super) struct Waiting {
    until: Instant,
    has_waited: bool,
}

impl Waiting {
    /// As long as the settings say, and no longer than the request has time.
    pub(super) fn until(gateway: &Gateway, deadline: Instant) -> Waiting {
        let most = Instant::now() + gateway.parts.agents.inner.settings.wait_max;
        Waiting { until: deadline.min(most), has_waited: false }
    }

    /// Waits until something of the run is given back, or may have been elsewhere.
    ///
    /// # Errors
    /// When it has waited long enough.
    pub(super) async fn wait(
        &mut self,
        gateway: &Gateway,
        heard: impl Future<Output = ()>,
        wait: &Wait,
    ) -> Result<(), Refusal> {
        self.count(gateway);
        if Instant::now() >= self.until {
            return Err(busy(wait));
        }
        let look = match gateway.parts.ledger.is_shared() {
            true => self.until.min(Instant::now() + LOOK_EVERY),
            false => self.until,
        };
        let _ = timeout_at(look, heard).await;
        Ok(())
    }

    /// Notes that it has to wait, once.
    fn count(&mut self, gateway: &Gateway) {
        if !std::mem::replace(&mut self.has_waited, true) {
            gateway.parts.metrics.agents.waits.inc();
        }
    }
}

/// What is told where waiting was in vain.
pub(super) fn busy(wait: &Wait) -> Refusal {
    Refusal::Busy { what: named(wait), retry_after: RETRY_AFTER }
}

fn named(wait: &Wait) -> String {
    let mut what: Vec<String> = wait.tools.iter().map(|tool| format!("calls of {tool}")).collect();
    what.extend(wait.turn.then(|| "the last turn".to_owned()));
    what.extend(wait.money.then(|| "the money left".to_owned()));
    if what.is_empty() {
        return "what it needs is".to_owned();
    }
    let verb = if what.len() == 1 && wait.tools.is_empty() { "is" } else { "are" };
    format!("{} {verb}", what.join(", "))
}
