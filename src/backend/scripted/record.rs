//! What a scripted backend remembers of its calls.

use std::sync::Arc;

use tokio::sync::watch;

use crate::backend::Call;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was refused before it began.
    Refused,
    /// It is under way.
    Running,
    /// Its end was delivered.
    Finished,
    /// It broke.
    Failed,
    /// It was dropped before its end.
    Cancelled,
}

/// One call.
#[derive(Debug, Clone)]
pub struct Record {
    /// What was asked.
    pub call: Call,
    /// How many pieces were delivered.
    pub delivered: usize,
    /// What became of it.
    pub state: State,
}

#[derive(Debug, Clone)]
pub(super) struct Records(Arc<watch::Sender<Vec<Record>>>);

impl Default for Records {
    fn default() -> Records {
        Records(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl Records {
    pub(super) fn add(&self, call: Call) -> Entry {
        let mut turn = 0;
        self.0.send_modify(|records| {
            turn = records.len();
            records.push(Record { call, delivered: 0, state: State::Running });
        });
        Entry { records: self.clone(), turn }
    }

    pub(super) fn all(&self) -> Vec<Record> {
        self.0.borrow().clone()
    }

    pub(super) async fn until(&self, wanted: impl Fn(&[Record]) -> bool) -> Vec<Record> {
        let mut changes = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail; were it gone, what there is is the answer.
        let found = changes.wait_for(|records| wanted(records)).await;
        found.map(|records| records.clone()).unwrap_or_default()
    }
}

/// The record of a call under way; dropping it cancels the call.
#[derive(Debug)]
pub(super) struct Entry {
    records: Records,
    turn: usize,
}

impl Entry {
    pub(super) fn turn(&self) -> usize {
        self.turn
    }

    pub(super) fn delivered(&self) -> usize {
        self.records.0.borrow().get(self.turn).map_or(0, |record| record.delivered)
    }

    pub(super) fn deliver(&self) {
        self.change(|record| record.delivered += 1);
    }

    pub(super) fn end(&self, state: State) {
        self.change(|record| record.state = state);
    }

    fn change(&self, change: impl FnOnce(&mut Record)) {
        self.records.0.send_modify(|records| {
            if let Some(record) = records.get_mut(self.turn) {
                change(record);
            }
        });
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.change(|record| {
            if record.state == State::Running {
                record.state = State::Cancelled;
            }
        });
    }
}
