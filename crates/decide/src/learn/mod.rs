//! What outcomes teach: corrections of the prior's predictions, and the price of money that holds a budget's pace.
//!
//! Pure. [`BeliefStore::observe`] takes in one outcome, [`BeliefStore::adjust`] turns a prior demand into what is believed now,
//! with the spread of that belief; a draw from it belongs to `plan`. What was learned is plain data ([`LearnedState`]) that
//! survives restarts and adds up over replicas. [`BudgetPacer`] holds an account to its budget, and [`SuccessPacer`] a route to a
//! stated success. Neither reads a clock: the time is an argument.
//!
//! The configuration's `[learn]` sets `forget`, `prior_weight` and `spread` of [`Settings`]. The others, and all of
//! [`PaceSettings`], keep their defaults. The floor of exploration belongs to a route. Replicas must agree on `forget`.

mod belief;
mod belief_snapshot;
mod belief_store;
mod budget_pacer;
mod decayed_sums;
mod evidence;
mod features;
mod length_tails;
mod lengths;
mod level_pool;
mod matrix;
mod model_belief;
mod model_state;
mod observation;
mod outcome_sample;
mod recipe_watch;
mod repeats;
mod settings;
mod shared_belief;
mod shared_levels;
mod shared_sums;
mod slopes;
mod state;
mod success_pacer;
#[cfg(test)]
mod tests;
mod thought_lengths;
mod thought_requests;
mod thought_words;
mod token_ratios;
mod variances;
mod word_sums;

pub use belief_snapshot::BeliefSnapshot;
pub use belief_store::BeliefStore;
pub use budget_pacer::{BudgetPacer, PaceSettings, RemainingBudget};
pub use model_state::ModelState;
pub use observation::JudgementMark;
pub use outcome_sample::OutcomeSample;
pub use recipe_watch::{
    CanaryEvidence, CanaryWatch, RECIPE_RETRY, RECIPE_TRIAL, SamplingEvidence, SamplingWatch,
    SuspensionReason,
};
pub use settings::Settings;
pub use state::{LearnedState, StateError};
pub use success_pacer::SuccessPacer;
pub use token_ratios::TokenRatios;
