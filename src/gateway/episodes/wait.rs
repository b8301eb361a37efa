//! Waits for money, turns or calls that parallel steps of an episode have reserved.

use tokio::time::Instant;

use crate::gateway::request::{RETRY_AFTER, RequestRefusal};
use crate::gateway::state::BoundedWait;
use stint_sessions::agent::StepWait;
use stint_types::units::AccountId;

use super::manager::EpisodeManager;

impl EpisodeManager {
    /// How long a step may wait: as the settings say, and no longer than the request has time. `in_flight_max` requests may be in
    /// flight at once.
    pub(crate) fn step_wait(&self, deadline: Instant, in_flight_max: usize) -> BoundedWait {
        let until = deadline.min(Instant::now() + self.inner.settings.wait_max);
        // A step that waits keeps its place among those in flight, so one account's may have no more than half of these.
        BoundedWait::until(&self.inner.wait_queues, until, in_flight_max / 2)
    }

    /// Waits until something of the episode is given back, or may have been elsewhere.
    ///
    /// # Errors
    /// When it has waited long enough, or too many wait already.
    pub(crate) async fn wait_for_steps(
        &self,
        account: &AccountId,
        waiting: &mut BoundedWait,
        notified: impl Future<Output = ()>,
        wait: &StepWait,
    ) -> Result<(), RequestRefusal> {
        if waiting.is_new() {
            self.inner.metrics.episodes.waits.inc();
        }
        if waiting.pause(account, notified).await { Ok(()) } else { Err(busy(wait)) }
    }
}

/// A wait for money.
pub(crate) fn money_wait() -> StepWait {
    StepWait { money: true, ..StepWait::default() }
}

/// The refusal after a wait in vain.
pub(crate) fn busy(wait: &StepWait) -> RequestRefusal {
    RequestRefusal::EpisodeBusy { what: describe_wait(wait), retry_after: RETRY_AFTER }
}

fn describe_wait(wait: &StepWait) -> String {
    let mut what: Vec<String> = wait.tools.iter().map(|tool| format!("calls of {tool}")).collect();
    what.extend(wait.turn.then(|| "the last turn".to_owned()));
    what.extend(wait.money.then(|| "the money left".to_owned()));
    if what.is_empty() {
        return "what it needs is".to_owned();
    }
    let verb = if what.len() == 1 && wait.tools.is_empty() { "is" } else { "are" };
    format!("{} {verb}", what.join(", "))
}
