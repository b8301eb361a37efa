//! Translates Gemini's responses, each a part of the whole, to pieces.

use std::collections::VecDeque;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::remote::answer_end::AnswerEnd;
use crate::remote::call_ids::CallIds;
use crate::remote::refusal;
use crate::remote::uncounted::{answer, stop};
use crate::{Failure, Fault, GenerationEnd, NO_ANSWER, Piece, Retry, TokenUsage};
use stint_types::chat::{AnswerNote, ThoughtSigner, ToolCallDelta};
use stint_types::units::Tokens;

use super::signature::{GeminiSignature, SignedPart};

/// Reads one stream of responses. It has no last event: its end is the end.
#[derive(Debug)]
pub(super) struct GeminiReader {
    /// Who signs what it says.
    signer: ThoughtSigner,
    ids: CallIds,
    /// How many tools were called.
    calls: usize,
    usage: Option<TokenUsage>,
    ending: Option<GenerationEnd>,
    answer_end: AnswerEnd,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiResponse {
    #[serde(deserialize_with = "or_default")]
    candidates: Vec<GeminiCandidate>,
    prompt_feedback: Value,
    usage_metadata: Value,
    error: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiCandidate {
    #[serde(deserialize_with = "or_default")]
    index: u32,
    #[serde(deserialize_with = "or_default")]
    content: GeminiContent,
    finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiContent {
    #[serde(deserialize_with = "or_default")]
    parts: Vec<GeminiPart>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiPart {
    text: Option<String>,
    #[serde(deserialize_with = "or_default")]
    thought: bool,
    thought_signature: Option<String>,
    function_call: Option<GeminiFunctionCall>,
    inline_data: Option<GeminiInlineData>,
}

/// What the model made that is no text.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiInlineData {
    mime_type: String,
    data: String,
}

impl GeminiInlineData {
    /// A picture as others have it in chat completions.
    fn image(&self) -> Option<Piece> {
        let url = format!("data:{};base64,{}", self.mime_type, self.data);
        let image = json!({"type": "image_url", "image_url": {"url": url}});
        self.mime_type.starts_with("image/").then(|| Piece::Note(AnswerNote::Image(image)))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GeminiFunctionCall {
    id: Option<String>,
    name: String,
    #[serde(deserialize_with = "or_default")]
    args: Map<String, Value>,
}

/// What is `null` as if it were not there.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// What there is none of is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GeminiUsageMetadata {
    prompt_token_count: Tokens,
    tool_use_prompt_token_count: Tokens,
    cached_content_token_count: Tokens,
    candidates_token_count: Tokens,
    thoughts_token_count: Tokens,
}

impl GeminiReader {
    pub(super) fn new(signer: ThoughtSigner, ids: CallIds) -> GeminiReader {
        GeminiReader { signer, ids, calls: 0, usage: None, ending: None, answer_end: AnswerEnd::default() }
    }

    fn candidate(&mut self, candidate: GeminiCandidate, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let has_more = !candidate.content.parts.is_empty();
        for part in candidate.content.parts {
            self.part(part, pieces);
        }
        if let Some(word) = &candidate.finish_reason {
            self.ending = Some(self.finish(word)?);
        }
        self.answer_end.read(has_more, candidate.finish_reason.as_deref());
        Ok(())
    }

    fn part(&mut self, part: GeminiPart, pieces: &mut VecDeque<Piece>) {
        let GeminiPart { text, thought: thinks, thought_signature, function_call, inline_data } = part;
        let text = text.unwrap_or_default();
        // Pictures that were tried in a thought are none of the answer.
        pieces.extend(inline_data.filter(|_| !thinks).and_then(|data| data.image()));
        let on = match function_call {
            Some(call) => SignedPart::Call(self.call(call, pieces)),
            None => {
                if !text.is_empty() {
                    pieces.push_back(if thinks {
                        Piece::Summary(text.clone())
                    } else {
                        answer(text.as_str())
                    });
                }
                if thinks { SignedPart::Thought(text) } else { SignedPart::Text(text) }
            }
        };
        let signature = thought_signature.map(|thought_signature| GeminiSignature { on, thought_signature });
        let signed = signature.and_then(|signature| signature.signed(&self.signer));
        pieces.extend(signed.map(Piece::Signed));
    }

    /// A call comes whole.
    fn call(&mut self, call: GeminiFunctionCall, pieces: &mut VecDeque<Piece>) -> usize {
        let at = self.calls;
        self.calls += 1;
        pieces.push_back(Piece::ToolCall(ToolCallDelta {
            index: u32::try_from(at).unwrap_or(u32::MAX),
            id: Some(self.ids.unique(call.id)),
            name: Some(call.name),
            arguments: Value::Object(call.args).to_string(),
        }));
        at
    }

    /// What is new of an answer, and why it ended.
    fn candidates(&mut self, response: GeminiResponse, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if !response.error.is_null() {
            return Err(refusal::of_event(&response.error));
        }
        if response.prompt_feedback["blockReason"].is_string() {
            self.ending = Some(GenerationEnd::Filtered);
        }
        let firsts = response.candidates.into_iter().filter(|candidate| candidate.index == 0);
        for candidate in firsts {
            self.candidate(candidate, pieces)?;
        }
        Ok(())
    }

    /// Thoughts are counted apart from what is shown of the answer.
    fn count(&mut self, counts: &GeminiUsageMetadata, is_over: bool, pieces: &mut VecDeque<Piece>) {
        let usage = TokenUsage {
            prompt: counts.prompt_token_count + counts.tool_use_prompt_token_count,
            cache_read: counts.cached_content_token_count,
            cache_write: Tokens::ZERO,
            cache_hour: None,
            completion: counts.candidates_token_count + counts.thoughts_token_count,
            thinking: Some(counts.thoughts_token_count),
        };
        // The prompt is counted before anything is written; that says nothing of what is written by then.
        let says = usage.completion > Tokens::ZERO || is_over;
        if says && self.usage.is_none_or(|last| last != usage && usage.completion >= last.completion) {
            self.usage = Some(usage);
            pieces.push_back(Piece::Usage(usage));
        }
    }

    fn finish(&self, word: &str) -> Result<GenerationEnd, Failure> {
        let broken = |what| Err(Failure::new(Fault::Backend, what));
        match word {
            "MAX_TOKENS" | "CONTINUATION" => Ok(GenerationEnd::Limit),
            "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" => {
                // It says nothing of the target, and would not be better for being asked again.
                let why = format!("the model called a tool in a way that cannot be read ({word})");
                let failure = Failure::new(Fault::Backend, why).code(NO_ANSWER);
                Err(Failure { retry: Retry::Never, ..failure })
            }
            "MALFORMED_RESPONSE" | "MISSING_THOUGHT_SIGNATURE" => broken("the upstream gave up"),
            "STOP" | "FINISH_REASON_UNSPECIFIED" if self.calls > 0 => Ok(GenerationEnd::ToolCalls),
            "STOP" | "FINISH_REASON_UNSPECIFIED" => Ok(stop()),
            // Safety, recitation, and all the other reasons to withhold it.
            _ => Ok(GenerationEnd::Filtered),
        }
    }
}

impl crate::remote::EventReader for GeminiReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let response: GeminiResponse = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no response"))?;
        // Counts that are none say nothing, and the answer is as good as with them.
        let counts = Option::<GeminiUsageMetadata>::deserialize(&response.usage_metadata);
        let read = self.candidates(response, pieces);
        if let Some(counts) = &counts.unwrap_or_default() {
            self.count(counts, read.is_err() || self.ending.is_some(), pieces);
        }
        read
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        pieces.push_back(Piece::End(self.ending.ok_or_else(refusal::truncated)?));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.answer_end.is_reached()
    }
}
