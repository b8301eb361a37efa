//! A majority vote that ends as soon as it may: answers in, decisions out. Pure.
//!
//! `ballot` counts and decides, `doubt` says how likely and how much further samples could change what was counted, and
//! `compare` says which answers are the same one.

mod ballot;
mod compare;
mod overtake_risk;
#[cfg(test)]
mod tests;

pub use ballot::{AnswerVotes, Ballot, StoppingRule, VoteStep, VoteStopReason};
pub use compare::answer_key;
