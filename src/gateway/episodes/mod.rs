//! Requests as steps of runs of agents: which run, what the step may do, what of its answer passes, and what is remembered
//! of it. All that is decided about it is decided by `agent`, which is pure; all that is counted, by the ledger.

mod agents;
mod answer;
mod beside;
mod depart;
mod handed_out;
mod join;
mod managed;
mod outlook;
mod quoted;
mod shown;
mod stepping;
mod steps;
mod told;
mod upkeep;
mod wait;

use crate::chat::{Request, Role};

pub use agents::Agents;
pub use shown::Shown;
pub use told::Told;

pub(super) use beside::Beside;
pub(super) use stepping::{Passed, Stepping};

/// True for a request that belongs to a run: its caller says so, or it has to do with tools.
pub(super) fn is_step(request: &Request) -> bool {
    let budget = &request.budget;
    let tools = !request.tools.is_empty();
    tools || budget.episode.is_some() || !budget.run.is_empty() || has_results(request)
}

fn has_results(request: &Request) -> bool {
    request.messages.iter().any(|message| message.role == Role::Tool)
}
