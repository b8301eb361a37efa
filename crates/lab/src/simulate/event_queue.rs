//! What is to come, in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::virtual_time::VirtualTime;

/// Something that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SimulationEvent {
    /// The world changes, by the event of that number.
    ScenarioEvent(usize),
    /// An attempt ends; its index among those in flight.
    AttemptEnd(usize),
    /// Somebody says whether an answer was right; its place among the answers that are waited for.
    Feedback(usize),
    /// The next request arrives.
    Arrival,
}

/// What is to come. Of what happens at one moment, what was entered first comes first.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Reverse<(VirtualTime, u64, SimulationEvent)>>,
    sequence: u64,
}

impl EventQueue {
    /// Enters something.
    pub(super) fn schedule(&mut self, at: VirtualTime, what: SimulationEvent) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, what)));
    }

    /// Takes what comes next.
    pub(super) fn pop(&mut self) -> Option<(VirtualTime, SimulationEvent)> {
        self.heap.pop().map(|Reverse((at, _, what))| (at, what))
    }
}
