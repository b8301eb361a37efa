//! Tracks whether the database works, and since when it does not. An outage is logged once when it begins and once when it
//! ends, however often it is tried in between.

use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use crate::sync::Mutex;
use stint_types::units::Timestamp;

use super::DatabaseFault;
use super::error::JournalError;

/// An outage of the database that is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutageStatus {
    /// Since when it does not work.
    pub since: Timestamp,
    /// Why, where that is known.
    pub fault: Option<DatabaseFault>,
}

/// What all users of the database find out together.
#[derive(Debug, Default)]
pub(crate) struct DatabaseOutage {
    /// Whether there is an outage, so that a working database costs no lock.
    is_on: AtomicBool,
    began: Mutex<Option<(OutageStatus, Instant)>>,
}

impl DatabaseOutage {
    /// It did not work; `what` could not be done.
    pub(crate) fn record_failure(&self, what: &'static str, error: &JournalError) {
        let source = std::error::Error::source(error).map(ToString::to_string);
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((status, _)) = &mut *began {
            // The newest: the end of an older one is not the end of the outage.
            status.fault = error.fault().or(status.fault);
            let since = status.since;
            tracing::debug!(%error, source, what, %since, "the database is still gone");
            return;
        }
        let since = Timestamp::now();
        *began = Some((OutageStatus { since, fault: error.fault() }, Instant::now()));
        self.is_on.store(true, Ordering::Release);
        drop(began);
        tracing::error!(
            %error, source, what, %since,
            "the database is gone, or takes nothing: what cannot be recorded is refused until it is back; trying again"
        );
    }

    /// It worked.
    pub(crate) fn record_success(&self) {
        if !self.is_on.load(Ordering::Acquire) {
            return;
        }
        let mut began = self.began.lock().unwrap_or_else(PoisonError::into_inner);
        let over = began.take();
        // Before the lock is given back, so that a failure after it stands.
        self.is_on.store(false, Ordering::Release);
        drop(began);
        if let Some((OutageStatus { since, .. }, began)) = over {
            tracing::info!(%since, gone_for = ?began.elapsed(), "the database is back");
        }
    }

    /// This fault is over: so is an outage that it was the cause of.
    pub(crate) fn record_success_of(&self, fault: DatabaseFault) {
        if self.status().is_some_and(|status| status.fault == Some(fault)) {
            self.record_success();
        }
    }

    /// Since when it does not work, and why.
    pub(crate) fn status(&self) -> Option<OutageStatus> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner).map(|(status, _)| status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_begins_with_the_first_failure_and_ends_with_the_first_success() {
        let outage = DatabaseOutage::default();
        assert_eq!(outage.status(), None);
        outage.record_failure("the lease is not renewed", &JournalError::new("refused"));
        let first = outage.status().unwrap();
        assert_eq!(first.fault, None);
        let full = JournalError::new("refused").with_fault(DatabaseFault::DiskFull);
        outage.record_failure("nothing is written", &full);
        assert_eq!(outage.status(), Some(OutageStatus { fault: Some(DatabaseFault::DiskFull), ..first }));
        outage.record_failure("nothing is written", &full.with_fault(DatabaseFault::DiskFailed));
        assert_eq!(outage.status().unwrap().fault, Some(DatabaseFault::DiskFailed), "what came last");
        outage.record_success_of(DatabaseFault::DiskFull);
        assert!(outage.status().is_some(), "the end of one fault is not that of another");
        outage.record_success();
        outage.record_success();
        assert_eq!(outage.status(), None);
    }
}
