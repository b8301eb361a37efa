//! What a scripted backend records of its calls.

use std::sync::Arc;

use tokio::sync::watch;

use crate::BackendCall;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
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
pub struct CallRecord {
    /// What was asked.
    pub call: BackendCall,
    /// How many pieces were delivered.
    pub delivered: usize,
    /// What became of it.
    pub state: CallState,
}

#[derive(Debug, Clone)]
pub(super) struct CallLog(Arc<watch::Sender<Vec<CallRecord>>>);

impl Default for CallLog {
    fn default() -> CallLog {
        CallLog(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl CallLog {
    pub(super) fn add(&self, call: BackendCall) -> CallLogEntry {
        let mut turn = 0;
        self.0.send_modify(|records| {
            turn = records.len();
            records.push(CallRecord { call, delivered: 0, state: CallState::Running });
        });
        CallLogEntry { records: self.clone(), turn }
    }

    pub(super) fn all(&self) -> Vec<CallRecord> {
        self.0.borrow().clone()
    }

    pub(super) async fn until(&self, wanted: impl Fn(&[CallRecord]) -> bool) -> Vec<CallRecord> {
        let mut changes = self.0.subscribe();
        // The sender lives in `self`, so waiting cannot fail; were it gone, what there is is the answer.
        let found = changes.wait_for(|records| wanted(records)).await;
        found.map(|records| records.clone()).unwrap_or_default()
    }
}

/// The record of a call under way; dropping it cancels the call.
#[derive(Debug)]
pub(super) struct CallLogEntry {
    records: CallLog,
    turn: usize,
}

impl CallLogEntry {
    pub(super) fn turn(&self) -> usize {
        self.turn
    }

    pub(super) fn delivered(&self) -> usize {
        self.records.0.borrow().get(self.turn).map_or(0, |record| record.delivered)
    }

    pub(super) fn deliver(&self) {
        self.change(|record| record.delivered += 1);
    }

    pub(super) fn end(&self, state: CallState) {
        self.change(|record| record.state = state);
    }

    fn change(&self, change: impl FnOnce(&mut CallRecord)) {
        self.records.0.send_modify(|records| {
            if let Some(record) = records.get_mut(self.turn) {
                change(record);
            }
        });
    }
}

impl Drop for CallLogEntry {
    fn drop(&mut self) {
        self.change(|record| {
            if record.state == CallState::Running {
                record.state = CallState::Cancelled;
            }
        });
    }
}
