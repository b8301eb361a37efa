//! What a model's provider asks of a conversation that goes on over many requests, and what it takes in the middle of one.

use crate::units::Tokens;

/// The rules of a model for what comes before its next turn. None hold where nothing is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConversationRules {
    /// True if each thought is bound to all that stood before it: instructions, tools and messages. Where any of it
    /// differs, the thought is refused or dropped.
    pub thoughts_bound: bool,
    /// The least budget that can be stated for a whole task, where one can be stated.
    pub task_budget_min: Option<Tokens>,
    /// True if instructions may stand among the messages, behind a turn of the user.
    pub late_instructions: bool,
    /// True if tools may be offered and withdrawn among the messages, while their list stays as it was.
    pub late_tools: bool,
    /// True if it can be said among the messages how deep to think from there on, while what is said of the whole stays as it was.
    pub late_efforts: bool,
    /// True if the tools that may be called can be listed beside the list of all tools.
    pub allowed_tools: bool,
    /// True if a part of a message can be marked as one up to which its provider's cache is to hold, in OpenAI's form.
    pub cache_breakpoints: bool,
    /// True if no tool call can be forced: it is left to the model whether it calls one.
    pub refuses_forced_tools: bool,
    /// The shortest prompt that its provider keeps in a cache, where that is known.
    pub cache_min: Option<Tokens>,
}
