//! A majority vote that stops as early as possible: answers in, decisions out. Pure.
//!
//! `ballot` counts and decides, `overtake_risk` estimates how likely and how much further samples could change the result,
//! `compare` recognises equal answers, and `written_number` reads the numbers in them.

mod ballot;
mod compare;
mod overtake_risk;
#[cfg(test)]
mod tests;
mod written_number;

pub use ballot::{AnswerVotes, Ballot, StoppingRule, VoteStep, VoteStopReason};
pub use compare::answer_key;
