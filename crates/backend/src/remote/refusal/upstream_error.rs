//! Parses the error in an upstream's answer.

use serde_json::Value;

use crate::{UpstreamErrorCode, UpstreamReason};

/// The most characters of an upstream's own words that are kept.
const WORDS_MAX: usize = 500;
/// The most of them that stand in a log.
const REASON_MAX: usize = 200;
/// The longest that a code or a type is.
const CODE_MAX: usize = 64;

/// The longest that the name of a member is.
const PARAM_MAX: usize = 128;

/// The codes of a prompt that is too long.
const OVERFLOW_CODES: [&str; 3] =
    ["context_length_exceeded", "exceed_context_size_error", "model_context_window_exceeded"];

/// What providers and servers say of one, in small letters: OpenAI and most servers, Anthropic, Google, `SGLang` and Together, newer vLLM,
/// LM Studio, llama.cpp, xAI, Moonshot, `MiniMax`, Bedrock, Z.ai and `DashScope`.
const OVERFLOW_PHRASES: [&str; 16] = [
    "maximum context length",
    "exceeds the context window",
    "prompt is too long",
    "exceed context limit",
    "input token count",
    "longer than the model's context length",
    "maximum model length",
    "greater than the context length",
    "exceeds the available context size",
    "maximum prompt length",
    "exceeded model token limit",
    "context window exceeds limit",
    "input is too long for requested model",
    "prompt exceeds max length",
    "prompt 超长",
    "range of input length should be",
];

/// What providers say where they take offence at what the caller wrote, in small letters.
const CONTENT_PHRASES: [&str; 5] =
    ["moderation", "flagged", "content_filter", "content policy", "content_policy"];

/// What xAI says where it does, in small letters, and of nothing else: it says it as if the key had no permission.
const UNPERMITTED_CONTENT_PHRASES: [&str; 2] = ["violates usage guidelines", "safety_check"];

/// What an upstream says of an error, in any of the common shapes.
pub(super) struct UpstreamError {
    pub(super) message: Option<String>,
    /// Its `code`, its `type`, and its `status` where that is a word.
    pub(super) words: String,
    /// Those of them that are codes, and no sentences.
    codes: String,
    /// Its `code` and its `param`, where they may be passed on as they are.
    pub(super) stated: Option<UpstreamErrorCode>,
    /// Its `code` or `status`, where that is a number.
    pub(super) status: Option<u16>,
}

impl UpstreamError {
    /// `{"error": {"message", "code", "type"}}`, `{"error": "…"}`, `{"message": "…"}` or `{"detail": "…"}`; Google puts it into a
    /// list at times.
    pub(super) fn read(body: &Value) -> UpstreamError {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        let text = |member: &str| error.get(member).and_then(Value::as_str);
        let number = |member: &str| error.get(member).and_then(Value::as_u64);
        let message = error.as_str().or(text("message")).or(text("detail")).map(redacted);
        let words = ["code", "type", "status"].map(|member| text(member).unwrap_or_default());
        let mut codes: Vec<&str> = words.into_iter().filter(|word| is_code(word)).collect();
        codes.dedup();
        let (words, codes) = (words.join(" "), codes.join(", "));
        let status = number("code").or(number("status")).and_then(|code| u16::try_from(code).ok());
        UpstreamError { message, words, codes, stated: stated(error), status }
    }

    /// What of it may stand in the operator's log. Refused keys, unknown addresses and models, limits and breakdowns are about
    /// the operator's side: only there the message comes with the codes. An upstream that takes offence at the request (400,
    /// 413, 422 and others) quotes the prompt, which no log ever has.
    pub(super) fn log_reason(&self, status: Option<u16>) -> Option<UpstreamReason> {
        let about_us = matches!(status, Some(401..=404 | 429 | 500..=599));
        let open = about_us && !self.is_content_refusal() && !self.is_context_overflow();
        let message = self.message.as_deref().filter(|message| open && !message.is_empty()).map(excerpt);
        let codes = self.codes.clone();
        (message.is_some() || !codes.is_empty()).then_some(UpstreamReason { message, codes })
    }

