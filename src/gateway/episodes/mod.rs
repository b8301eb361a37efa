//! Requests as steps of episodes of agents: which episode a request belongs to, what the step may do, which parts of its
//! answer pass, and what is stored afterwards. The decisions are in `agent`, which is pure; the counting is in the ledger.

mod checkout;
mod inner;
pub(super) mod join;
pub(super) mod manager;
mod non_turn_spend;
pub(super) mod running_step;
mod snapshot;
mod upkeep;
mod view;
pub(super) mod wait;

use stint_types::chat::{Request, Role};

pub use manager::EpisodeManager;
pub use snapshot::EpisodeSnapshot;
pub use view::EpisodeView;

pub(super) use non_turn_spend::NonTurnSpend;
pub(super) use running_step::{PassedToolCalls, RunningStep, StepAnswers};

/// True for a request that belongs to an episode: its caller names one, or it uses tools.
pub(super) fn is_step(request: &Request) -> bool {
    let budget = &request.budget;
    let tools = !request.tools.is_empty();
    tools || budget.episode.is_some() || !budget.episode_limits.is_empty() || has_results(request)
}

fn has_results(request: &Request) -> bool {
    request.messages.iter().any(|message| message.role == Role::Tool)
}
