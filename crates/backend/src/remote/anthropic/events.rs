//! Translates Anthropic's events to pieces.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Map, Value, json};

use crate::remote::call_ids::CallIds;
use crate::remote::finish_word;
use crate::remote::refusal;
use crate::remote::uncounted::{answer, thought};
use crate::remote::wire::text;
use crate::{Failure, Fault, GenerationEnd, Piece, Remark, TokenUsage};
use stint_types::chat::{
    AnswerApi, AnswerNote, ProviderMembers, SignedThought, ThoughtSigner, ToolCallDelta,
};
use stint_types::units::Tokens;

use super::member_room::MemberRoom;
use super::placed_thought::PlacedThought;

/// The members of a message that the gateway says itself, or that speak of what it has sent.
const KNOWN: [&str; 10] = [
    "id",
    "type",
    "role",
    "model",
    "content",
    "stop_reason",
    "stop_sequence",
    "stop_details",
    "usage",
    "input_transformations",
];

/// The counts that it says itself.
const COUNTED: [&str; 6] = [
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cache_creation",
    "output_tokens_details",
];

/// Those of them that together are the prompt's.
const PROMPT_COUNTS: [&str; 3] = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// Why an answer was cut, where no other API has a word for it.
const UNTRANSLATED_REASONS: [&str; 2] = ["pause_turn", "model_context_window_exceeded"];

/// So many blocks may be begun and not ended. Anthropic ends each before the next.
pub(super) const OPEN_MAX: usize = 256;

/// Reads one stream of events.
#[derive(Debug)]
pub(super) struct AnthropicReader {
    /// Who signs what it says.
    signer: ThoughtSigner,
    ids: CallIds,
    /// The blocks that have begun and not ended, by their index.
    open: BTreeMap<u64, AnthropicStreamBlock>,
    /// How many characters it had answered when each tool was called.
    calls: Vec<usize>,
    /// How many characters it has answered.
    letters: usize,
    /// The counts so far; those of the prompt come first, and may be repeated at the end.
    counts: Map<String, Value>,
    ending: Option<GenerationEnd>,
    /// What it says besides, for callers of the same API.
    besides: ProviderMembers,
    /// What is left for that, and for the counts.
    room: MemberRoom,
}

/// A block that has begun.
#[derive(Debug)]
enum AnthropicStreamBlock {
    /// Goes out piece by piece.
    Text,
    /// The thought's text goes out piece by piece, and the whole with its signature at the end.
    Thinking(StreamedThought),
    /// Means nothing to anybody but its provider.
    Redacted(StreamedThought),
    /// A call: its place, the arguments that came at once, and whether others came since.
    Call { index: u32, input: Value, streamed: bool },
    /// What was not asked for.
    Other,
}

/// A thought that has begun, and how much stood before it.
#[derive(Debug)]
struct StreamedThought {
    block: Map<String, Value>,
    letters: usize,
    calls: usize,
}

impl AnthropicReader {
    pub(super) fn new(signer: ThoughtSigner, ids: CallIds) -> AnthropicReader {
        AnthropicReader {
            signer,
            ids,
            open: BTreeMap::new(),
            calls: Vec::new(),
            letters: 0,
            counts: Map::new(),
            ending: None,
            besides: ProviderMembers::new(AnswerApi::Messages),
            room: MemberRoom::default(),
        }
    }

    fn start_block(&mut self, block: &Value, pieces: &mut VecDeque<Piece>) -> AnthropicStreamBlock {
        let (letters, calls) = (self.letters, self.calls.len());
        let thinking =
            || StreamedThought { block: block.as_object().cloned().unwrap_or_default(), letters, calls };
        match text(block, "type") {
            "text" => {
                self.letters += text(block, "text").chars().count();
                pieces.extend(non_empty(text(block, "text")).map(answer));
                AnthropicStreamBlock::Text
            }
            "thinking" => {
                pieces.extend(non_empty(text(block, "thinking")).map(thought));
                AnthropicStreamBlock::Thinking(thinking())
            }
            "redacted_thinking" => AnthropicStreamBlock::Redacted(thinking()),
            "tool_use" => self.call(block, pieces),
            _ => AnthropicStreamBlock::Other,
        }
    }

    fn call(&mut self, block: &Value, pieces: &mut VecDeque<Piece>) -> AnthropicStreamBlock {
        let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.calls.push(self.letters);
        let id = self.ids.unique(Some(text(block, "id").to_owned()));
        let name = text(block, "name").to_owned();
        let arguments = String::new();
        pieces.push_back(Piece::ToolCall(ToolCallDelta { index, id: Some(id), name: Some(name), arguments }));
        AnthropicStreamBlock::Call {
            index,
            input: block.get("input").cloned().unwrap_or_else(|| json!({})),
            streamed: false,
        }
    }

