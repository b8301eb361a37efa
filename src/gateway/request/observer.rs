//! `RequestObserver`: follows a request until it is settled, beside its caller. The request log is one.

use std::fmt;
use std::sync::Arc;

use stint_types::catalog::DecisionOutcome;

/// Follows one request. It is dropped when nothing more can happen to it, which may be after the caller has gone.
pub trait RequestObserver: fmt::Debug + Send + Sync {
    /// A call for it goes to this target of a model.
    fn dispatched(&self, model: &Arc<str>, target: &Arc<str>);

    /// It is over, and settled.
    fn settled(&self, outcome: &DecisionOutcome);
}
