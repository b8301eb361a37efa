//! What a caller is told at the end of a request.

use std::sync::Arc;

use crate::catalog::{Class, Spent};
use crate::chat::Finish;
use crate::units::{Money, RequestId, Tokens};

/// The settled account of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Receipt {
    /// The request.
    pub id: RequestId,
    /// Who did it.
    pub model: Arc<str>,
    /// How the budgets were held.
    pub class: Class,
    /// The thinking budget of each choice.
    pub thinking: Tokens,
    /// The solution budget of each choice.
    pub solution: Tokens,
    /// Each choice's account, in order.
    pub choices: Vec<Settled>,
    /// What it cost.
    pub cost: Money,
    /// What was reserved for it.
    pub reserved: Money,
    /// Attempts that were given up before this one.
    pub attempts: u32,
    /// All tokens of those attempts.
    pub given_up: Tokens,
    /// One line on what decided.
    pub why: String,
}

/// One choice's end.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// Why it ended.
    pub finish: Finish,
    /// What it took.
    pub spent: Spent,
}
