//! Waiting for what parallel steps of a run have set aside: they give back what they do not use.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::agent::Wait;
use crate::gateway::{Gateway, Refusal};
use crate::units::AccountId;

use super::Agents;

/// How often is looked at what nobody tells of: what other replicas have given back, and other runs of the account.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// When to try again after waiting in vain.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How long a step may wait, and its place among those who do.
pub(super) struct Waiting {
    until: Instant,
    place: Option<Place>,
}

/// A place among those of an account who wait.
struct Place {
    agents: Agents,
    account: AccountId,
}

impl Waiting {
    /// As long as the settings say, and no longer than the request has time.
    pub(super) fn until(gateway: &Gateway, deadline: Instant) -> Waiting {
        let most = Instant::now() + gateway.parts.agents.inner.settings.wait_max;
        Waiting { until: deadline.min(most), place: None }
    }

    /// Waits until something of the run is given back, or may have been elsewhere.
    ///
    /// # Errors
    /// When it has waited long enough, or too many wait already.
    pub(super) async fn wait(
        &mut self,
        gateway: &Gateway,
        account: &AccountId,
        heard: impl Future<Output = ()>,
        wait: &Wait,
    ) -> Result<(), Refusal> {
        if Instant::now() >= self.until || !self.is_in(gateway, account) {
            return Err(busy(wait));
        }
        let _ = timeout_at(self.until.min(Instant::now() + LOOK_EVERY), heard).await;
        Ok(())
    }

    /// Takes a place among those who wait, once; says whether there is one. Whoever waits keeps a place among those in
    /// flight, so one account's may have no more than half of these.
    fn is_in(&mut self, gateway: &Gateway, account: &AccountId) -> bool {
        if self.place.is_none() {
            let most = gateway.parts.settings.flights_max / 2;
            self.place = Place::take(&gateway.parts.agents, account, most);
        }
        self.place.is_some()
    }
}

impl Place {
    fn take(agents: &Agents, account: &AccountId, most: usize) -> Option<Place> {
        agents.inner.metrics.agents.waits.inc();
        let mut waiting = agents.inner.waiting.entry(account.clone()).or_default();
        if *waiting >= most.max(1) {
            return None;
        }
        *waiting += 1;
        drop(waiting);
        Some(Place { agents: agents.clone(), account: account.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let waiting = &self.agents.inner.waiting;
        if let Some(mut waiting) = waiting.get_mut(&self.account) {
            *waiting = waiting.saturating_sub(1);
        }
        waiting.remove_if(&self.account, |_, waiting| *waiting == 0);
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