    /// Takes counts. What was counted of the prompt stays: some servers say 0 of all of it at the end. Others say only there what of it
    /// was cached, and 0 of the rest.
    fn count(&mut self, usage: &Value) {
        let counts_prompt = PROMPT_COUNTS
            .iter()
            .any(|name| usage.get(*name).is_some_and(|count| !(count.is_null() || is_nothing(count))));
        for (name, count) in usage.as_object().into_iter().flatten() {
            let says_nothing = name != "output_tokens" && !counts_prompt && is_nothing(count);
            let was_told = says_nothing && self.counts.contains_key(name);
            if !(count.is_null() || was_told) {
                self.room.keep(&mut self.counts, name, count);
            }
        }
    }

    /// What was read from the cache or put into it is not among `input_tokens`; what was thought is among
    /// `output_tokens`.
    fn usage(&self) -> Option<TokenUsage> {
        let number = |value: Option<&Value>| value.and_then(Value::as_u64).map(Tokens);
        let count = |name: &str| number(self.counts.get(name));
        let cache_read = count("cache_read_input_tokens").unwrap_or_default();
        let cache_write = count("cache_creation_input_tokens").unwrap_or_default();
        let details = self.counts.get("output_tokens_details");
        let kept = self.counts.get("cache_creation");
        Some(TokenUsage {
            prompt: count("input_tokens")? + cache_read + cache_write,
            cache_read,
            cache_write,
            cache_hour: number(kept.and_then(|kept| kept.get("ephemeral_1h_input_tokens"))),
            completion: count("output_tokens")?,
            thinking: number(details.and_then(|details| details.get("thinking_tokens"))),
        })
    }

    /// What it has said besides, if there is any.
    fn take_besides(&mut self) -> Option<ProviderMembers> {
        let counts = std::mem::take(&mut self.counts).into_iter();
        self.besides.usage.extend(counts.filter(|(name, _)| !COUNTED.contains(&name.as_str())));
        let besides = std::mem::replace(&mut self.besides, ProviderMembers::new(AnswerApi::Messages));
        (!besides.is_empty()).then_some(besides)
    }

    /// The count at the end.
    fn finish(&mut self, event: &Value, pieces: &mut VecDeque<Piece>) {
        if let Some(word) = event.pointer("/delta/stop_reason").and_then(Value::as_str) {
            self.ending = Some(ending(word));
            if word == "refusal" {
                // It says only now that what it wrote is no answer. Why stands beside that, where it says so.
                let why = non_empty(text(&event["delta"]["stop_details"], "explanation"));
                pieces.push_back(Piece::Note(AnswerNote::Declined(why.map(Into::into))));
            }
            if UNTRANSLATED_REASONS.contains(&word) {
                self.besides.choice.insert("stop_reason".to_owned(), word.into());
            }
        }
        // The counts come first: others leave them no room.
        self.count(&event["usage"]);
        let known = ["stop_reason", "stop_sequence"];
        self.room.keep_unknown(&event["delta"], &known, &mut self.besides.choice);
        self.room.keep_unknown(event, &["type", "delta", "usage"], &mut self.besides.answer);
        let by = event.pointer("/delta/stop_sequence").and_then(Value::as_str);
        pieces.extend(by.map(|text| Piece::Remark(Remark::StoppedBy(text.into()))));
        pieces.extend(self.usage().map(Piece::Usage));
    }
}

impl AnthropicStreamBlock {
    fn append_delta(&mut self, delta: &Value, pieces: &mut VecDeque<Piece>) {
        match (self, text(delta, "type")) {
            (AnthropicStreamBlock::Text, "text_delta") => {
                pieces.extend(non_empty(text(delta, "text")).map(answer));
            }
            (AnthropicStreamBlock::Thinking(StreamedThought { block, .. }), "thinking_delta") => {
                append(block, "thinking", text(delta, "thinking"));
                pieces.extend(non_empty(text(delta, "thinking")).map(thought));
            }
            (AnthropicStreamBlock::Thinking(StreamedThought { block, .. }), "signature_delta") => {
                append(block, "signature", text(delta, "signature"));
            }
            (AnthropicStreamBlock::Call { index, streamed, .. }, "input_json_delta") => {
                let more = text(delta, "partial_json");
                *streamed |= !more.is_empty();
                pieces.extend(non_empty(more).map(|more| arguments(*index, more)));
            }
            _ => {}
        }
    }

