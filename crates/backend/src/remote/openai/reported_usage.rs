//! `usage` as an upstream writes it, read leniently: a usage that makes no sense is no reason to lose the answer.

use serde_json::Value;

use stint_types::units::Tokens;

/// What `usage` says, where it is an object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ReportedUsage {
    pub(super) prompt: Option<Tokens>,
    pub(super) completion: Option<Tokens>,
    pub(super) total: Option<Tokens>,
    /// Of the thought, beside the details.
    pub(super) reasoning: Option<Tokens>,
    /// Of the prompt from a cache, beside the details.
    pub(super) cache_hit: Option<Tokens>,
    /// Of the prompt into a cache, beside the details.
    pub(super) cache_write: Option<Tokens>,
    pub(super) of_prompt: ReportedDetails,
    pub(super) of_completion: ReportedDetails,
}

/// What one of its details says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ReportedDetails {
    pub(super) cached: Option<Tokens>,
    pub(super) cache_write: Option<Tokens>,
    pub(super) cache_creation: Option<Tokens>,
    pub(super) reasoning: Option<Tokens>,
}

/// `usage`, where it is there: nothing where it is `null`, and one that says nothing where it is no object.
pub(super) fn lenient(usage: &Value) -> Option<ReportedUsage> {
    (!usage.is_null()).then(|| ReportedUsage {
        prompt: count(usage, "prompt_tokens"),
        completion: count(usage, "completion_tokens"),
        total: count(usage, "total_tokens"),
        reasoning: count(usage, "reasoning_tokens"),
        cache_hit: first(usage, &CACHE_HITS),
        cache_write: count(usage, "cache_creation_input_tokens"),
        of_prompt: details(&usage["prompt_tokens_details"]),
        of_completion: details(&usage["completion_tokens_details"]),
    })
}

/// How a prompt's tokens from a cache are called beside the details: by `DeepSeek`, by Moonshot, and by those who pass on what
/// Anthropic says.
const CACHE_HITS: [&str; 3] = ["prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens"];

/// The first of some counts that is there.
fn first(object: &Value, names: &[&str]) -> Option<Tokens> {
    names.iter().find_map(|name| count(object, name))
}

fn details(details: &Value) -> ReportedDetails {
    ReportedDetails {
        cached: count(details, "cached_tokens"),
        cache_write: count(details, "cache_write_tokens"),
        cache_creation: count(details, "cache_creation_input_tokens"),
        reasoning: count(details, "reasoning_tokens"),
    }
}

fn count(object: &Value, name: &str) -> Option<Tokens> {
    object[name].as_u64().map(Tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<ReportedUsage>) {
        let read = lenient(&serde_json::from_str(text).unwrap());
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn counts_are_read_and_whatever_else_stands_there_says_nothing() {
        check("null", None);
        for other in
            ["7", "-7", "0.5", "true", "\"x\"", "[{\"a\":[1]}]", "{}", r#"{"prompt_tokens":{"a":[null]}}"#]
        {
            check(other, Some(ReportedUsage::default()));
        }
        let text = r#"{"prompt_tokens":1,"prompt_tokens":28,"completion_tokens":7.5,"total_tokens":-1,"reasoning_tokens":"3",
            "prompt_tokens_details":{"cached_tokens":20,"audio_tokens":0,"x":{}},"completion_tokens_details":null,"queue_time":0.1}"#;
        let of_prompt = ReportedDetails { cached: Some(Tokens(20)), ..ReportedDetails::default() };
        check(text, Some(ReportedUsage { prompt: Some(Tokens(28)), of_prompt, ..ReportedUsage::default() }));
    }
}