    /// The status that usually comes with what its words say, for errors inside a stream.
    pub(super) fn typical_status(&self) -> Option<u16> {
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

    /// True if it is about what the caller wrote.
    pub(super) fn is_content_refusal(&self) -> bool {
        self.says_any(&CONTENT_PHRASES) || self.is_unpermitted_content()
    }

    /// True if it is about what the caller wrote, even where it says that our key has no permission.
    pub(super) fn is_unpermitted_content(&self) -> bool {
        self.says_any(&UNPERMITTED_CONTENT_PHRASES)
    }

    fn says_any(&self, phrases: &[&str]) -> bool {
        let said =
            format!("{} {}", self.words, self.message.as_deref().unwrap_or_default()).to_ascii_lowercase();
        phrases.iter().any(|phrase| said.contains(phrase))
    }

    /// True if it is about our key or our account.
    pub(super) fn is_account_error(&self) -> bool {
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

    pub(super) fn is_context_overflow(&self) -> bool {
        let message = self.message.as_deref().unwrap_or_default().to_ascii_lowercase();
        OVERFLOW_CODES.iter().any(|word| self.words.contains(word))
            || OVERFLOW_PHRASES.iter().any(|phrase| message.contains(phrase))
    }

    /// True if the operator's model name is unknown there.
    pub(super) fn is_unknown_model(&self) -> bool {
        ["model_not_found", "not_found_error", "model_not_available"]
            .iter()
            .any(|word| self.words.contains(word))
    }
}

/// The code and the member that an error in OpenAI's form names.
fn stated(error: &Value) -> Option<UpstreamErrorCode> {
    let is_word = |word: &&str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        (1..=CODE_MAX).contains(&word.len()) && word.bytes().all(plain)
    };
    let is_name = |name: &&str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'[' | b']');
        (1..=PARAM_MAX).contains(&name.len()) && name.bytes().all(plain)
    };
    let text = |member: &str| error.get(member).and_then(Value::as_str);
    let code = text("code").filter(is_word).map(str::to_owned);
    let param = text("param").filter(is_name).map(str::to_owned);
    (code.is_some() || param.is_some()).then_some(UpstreamErrorCode { code, param })
}

/// True for a word as codes are, and not a sentence.
fn is_code(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=CODE_MAX).contains(&word.len()) && word.bytes().all(plain)
}

/// The beginning of a message, with what a terminal would obey written out.
fn excerpt(message: &str) -> String {
    let written = message.chars().flat_map(|sign| {
        let quotes = matches!(sign, '"' | '\'' | '\\');
        quotes.then_some(sign).into_iter().chain((!quotes).then(|| sign.escape_debug()).into_iter().flatten())
    });
    written.take(REASON_MAX).collect()
}

/// An upstream's words without what could be an address or a credential, and not too many.
fn redacted(text: &str) -> String {
    let private = |word: &str| word.contains("://") || word.contains("sk-") || word.contains("Bearer");
    let words: Vec<&str> =
        text.split_whitespace().map(|word| if private(word) { "…" } else { word }).collect();
    words.join(" ").chars().take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(status: u16, body: &Value, expected: Option<&str>) {
        let reason = UpstreamError::read(body).log_reason(Some(status));
        assert_eq!(reason.map(|reason| reason.to_string()).as_deref(), expected, "{status} {body}");
    }

    #[test]
    fn the_log_has_why_an_address_a_model_or_a_key_is_refused() {
        let of = |message: &str, code: &str| json!({"error": {"message": message, "code": code}});
        let unknown = of("The model `gpt-9` does not exist", "model_not_found");
        check(404, &unknown, Some("\"The model `gpt-9` does not exist\" (model_not_found)"));
        check(404, &json!({"detail": "Not Found"}), Some("\"Not Found\""));
        check(401, &json!({"error": "no such key"}), Some("\"no such key\""));
        check(500, &of("CUDA out of memory", ""), Some("\"CUDA out of memory\""));
        check(500, &Value::Null, None);
    }

    #[test]
    fn what_may_quote_the_prompt_is_told_to_the_log_by_its_code_alone() {
        let of = |code: &str| json!({"error": {"message": "cannot read 'my diary'", "code": code}});
        for status in [400, 409, 413, 422] {
            check(status, &of("invalid_value"), Some("invalid_value"));
            check(status, &of("my diary in full"), None);
        }
        check(403, &of("content_filter"), Some("content_filter"));
    }

    #[test]
    fn a_reason_is_one_short_line_that_no_terminal_obeys() {
        check(
            500,
            &json!({"error": "a\nb\u{1b}[2Jc \u{202e}d it's"}),
            Some("\"a b\\u{1b}[2Jc \\u{202e}d it's\""),
        );
        let long = UpstreamError::read(&json!({"error": "x".repeat(900)})).log_reason(Some(500)).unwrap();
        assert_eq!(long.message.unwrap().len(), REASON_MAX);
    }
}
