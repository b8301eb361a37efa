//! A chunk of a stream, as the many write it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::lenient_text::LenientText;
use super::rare_value::RareValue;
use super::reported_usage::{ReportedUsage, lenient};

/// One event of a stream.
#[derive(Debug, Deserialize)]
pub(super) struct OpenAiChunk<'a> {
    #[serde(default, borrow)]
    pub(super) choices: Option<Vec<OpenAiChunkChoice<'a>>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<ReportedUsage>,
    /// llama.cpp's own count.
    #[serde(default)]
    pub(super) timings: RareValue,
    #[serde(default)]
    pub(super) error: RareValue,
    /// What it runs in, as it calls it. Read leniently.
    #[serde(default, borrow)]
    pub(super) system_fingerprint: LenientText<'a>,
}

/// What came of one choice.
#[derive(Debug, Deserialize)]
pub(super) struct OpenAiChunkChoice<'a> {
    #[serde(default)]
    pub(super) index: u32,
    /// What is new; in an answer that comes in one piece, all of it.
    #[serde(default, borrow, alias = "message")]
    pub(super) delta: Option<OpenAiDelta<'a>>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    /// The tokens of this chunk, if they are reported.
    #[serde(default)]
    token_ids: RareValue,
    /// Some have it here.
    #[serde(default, deserialize_with = "lenient")]
    pub(super) usage: Option<ReportedUsage>,
    /// The chances of this chunk's tokens, where they were asked for. Read leniently.
    #[serde(default)]
    logprobs: RareValue,
}

impl OpenAiChunkChoice<'_> {
    /// The chances of the content's tokens.
    pub(super) fn take_logprobs(&mut self) -> Vec<Value> {
        match self.logprobs.get_mut("content").map(Value::take) {
            Some(Value::Array(entries)) => entries,
            _ => Vec::new(),
        }
    }

    /// How many tokens this chunk is, if that is reported.
    pub(super) fn tokens(&self) -> u64 {
        self.token_ids.as_array().map_or(0, |ids| ids.len() as u64)
    }
}

/// What is new.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenAiDelta<'a> {
    #[serde(borrow)]
    pub(super) content: LenientText<'a>,
    pub(super) refusal: Option<String>,
    /// The sources of the content. Read leniently.
    pub(super) annotations: RareValue,
    #[serde(borrow)]
    pub(super) reasoning_content: LenientText<'a>,
    #[serde(borrow)]
    pub(super) reasoning: LenientText<'a>,
    pub(super) reasoning_details: RareValue,
    #[serde(borrow)]
    pub(super) thinking: LenientText<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<OpenAiCallDelta<'a>>>,
}

impl OpenAiDelta<'_> {
    /// More of the thought, under whichever name: several may say the same.
    pub(super) fn thought(&self) -> String {
        let named = [&self.reasoning_content, &self.reasoning, &self.thinking];
        let said = named.into_iter().find_map(LenientText::present);
        let details = || self.reasoning_details.as_array().into_iter().flatten();
        let text = |detail: &Value| detail.get("text").or(detail.get("summary"))?.as_str().map(str::to_owned);
        said.map_or_else(|| details().filter_map(text).collect(), str::to_owned)
    }
}

/// More of a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct OpenAiCallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default, borrow)]
    pub(super) function: Option<OpenAiFunctionDelta<'a>>,
    /// What its provider wants back with it. Read leniently.
    #[serde(default)]
    pub(super) extra_content: RareValue,
}

/// More of its function.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenAiFunctionDelta<'a> {
    pub(super) name: Option<String>,
    /// Text; some send the object itself.
    #[serde(borrow)]
    pub(super) arguments: LenientText<'a>,
}
