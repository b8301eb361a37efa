//! Requests that are larger than all that an upstream takes in a minute. They come as a rate limit (429, at Groq 413), and can never
//! succeed there.

use super::upstream_error::UpstreamError;

/// By how much a request is larger than the limit, where that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateExcess {
    tokens: Option<TokensOverLimit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TokensOverLimit {
    requested: u64,
    limit: u64,
}

impl RateExcess {
    /// What the caller reads.
    pub(super) fn message(self) -> String {
        let figures = self.tokens.map_or_else(String::new, |TokensOverLimit { requested, limit }| {
            format!(" ({requested} tokens, and {limit} a minute)")
        });
        format!(
            "the request is larger than what the model's provider takes from this gateway in a minute{figures}: waiting does not help; \
             shorten it, state a smaller limit of tokens, or name another model"
        )
    }
}

impl UpstreamError {
    /// Whether it is about such a request.
    pub(super) fn rate_excess(&self) -> Option<RateExcess> {
        let message = self.message.as_deref()?.to_ascii_lowercase();
        let is_rate = self.words.contains("rate_limit")
            || self.words.contains("tokens")
            || message.contains("per min")
            || message.contains("rate limit");
        let tokens = number_after(&message, "requested").zip(number_after(&message, "limit"));
        let over = tokens.filter(|(requested, limit)| requested > limit);
        let is_named = message.starts_with("request too large")
            || message.contains("usage is required for long context")
            || message.contains("rate limit for long context");
        let tokens = over.map(|(requested, limit)| TokensOverLimit { requested, limit });
        (is_rate && (tokens.is_some() || is_named)).then_some(RateExcess { tokens })
    }
}

/// The number behind a word: "Limit 30000", "Limit: 30,000".
fn number_after(message: &str, word: &str) -> Option<u64> {
    message.match_indices(word).find_map(|(at, word)| {
        let behind = message[at + word.len()..].trim_start_matches([' ', ':']);
        let end =
            behind.find(|letter: char| !letter.is_ascii_digit() && letter != ',').unwrap_or(behind.len());
        behind[..end].replace(',', "").parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::HeaderMap;
    use serde_json::json;

    use super::super::of_status;
    use crate::{Fault, REQUEST_TOO_LARGE, Retry};

    fn is_too_large(status: u16, kind: &str, message: &str) -> bool {
        let error = json!({"error": {"message": message, "type": kind, "code": "rate_limit_exceeded"}});
        let failure =
            of_status(status, &HeaderMap::new(), error.to_string().as_bytes(), Duration::from_secs(60));
        let is_told = failure.code == Some(REQUEST_TOO_LARGE);
        assert_eq!(is_told, failure.fault == Fault::Caller, "{message}");
        assert!(!is_told || (failure.retry == Retry::Elsewhere && failure.unsent), "{message}");
        is_told
    }

    #[test]
    fn what_is_larger_than_the_limit_of_a_minute_is_told_from_what_may_pass() {
        let large = "Request too large for gpt-4.1 in organization org-x on tokens per min (TPM): Limit 30000, Requested 45213. The \
                     input or output tokens must be reduced in order to run successfully.";
        assert!(is_too_large(429, "tokens", large));
        assert!(is_too_large(
            413,
            "tokens",
            &large.replace("30000, Requested 45213", "6,000, Requested 7,011")
        ));
        assert!(is_too_large(429, "rate_limit_error", "Extra usage is required for long context requests."));
        let passes = "Rate limit reached for gpt-4.1 in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, \
                      Requested 4000. Please try again in 6s.";
        assert!(!is_too_large(429, "tokens", passes));
        assert!(!is_too_large(
            429,
            "requests",
            "Rate limit reached on requests per min (RPM): Limit 3, Used 3, Requested 1."
        ));
    }
}
