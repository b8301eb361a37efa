//! How a local model is spoken to, and what holds once it is loaded.

use crate::remote::prompt_cache::PromptCacheSharing;
#[cfg(feature = "local")]
use stint_engine::HAND_OFF_MAX;
use stint_prompt::tool_calls::ToolCallSyntax;
#[cfg(feature = "local")]
use stint_prompt::{PromptError, PromptFormat};
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
    /// How the model writes its tool calls, where its operator says it.
    pub tool_syntax: Option<ToolCallSyntax>,
    /// How models of its name usually write them, where its template does not show it.
    pub tool_syntax_usual: Option<ToolCallSyntax>,
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
            tool_syntax_usual: None,
            prompt_cache: PromptCacheSharing::default(),
        }
    }
}

/// What closes a thought, usually.
#[cfg(feature = "local")]
const END_TAG_USUAL: &str = "</think>";

#[cfg(feature = "local")]
impl Settings {
    /// How a model of that format writes its tool calls, where it calls any: what is stated counts for most, then the file's own
    /// template.
    pub fn syntax_in(&self, format: &PromptFormat) -> Option<ToolCallSyntax> {
        self.tool_syntax.or_else(|| format.syntax()).or(self.tool_syntax_usual)
    }

    /// The tokens that close an unfinished thought of a model of that format. Where its file has other tags than the usual ones, the
    /// text has them too.
    ///
    /// # Errors
    /// Where the text cannot be tokenized, or has more tokens than the engine takes.
    pub fn hand_off_tokens(&self, format: &PromptFormat) -> Result<Vec<u32>, PromptError> {
        let text = match format.end_tag() {
            Some(end) if !self.hand_off.contains(end) => self.hand_off.replace(END_TAG_USUAL, end),
            _ => self.hand_off.clone(),
        };
        let tokens = format.encode(&text)?;
        if format.thinks() && tokens.len() > HAND_OFF_MAX {
            return Err(PromptError::HandOffTooLong { tokens: tokens.len(), max: HAND_OFF_MAX });
        }
        Ok(tokens)
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
