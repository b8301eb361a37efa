//! A request while it runs, as every function of this stage gets it.

use crate::execute::EventSender;
use crate::gateway::RequestUpdate;
use crate::gateway::request::RequestContext;

/// A request while it runs: what is known of it, and where what happens to it goes. A closed channel means that its caller has
/// left.
#[derive(Clone, Copy)]
pub(crate) struct RunningRequest<'r> {
    pub(crate) context: &'r RequestContext,
    pub(crate) updates: &'r EventSender<RequestUpdate>,
}
