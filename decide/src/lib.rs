//! Measures how well Stint decides, on answers that models gave long ago, and trains the prior that ships with it.
//!
//! Everything is paired: the same questions, the same folds, the same seeds for each policy and each baseline. No
//! test fold is ever fitted on, and none chooses a parameter.

pub mod data;
pub mod folds;
