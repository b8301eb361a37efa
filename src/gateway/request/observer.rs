//! Somebody beside the caller who wants to know how a request ends: the log of requests.

use std::fmt;
use std::sync::Arc;

use stint_types::catalog::DecisionOutcome;

/// Follows one request. It is let go of when nothing more can be told of it, which may be after the caller has gone.
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// A call for it goes to this target of a model.
    fn dispatched(&self, model: &Arc<str>, target: &Arc<str>);

    /// It is over, and settled.
    fn settled(&self, outcome: &DecisionOutcome);
}
