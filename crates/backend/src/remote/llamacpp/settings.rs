//! How one llama.cpp server is spoken to.

use crate::remote;
use stint_prompt::tool_calls::ToolCallSyntax;

/// How a server is spoken to.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How the server is reached; the base URL has no `/v1`.
    pub client: remote::Settings,
    /// The tag that begins a thought.
    pub start_tag: String,
    /// The tag that closes a thought.
    pub end_tag: String,
    /// What closes an unfinished thought: a sentence, if any, and the tag.
    pub hand_off: String,
    /// How the model writes its tool calls, where they can be read out of its text.
    pub tool_syntax: Option<ToolCallSyntax>,
    /// Whether the model thinks; nothing if its chat template is to tell.
    pub thinks: Option<bool>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            client: remote::Settings::default(),
            start_tag: "<think>".to_owned(),
            end_tag: "</think>".to_owned(),
            hand_off: "\n</think>\n\n".to_owned(),
            tool_syntax: None,
            thinks: None,
        }
    }
}
