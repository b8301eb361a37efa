//! The operator's settings for a choice among models: its worth, its votes, its second opinions, its rollout.

mod odds;
mod opinion;
mod recipe;
mod rollout;
mod route;
mod turns;
mod vote;

pub use odds::{VoteAssumptions, VoteForecast, VoteOdds};
pub use opinion::{Checker, DifficultyProbe, VerifierSettings};
pub use recipe::{Canary, Recipe};
pub use rollout::{RolloutMode, TrafficSplit};
pub use route::{Route, TrialBounds};
pub use turns::TurnRule;
pub use vote::{AnswerComparison, Vote, VotePolicy};
