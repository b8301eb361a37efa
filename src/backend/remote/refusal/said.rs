//! What an upstream says of an error.

use serde_json::Value;

/// The most characters of an upstream's own words that are kept.
const WORDS_MAX: usize = 500;

/// What an upstream says of an error, in any of the common shapes.
pub(super) struct Said {
    pub(super) message: Option<String>,
    /// Its `code`, its `type`, and its `status` where that is a word.
    pub(super) words: String,
    /// Its `code` or `status`, where that is a number.
    pub(super) status: Option<u16>,
}

impl Said {
    /// `{"error": {"message", "code", "type"}}`, `{"error": "…"}`, `{"message": "…"}` or `{"detail": "…"}`.
    pub(super) fn read(body: &Value) -> Said {
        let error = body.get("error").unwrap_or(body);
        let text = |member: &str| error.get(member).and_then(Value::as_str);
        let number = |member: &str| error.get(member).and_then(Value::as_u64);
        let message = error.as_str().or(text("message")).or(text("detail")).map(clean);
        let words = ["code", "type", "status"].map(|member| text(member).unwrap_or_default()).join(" ");
        let status = number("code").or(number("status")).and_then(|code| u16::try_from(code).ok());
        Said { message, words, status }
    }

    /// The status that usually comes with what its words say, for errors inside a stream.
    pub(super) fn usual_status(&self) -> Option<u16> {
        let known = [
            ("overloaded_error", 529),
            ("rate_limit", 429),
            ("insufficient_quota", 429),
            ("invalid_request_error", 400),
            ("invalid_prompt", 400),
            ("context_length_exceeded", 400),
            ("authentication_error", 401),
            ("billing_error", 402),
            ("permission_error", 403),
            ("timeout_error", 504),
        ];
        known.iter().find(|(word, _)| self.words.contains(word)).map(|(_, status)| *status)
    }

    /// True where it is about what the caller wrote.
    pub(super) fn is_about_content(&self) -> bool {
        let said =
            format!("{} {}", self.words, self.message.as_deref().unwrap_or_default()).to_ascii_lowercase();
        ["moderation", "flagged", "content_filter", "content policy", "content_policy"]
            .iter()
            .any(|word| said.contains(word))
    }

    /// True where it is about our key or our account.
    pub(super) fn is_ours(&self) -> bool {
        let words =
            ["insufficient_quota", "invalid_api_key", "authentication_error", "permission", "billing"];
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        // Only at the beginning: further on it may be quoted from a request that wants to look like that.
        let beginnings = [
            "your credit balance is too low",
            "incorrect api key",
            "invalid api key",
            "missing api key",
            "no api key",
            "api key ",
        ];
        words.iter().any(|word| self.words.contains(word))
            || beginnings.iter().any(|beginning| message.starts_with(beginning))
    }

    pub(super) fn is_context(&self) -> bool {
        let words = ["context_length_exceeded", "exceed_context_size_error"];
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        words.iter().any(|word| self.words.contains(word))
            || message.contains("maximum context length")
            || message.contains("prompt is too long")
            || message.contains("exceed context limit")
            || message.contains("exceeds the context window")
            || message.contains("input token count")
    }

    /// True where the operator's model name is unknown there.
    pub(super) fn is_about_model(&self) -> bool {
        ["model_not_found", "not_found_error", "model_not_available"]
            .iter()
            .any(|word| self.words.contains(word))
    }
}

/// An upstream's words without what could be an address or a credential, and not too many.
fn clean(text: &str) -> String {
    let private = |word: &str| word.contains("://") || word.contains("sk-") || word.contains("Bearer");
    let words: Vec<&str> =
        text.split_whitespace().map(|word| if private(word) { "…" } else { word }).collect();
    words.join(" ").chars().take(WORDS_MAX).collect()
}
