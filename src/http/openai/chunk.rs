//! One chunk of a streamed completion, as it is written.

use serde::Serialize;
use serde_json::Value;

use crate::http::budget_report::BudgetReport;

use super::usage::UsageReport;

/// A chunk. What it is made of is borrowed: most live as long as it takes to write them.
#[derive(Debug, Serialize)]
pub(super) struct CompletionChunk<'a> {
    pub(super) id: &'a str,
    pub(super) object: &'static str,
    pub(super) created: i64,
    pub(super) model: &'a str,
    pub(super) choices: &'a [ChunkChoice<'a>],
    /// Null in all chunks but the last, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Option<UsageReport>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) budget: Option<BudgetReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) system_fingerprint: Option<&'a str>,
}

/// What is new of a choice: of a conversation's answer its `delta`, of how a text goes on its `text`.
#[derive(Debug, Serialize)]
pub(super) struct ChunkChoice<'a> {
    pub(super) index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<ChunkDelta<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<&'a str>,
    pub(super) logprobs: Value,
    pub(super) finish_reason: Option<&'a str>,
}

/// What is new of an answer.
#[derive(Debug, Default, Serialize)]
pub(super) struct ChunkDelta<'a> {
    /// In a choice's first chunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<[&'a Value; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) images: Option<[&'a Value; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) audio: Option<&'a Value>,
    /// The thought once more, under another name, where that is wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_details: Option<[Value; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_calls: Option<[CallPiece<'a>; 1]>,
}

/// More of a tool call.
#[derive(Debug, Serialize)]
pub(super) struct CallPiece<'a> {
    pub(super) index: u32,
    pub(super) function: FunctionPiece<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
    /// What its provider wants back with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<&'a Value>,
}

/// More of its function.
#[derive(Debug, Serialize)]
pub(super) struct FunctionPiece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<&'a str>,
    pub(super) arguments: &'a str,
}
