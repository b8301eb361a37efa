//! The queue of one priority, in an order that is fair between flows (accounts): however many requests one flow sends,
//! the others take turns with it.
//!
//! This is start-time fair queueing. A request starts, in virtual time, when the previous request of its flow ends, but
//! not before the virtual now. The request with the earliest start is served first. The virtual now is the start of the
//! request that was served last. So a flow that has asked for little starts now, ahead of what the others have queued.

use std::collections::{BTreeMap, HashMap};

use tokio::time::Instant;

use super::FlowId;

/// How many idle flows are remembered for each item that the queue may hold.
const FLOWS_PER_ITEM: usize = 2;

/// A waiting request.
#[derive(Debug)]
pub(super) struct QueuedItem<T> {
    pub(super) flow: FlowId,
    pub(super) deadline: Instant,
    pub(super) calls: u32,
    pub(super) item: T,
}

/// The virtual start of a request; then its number of arrival, for requests with the same start.
type FairQueuePosition = (u64, u64);

/// The queue of one priority.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    items: BTreeMap<FairQueuePosition, QueuedItem<T>>,
    flows: HashMap<FlowId, FlowState>,
    /// The virtual start of the request that was served last.
    virtual_time: u64,
    arrivals: u64,
}

/// The state of one flow.
#[derive(Debug, Clone, Copy, Default)]
struct FlowState {
    /// When its last request ends.
    virtual_finish: u64,
    /// How many of its requests wait.
    waiting: usize,
}

impl<T> FairQueue<T> {
    pub(super) fn new() -> FairQueue<T> {
        FairQueue { items: BTreeMap::new(), flows: HashMap::new(), virtual_time: 0, arrivals: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// How many flows are remembered.
    #[cfg(test)]
    pub(super) fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// How many calls wait.
    pub(super) fn calls(&self) -> u32 {
        self.items.values().map(|waiting| waiting.calls).sum()
    }

    /// How many calls are ahead of one more of that flow.
    pub(super) fn calls_before(&self, flow: FlowId) -> u32 {
        let begins = self.virtual_start(flow);
        self.items.range(..=(begins, u64::MAX)).map(|(_, waiting)| waiting.calls).sum()
    }

    /// How many requests of that flow wait.
    pub(super) fn waiting_of(&self, flow: FlowId) -> usize {
        self.flows.get(&flow).map_or(0, |turn| turn.waiting)
    }

    pub(super) fn push(&mut self, waiting: QueuedItem<T>) {
        let begins = self.advance_flow(waiting.flow, waiting.calls);
        if let Some(turn) = self.flows.get_mut(&waiting.flow) {
            turn.waiting += 1;
        }
        self.arrivals += 1;
        self.items.insert((begins, self.arrivals), waiting);
        self.prune_flows();
    }

    /// Notes a turn of that flow, which may be over already; returns when it begins.
    pub(super) fn advance_flow(&mut self, flow: FlowId, calls: u32) -> u64 {
        let begins = self.virtual_start(flow);
        self.flows.entry(flow).or_default().virtual_finish = begins + u64::from(calls);
        begins
    }

    /// Who goes next.
    pub(super) fn peek(&self) -> Option<&QueuedItem<T>> {
        self.items.first_key_value().map(|(_, waiting)| waiting)
    }

    /// Takes out who goes next.
    pub(super) fn pop(&mut self) -> Option<QueuedItem<T>> {
        let ((begins, _), waiting) = self.items.pop_first()?;
        self.virtual_time = self.virtual_time.max(begins);
        self.record_departure(waiting.flow);
        Some(waiting)
    }

    /// Takes out the youngest of the flow that has most in the line, where that is more than so many.
    pub(super) fn evict(&mut self, more_than: usize) -> Option<QueuedItem<T>> {
        let most = self.flows.iter().max_by_key(|(flow, turn)| (turn.waiting, **flow))?;
        let flow = *most.0;
        if most.1.waiting <= more_than {
            return None;
        }
        let place = *self.items.iter().rfind(|(_, waiting)| waiting.flow == flow)?.0;
        let youngest = self.items.remove(&place)?;
        // It has not had that turn.
        if let Some(turn) = self.flows.get_mut(&flow) {
            turn.virtual_finish = place.0;
        }
        self.record_departure(flow);
        Some(youngest)
    }

    /// Removes the items for which `keep` is false: their callers have left before their turn.
    pub(super) fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        let before = self.items.len();
        self.items.retain(|_, waiting| keep(&waiting.item));
        if self.items.len() == before {
            return;
        }
        self.flows.values_mut().for_each(|turn| turn.waiting = 0);
        for waiting in self.items.values() {
            self.flows.entry(waiting.flow).or_default().waiting += 1;
        }
        self.prune_flows();
    }

    fn virtual_start(&self, flow: FlowId) -> u64 {
        self.flows.get(&flow).map_or(self.virtual_time, |turn| turn.virtual_finish.max(self.virtual_time))
    }

    fn record_departure(&mut self, flow: FlowId) {
        if let Some(turn) = self.flows.get_mut(&flow) {
            turn.waiting = turn.waiting.saturating_sub(1);
        }
        self.prune_flows();
    }

    /// Who has nobody in the line and no turn beyond now is as any other. Where nobody waits, nobody is owed anything.
    fn prune_flows(&mut self) {
        if self.items.is_empty() {
            self.flows.clear();
            return;
        }
        let (now, room) = (self.virtual_time, self.items.len() * FLOWS_PER_ITEM + 16);
        if self.flows.len() > room {
            self.flows.retain(|_, turn| turn.waiting > 0 || turn.virtual_finish > now);
        }
        if self.flows.len() > room {
            self.flows.retain(|_, turn| turn.waiting > 0);
        }
    }
}
