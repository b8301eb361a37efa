//! Measures how well Stint decides, on answers that models gave long ago, and trains the prior that ships with it.
//!
//! Everything is paired: the same questions, the same folds, the same seeds for each policy and each baseline. No
//! test fold is ever fitted on, and none chooses a parameter.

#![expect(clippy::cast_precision_loss, clippy::print_stdout, reason = "counts of rows; a tool that prints")]

pub mod abilities;
pub mod bootstrap;
pub mod data;
pub mod folds;
pub mod free;
mod gram_table;
pub mod judged;
pub mod lengths;
pub mod measure;
pub mod online;
pub mod plot;
pub mod prior_report;
pub mod ridge;
pub mod routing;
pub mod sparse;
pub mod surface;
pub mod tfidf;
pub mod train;
pub mod unseen;
