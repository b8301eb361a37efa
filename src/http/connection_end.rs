//! How long a connection that is to go may take for it.

use std::time::Duration;

use super::connection_table::ConnectionPlace;

/// How long a connection that is cut off may take to deliver the end of its answer.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How long one without anything to do may take to end, and how often it is looked at while it is busy after all.
pub(super) const IDLE_GRACE: Duration = Duration::from_secs(1);

/// Until a connection that is to go has had the time for it: until an answer that was cut off could end with an error, which its caller
/// gets a moment to take; and where it may go once it is idle, until it has had nothing to do for so long.
pub(super) async fn given_up(
    place: &ConnectionPlace,
    idle_max: Option<Duration>,
    cut_off: impl Future<Output = ()>,
) {
    let idle = async {
        loop {
            tokio::time::sleep(IDLE_GRACE).await;
            if idle_max.is_some_and(|most| !place.is_busy() && place.idle() >= most) {
                return;
            }
        }
    };
    tokio::select! {
        () = idle => {}
        () = cut_off => tokio::time::sleep(LAST_WORDS).await,
    }
}
