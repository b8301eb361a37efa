//! Who waits for a place, and who goes first: interactive before batch, and within each whoever came first, without
//! those whose time has passed.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::units::Priority;

/// A bounded queue with two lanes.
#[derive(Debug)]
pub(super) struct Queue<T> {
    interactive: VecDeque<Waiting<T>>,
    batch: VecDeque<Waiting<T>>,
    max: usize,
}

/// Somebody who waits.
#[derive(Debug)]
struct Waiting<T> {
    until: Instant,
    calls: u32,
    item: T,
}

/// What became of somebody who wants to wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed<T> {
    /// There was room.
    In,
    /// There was none, and somebody who may wait less has to go.
    InPlaceOf(T),
    /// There is none.
    Full(T),
}

impl<T> Queue<T> {
    pub(super) fn new(max: usize) -> Queue<T> {
        Queue { interactive: VecDeque::new(), batch: VecDeque::new(), max }
    }

    /// Lets somebody wait for so many places, until then at most. A full queue gives up its youngest batch request for
    /// an interactive one.
    pub(super) fn push(&mut self, priority: Priority, until: Instant, calls: u32, item: T) -> Pushed<T> {
        let waiting = Waiting { until, calls, item };
        if self.len() < self.max {
            self.lane(priority).push_back(waiting);
            return Pushed::In;
        }
        if priority == Priority::Interactive
            && let Some(youngest) = self.batch.pop_back()
        {
            self.interactive.push_back(waiting);
            return Pushed::InPlaceOf(youngest.item);
        }
        Pushed::Full(waiting.item)
    }

    /// Who is next; those whose time has passed are dropped and handed out in `late`.
    pub(super) fn first(&mut self, now: Instant, late: &mut Vec<T>) -> Option<&T> {
        for lane in [&mut self.interactive, &mut self.batch] {
            while lane.front().is_some_and(|first| first.until <= now) {
                late.extend(lane.pop_front().map(|first| first.item));
            }
        }
        let lane = if self.interactive.is_empty() { &self.batch } else { &self.interactive };
        lane.front().map(|first| &first.item)
    }

    /// Takes out who is next.
    pub(super) fn pop(&mut self) -> Option<T> {
        let first = self.interactive.pop_front().or_else(|| self.batch.pop_front());
        first.map(|first| first.item)
    }

    /// Takes out those for whom `keep` is false: they have left.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        for lane in [&mut self.interactive, &mut self.batch] {
            lane.retain(|waiting| keep(&waiting.item));
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.interactive.len() + self.batch.len()
    }

    /// How many calls go before one more of that priority.
    pub(super) fn calls_before(&self, priority: Priority) -> u32 {
        let sum = |lane: &VecDeque<Waiting<T>>| lane.iter().map(|waiting| waiting.calls).sum::<u32>();
        match priority {
            Priority::Interactive => sum(&self.interactive),
            Priority::Batch => sum(&self.interactive) + sum(&self.batch),
        }
    }

    fn lane(&mut self, priority: Priority) -> &mut VecDeque<Waiting<T>> {
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

    struct Line {
        queue: Queue<&'static str>,
        began: Instant,
    }

    impl Line {
        fn new(max: usize) -> Line {
            Line { queue: Queue::new(max), began: Instant::now() }
        }

        fn push(&mut self, priority: Priority, item: &'static str, seconds: u64) -> Pushed<&'static str> {
            self.queue.push(priority, self.began + Duration::from_secs(seconds), 1, item)
        }

        /// Everybody in the order in which they go, and who came too late by then.
        fn order(&mut self, seconds: u64) -> (Vec<&'static str>, Vec<&'static str>) {
            let (mut order, mut late) = (Vec::new(), Vec::new());
            while self.queue.first(self.began + Duration::from_secs(seconds), &mut late).is_some() {
                order.extend(self.queue.pop());
            }
            (order, late)
        }
    }

    #[test]
    fn interactive_goes_before_batch_and_within_each_whoever_came_first() {
        let mut line = Line::new(9);
        for (priority, item) in [(Batch, "b1"), (Interactive, "i1"), (Batch, "b2"), (Interactive, "i2")] {
            assert_eq!(line.push(priority, item, 60), Pushed::In);
        }
        assert_eq!((line.queue.calls_before(Interactive), line.queue.calls_before(Batch)), (2, 4));
        assert_eq!(line.order(0), (vec!["i1", "i2", "b1", "b2"], vec![]));
    }

    // OV-03
    #[test]
    fn who_comes_to_a_full_queue_is_refused_unless_a_batch_request_makes_room() {
        let mut line = Line::new(3);
        for (priority, item) in [(Batch, "b1"), (Batch, "b2"), (Interactive, "i1")] {
            assert_eq!(line.push(priority, item, 60), Pushed::In);
        }
        assert_eq!(line.push(Batch, "b3", 60), Pushed::Full("b3"));
        assert_eq!(line.push(Interactive, "i2", 60), Pushed::InPlaceOf("b2"));
        assert_eq!(line.push(Interactive, "i3", 60), Pushed::InPlaceOf("b1"));
        assert_eq!(line.push(Interactive, "i4", 60), Pushed::Full("i4"));
        assert_eq!(line.order(0), (vec!["i1", "i2", "i3"], vec![]));
    }

    // OV-03
    #[test]
    fn those_whose_time_has_passed_are_dropped_before_any_work() {
        let mut line = Line::new(9);
        for (item, seconds) in [("a", 1), ("b", 9), ("c", 2), ("d", 9)] {
            line.push(Interactive, item, seconds);
        }
        line.push(Batch, "e", 1);
        assert_eq!(line.order(5), (vec!["b", "d"], vec!["a", "e", "c"]));
    }

    #[test]
    fn those_who_left_are_taken_out() {
        let mut line = Line::new(9);
        for item in ["a", "b", "c"] {
            line.push(Interactive, item, 9);
        }
        line.queue.retain(|item| *item != "b");
        assert_eq!(line.queue.len(), 2);
        assert_eq!(line.order(0).0, ["a", "c"]);
    }
}
