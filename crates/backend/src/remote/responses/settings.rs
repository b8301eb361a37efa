//! The settings of one model behind OpenAI's Responses.

use std::sync::Arc;

use crate::remote::{self, CachePolicy};
use stint_types::catalog::ConversationRules;
use stint_types::chat::{Request, ThoughtSigner};

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the upstream is reached.
    pub client: remote::Settings,
    /// What the upstream calls the model.
    pub model: String,
    /// What callers call it: its reasoning goes back to this name only.
    pub name: Arc<str>,
    /// True for a model that reasons. Others refuse reasoning parameters, and take `temperature` and `top_p` instead.
    pub can_reason: bool,
    /// Asks for summaries of its reasoning, which some providers show to verified organisations only.
    pub summaries: bool,
    /// What its provider asks of a conversation that goes on.
    pub rules: ConversationRules,
    /// When prompts are marked for its provider's cache, where it takes such marks.
    pub cache: CachePolicy,
}

impl Settings {
    /// Whether the end of a request's instructions is marked for the provider's cache, as with chat completions.
    pub(super) fn marks_instructions(&self, request: &Request) -> bool {
        self.rules.cache_breakpoints
            && request.cache_breakpoints().next().is_none()
            && self.cache.keeps(request, self.rules.cache_min, &self.client.images)
    }

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
            can_reason: true,
            summaries: true,
            rules: ConversationRules::default(),
            cache: CachePolicy::default(),
        }
    }
}
