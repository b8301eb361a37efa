//! How a request ended, in the word of metrics and the books. Whose answer the end of this process cut off did not leave by themselves.

use crate::gateway::request::RequestContext;
use crate::gateway::run::{AttemptResult, RequestOutcome};
use stint_types::tasks::Tasks;

/// How it ended, whose outcome this is.
pub(super) fn of_outcome(context: &RequestContext, outcome: &RequestOutcome<'_>) -> &'static str {
    match outcome.result {
        AttemptResult::HungUp => of_unheard(&context.parts().tasks),
        _ => outcome.ended(),
    }
}

/// How one ended that nobody hears the end of.
pub(in crate::gateway) fn of_unheard(tasks: &Tasks) -> &'static str {
    if tasks.is_force_stopping() { "failed" } else { "hung_up" }
}
