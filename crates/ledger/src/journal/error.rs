//! The error of a journal or a coordinator.

use super::DatabaseFault;

/// A journal that did not do its work. Whether the entries are in it is unknown; appending them again is safe.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct JournalError {
    message: String,
    #[source]
    source: Option<std::sync::Arc<dyn std::error::Error + Send + Sync>>,
    is_lease_lost: bool,
    fault: Option<DatabaseFault>,
}

impl JournalError {
    /// A failure without a deeper cause.
    pub fn new(message: impl Into<String>) -> JournalError {
        JournalError { message: message.into(), source: None, is_lease_lost: false, fault: None }
    }

    /// A failure with its cause.
    pub fn caused(
        message: impl Into<String>,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> JournalError {
        let source = Some(std::sync::Arc::new(source) as std::sync::Arc<dyn std::error::Error + Send + Sync>);
        JournalError { message: message.into(), source, is_lease_lost: false, fault: None }
    }

    /// The replica's lease has run out, and others have reclaimed it.
    pub fn lease_lost() -> JournalError {
        let message = "this replica's lease has run out; what it left open is posted; it registers again";
        JournalError { is_lease_lost: true, ..JournalError::new(message) }
    }

    /// The same, with what is known of why the database does not work.
    #[must_use]
    pub fn with_fault(self, fault: impl Into<Option<DatabaseFault>>) -> JournalError {
        JournalError { fault: fault.into(), ..self }
    }

    /// Why the database does not work, where that is known.
    pub fn fault(&self) -> Option<DatabaseFault> {
        self.fault
    }

    /// True if nothing can be written any more under this lease.
    pub fn is_lease_lost(&self) -> bool {
        self.is_lease_lost
    }
}

impl PartialEq for JournalError {
    fn eq(&self, other: &JournalError) -> bool {
        self.message == other.message
    }
}

impl Eq for JournalError {}
