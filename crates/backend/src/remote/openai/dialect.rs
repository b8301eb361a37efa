//! What one upstream's chat completions have that another's have not, as plain data.
//!
//! Upstreams agree on messages, tools and streams, and differ in everything about thinking: how much, whether at
//! all, whether a closed thought can be resumed, and how it is counted. The known ones stand in [`known_dialects`](super::known_dialects).

use std::borrow::Cow;

use super::call_id_form::CallIdForm;

/// A member's name, or a word that a member may have.
pub type MemberWord = Cow<'static, str>;

/// How an upstream is spoken to. The default is OpenAI's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// Where completions are asked for, below the base URL.
    pub path: &'static str,
    /// The member that limits what is written.
    pub limit: LimitMember,
    /// True if that limit holds thought and answer together; false if it is the answer's alone.
    pub limit_includes_thought: bool,
    /// True if an answer ends at a default of the upstream's own, well below what it could write, if no limit is sent.
    pub needs_limit: bool,
    /// How hard to think, in a word.
    pub effort: EffortMember,
    /// How many tokens to think, held by the upstream; class `native`.
    pub budget: Option<BudgetMember>,
    /// How thinking is turned on and off.
    pub switch: ThinkingSwitch,
    /// How an answer is continued after a closed thought; class `continue`.
    pub resume: ResumeMethod,
    /// How an answer is continued whose beginning the caller has written.
    pub prefill: PrefillMethod,
    /// How usage is reported.
    pub usage: UsageMember,
    /// True if each chunk can name its tokens (`return_token_ids`), so that thoughts are counted by them.
    pub token_ids: bool,
    /// True if a text that is to go on may come as the ids of its tokens.
    pub prompt_ids: bool,
    /// What is sent back of the thoughts of earlier turns.
    pub thought_replay: ThoughtReplay,
    /// The ids of tool calls that it takes.
    pub call_ids: CallIdForm,
    /// True if no tool can be forced while it thinks.
    pub forces_unthought: bool,
    /// True if an answer of the assistant must stand between the result of a tool and the user's next message.
    pub results_are_answered: bool,
    /// True if a tool's name may have more than 64 bytes.
    pub long_tool_names: bool,
    /// True if marks for a provider's cache are passed on.
    pub passes_cache_marks: bool,
    /// What is to read PDF files, for an upstream that otherwise buys a reading of them from somebody else.
    pub pdf_engine: Option<&'static str>,
    /// True if a file's address may stand where its bytes do (`file_data`).
    pub takes_file_urls: bool,
    /// What a fixed draw is called; nothing if there is none.
    pub seed: Option<&'static str>,
    /// The most stop texts that are taken. All of them are looked for above, so that those beyond are only not sent.
    pub stops_max: usize,
    /// Members that are never sent: the upstream refuses a request that has one.
    pub omits: Vec<MemberWord>,
    /// Members that are not sent while it thinks.
    pub omits_thinking: Vec<MemberWord>,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect {
            path: "chat/completions",
            limit: LimitMember::MaxCompletionTokens,
            limit_includes_thought: true,
            needs_limit: false,
            effort: EffortMember::ReasoningEffort,
            budget: None,
            switch: ThinkingSwitch::Never,
            resume: ResumeMethod::Never,
            prefill: PrefillMethod::Never,
            usage: UsageMember::AtEnd,
            token_ids: false,
            prompt_ids: false,
            thought_replay: ThoughtReplay::Never,
            call_ids: CallIdForm::Any,
            forces_unthought: false,
            results_are_answered: false,
            long_tool_names: false,
            passes_cache_marks: false,
            pdf_engine: None,
            takes_file_urls: false,
            seed: Some("seed"),
            stops_max: 4,
            omits: Vec::new(),
            omits_thinking: Vec::new(),
        }
    }
}

impl Dialect {
    /// True if there are words for that it is not to think: a switch, or a budget that may be none.
    pub(super) fn turns_off(&self) -> bool {
        match self.budget {
            Some(
                BudgetMember::ThinkingTokenBudget
                | BudgetMember::CustomParams
                | BudgetMember::ThinkingBudgetTokens,
            ) => true,
            Some(BudgetMember::ThinkingBudget | BudgetMember::ReasoningMaxTokens) | None => {
                self.switch != ThinkingSwitch::Never
            }
        }
    }

    /// Where something else is asked for than chat completions.
    pub(super) fn sibling_path(&self, what: &str) -> String {
        self.path.replace("chat/completions", what)
    }
}

