//! The settings of one model behind OpenAI's chat completions.

use std::sync::Arc;

use crate::remote::caller_options::OpenAiToolChoice;
use crate::remote::{self, CachePolicy};
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_types::catalog::{ConversationRules, MemberAction};
use stint_types::chat::{Request, ThoughtSigner};
use stint_types::units::Tokens;

use super::chat_scope::ResponsesRule;
use super::dialect::Dialect;

/// What asks for the answer in a new turn, behind the thought that was cut. `{thought}` stands for it.
pub const NEW_TURN_PROMPT: &str = "Here is the reasoning so far, which was cut off:\n\n<reasoning>\n{thought}\n</reasoning>\n\n\
                        Give the final answer now, from this reasoning and without any more of it.";

/// How one model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the upstream is reached.
    pub client: remote::Settings,
    /// The name that callers use; what was signed under it is given back.
    pub name: Arc<str>,
    /// What the upstream calls the model.
    pub model: String,
    /// How the upstream is spoken to.
    pub dialect: Dialect,
    /// The tag that begins a thought inside the content.
    pub start_tag: String,
    /// The tag that closes a thought inside the content.
    pub end_tag: String,
    /// True if the chat template opens the thought, so that the content shows only its end.
    pub starts_in_thinking: bool,
    /// What closes a thought that was cut, where it is resumed: a sentence, if any, and the tag, which is left out where
    /// the upstream writes it itself.
    pub hand_off: String,
    /// How the model writes its tool calls, where they can be read out of its raw text.
    pub tool_syntax: Option<ToolCallSyntax>,
    /// What asks for the answer in a new turn, with `{thought}` in it.
    pub new_turn_prompt: String,
    /// How many tokens the template puts behind the tag that begins a thought. The upstream counts them as thought, so they
    /// are added to a budget that it holds.
    pub opening_tokens: Tokens,
    /// How many tokens the upstream itself puts in where it closes a thought: they count against its limit.
    pub closing_tokens: Tokens,
    /// What goes to Responses instead.
    pub responses: ResponsesRule,
    /// Whether the model thinks; nothing if its chat template is to tell, as far as that can be asked for.
    pub thinks: Option<bool>,
    /// True if the model cannot be kept from thinking, though its upstream has a word for that.
    pub thinks_always: bool,
    /// True if its answers can be held to a schema. Else the schema is told in words, and JSON is asked for.
    pub schemas: bool,
    /// True if it takes penalties for tokens that came before; else they are left out.
    pub penalties: bool,
    /// What its provider asks of a conversation that goes on.
    pub rules: ConversationRules,
    /// When prompts are marked for its provider's cache, where it takes such marks.
    pub cache: CachePolicy,
}

impl Settings {
    /// False for `metadata` where a provider's own API would get it: OpenAI refuses it unless it may store the answer, and tags and
    /// episodes are the gateway's. Servers that take any member, other gateways among them, get it.
    pub(super) fn takes_gateway_metadata(&self, member: &str) -> bool {
        member != "metadata" || self.client.members.action_for(member) == MemberAction::Pass
    }

    /// Whether the end of a request's instructions is marked for the provider's cache: all that begins alike is found again
    /// there. How far a conversation has come, the provider marks by itself.
    pub(super) fn marks_instructions(&self, request: &Request) -> bool {
        self.rules.cache_breakpoints
            && request.cache_breakpoints().next().is_none()
            && self.cache.keeps(request, self.rules.cache_min, &self.client.images)
    }

    /// Whether the model can be kept from thinking.
    pub(super) fn turns_off(&self) -> bool {
        !self.thinks_always && self.dialect.turns_off()
    }

    /// Whether a request forces a tool on a model that cannot think then.
    pub(super) fn forces_unthought(&self, request: &Request) -> bool {
        let is_refused = self.dialect.forces_unthought || self.rules.refuses_forced_tools;
        let choice = || OpenAiToolChoice::of(request).ok().flatten();
        is_refused && !request.tools.is_empty() && choice().is_some_and(|choice| choice.is_forced())
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
            name: "".into(),
            model: String::new(),
            dialect: Dialect::default(),
            start_tag: "<think>".to_owned(),
            end_tag: "</think>".to_owned(),
            starts_in_thinking: false,
            hand_off: "\n</think>\n\n".to_owned(),
            tool_syntax: None,
            new_turn_prompt: NEW_TURN_PROMPT.to_owned(),
            opening_tokens: Tokens::ZERO,
            closing_tokens: Tokens::ZERO,
            responses: ResponsesRule::default(),
            thinks: None,
            thinks_always: false,
            schemas: true,
            penalties: true,
            rules: ConversationRules::default(),
            cache: CachePolicy::default(),
        }
    }
}
