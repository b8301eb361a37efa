//! One turn of a conversation.

use serde_json::Value;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The operator's instructions (`system` and `developer` on the wire).
    System,
    /// The caller.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

impl Role {
    /// The word that chat templates and OpenAI use.
    pub fn word(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// Anything else (an image, audio), as the caller wrote it; only capable models are given it.
    Other(Value),
}

/// A call of one of the caller's tools that the model made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// What the result refers to.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// JSON text, as the model wrote it.
    pub arguments: String,
}

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Part>,
    /// The thought before it, where the caller sent it back.
    pub thought: Option<String>,
    /// The calls that an assistant made.
    pub tool_calls: Vec<ToolCall>,
    /// Which call a tool message answers.
    pub tool_call_id: Option<String>,
    /// The participant's name, where the caller gave one.
    pub name: Option<String>,
}

impl Message {
    /// A message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Message {
        let content = vec![Part::Text(text.into())];
        Message { role, content, thought: None, tool_calls: Vec::new(), tool_call_id: None, name: None }
    }

    /// The text parts, joined.
    pub fn plain(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(text.as_str()),
                Part::Other(_) => None,
            })
            .collect()
    }
}
