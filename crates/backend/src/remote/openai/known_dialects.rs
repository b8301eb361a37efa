//! The dialects of known upstreams.

use super::call_id_form::CallIdForm;
use super::dialect::{
    BudgetMember, Dialect, EffortMember, LimitMember, MemberWord, PrefillMethod, ResumeMethod,
    ThinkingSwitch, ThoughtReplay, UsageMember,
};

/// The longest id of a tool call that OpenAI takes.
const OPENAI_ID_MAX: usize = 40;
/// What no reasoning model of xAI takes.
const XAI_OMITS: [&str; 3] = ["presence_penalty", "frequency_penalty", "stop"];
/// What Mistral does not document, and so refuses.
const MISTRAL_OMITS: [&str; 7] =
    ["top_k", "logit_bias", "user", "safety_identifier", "verbosity", "metadata", "prompt_cache_key"];
/// What `DeepSeek` ignores while it thinks.
const DEEPSEEK_OMITS: [&str; 4] = ["temperature", "top_p", "presence_penalty", "frequency_penalty"];

impl Dialect {
    /// OpenAI: thoughts are hidden, and there is a word for how much of them.
    pub fn openai() -> Dialect {
        Dialect { prompt_ids: true, call_ids: CallIdForm::AtMost(OPENAI_ID_MAX), ..Dialect::default() }
    }

    /// `DeepSeek`: no budget, but a thought that was cut can be resumed from. Its tool loops want their thoughts back, and no thought goes
    /// with a forced tool.
    pub fn deepseek() -> Dialect {
        Dialect {
            limit: LimitMember::MaxTokens,
            needs_limit: true,
            switch: ThinkingSwitch::ThinkingType,
            resume: ResumeMethod::PrefixReasoning,
            prefill: PrefillMethod::Member("prefix"),
            thought_replay: ThoughtReplay::WithCalls { member: "reasoning_content", missing: " ".into() },
            seed: None,
            forces_unthought: true,
            omits_thinking: words(&DEEPSEEK_OMITS),
            stops_max: 16,
            ..Dialect::default()
        }
    }

    /// Alibaba's `DashScope`, in its compatible mode. Its partial mode does not go with thinking, so a thought is not
    /// resumed. Whether its limit holds the thought too is nowhere said; here it is taken to. No thought goes with a forced tool.
    pub fn dashscope() -> Dialect {
        Dialect {
            limit: LimitMember::MaxTokens,
            effort: EffortMember::Never,
            budget: Some(BudgetMember::ThinkingBudget),
            switch: ThinkingSwitch::EnableThinking,
            forces_unthought: true,
            prefill: PrefillMethod::Member("partial"),
            ..Dialect::default()
        }
    }

    /// `OpenRouter`, in front of many others. For a model that reads no PDF files it would buy an OCR by the page, whose price no
    /// tariff here has.
    pub fn openrouter() -> Dialect {
        Dialect {
            limit: LimitMember::MaxTokens,
            effort: EffortMember::Reasoning,
            budget: Some(BudgetMember::ReasoningMaxTokens),
            switch: ThinkingSwitch::Reasoning,
            prefill: PrefillMethod::Always,
            thought_replay: ThoughtReplay::Details,
            passes_cache_marks: true,
            pdf_engine: Some("native"),
            takes_file_urls: true,
            ..Dialect::default()
        }
    }

    /// vLLM's server, with a reasoning parser and a reasoning configuration.
    pub fn vllm() -> Dialect {
        Dialect {
            budget: Some(BudgetMember::ThinkingTokenBudget),
            switch: ThinkingSwitch::Template("enable_thinking".into()),
            resume: ResumeMethod::FinalMessage,
            prefill: PrefillMethod::FinalMessage,
            usage: UsageMember::EachChunk,
            token_ids: true,
            prompt_ids: true,
            thought_replay: ThoughtReplay::AsReceived("reasoning"),
            long_tool_names: true,
            stops_max: usize::MAX,
            ..Dialect::default()
        }
    }

    /// `SGLang`'s server, with a reasoning parser and strict thinking.
    pub fn sglang() -> Dialect {
        Dialect {
            limit: LimitMember::MaxTokens,
            budget: Some(BudgetMember::CustomParams),
            prompt_ids: true,
            switch: ThinkingSwitch::Template("enable_thinking".into()),
            resume: ResumeMethod::FinalMessage,
            prefill: PrefillMethod::FinalMessage,
            usage: UsageMember::EachChunk,
            thought_replay: ThoughtReplay::AsReceived("reasoning_content"),
            long_tool_names: true,
            stops_max: usize::MAX,
            ..Dialect::default()
        }
    }

    /// llama.cpp's server, by its chat endpoint; the base URL has no `/v1`.
    pub fn llamacpp() -> Dialect {
        Dialect {
            path: "v1/chat/completions",
            limit: LimitMember::MaxTokens,
            effort: EffortMember::Never,
            budget: Some(BudgetMember::ThinkingBudgetTokens),
            switch: ThinkingSwitch::Template("enable_thinking".into()),
            resume: ResumeMethod::FinalMessage,
            prefill: PrefillMethod::FinalMessage,
            usage: UsageMember::Timings,
            thought_replay: ThoughtReplay::AsReceived("reasoning_content"),
            long_tool_names: true,
            stops_max: usize::MAX,
            ..Dialect::default()
        }
    }

    /// Mistral, which refuses every member that it does not know, every id of a tool call that is not like its own, and a message of
    /// the user right behind a tool's result.
    pub fn mistral() -> Dialect {
        Dialect {
            limit: LimitMember::MaxTokens,
            switch: ThinkingSwitch::Effort { on: Some("high".into()), off: "none".into() },
            resume: ResumeMethod::PrefixPart,
            prefill: PrefillMethod::Member("prefix"),
            usage: UsageMember::Unasked,
            call_ids: CallIdForm::NineAlphanumerics,
            results_are_answered: true,
            seed: Some("random_seed"),
            omits: words(&MISTRAL_OMITS),
            ..Dialect::default()
        }
    }

    /// xAI: few of its models show a thought or take a word for it.
    pub fn xai() -> Dialect {
        Dialect { omits: words(&XAI_OMITS), ..Dialect::default() }
    }

    /// Ollama, by its OpenAI route: thoughts show, no budget holds them, and a choice among tools is ignored.
    pub fn ollama() -> Dialect {
        Dialect {
            limit: LimitMember::MaxTokens,
            switch: ThinkingSwitch::Effort { on: None, off: "none".into() },
            prefill: PrefillMethod::Always,
            omits: words(&["tool_choice"]),
            long_tool_names: true,
            stops_max: usize::MAX,
            ..Dialect::default()
        }
    }
}

fn words(words: &[&'static str]) -> Vec<MemberWord> {
    words.iter().map(|&word| word.into()).collect()
}
