//! Hooks of the operator's that judge requests before they run, and answers before they are given: allow, refuse or rewrite.
//!
//! A hook is called over HTTP with the content of the one request that it judges, and of no other. It has a deadline, and what
//! happens where it fails is the operator's choice. Which requests it judges goes by their account and by the name that they ask
//! for. It knows conversations and nothing of APIs.

mod chain;
mod hook;
mod hooks;
mod settings;
mod verdict;
mod wire;

pub use chain::{GuardrailChain, JudgedChoice};
pub use hooks::{Guardrails, GuardrailsError};
pub use settings::{FailurePolicy, GuardrailSecret, GuardrailSettings};
pub use verdict::{AnswerVerdict, Objection};
