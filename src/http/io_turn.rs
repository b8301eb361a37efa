//! How much of one connection's bytes is moved before the others on its thread have their turn. A body of 30 MB that is there already
//! would else be read for milliseconds at a time, and so would each of a tenant's dozen, while everybody waits.

use std::task::{Context, Poll};

/// Bytes of one turn: some ten microseconds to copy.
const TURN: usize = 64 << 10;

/// What one direction of a connection has moved in this turn.
#[derive(Debug, Default)]
pub(super) struct IoTurn {
    moved: usize,
}

impl IoTurn {
    /// Pending where the turn is over: its task is woken again, behind those that wait. Ready where more may be moved.
    pub(super) fn poll_begin(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.moved < TURN {
            return Poll::Ready(());
        }
        self.moved = 0;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// So many bytes were moved.
    pub(super) fn add(&mut self, bytes: usize) {
        self.moved += bytes;
    }

    /// The connection waits for its other side, which ends the turn.
    pub(super) fn end(&mut self) {
        self.moved = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn who_moves_many_bytes_lets_others_have_their_turn() {
        let (others, mut turn) = (Cell::new(0), IoTurn::default());
        let moving = async {
            for _ in 0..100 {
                poll_fn(|cx| turn.poll_begin(cx)).await;
                turn.add(8 << 10);
            }
        };
        let counting = async {
            loop {
                others.set(others.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            () = moving => {}
            () = counting => {}
        }
        assert_eq!(others.get(), 12, "once in 64 KiB");
    }

    #[tokio::test]
    async fn who_waits_for_the_other_side_begins_anew() {
        let mut turn = IoTurn::default();
        for _ in 0..100 {
            turn.add(60 << 10);
            turn.end();
            assert!(poll_fn(|cx| Poll::Ready(turn.poll_begin(cx))).await.is_ready());
        }
    }
}
