//! Wakes tasks that wait until a reservation of an episode, or of a tree of accounts, is resolved.

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Several names share a slot: a waiter that is woken by another's event looks again.
const NOTIFIER_SLOTS: usize = 256;

/// One notification for each of a fixed number of slots; a name is hashed to its slot.
#[derive(Debug)]
pub(crate) struct Notifiers(Box<[Notify]>);

impl Notifiers {
    pub(crate) fn new() -> Notifiers {
        Notifiers((0..NOTIFIER_SLOTS).map(|_| Notify::new()).collect())
    }

    fn slot(&self, name: &str) -> &Notify {
        let spread = |hash: usize, byte: u8| hash.wrapping_mul(31).wrapping_add(usize::from(byte));
        &self.0[name.bytes().fold(0, spread) % NOTIFIER_SLOTS]
    }

    pub(crate) fn notify(&self, name: &str) {
        self.slot(name).notify_waiters();
    }

    /// Completes with the next notification after this call, polled or not.
    pub(crate) fn notified(&self, name: &str) -> Notified<'_> {
        self.slot(name).notified()
    }
}
