//! Agents: episodes, tool budgets, the tracker, stored responses and conversations.
//!
//! Everything here but the stores is pure: given how an episode stands it says what a step may do, and what of its answer
//! may pass. It asks no clock and rolls no dice. What was spent is counted by the ledger alone; what a client sends of a
//! run's history may only tighten it.

mod allowed_tools;
mod answer_call_limits;
mod arguments;
mod budget_level;
mod cached;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod conversations;
mod counted_prompt;
mod dead_end;
mod hash_chain;
mod headroom;
mod history;
mod memory;
mod object_scanner;
mod pressure;
mod settings;
mod step;
mod step_evaluator;
mod store;
pub mod stored;
mod terms;
mod tool_call_trimmer;
mod tracker;
mod turns;

pub use allowed_tools::without_tools;
pub use answer_call_limits::AnswerCallLimits;
pub use budget_level::BudgetLevel;
pub use cached::CachedEpisodes;
pub use counted_prompt::CountedPrompt;
pub use dead_end::DeadEnd;
pub use hash_chain::{HashChain, HistoryHash};
pub use headroom::Headroom;
pub use history::{History, HistoryTooLong};
pub use memory::MemoryEpisodes;
pub use pressure::pressure;
pub use settings::{BudgetThresholds, Settings, TrackerMessages};
pub use step::{ExhaustedBudget, Finality, RouteTurns, StepDecision, StepInput, StepPlan, StepWait};
pub use step_evaluator::decide_step;
pub use store::{
    AnsweredStep, EpisodeEnding, EpisodeLength, EpisodeStore, EpisodesError, IdenticalEpisode, LastStep,
    StoredEpisode,
};
pub use terms::{ToolTerms, Tools};
pub use tool_call_trimmer::{ToolCallTrimmer, TrimResult};
pub use turns::{TurnCap, TurnObservation, TurnStatistics};

#[cfg(test)]
mod tests;
