//! The members that upstreams document beyond those which the gateway gives a meaning to.
//!
//! Those that limit, bill, route or switch thinking are not among them: the gateway knows these by name.

/// What llama.cpp's `/completion` takes. `chat_template_kwargs` fill the template, which is rendered before.
pub const LLAMACPP_RESUMED: &[&str] = &[
    "chat_template_kwargs",
    "min_p",
    "top_n_sigma",
    "typical_p",
    "repeat_penalty",
    "repeat_last_n",
    "penalize_nl",
    "dry_multiplier",
    "dry_base",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "dry_sequence_breakers",
    "dynatemp_range",
    "dynatemp_exponent",
    "mirostat",
    "mirostat_tau",
    "mirostat_eta",
    "xtc_probability",
    "xtc_threshold",
    "samplers",
    "min_keep",
    "adaptive_target",
    "adaptive_decay",
    "grammar",
    "json_schema",
    "n_indent",
];

/// What vLLM's raw completions take.
pub const VLLM_RESUMED: &[&str] = &[
    "chat_template_kwargs",
    "min_p",
    "repetition_penalty",
    "length_penalty",
    "min_tokens",
    "stop_token_ids",
    "include_stop_str_in_output",
    "bad_words",
    "allowed_token_ids",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "guided_decoding_backend",
    "guided_whitespace_pattern",
    "structured_outputs",
    "cache_salt",
];

/// What servers that share a prompt's cache among callers take to keep them apart.
pub const SALTED: &[&str] = &["cache_salt"];

/// What `OpenRouter` takes for all models, and leaves out where a provider does not.
pub const OPENROUTER: &[&str] = &["min_p", "top_a", "repetition_penalty", "structured_outputs"];

/// What Mistral takes.
pub const MISTRAL: &[&str] = &["safe_prompt"];

/// What Alibaba's `DashScope` takes.
pub const DASHSCOPE: &[&str] = &["repetition_penalty", "vl_high_resolution_images"];