    /// A thought is handed out with its signature, or not at all. `starts` has the characters that stood before each call.
    fn end(self, signer: &ThoughtSigner, starts: &[usize], pieces: &mut VecDeque<Piece>) {
        let signed = |StreamedThought { block, letters, calls }: StreamedThought| {
            let block = PlacedThought::write(block, letters, &starts[..calls]);
            Piece::Signed(SignedThought { signer: signer.clone(), block })
        };
        match self {
            AnthropicStreamBlock::Thinking(thought)
                if thought.block.get("signature").is_some_and(|it| *it != json!("")) =>
            {
                pieces.push_back(signed(thought));
            }
            AnthropicStreamBlock::Redacted(thought) => pieces.push_back(signed(thought)),
            AnthropicStreamBlock::Call { index, input, streamed: false } => {
                pieces.push_back(arguments(index, &input.to_string()));
            }
            _ => {}
        }
    }
}

impl crate::remote::EventReader for AnthropicReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let event: Value = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no JSON"))?;
        let index = event["index"].as_u64().unwrap_or_default();
        match text(&event, "type") {
            "message_start" => {
                self.count(&event["message"]["usage"]);
                self.room.keep_unknown(&event["message"], &KNOWN, &mut self.besides.answer);
                pieces.extend(
                    dropped_thoughts(&event["message"]).map(Remark::ThoughtsDropped).map(Piece::Remark),
                );
                // Of what will be written it knows next to nothing yet.
                let read = self.usage().map(|usage| TokenUsage {
                    completion: Tokens::ZERO,
                    thinking: None,
                    ..usage
                });
                pieces.extend(read.map(Piece::Usage));
            }
            "content_block_start" => {
                let block = self.start_block(&event["content_block"], pieces);
                self.open.insert(index, block);
                if self.open.len() > OPEN_MAX {
                    return Err(Failure::new(Fault::Backend, "the upstream began blocks without end"));
                }
            }
            "content_block_delta" => {
                if let Some(block) = self.open.get_mut(&index) {
                    block.append_delta(&event["delta"], pieces);
                }
                if text(&event["delta"], "type") == "text_delta" {
                    self.letters += text(&event["delta"], "text").chars().count();
                }
            }
            "content_block_stop" => {
                if let Some(block) = self.open.remove(&index) {
                    block.end(&self.signer, &self.calls, pieces);
                }
            }
            "message_delta" => self.finish(&event, pieces),
            "message_stop" => return self.close(pieces),
            "error" => return Err(refusal::of_event(&event["error"])),
            // `ping`, and what may come to be.
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let ending = self.ending.ok_or_else(refusal::truncated)?;
        pieces.extend(self.take_besides().map(Box::new).map(Remark::Members).map(Piece::Remark));
        pieces.push_back(Piece::End(ending));
        Ok(())
    }

    /// A call's arguments may come with the end of its block.
    fn is_complete(&self) -> bool {
        self.ending.is_some() && self.open.is_empty()
    }
}

/// True for a count of 0, and for an object of such.
fn is_nothing(count: &Value) -> bool {
    match count {
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Object(counts) => counts.values().all(is_nothing),
        _ => false,
    }
}

/// `pause_turn` asks for a continuation. It is only sent to clients that let the provider run tools.
fn ending(word: &str) -> GenerationEnd {
    match word {
        "pause_turn" => GenerationEnd::BrokenOff,
        "tool_use" => GenerationEnd::ToolCalls,
        "refusal" => GenerationEnd::Filtered,
        word => finish_word::ending(word).unwrap_or(GenerationEnd::BrokenOff),
    }
}

fn arguments(index: u32, more: &str) -> Piece {
    Piece::ToolCall(ToolCallDelta { index, id: None, name: None, arguments: more.to_owned() })
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// The most bytes of a thought's text, and of its signature, that are kept to be handed out with it.
const KEPT_MAX: usize = 4 << 20;

fn append(block: &mut Map<String, Value>, name: &str, more: &str) {
    match block.entry(name).or_insert_with(|| json!("")) {
        Value::String(text) if text.len() + more.len() > KEPT_MAX => {}
        Value::String(text) => text.push_str(more),
        other => *other = json!(more),
    }
}

/// How many thoughts the provider left out since their prefix is another one now.
fn dropped_thoughts(message: &Value) -> Option<u32> {
    let changes = message.get("input_transformations")?.as_array()?;
    let is_dropped = |change: &&Value| {
        text(change, "type") == "thinking_dropped" && text(change, "reason") == "prefix_binding_mismatch"
    };
    u32::try_from(changes.iter().filter(is_dropped).count()).ok().filter(|count| *count > 0)
}
