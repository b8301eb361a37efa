//! The queue of calls that wait for a place on a target. Interactive calls come before batch calls. Within each, all
//! flows take turns. Calls whose deadline has passed are left out.

use tokio::time::Instant;

use stint_types::units::Priority;

use super::FlowId;
use super::fair_queue::{FairQueue, QueuedItem};

/// A bounded queue with two lanes.
#[derive(Debug)]
pub(super) struct AdmissionQueue<T> {
    interactive: FairQueue<T>,
    batch: FairQueue<T>,
    capacity: usize,
}

/// The result of adding a call to the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PushOutcome<T> {
    /// There was room.
    Queued,
    /// The queue was full, and a call of lower priority is removed.
    Evicted(T),
    /// There is none.
    Full(T),
}

impl<T> AdmissionQueue<T> {
    pub(super) fn new(max: usize) -> AdmissionQueue<T> {
        AdmissionQueue { interactive: FairQueue::new(), batch: FairQueue::new(), capacity: max }
    }

    /// From now on so many may wait. Those who do stay.
    pub(super) fn set_capacity(&mut self, max: usize) {
        self.capacity = max;
    }

    /// Queues a call for so many places, until then at most. A full queue gives up a batch request for an interactive
    /// one, and one of a flow that has more in it for one of a flow that has less: the youngest of those who have most.
    pub(super) fn push(
        &mut self,
        priority: Priority,
        flow: FlowId,
        until: Instant,
        calls: u32,
        item: T,
    ) -> PushOutcome<T> {
        let waiting = QueuedItem { flow, deadline: until, calls, item };
        if self.len() < self.capacity {
            self.fair_queue(priority).push(waiting);
            return PushOutcome::Queued;
        }
        let lesser = if priority == Priority::Interactive { self.batch.evict(0) } else { None };
        let lane = self.fair_queue(priority);
        // With one more it is not to have more than those who give one up.
        let own = lane.waiting_of(flow);
        let evicted = lesser.or_else(|| lane.evict(own + 1));
        match evicted {
            Some(evicted) => {
                lane.push(waiting);
                PushOutcome::Evicted(evicted.item)
            }
            None => PushOutcome::Full(waiting.item),
        }
    }

    /// Who is next; those whose time has passed are dropped and handed out in `late`.
    pub(super) fn peek(&mut self, now: Instant, late: &mut Vec<T>) -> Option<&T> {
        for lane in [&mut self.interactive, &mut self.batch] {
            while lane.peek().is_some_and(|first| first.deadline <= now) {
                late.extend(lane.pop().map(|first| first.item));
            }
        }
        let first = self.interactive.peek().or_else(|| self.batch.peek());
        first.map(|first| &first.item)
    }

    /// Takes out who is next.
    pub(super) fn pop(&mut self) -> Option<T> {
        let first = self.interactive.pop().or_else(|| self.batch.pop());
        first.map(|first| first.item)
    }

    /// Records that a call was served at once, although others wait.
    pub(super) fn record_bypass(&mut self, priority: Priority, flow: FlowId, calls: u32) {
        if self.fair_queue(priority).len() > 0 {
            self.fair_queue(priority).advance_flow(flow, calls);
        }
    }

