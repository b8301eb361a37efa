//! What is to come, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::moment::Moment;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Happening {
    /// The world changes, by the event of that number.
    Turn(usize),
    /// A flight's attempt ends; its place among the flights.
    Ends(usize),
    /// Somebody says whether an answer was right; its place among the answers that are waited for.
    Word(usize),
    /// The next request arrives.
    Arrival,
}

/// What is to come. Of what happens at one moment, what was entered first comes first.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Moment, u64, Happening)>>,
    entered: u64,
}

impl Agenda {
    /// Enters something.
    pub(super) fn enter(&mut self, at: Moment, what: Happening) {
        self.entered += 1;
        self.heap.push(Reverse((at, self.entered, what)));
    }

    /// Takes what comes next.
    pub(super) fn next(&mut self) -> Option<(Moment, Happening)> {
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}
