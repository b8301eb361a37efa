//! Names of members as servers read them that do not mind their case. Most of those written in Go or for .NET do not (Ollama, `LocalAI`,
//! many gateways): they take `Model` for `model`, and the last of both. There another model would answer than the one that is planned,
//! paid for and judged.

/// What servers of these APIs read in a body and in a message.
const READ: &[&str] = &[
    "model",
    "messages",
    "prompt",
    "input",
    "system",
    "instructions",
    "stream",
    "stream_options",
    "max_tokens",
    "n",
    "best_of",
    "stop",
    "stop_sequences",
    "temperature",
    "top_p",
    "top_k",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "response_format",
    "output_format",
    "output_config",
    "format",
    "text",
    "include",
    "previous_response_id",
    "conversation",
    "truncation",
    "context_management",
    "mcp_servers",
    "container",
    "thread",
    "speed",
    "think",
    "user",
    "dimensions",
    "encoding_format",
    "cache_salt",
    "chat_template_kwargs",
    "role",
    "content",
    "name",
    "tool_calls",
    "tool_call_id",
    "reasoning_content",
    "reasoning_details",
    "refusal",
];

/// A name in another case, as such a server reads it; nothing where no letter has another case.
pub(super) fn folded(name: &str) -> Option<String> {
    let fold = |letter: char| match letter {
        // Go takes the long s and the sign of Kelvin for letters of the alphabet.
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    name.contains(|letter: char| fold(letter) != letter).then(|| name.chars().map(fold).collect())
}

/// Whether servers read a member of that name.
pub(super) fn is_read(name: &str) -> bool {
    READ.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folded_as_go_folds_them() {
        for (name, read) in [
            ("Model", "model"),
            ("MESSAGES", "messages"),
            ("me\u{17f}sages", "messages"),
            ("top_\u{212a}", "top_k"),
        ] {
            assert_eq!(folded(name).as_deref(), Some(read));
            assert!(is_read(read));
        }
        for name in ["model", "top_k", "é", "模型", ""] {
            assert_eq!(folded(name), None);
        }
    }
}