    /// Removes the items for which `keep` is false: their callers have left.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for lane in [&mut self.interactive, &mut self.batch] {
            lane.retain(&keep);
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.interactive.len() + self.batch.len()
    }

    /// How many calls wait.
    pub(super) fn calls(&self) -> u32 {
        self.interactive.calls() + self.batch.calls()
    }

    /// How many calls are ahead of one more of that flow and priority.
    pub(super) fn calls_before(&self, priority: Priority, flow: FlowId) -> u32 {
        match priority {
            Priority::Interactive => self.interactive.calls_before(flow),
            Priority::Batch => self.interactive.calls() + self.batch.calls_before(flow),
        }
    }

    fn fair_queue(&mut self, priority: Priority) -> &mut FairQueue<T> {
        match priority {
            Priority::Interactive => &mut self.interactive,
            Priority::Batch => &mut self.batch,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use Priority::{Batch, Interactive};

    use super::*;

    struct QueueHarness {
        queue: AdmissionQueue<&'static str>,
        began: Instant,
    }

    impl QueueHarness {
        fn new(max: usize) -> QueueHarness {
            QueueHarness { queue: AdmissionQueue::new(max), began: Instant::now() }
        }

        fn push(
            &mut self,
            priority: Priority,
            item: &'static str,
            seconds: u64,
        ) -> PushOutcome<&'static str> {
            self.push_of(0, priority, item, seconds)
        }

        fn push_of(
            &mut self,
            flow: u64,
            priority: Priority,
            item: &'static str,
            seconds: u64,
        ) -> PushOutcome<&'static str> {
            self.queue.push(priority, FlowId(flow), self.began + Duration::from_secs(seconds), 1, item)
        }

        /// Everybody in the order in which they go, and who came too late by then.
        fn order(&mut self, seconds: u64) -> (Vec<&'static str>, Vec<&'static str>) {
            let (mut order, mut late) = (Vec::new(), Vec::new());
            while self.queue.peek(self.began + Duration::from_secs(seconds), &mut late).is_some() {
                order.extend(self.queue.pop());
            }
            (order, late)
        }
    }

    #[test]
    fn interactive_comes_before_batch_and_each_is_first_come_first_served() {
        let mut line = QueueHarness::new(9);
        for (priority, item) in [(Batch, "b1"), (Interactive, "i1"), (Batch, "b2"), (Interactive, "i2")] {
            assert_eq!(line.push(priority, item, 60), PushOutcome::Queued);
        }
        assert_eq!(
            (line.queue.calls_before(Interactive, FlowId(0)), line.queue.calls_before(Batch, FlowId(0))),
            (2, 4)
        );
        assert_eq!(line.order(0), (vec!["i1", "i2", "b1", "b2"], vec![]));
    }

    // OV-03
    #[test]
    fn who_comes_to_a_full_queue_is_refused_unless_a_batch_request_makes_room() {
        let mut line = QueueHarness::new(3);
        for (priority, item) in [(Batch, "b1"), (Batch, "b2"), (Interactive, "i1")] {
            assert_eq!(line.push(priority, item, 60), PushOutcome::Queued);
        }
        assert_eq!(line.push(Batch, "b3", 60), PushOutcome::Full("b3"));
        assert_eq!(line.push(Interactive, "i2", 60), PushOutcome::Evicted("b2"));
        assert_eq!(line.push(Interactive, "i3", 60), PushOutcome::Evicted("b1"));
        assert_eq!(line.push(Interactive, "i4", 60), PushOutcome::Full("i4"));
        assert_eq!(line.order(0), (vec!["i1", "i2", "i3"], vec![]));
    }

    // OV-03
    #[test]
    fn those_whose_time_has_passed_are_dropped_before_any_work() {
        let mut line = QueueHarness::new(9);
        for (item, seconds) in [("a", 1), ("b", 9), ("c", 2), ("d", 9)] {
            line.push(Interactive, item, seconds);
        }
        line.push(Batch, "e", 1);
        assert_eq!(line.order(5), (vec!["b", "d"], vec!["a", "e", "c"]));
    }

    #[test]
    fn those_who_left_are_taken_out() {
        let mut line = QueueHarness::new(9);
        for item in ["a", "b", "c"] {
            line.push(Interactive, item, 9);
        }
        line.queue.retain(|item| *item != "b");
        assert_eq!(line.queue.len(), 2);
        assert_eq!(line.order(0).0, ["a", "c"]);
    }

    // OV-04
    #[test]
    fn who_asks_for_little_goes_before_what_another_has_lined_up() {
        let mut line = QueueHarness::new(99);
        for item in ["a1", "a2", "a3", "a4", "a5"] {
            line.push_of(1, Interactive, item, 60);
        }
        assert_eq!(line.queue.pop(), Some("a1"));
        assert_eq!(line.queue.calls_before(Interactive, FlowId(2)), 0, "the first has had its turn");
        line.push_of(2, Interactive, "b1", 60);
        assert_eq!(line.queue.calls_before(Interactive, FlowId(2)), 2, "its own, and one of the other");
        line.push_of(2, Interactive, "b2", 60);
        line.push_of(3, Batch, "c1", 60);
        assert_eq!(line.order(0).0, ["b1", "a2", "b2", "a3", "a4", "a5", "c1"]);
    }

    // OV-04
    #[test]
    fn who_has_waited_alone_is_owed_nothing_and_who_comes_back_has_no_debt() {
        let mut line = QueueHarness::new(99);
        for item in ["a1", "a2"] {
            line.push_of(1, Interactive, item, 60);
        }
        line.order(0);
        line.push_of(1, Interactive, "a3", 60);
        line.push_of(2, Interactive, "b1", 60);
        line.push_of(1, Interactive, "a4", 60);
        assert_eq!(line.order(0).0, ["a3", "b1", "a4"]);
    }

    // OV-04
    #[test]
    fn a_request_of_many_calls_is_as_many_turns() {
        let mut line = QueueHarness::new(99);
        let until = line.began + Duration::from_secs(60);
        for item in ["a1", "a2"] {
            line.queue.push(Interactive, FlowId(1), until, 3, item);
        }
        for item in ["b1", "b2", "b3", "b4"] {
            line.push_of(2, Interactive, item, 60);
        }
        assert_eq!(line.order(0).0, ["a1", "b1", "b2", "b3", "a2", "b4"]);
    }

    // OV-04
    #[test]
    fn a_full_queue_is_shared_evenly() {
        let mut line = QueueHarness::new(4);
        for item in ["a1", "a2", "a3", "a4"] {
            line.push_of(1, Interactive, item, 60);
        }
        assert_eq!(line.push_of(1, Interactive, "a5", 60), PushOutcome::Full("a5"));
        assert_eq!(line.push_of(2, Interactive, "b1", 60), PushOutcome::Evicted("a4"));
        assert_eq!(line.push_of(2, Interactive, "b2", 60), PushOutcome::Evicted("a3"));
        assert_eq!(line.push_of(2, Interactive, "b3", 60), PushOutcome::Full("b3"));
        assert_eq!(line.push_of(1, Interactive, "a6", 60), PushOutcome::Full("a6"));
        assert_eq!(line.push_of(3, Interactive, "c1", 60), PushOutcome::Evicted("b2"));
        assert_eq!(line.order(0).0, ["a1", "b1", "c1", "a2"]);
    }

    // OV-04
    #[test]
    fn what_is_remembered_of_flows_is_bounded() {
        let mut line = QueueHarness::new(4);
        for flow in 0..10_000 {
            line.push_of(flow, Interactive, "x", 60);
            line.push_of(flow, Interactive, "y", 60);
            line.queue.pop();
        }
        assert!(line.queue.interactive.flow_count() <= 4 * 2 + 16 + 2);
    }
}
