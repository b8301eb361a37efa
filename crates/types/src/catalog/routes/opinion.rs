//! Second opinions that a route may ask for: on answers, and on how hard a question is.

use std::sync::Arc;
use std::time::Duration;

use crate::units::{Chance, Tokens};

/// An operator's own check of answers.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifierSettings {
    /// Who checks.
    pub by: Checker,
    /// The score from which on an answer is good enough: no more samples are made then, and nobody else is asked.
    pub floor: Chance,
    /// How long one check may take, its wait for a place included.
    pub timeout: Duration,
    /// How many checks run at once; others wait.
    pub concurrency: usize,
}

/// Who checks answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checker {
    /// A program and its arguments, never a shell.
    Command(Vec<String>),
    /// An address to post to.
    Url(String),
}

/// A small model whose drafts tell how hard a question is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifficultyProbe {
    /// Who drafts.
    pub model: Arc<str>,
    /// How many drafts.
    pub drafts: u32,
    /// The thinking budget of each.
    pub thinking: Tokens,
    /// The solution budget of each.
    pub tokens: Tokens,
}
