//! The settings of one model of Anthropic.

use std::sync::Arc;

use crate::remote::{self, CachePolicy};
use stint_types::catalog::ConversationRules;
use stint_types::chat::{ThoughtSigner, VendorHeaders};
use stint_types::units::{Price, Tokens};

/// The least budget of a thought that the API takes.
pub const BUDGET_MIN: Tokens = Tokens(1024);
/// The header that says which version of the API is spoken.
pub(in crate::remote) const VERSION_HEADER: &str = "anthropic-version";
/// The header that asks for features before their release.
const BETA_HEADER: &str = "anthropic-beta";

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnthropicThinking {
    /// It does not think, and is sent nothing.
    Never,
    /// With a budget of at least [`BUDGET_MIN`]: `thinking: {type: enabled, budget_tokens}`.
    #[default]
    Budget,
    /// As much as it sees fit: `thinking: {type: adaptive}`, and `output_config: {effort}` where there is one.
    Adaptive,
}

/// How a model is asked not to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnthropicThinkingOff {
    /// By saying nothing.
    #[default]
    Omitted,
    /// `thinking: {type: disabled}`, for models that would think without it.
    Disabled,
    /// `thinking: {type: between_tools}`, for models that can be kept from thinking up front, but not between tool calls.
    BetweenTools,
    /// It cannot be asked.
    Never,
}

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the upstream is reached. How the key is sent, and the API's version, need not be configured.
    pub client: remote::Settings,
    /// What the upstream calls the model.
    pub model: String,
    /// What callers call it: what it signs goes back to this name only.
    pub name: Arc<str>,
    /// How it is asked to think.
    pub thinking: AnthropicThinking,
    /// How it is asked not to.
    pub thinking_off: AnthropicThinkingOff,
    /// Asks for its thoughts to be shown: newer models leave them out otherwise, older ones do not know the member.
    pub asks_for_thoughts: bool,
    /// True if it takes `temperature`, `top_p` and `top_k`, at least while it does not think: so do models up to
    /// Claude 4.6, by the API's older version. Else the newer one is spoken, and they are left out.
    pub sampling: bool,
    /// When the provider is to keep the prompt in its cache, which has a price.
    pub cache: CachePolicy,
    /// True if its answers and calls can be held to a schema.
    pub schemas: bool,
    /// What it is paid for a token that it writes, where that is known.
    pub price_output: Option<Price>,
    /// What its provider asks of a conversation that goes on.
    pub rules: ConversationRules,
    /// The most that it writes in one call, where that is known.
    pub output_max: Option<Tokens>,
    /// Its context, where that is known.
    pub context: Option<Tokens>,
    /// What stands before a thought that was cut, when the answer is asked for.
    pub thought_so_far: String,
    /// What asks for the answer after it.
    pub answer_now: String,
}

impl Settings {
    /// Who signs what it says.
    pub(super) fn signer(&self) -> ThoughtSigner {
        ThoughtSigner { model: self.name.clone(), domain: self.client.origin() }
    }

    /// The version of the API that is spoken to a caller's request: the caller's, where it goes on, or else the one in which the
    /// model's members are.
    pub(super) fn version(&self, said: Option<&'static str>) -> &'static str {
        let usual = if self.sampling { VendorHeaders::VERSION_WITH_SAMPLING } else { VendorHeaders::VERSION };
        said.filter(|_| self.client.caller_headers.version).unwrap_or(usual)
    }

    /// Whether `temperature` and its like may be sent with a caller's request.
    pub(super) fn samples(&self, said: &VendorHeaders) -> bool {
        self.sampling && self.version(said.version) == VendorHeaders::VERSION_WITH_SAMPLING
    }

    /// The headers of a request alone: what it has of its caller's, and what its own body needs.
    pub(super) fn headers(
        &self,
        said: &VendorHeaders,
        needed: &[&'static str],
    ) -> Vec<(&'static str, String)> {
        let version = (self.version(said.version) != self.version(None))
            .then(|| (VERSION_HEADER, self.version(said.version).to_owned()));
        let betas = self.client.caller_headers.beta_header(said, needed).map(|betas| (BETA_HEADER, betas));
        version.into_iter().chain(betas).collect()
    }

    /// Whether it goes on with the beginning of an answer. Models that think as much as they see fit refuse one ("does not support
    /// assistant message prefill").
    pub fn goes_on(&self) -> bool {
        self.thinking != AnthropicThinking::Adaptive && self.thinking_off != AnthropicThinkingOff::Never
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: remote::Settings::default(),
            model: String::new(),
            name: "".into(),
            thinking: AnthropicThinking::default(),
            thinking_off: AnthropicThinkingOff::default(),
            asks_for_thoughts: false,
            sampling: true,
            schemas: true,
            cache: CachePolicy::default(),
            price_output: None,
            rules: ConversationRules::default(),
            output_max: None,
            context: None,
            thought_so_far: "Your reasoning on this so far, which ran out of time:".to_owned(),
            answer_now:
                "Do not go on reasoning. Take the next step or give the final answer now, from what you \
                         have."
                    .to_owned(),
        }
    }
}