/// The member that limits what is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitMember {
    /// `max_completion_tokens`.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, which older servers know.
    MaxTokens,
}

impl LimitMember {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitMember::MaxCompletionTokens => "max_completion_tokens",
            LimitMember::MaxTokens => "max_tokens",
        }
    }
}

/// How hard to think, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffortMember {
    /// `reasoning_effort`.
    ReasoningEffort,
    /// `reasoning: {effort}`, as `OpenRouter` has it.
    Reasoning,
    /// Not at all.
    Never,
}

/// How many tokens to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetMember {
    /// `thinking_token_budget`, vLLM. Inside `chat_template_kwargs` it would be ignored without a word.
    ThinkingTokenBudget,
    /// `custom_params: {thinking_budget}`, `SGLang` with strict thinking.
    CustomParams,
    /// `thinking_budget_tokens`, llama.cpp. It holds for each block of thought.
    ThinkingBudgetTokens,
    /// `thinking_budget`, `DashScope`.
    ThinkingBudget,
    /// `reasoning: {max_tokens}`, `OpenRouter`, with `provider.require_parameters`: without that, a provider
    /// that knows no budget is sent the request without it.
    ReasoningMaxTokens,
}

/// How thinking is turned on and off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThinkingSwitch {
    /// An argument of the chat template, in `chat_template_kwargs`: `enable_thinking` for most.
    Template(MemberWord),
    /// `enable_thinking`, `DashScope`.
    EnableThinking,
    /// `thinking: {type: enabled | disabled}`, `DeepSeek`.
    ThinkingType,
    /// `reasoning: {enabled}`, `OpenRouter`.
    Reasoning,
    /// A word of `reasoning_effort` for each; the lowest there is, where none turns it off.
    Effort {
        /// What turns it on; nothing if that is the upstream's usual way.
        on: Option<MemberWord>,
        /// What turns it off.
        off: MemberWord,
    },
    /// It cannot be.
    Never,
}

/// How an answer is continued after a closed thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeMethod {
    /// The last message is the assistant's, with `prefix` and the thought as `reasoning_content`; `DeepSeek`, and only
    /// below `/beta`.
    PrefixReasoning,
    /// The same with the thought as a closed part of the content; Mistral.
    PrefixPart,
    /// The last message is the assistant's, its content the thought between its tags, with
    /// `continue_final_message`; servers of open models. What they take for a thought after that is answer.
    FinalMessage,
    /// Not at all.
    Never,
}

impl ResumeMethod {
    /// Where the rest is asked for, below the base URL, if not where all else is.
    pub fn path(self) -> Option<&'static str> {
        // Whether the base URL ends in `/v1` or not, this is beside it.
        (self == ResumeMethod::PrefixReasoning).then_some("../beta/chat/completions")
    }

    /// How the beginning of an answer is continued where a thought is so.
    pub fn prefill(self) -> PrefillMethod {
        match self {
            ResumeMethod::PrefixReasoning | ResumeMethod::PrefixPart => PrefillMethod::Member("prefix"),
            ResumeMethod::FinalMessage => PrefillMethod::FinalMessage,
            ResumeMethod::Never => PrefillMethod::Never,
        }
    }
}

/// How an answer is continued whose beginning is the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefillMethod {
    /// Not at all.
    Never,
    /// It always is.
    Always,
    /// Where that message has this member.
    Member(&'static str),
    /// With `continue_final_message`; servers of open models.
    FinalMessage,
}

/// How usage is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageMember {
    /// `stream_options: {include_usage}`: the last chunk has it.
    AtEnd,
    /// `continuous_usage_stats` besides: every chunk has what was written until then.
    EachChunk,
    /// `timings_per_token` besides: every chunk has llama.cpp's own count.
    Timings,
    /// Nothing: it comes unasked, and asking is refused.
    Unasked,
}

/// What is sent back of the thoughts of earlier turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThoughtReplay {
    /// Nothing.
    Never,
    /// What the caller sent back, under this name.
    AsReceived(&'static str),
    /// Under this name, with every turn of a conversation in which a tool was called, also with the answer behind the calls: without
    /// it the request is refused. `DeepSeek` and Moonshot.
    WithCalls {
        /// The member.
        member: &'static str,
        /// What stands for a thought that the caller has lost.
        missing: MemberWord,
    },
    /// As a closed part before the content; Mistral.
    AsPart,
    /// What the provider signed of them, as it came (`reasoning_details`), to the model that it came from;
    /// `OpenRouter`.
    Details,
}
