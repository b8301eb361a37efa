//! Which words for the effort models take that are asked by chat completions, by their names. A word that a model does not have is
//! refused. Where nothing is known of a model it takes all.

/// Words, each with how many tokens the model thinks at it.
pub(crate) type Efforts = &'static [(&'static str, u64)];

/// OpenAI's, by developers.openai.com/api/docs/guides/reasoning and its models' pages (2026-11), most particular first; those of
/// Codex from 5.1 Max on by the model pages as koog and meerkat-core quote them; xAI's by docs.x.ai/developers/models; Mistral's
/// by docs.mistral.ai; Kimi's by docs.together.ai/docs/kimi-k3-quickstart; Meta's by github.com/BerriAI/litellm; `DeepSeek`'s by
/// api-docs.deepseek.com; gpt-oss by its card.
const KNOWN: [(&str, Efforts); 26] = [
    ("gpt-5-pro", &[("high", 500)]),
    ("gpt-5.2-pro", &FROM_MEDIUM),
    ("gpt-5.4-pro", &FROM_MEDIUM),
    ("gpt-5.5-pro", &FROM_MEDIUM),
    ("gpt-5.1-codex-max", &TO_XHIGH),
    ("gpt-5.2-codex", &TO_XHIGH),
    ("gpt-5.3-codex", &TO_XHIGH),
    ("codex", &USUAL),
    ("gpt-5.1", &[("none", 0), ("low", 50), ("medium", 500), ("high", 500)]),
    ("gpt-5.2", &NONE_TO_XHIGH),
    ("gpt-5.4", &NONE_TO_XHIGH),
    ("gpt-5.5", &NONE_TO_XHIGH),
    ("gpt-5.6", &NONE_TO_MAX),
    ("gpt-6-sol", &NONE_TO_MAX),
    ("gpt-6-luna", &NONE_TO_MAX),
    ("gpt-6.1-terra", &NONE_TO_MAX),
    ("gpt-6", &[("low", 50), ("medium", 500), ("high", 500), ("xhigh", 500), ("max", 500)]),
    ("gpt-5", &[("minimal", 10), ("low", 50), ("medium", 500), ("high", 500)]),
    ("o3", &USUAL),
    ("o4-mini", &USUAL),
    ("gpt-oss", &USUAL),
    ("grok-4.5", &USUAL),
    ("grok-4", &TO_XHIGH),
    ("kimi-k3", &[("low", 50), ("high", 500), ("max", 500)]),
    ("muse-spark", &[("minimal", 10), ("low", 50), ("medium", 500), ("high", 500), ("xhigh", 500)]),
    (
        "muse-wonder",
        &[("minimal", 10), ("low", 50), ("medium", 500), ("high", 500), ("xhigh", 500), ("max", 500)],
    ),
];
const USUAL: [(&str, u64); 3] = [("low", 50), ("medium", 500), ("high", 500)];
const FROM_MEDIUM: [(&str, u64); 3] = [("medium", 500), ("high", 500), ("xhigh", 500)];
const TO_XHIGH: [(&str, u64); 4] = [("low", 50), ("medium", 500), ("high", 500), ("xhigh", 500)];
const NONE_TO_XHIGH: [(&str, u64); 5] =
    [("none", 0), ("low", 50), ("medium", 500), ("high", 500), ("xhigh", 500)];
const NONE_TO_MAX: [(&str, u64); 6] =
    [("none", 0), ("low", 50), ("medium", 500), ("high", 500), ("xhigh", 500), ("max", 500)];

/// Whether a model's API has no member for them: `MiniMax`'s by java.agentscope.io/v2/en/integration/model/minimax (2026-11), and xAI's
/// model that does not think.
pub(crate) fn are_refused(model: &str) -> bool {
    ["minimax-m2", "non-reasoning"].iter().any(|name| model.to_lowercase().contains(name))
}

/// The words of a model.
pub(crate) fn of(model: &str) -> Efforts {
    let known = KNOWN.iter().find(|(name, _)| model.to_lowercase().contains(name));
    known.map_or(&[], |(_, efforts)| efforts)
}
