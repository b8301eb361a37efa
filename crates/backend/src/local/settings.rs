//! How a local model is spoken to, and what holds once it is loaded.

use crate::remote::prompt_cache::PromptCacheSharing;
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_types::units::Tokens;

/// Members that the local engine takes beside those that every API here knows.
pub const DOCUMENTED_MEMBERS: &[&str] = &["min_p", "repetition_penalty", "cache_salt"];

/// How the local model is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// What closes an unfinished thought: a sentence, if any, and the tag.
    pub hand_off: String,
    /// How tokens are drawn where the caller does not say.
    pub temperature: f32,
    /// Nucleus, where the caller does not say.
    pub top_p: f32,
    /// Only the k likeliest tokens, where the caller does not say; 0 for all.
    pub top_k: u32,
    /// How the model writes its tool calls, where it calls any; by its template, where nothing is said.
    pub tool_syntax: Option<ToolCallSyntax>,
    /// Who shares what the engine has cached of prompts.
    pub prompt_cache: PromptCacheSharing,
}

impl Default for Settings {
    /// What the Qwen3 family recommends for thinking.
    fn default() -> Settings {
        Settings {
            hand_off: "\n</think>\n\n".to_owned(),
            temperature: 0.6,
            top_p: 0.95,
            top_k: 20,
            tool_syntax: None,
            prompt_cache: PromptCacheSharing::default(),
        }
    }
}

/// What holds once a model is loaded, of which there are only bounds before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalModelLimits {
    /// Prompt and everything generated together.
    pub context: Tokens,
    /// The same as far as the model and the engine's `context` go: the cache may hold less.
    pub context_wanted: Tokens,
    /// What stands beside thought and answer at most.
    pub overhead: Tokens,
    /// The same where nothing is thought.
    pub unthinking_overhead: Tokens,
    /// Whether its chat template knows of thoughts at all.
    pub thinks: bool,
}
