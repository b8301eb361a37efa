//! Agents: episodes, tool budgets, the tracker, stored responses and conversations.
//!
//! Everything here but the stores is pure. From the state of an episode it decides what a step may do, and which parts of
//! its answer pass. It reads no clock and uses no randomness. Only the ledger counts what was spent. What a client sends
//! of an episode's history can only make the limits tighter.

mod additions;
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
mod write_limiter;

pub use additions::{AddedWords, Addition, Additions, PlacedAddition, put_back};
pub use answer_call_limits::AnswerCallLimits;
pub use budget_level::BudgetLevel;
pub use cached::CachedEpisodes;
pub use counted_prompt::CountedPrompt;
pub use dead_end::DeadEnd;
pub use hash_chain::{HashChain, HistoryHash, ReplyPlace};
pub use headroom::Headroom;
pub use history::{History, HistoryTooLong};
pub use memory::MemoryEpisodes;
pub use pressure::pressure;
pub use settings::{BudgetThresholds, Settings, TrackerMessages};
pub use step::{
    ExhaustedBudget, Finality, RouteTurns, StepDecision, StepInput, StepPlan, StepRetry, StepWait,
};
pub use step_evaluator::decide_step;
pub use store::{
    AnsweredStep, BrokenOffStep, EpisodeEnding, EpisodeLength, EpisodeOwner, EpisodeStore, EpisodesError,
    IdenticalEpisode, LastStep, StoredEpisode,
};
pub use terms::{ToolTerms, Tools};
pub use tool_call_trimmer::{ToolCallTrimmer, TrimResult};
pub use turns::{TurnCap, TurnObservation, TurnStatistics};
pub use write_limiter::WriteLimiter;

#[cfg(test)]
mod tests;
