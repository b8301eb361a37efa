//! Why an answer ended, by the upstream's word for it. A word that nobody knows never makes an answer look whole.

use crate::{Failure, Fault, GenerationEnd};

use super::uncounted::stop;

/// The model was done: the words of all who speak these dialects. Some say nothing, or that they call a tool, which the call
/// itself says better.
const STOPS: [&str; 22] = [
    "",
    "null",
    "stop",
    "stop_sequence",
    "stop_token",
    "eos",
    "eos_token",
    "end",
    "end_turn",
    "end_of_text",
    "endoftext",
    "complete",
    "completed",
    "done",
    "finish",
    "finished",
    "stopped",
    "success",
    "normal",
    "load",
    "tool_use",
    "tool_call",
];

/// The answer was withheld.
const FILTERS: [&str; 5] =
    ["content_filter", "content_filtered", "guardrail_intervened", "safety", "sensitive"];

/// The limit that was sent was reached. Some say so as well where it was one of their own.
const LIMITS: [&str; 6] =
    ["length", "limit", "max_tokens", "max_output_tokens", "max_completion_tokens", "token_limit"];

/// The model's own limit was.
const MODEL_LIMITS: [&str; 5] = [
    "model_length",
    "model_context_window_exceeded",
    "context_window_exceeded",
    "context_length",
    "context_length_exceeded",
];

/// What a word says, whatever its case. All others tell of an answer that was cut (`abort`, `repetition`,
/// `insufficient_system_resource` and what is not known).
pub(super) fn ending(word: &str) -> Result<GenerationEnd, Failure> {
    let word = word.to_ascii_lowercase();
    match word.as_str() {
        "tool_calls" | "function_call" => Ok(GenerationEnd::ToolCalls),
        "error" => Err(Failure::new(Fault::Backend, "the upstream gave up")),
        word if STOPS.contains(&word) => Ok(stop()),
        word if FILTERS.contains(&word) => Ok(GenerationEnd::Filtered),
        word if LIMITS.contains(&word) => Ok(GenerationEnd::Limit),
        word if MODEL_LIMITS.contains(&word) => Ok(GenerationEnd::ModelLimit),
        _ => Ok(GenerationEnd::BrokenOff),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[&str], expected: GenerationEnd) {
        for word in words {
            assert_eq!(ending(word), Ok(expected), "{word}");
        }
    }

    #[test]
    fn an_answer_that_was_broken_off_never_looks_whole() {
        let broken_off = ["abort", "repetition", "insufficient_system_resource", "so_it_goes"];
        check(&broken_off, GenerationEnd::BrokenOff);
        check(&["length", "max_tokens", "LENGTH"], GenerationEnd::Limit);
        check(&["model_length", "model_context_window_exceeded"], GenerationEnd::ModelLimit);
        check(&["content_filter", "sensitive"], GenerationEnd::Filtered);
        assert!(ending("error").is_err());
    }

    #[test]
    fn every_providers_word_for_a_good_end_is_one() {
        let words =
            ["stop", "eos", "eos_token", "end_turn", "complete", "COMPLETE", "stop_sequence", "STOP", ""];
        check(&words, stop());
        check(&["tool_calls", "function_call"], GenerationEnd::ToolCalls);
    }
}
