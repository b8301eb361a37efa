//! Keeps the log probabilities of an answer's tokens in step with the text that the caller sees.
//!
//! Text is held back while it may be the beginning of a stop text, the blank before an answer is dropped, and what looked
//! like an answer may be a tag. So the tokens wait here until their text is shown; those whose text never is are dropped.

use std::collections::VecDeque;

use serde_json::Value;

/// Tokens whose text was not shown yet.
#[derive(Debug, Clone, Default)]
pub(super) struct LogprobBuffer {
    waiting: VecDeque<BufferedToken>,
    /// How many bytes of the last returned token lie beyond the text that was shown.
    ahead: usize,
    begun: bool,
}

#[derive(Debug, Clone)]
struct BufferedToken {
    bytes: Vec<u8>,
    entry: Value,
}

impl LogprobBuffer {
    /// More tokens of the answer, in OpenAI's form: each with its text, and its bytes where these are no text by themselves.
    pub(super) fn push(&mut self, entries: Vec<Value>) {
        self.waiting
            .extend(entries.into_iter().map(|entry| BufferedToken { bytes: token_bytes(&entry), entry }));
    }

    /// The tokens that begin in this text, which is shown now.
    pub(super) fn take_for(&mut self, shown: &str) -> Vec<Value> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let known = self.ahead.min(shown.len());
        self.ahead -= known;
        let mut rest = &shown.as_bytes()[known..];
        if !self.begun {
            self.skip_to(rest);
        }
        let mut taken = Vec::new();
        while !rest.is_empty() {
            let Some(token) = self.waiting.pop_front() else { break };
            let own = if self.begun { &token.bytes[..] } else { first(&token.bytes, rest) };
            self.begun = true;
            let within = own.len().min(rest.len());
            self.ahead = own.len() - within;
            rest = &rest[within..];
            taken.push(token.entry);
        }
        taken
    }

    /// Drops the tokens before the one with which the text begins: a blank, or a thought that came with the answer.
    fn skip_to(&mut self, text: &[u8]) {
        let begins = (0..self.waiting.len()).find(|&at| self.matches_text(at, text));
        if let Some(begins) = begins {
            self.waiting.drain(..begins);
        }
    }

    /// Whether the tokens from there on match this text, as far as both go.
    fn matches_text(&self, at: usize, text: &[u8]) -> bool {
        let (mut rest, mut begun) = (text, false);
        for token in self.waiting.range(at..) {
            let own = if begun { &token.bytes[..] } else { first(&token.bytes, text) };
            if own.is_empty() && !begun {
                return false;
            }
            begun = true;
            let both = own.len().min(rest.len());
            if own[..both] != rest[..both] {
                return false;
            }
            rest = &rest[both..];
            if rest.is_empty() {
                return true;
            }
        }
        begun
    }
}

/// What of the first token is shown in a text: the blank before an answer only where the text begins with one.
fn first<'a>(token: &'a [u8], text: &[u8]) -> &'a [u8] {
    if text.first().is_some_and(u8::is_ascii_whitespace) { token } else { token.trim_ascii_start() }
}

/// The bytes of a token's text.
fn token_bytes(entry: &Value) -> Vec<u8> {
    let listed = entry.get("bytes").and_then(Value::as_array).map(|list| {
        let byte = |value: &Value| value.as_u64().and_then(|byte| u8::try_from(byte).ok());
        list.iter().filter_map(byte).collect::<Vec<u8>>()
    });
    let text = || entry.get("token").and_then(Value::as_str).unwrap_or_default().as_bytes().to_vec();
    listed.filter(|bytes| !bytes.is_empty()).unwrap_or_else(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Tokens arrive, each as one entry; then texts are shown, each of which returns these.
    fn check(tokens: &[&str], shown: &[(&str, &[&str])]) {
        let mut logprobs = LogprobBuffer::default();
        logprobs.push(tokens.iter().map(|token| json!({ "token": token })).collect());
        for (text, expected) in shown {
            let told = logprobs.take_for(text);
            let told: Vec<&str> = told.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
            assert_eq!(told, *expected, "{text:?} of {tokens:?}");
        }
    }

    #[test]
    fn each_text_comes_with_the_tokens_that_begin_in_it() {
        check(&["It", " is", " 51"], &[("It is 51", &["It", " is", " 51"])]);
        check(&["It", " is"], &[("I", &["It"]), ("t i", &[" is"]), ("s", &[])]);
    }

    #[test]
    fn what_is_never_shown_is_never_told() {
        check(&["\n\n", " 51"], &[("51", &[" 51"])]);
        check(&["hm", "</think>", "\n\n", "51", "END"], &[("51", &["51"])]);
        check(&["51", " EN", "D"], &[("51 ", &["51", " EN"])]);
    }

    #[test]
    fn a_character_of_several_tokens_is_told_by_its_bytes() {
        let mut logprobs = LogprobBuffer::default();
        let arrow = "→".as_bytes();
        logprobs.push(vec![
            json!({ "token": "\u{fffd}", "bytes": arrow[..2] }),
            json!({ "token": "\u{fffd}", "bytes": arrow[2..] }),
            json!({ "token": "x", "bytes": null }),
        ]);
        assert_eq!((logprobs.take_for("→").len(), logprobs.take_for("x").len()), (2, 1));
    }
}
