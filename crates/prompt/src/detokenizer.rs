//! Token ids back to text, as they come.

use std::sync::Arc;

use super::vocabulary::Vocabulary;

/// The bytes of every token of a model; shared by all its detokenizers.
#[derive(Debug, Clone)]
pub struct TokenBytes(Arc<[Box<[u8]>]>);

impl TokenBytes {
    pub(super) fn new(vocabulary: &Vocabulary) -> TokenBytes {
        TokenBytes(vocabulary.bytes().into())
    }

    /// All of them, by the tokens' ids.
    pub fn shared(&self) -> Arc<[Box<[u8]>]> {
        self.0.clone()
    }

    /// A token's bytes; none where it is no text, or no token.
    pub fn of(&self, id: u32) -> &[u8] {
        self.0.get(id as usize).map_or(&[], |bytes| bytes)
    }
}

/// Turns a stream of tokens into text. A token may end inside a character; its bytes wait for the rest.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    bytes: TokenBytes,
    pending: Vec<u8>,
}

impl Detokenizer {
    /// A detokenizer at the beginning of a text.
    pub fn new(bytes: TokenBytes) -> Detokenizer {
        Detokenizer { bytes, pending: Vec::new() }
    }

    /// The text that the token completes.
    pub fn push(&mut self, id: u32) -> String {
        self.pending.extend_from_slice(self.bytes.of(id));
        let mut text = String::new();
        loop {
            match std::str::from_utf8(&self.pending) {
                Ok(rest) => {
                    text.push_str(rest);
                    self.pending.clear();
                    return text;
                }
                Err(error) => {
                    let wrong = error.error_len();
                    let rest = self.pending.split_off(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(&self.pending));
                    self.pending = rest;
                    let Some(wrong) = wrong else { return text };
                    text.push(char::REPLACEMENT_CHARACTER);
                    self.pending.drain(..wrong);
                }
            }
        }
    }

    /// What is left of a character that was never completed.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.pending);
        String::from_utf8_lossy(&held).into_owned()
    }
}
