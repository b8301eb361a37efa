//! The settings of one Gemini model.

use std::sync::Arc;

use crate::remote;
use stint_types::chat::ThoughtSigner;

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GeminiThinking {
    /// It does not think, and is sent nothing.
    Never,
    /// `thinkingBudget`: so many tokens, 0 for none.
    #[default]
    Budget,
    /// `thinkingLevel`: a word.
    Level,
}

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the upstream is reached. How the key is sent need not be configured.
    pub client: remote::Settings,
    /// What the upstream calls the model.
    pub model: String,
    /// What callers call it: what it signs goes back to this name only.
    pub name: Arc<str>,
    /// How it is asked to think.
    pub thinking: GeminiThinking,
    /// Asks for summaries of its thoughts.
    pub summaries: bool,
    /// True if it takes penalties for tokens that came before; else they are left out.
    pub penalties: bool,
    /// What stands for a signature on a call that another model made, where calls without one are refused.
    pub placeholder_signature: Option<String>,
}

impl Settings {
    /// Who signs what it says.
    pub(super) fn signer(&self) -> ThoughtSigner {
        ThoughtSigner { model: self.name.clone(), domain: self.client.origin() }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: remote::Settings::default(),
            model: String::new(),
            name: "".into(),
            thinking: GeminiThinking::default(),
            summaries: true,
            penalties: true,
            placeholder_signature: None,
        }
    }
}

/// What Google takes in place of a signature that there cannot be.
pub const PLACEHOLDER_SIGNATURE: &str = "skip_thought_signature_validator";
