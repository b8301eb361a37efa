//! Calls in Harmony, the format of the gpt-oss models: a message on the channel for commentary, addressed to a function.
//! The message ends with a token that ends the text as well, so it may not be seen.

use super::json::{self, WrittenCall};

/// What may stand before a message that is addressed to somebody, the longest first.
pub(super) const STARTS: &[&str] =
    &["<|start|>assistant<|channel|>commentary to=", "<|channel|>commentary to=", "<|start|>assistant to="];
pub(super) const END: &str = "<|call|>";

/// What is addressed to a function: `functions.name`, perhaps what it is written in, and the message.
pub(super) fn read(text: &str) -> Option<Vec<WrittenCall>> {
    let (head, message) = text.split_once("<|message|>")?;
    let name = head.strip_prefix("functions.")?;
    let name = name.split([' ', '<']).next()?;
    Some(vec![json::call_from_parts(name, message)?])
}
