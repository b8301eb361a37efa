//! The canonical conversation: every wire format is translated into it, and every backend is called with it.
//!
//! Nothing here knows HTTP, money, or a provider.

mod budget;
mod commentary_place;
mod effort_changes;
mod embedding;
mod episode;
mod event;
mod json_object_scanner;
mod member_phase;
mod message;
mod provider_members;
mod raw_prompt;
mod request;
mod tool_call_extra;
mod tool_name;
mod tools;
mod vendor_headers;

pub use budget::{Budget, MemberNames, ReasoningEffort, TaskBudget};
pub use commentary_place::CommentaryPlace;
pub use effort_changes::{EffortChange, EffortChanges};
pub use embedding::{EmbeddingInputs, EmbeddingRequest};
pub use episode::{EpisodeLimits, EpisodeRaise};
pub use event::{AnswerNote, ChoiceEvent, FinishReason, ToolCallDelta, is_complete_json};
pub use json_object_scanner::JsonObjectScanner;
pub use member_phase::MemberPhase;
pub use message::{
    CacheTtl, ContentPart, Message, Role, SignedThought, SigningDomain, ThoughtSigner, ToolCall, TurnPhase,
};
pub use provider_members::{AnswerApi, MESSAGE_MEMBERS, ProviderMembers, add_counts};
pub use raw_prompt::RawPrompt;
pub use request::{CUSTOM_INPUT, CompletionKind, Request, SamplingOptions, SchemaRules, Tool};
pub use tool_call_extra::ToolCallExtra;
pub use tool_name::short_tool_name;
pub use tools::{ToolCounts, ToolLimits};
pub use vendor_headers::VendorHeaders;
