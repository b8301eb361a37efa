//! In which phases of a generation a member of a request is sent.

/// In which phases of a generation a member has a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberPhase {
    /// It says how tokens are drawn, in a thought as in an answer, or in which cache they are looked for.
    Both,
    /// It shapes the answer, and would spoil a thought. So is taken what nobody knows.
    Answer,
    /// It is rendered into the prompt.
    Prompt,
}

/// Members that say how tokens are drawn, as vLLM, `SGLang`, llama.cpp, Ollama and others call them; and what must be the
/// same in both phases for the second to find the first one's cache.
const SAMPLING_MEMBERS: &[&str] = &[
    "min_p",
    "top_a",
    "top_n_sigma",
    "typical_p",
    "tfs_z",
    "epsilon_cutoff",
    "eta_cutoff",
    "repetition_penalty",
    "repetition_penalty_range",
    "repeat_penalty",
    "repeat_last_n",
    "encoder_repetition_penalty",
    "no_repeat_ngram_size",
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
    "smoothing_factor",
    "smoothing_curve",
    "samplers",
    "sampler_order",
    "min_keep",
    "penalize_nl",
    "penalty_alpha",
    "adaptive_target",
    "adaptive_decay",
    "guidance_scale",
    "cache_salt",
];

/// Members that shape the answer.
const ANSWER_MEMBERS: &[&str] = &[
    "grammar",
    "grammar_lazy",
    "grammar_triggers",
    "preserved_tokens",
    "json_schema",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "guided_decoding_backend",
    "guided_whitespace_pattern",
    "structured_outputs",
    "structural_tag",
    "regex",
    "ebnf",
    "min_tokens",
    "min_new_tokens",
    "length_penalty",
    "stop_token_ids",
    "include_stop_str_in_output",
    "no_stop_trim",
    "stop_regex",
    "bad_words",
    "allowed_token_ids",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "n_indent",
    "post_sampling_probs",
];

impl MemberPhase {
    /// In which phases the member of that name has a say.
    pub fn of(name: &str) -> MemberPhase {
        match name {
            // What stands there a template renders.
            "chat_template_kwargs" | "documents" => MemberPhase::Prompt,
            name if SAMPLING_MEMBERS.contains(&name) => MemberPhase::Both,
            _ => MemberPhase::Answer,
        }
    }

    /// True for a member that some upstream is known to have.
    pub fn is_known(name: &str) -> bool {
        MemberPhase::of(name) != MemberPhase::Answer || ANSWER_MEMBERS.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_draws_tokens_is_told_from_what_shapes_an_answer() {
        for (name, reach, known) in [
            ("min_p", MemberPhase::Both, true),
            ("grammar", MemberPhase::Answer, true),
            ("chat_template_kwargs", MemberPhase::Prompt, true),
            ("surprise", MemberPhase::Answer, false),
        ] {
            assert_eq!((MemberPhase::of(name), MemberPhase::is_known(name)), (reach, known), "{name}");
        }
    }
}
