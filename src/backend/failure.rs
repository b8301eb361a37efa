//! What can go wrong with a generation: whose fault it was, and whether trying again can help.

use std::time::Duration;

/// Whose fault a failure was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The caller asked for something impossible.
    Caller,
    /// The backend is broken or unreachable.
    Backend,
    /// The backend has no room now.
    Overload,
    /// The backend refuses our credentials or our account.
    Credential,
    /// It took too long.
    Timeout,
}

impl Fault {
    /// The word in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Fault::Caller => "caller",
            Fault::Backend => "backend",
            Fault::Overload => "overload",
            Fault::Credential => "credential",
            Fault::Timeout => "timeout",
        }
    }
}

/// A failed generation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Whose fault it was.
    pub fault: Fault,
    /// What happened, for the log and, where it is the caller's fault, for the caller.
    pub message: String,
    /// True where nothing reached a model: nothing can have been billed.
    pub unsent: bool,
    /// When the backend wants to be asked again.
    pub retry_after: Option<Duration>,
    /// The code of the error that the caller is to see, where it is the caller's fault.
    pub code: Option<&'static str>,
}

impl Failure {
    /// A failure of that kind.
    pub fn new(fault: Fault, message: impl Into<String>) -> Failure {
        Failure { fault, message: message.into(), unsent: false, retry_after: None, code: None }
    }

    /// The same, for a call that never reached a model.
    #[must_use]
    pub fn unsent(self) -> Failure {
        Failure { unsent: true, ..self }
    }

    /// The same, with the code that the caller is to see.
    #[must_use]
    pub fn code(self, code: &'static str) -> Failure {
        Failure { code: Some(code), ..self }
    }
}
