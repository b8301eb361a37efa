//! How a request ended, in the word of metrics and the books. Whose answer the end of this process cut off did not leave by themselves.

use crate::gateway::request::RequestContext;
use crate::gateway::run::{AttemptResult, RequestOutcome};

/// How it ended, whose outcome this is.
pub(super) fn of_outcome(context: &RequestContext, outcome: &RequestOutcome<'_>) -> &'static str {
    match outcome.result {
        AttemptResult::HungUp => of_unheard(context),
        _ => outcome.ended(),
    }
}

/// How one ended that nobody hears the end of.
pub(super) fn of_unheard(context: &RequestContext) -> &'static str {
    if context.parts().tasks.is_force_stopping() { "failed" } else { "hung_up" }
}
