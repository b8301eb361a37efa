//! The channel by which a running choice sends its events: bounded by their number and by their bytes, so that a caller who takes
//! none costs little, however large they are.

use std::sync::Arc;

use tokio::sync::{Semaphore, TryAcquireError, mpsc};

/// How far a caller may lag behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// The most events.
    pub events: usize,
    /// The most bytes of their texts.
    pub bytes: usize,
}

/// What an event takes in memory.
pub trait EventSize {
    /// The bytes of its texts.
    fn text_bytes(&self) -> usize;
}

/// Where events go in. Dropping it ends the channel.
#[derive(Debug)]
pub struct EventSender<T> {
    events: mpsc::UnboundedSender<(T, u32)>,
    room: Arc<Semaphore>,
    /// All of the room, and what an event takes of it at least.
    most: u32,
    least: u32,
}

/// Where events come out. Dropping it hangs up.
#[derive(Debug)]
pub struct EventReceiver<T> {
    events: mpsc::UnboundedReceiver<(T, u32)>,
    room: Arc<Semaphore>,
}

/// Nobody takes the events any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the receiver of the events is gone")]
pub struct Disconnected;

/// A channel within these limits. An event that is larger than all of them passes alone.
pub fn event_channel<T: EventSize>(limits: EventLimits) -> (EventSender<T>, EventReceiver<T>) {
    let most = u32::try_from(limits.bytes).unwrap_or(u32::MAX).max(1);
    let least = (limits.bytes / limits.events.max(1)).max(1);
    let least = u32::try_from(least).unwrap_or(u32::MAX);
    let room = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(usize::MAX)));
    // What waits in it is bounded by the room.
    let (sender, receiver) = mpsc::unbounded_channel();
    (
        EventSender { events: sender, room: room.clone(), most, least },
        EventReceiver { events: receiver, room },
    )
}

impl<T: EventSize> EventSender<T> {
    /// Sends an event, once there is room for it.
    ///
    /// # Errors
    /// When the receiver is gone.
    pub async fn send(&self, event: T) -> Result<(), Disconnected> {
        let bytes = self.room_for(&event);
        self.room.acquire_many(bytes).await.map_err(|_| Disconnected)?.forget();
        self.events.send((event, bytes)).map_err(|_| Disconnected)
    }

    /// Waits until all that was sent was taken.
    ///
    /// # Errors
    /// When the receiver is gone.
    pub async fn all_taken(&self) -> Result<(), Disconnected> {
        self.room.acquire_many(self.most).await.map(drop).map_err(|_| Disconnected)
    }

    /// Sends an event, if there is room for it now; else it comes back.
    ///
    /// # Errors
    /// When the receiver is gone.
    pub fn try_send(&self, event: T) -> Result<Option<T>, Disconnected> {
        let bytes = self.room_for(&event);
        match self.room.try_acquire_many(bytes) {
            Ok(room) => room.forget(),
            Err(TryAcquireError::NoPermits) => return Ok(Some(event)),
            Err(TryAcquireError::Closed) => return Err(Disconnected),
        }
        self.events.send((event, bytes)).map(|()| None).map_err(|_| Disconnected)
    }

    /// How much room an event takes.
    fn room_for(&self, event: &T) -> u32 {
        u32::try_from(event.text_bytes()).unwrap_or(u32::MAX).clamp(self.least.min(self.most), self.most)
    }
}

impl<T> EventSender<T> {
    /// True once the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.events.is_closed()
    }

    /// Until the receiver is gone.
    pub async fn closed(&self) {
        self.events.closed().await;
    }
}

impl<T> EventReceiver<T> {
    /// The next event; `None` once the sender is gone and all were taken.
    pub async fn recv(&mut self) -> Option<T> {
        let received = self.events.recv().await?;
        Some(self.take(received))
    }

    /// The next event, if it is there already.
    pub fn try_recv(&mut self) -> Option<T> {
        let received = self.events.try_recv().ok()?;
        Some(self.take(received))
    }

    /// Makes room for another.
    fn take(&self, (event, bytes): (T, u32)) -> T {
        self.room.add_permits(usize::try_from(bytes).unwrap_or(usize::MAX));
        event
    }
}

impl<T> Drop for EventReceiver<T> {
    fn drop(&mut self) {
        self.room.close();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    impl EventSize for usize {
        fn text_bytes(&self) -> usize {
            *self
        }
    }

    /// How many events of so many bytes fit into a channel of 4 events and 100 bytes that nobody reads.
    fn fits(bytes: usize) -> usize {
        let (sender, _receiver) = event_channel(EventLimits { events: 4, bytes: 100 });
        (0..).take_while(|_| sender.send(bytes).now_or_never().is_some()).count()
    }

    #[test]
    fn its_events_are_bounded_by_number_and_by_bytes() {
        assert_eq!([0, 1, 25, 26, 50, 60, 100, 1_000_000].map(fits), [4, 4, 4, 3, 2, 1, 1, 1]);
    }

    #[tokio::test]
    async fn room_comes_back_and_a_sender_that_waits_sees_the_end() {
        let (sender, mut receiver) = event_channel(EventLimits { events: 1, bytes: 10 });
        sender.send(10).await.unwrap();
        let (sent, received) = tokio::join!(sender.send(7), receiver.recv());
        assert_eq!((sent, received), (Ok(()), Some(10)));
        assert_eq!(receiver.recv().await, Some(7));
        assert_eq!(
            [sender.try_send(10), sender.try_send(1)],
            [Ok(None), Ok(Some(1))],
            "what has no room comes back"
        );
        assert_eq!((receiver.try_recv(), receiver.try_recv()), (Some(10), None));
        assert!(sender.all_taken().now_or_never().is_some());
        sender.send(1).await.unwrap();
        assert!(sender.all_taken().now_or_never().is_none());
        assert_eq!(receiver.try_recv(), Some(1));
        sender.send(10).await.unwrap();
        let (sent, ()) = tokio::join!(sender.send(1), async { drop(receiver) });
        assert_eq!(sent, Err(Disconnected));
        sender.closed().await;
    }
}
