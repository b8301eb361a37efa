//! The settings of a hook.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;

use stint_types::units::AccountId;

/// A hook that judges requests, answers or both.
#[derive(Debug, Clone, PartialEq)]
pub struct GuardrailSettings {
    /// What the metrics call it.
    pub name: Arc<str>,
    /// Where it is called.
    pub url: Url,
    /// What calls are signed with.
    pub secret: GuardrailSecret,
    /// Whether it judges requests before they run.
    pub before: bool,
    /// Whether it judges answers before they are given.
    pub after: bool,
    /// The names that it judges requests for, as callers ask; all where this is empty.
    pub models: Vec<String>,
    /// The accounts whose requests it judges, with all below them; all where this is empty.
    pub accounts: Vec<AccountId>,
    /// How long it may take.
    pub deadline: Duration,
    /// What happens where it does not judge.
    pub on_failure: FailurePolicy,
}

/// What happens to what a hook does not judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It passes.
    Open,
    /// It is refused.
    Closed,
}

/// What the hook knows calls of this gateway by. It does not show itself.
#[derive(Clone, PartialEq, Eq)]
pub struct GuardrailSecret(String);

impl GuardrailSecret {
    /// Keeps the text to itself.
    pub fn new(text: String) -> GuardrailSecret {
        GuardrailSecret(text)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for GuardrailSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuardrailSecret(…)")
    }
}
