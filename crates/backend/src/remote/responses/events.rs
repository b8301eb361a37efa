//! Translates the events of a response to pieces.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use crate::remote::answer_end::is_done;
use crate::remote::call_ids::CallIds;
use crate::remote::refusal;
use crate::remote::uncounted::{answer, refusal_begins, stop, uncounted};
use crate::remote::wire::text;
use crate::{Failure, Fault, GenerationEnd, Piece, Remark, TokenUsage};
use stint_types::chat::{AnswerApi, AnswerNote, ProviderMembers, ThoughtSigner, ToolCallDelta};
use stint_types::units::Tokens;

use super::custom_tools;
use super::reasoning::Reasoning;
use super::sources::MessageSources;

/// Reads one stream of events.
#[derive(Debug)]
pub(super) struct OpenAiResponsesReader {
    /// Who signs what it says.
    signer: ThoughtSigner,
    ids: CallIds,
    /// The calls that have begun, by their place in the output.
    calls: BTreeMap<u64, StreamedCall>,
    /// How many characters of text the answer has so far.
    letters: usize,
    /// True once reasoning was handed out.
    has_reasoning: bool,
    /// True once the model declines.
    refuses: bool,
    /// What the message that has begun is for, until its text comes.
    phase: Option<Box<str>>,
    /// And its sources.
    sources: MessageSources,
}

/// A call that has begun.
#[derive(Debug, Clone, Copy)]
struct StreamedCall {
    index: u32,
    /// True once some of its arguments came.
    has_arguments: bool,
}

impl OpenAiResponsesReader {
    pub(super) fn new(signer: ThoughtSigner, ids: CallIds) -> OpenAiResponsesReader {
        OpenAiResponsesReader {
            signer,
            ids,
            calls: BTreeMap::new(),
            letters: 0,
            has_reasoning: false,
            refuses: false,
            phase: None,
            sources: MessageSources::default(),
        }
    }

    /// An item begins: of interest is what a message is for, a call, with its name, and a thought behind some of the answer.
    fn start_item(&mut self, place: u64, item: &Value, pieces: &mut VecDeque<Piece>) {
        if item["type"] == "reasoning" && (self.letters > 0 || !self.calls.is_empty()) {
            // A summary without a word says that the model thinks unseen.
            pieces.push_back(Piece::Summary(String::new()));
        }
        if item["type"] == "message" {
            self.phase = item["phase"].as_str().map(Into::into);
            self.sources = MessageSources::after(self.letters);
        }
        let is_custom = item["type"] == "custom_tool_call";
        if !(is_custom || item["type"] == "function_call") || self.calls.contains_key(&place) {
            return;
        }
        let index = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.calls.insert(place, StreamedCall { index, has_arguments: false });
        let id = Some(self.ids.unique(Some(text(item, "call_id").to_owned())));
        let arguments = if is_custom { custom_tools::arguments_begin() } else { String::new() };
        let name = Some(text(item, "name").to_owned());
        pieces.push_back(Piece::ToolCall(ToolCallDelta { index, id, name, arguments }));
    }

    fn arguments(&mut self, place: u64, more: &str, pieces: &mut VecDeque<Piece>) {
        let Some(call) = self.calls.get_mut(&place).filter(|_| !more.is_empty()) else { return };
        call.has_arguments = true;
        let index = call.index;
        pieces.push_back(Piece::ToolCall(ToolCallDelta {
            index,
            id: None,
            name: None,
            arguments: more.to_owned(),
        }));
    }

    /// The text that a custom tool is called with is whole: all of it is here again, where none came before.
    fn finish_custom(&mut self, place: u64, item: &Value, pieces: &mut VecDeque<Piece>) {
        self.start_item(place, item, pieces);
        if self.calls.get(&place).is_some_and(|call| !call.has_arguments) {
            self.arguments(place, &custom_tools::escaped(text(item, "input")), pieces);
        }
        // What a limit broke off is not closed, so that nobody takes it for whole.
        if item["status"] != "incomplete" {
            self.arguments(place, custom_tools::ARGUMENTS_END, pieces);
        }
    }

    /// An item is whole: reasoning is handed out now, and arguments that did not come piece by piece.
    fn finish_item(&mut self, place: u64, item: &Value, pieces: &mut VecDeque<Piece>) {
        match (text(item, "type"), item.as_object()) {
            ("function_call", _) => {
                self.start_item(place, item, pieces);
                if self.calls.get(&place).is_some_and(|call| !call.has_arguments) {
                    self.arguments(place, text(item, "arguments"), pieces);
                }
            }
            ("custom_tool_call", _) => self.finish_custom(place, item, pieces),
            ("reasoning", Some(item)) if item.get("encrypted_content").is_some_and(Value::is_string) => {
                let (after_text, after_calls) = (self.letters > 0, self.calls.len());
                let after_letters = (after_text && after_calls == 0).then_some(self.letters);
                let reasoning = Reasoning { after_text, after_letters, after_calls, item: item.clone() };
                pieces.extend(reasoning.signed(&self.signer).map(Piece::Signed));
                self.has_reasoning = true;
            }
            ("message", Some(_)) => pieces.extend(self.sources.of_whole(item)),
            _ => {}
        }
    }

    /// The whole output at the end: some servers tell only there what they did not stream. What has come is not said again, and
    /// reasoning only where it is known what it stood before.
    fn finish_output(&mut self, output: &Value, pieces: &mut VecDeque<Piece>) {
        let (has_text, has_calls) = (self.letters > 0, !self.calls.is_empty());
        let takes_reasoning = !(has_text || has_calls || self.has_reasoning);
        for (place, item) in (0..).zip(output.as_array().into_iter().flatten()) {
            match text(item, "type") {
                "message" if !has_text => {
                    self.phase = item["phase"].as_str().map(Into::into);
                    for part in item["content"].as_array().into_iter().flatten() {
                        let sources = MessageSources::after(self.letters);
                        self.answer(text(part, "text"), pieces);
                        self.refusal(text(part, "refusal"), pieces);
                        pieces.extend(sources.of_part(part));
                    }
                }
                "function_call" | "custom_tool_call" if !has_calls => self.finish_item(place, item, pieces),
                "reasoning" if takes_reasoning => self.finish_item(place, item, pieces),
                _ => {}
            }
        }
    }

    fn answer(&mut self, more: &str, pieces: &mut VecDeque<Piece>) {
        if !more.is_empty() {
            pieces.extend(self.phase.take().map(AnswerNote::Phase).map(Piece::Note));
            self.letters += more.chars().count();
            pieces.push_back(answer(more));
        }
    }

    fn refusal(&mut self, more: &str, pieces: &mut VecDeque<Piece>) {
        if !more.is_empty() {
            pieces.extend(refusal_begins(&mut self.refuses));
            self.answer(more, pieces);
        }
    }

    fn completed_reason(&self) -> GenerationEnd {
        if self.calls.is_empty() { stop() } else { GenerationEnd::ToolCalls }
    }
}

impl crate::remote::EventReader for OpenAiResponsesReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if is_done(data) {
            return Ok(());
        }
        let event: Value = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no JSON"))?;
        let (place, delta) = (event["output_index"].as_u64().unwrap_or_default(), text(&event, "delta"));
        let response = &event["response"];
        match text(&event, "type") {
            "response.output_item.added" => self.start_item(place, &event["item"], pieces),
            "response.output_item.done" => self.finish_item(place, &event["item"], pieces),
            "response.output_text.delta" => self.answer(delta, pieces),
            "response.content_part.added" => self.sources.begin_part(self.letters),
            "response.output_text.annotation.added" => {
                pieces.extend(self.sources.note(&event["annotation"]));
            }
            "response.refusal.delta" => self.refusal(delta, pieces),
            "response.function_call_arguments.delta" => self.arguments(place, delta, pieces),
            "response.custom_tool_call_input.delta" => {
                self.arguments(place, &custom_tools::escaped(delta), pieces);
            }
            "response.reasoning_summary_part.added" if event["summary_index"].as_u64() > Some(0) => {
                pieces.push_back(Piece::Summary("\n\n".to_owned()));
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta"
                if !delta.is_empty() =>
            {
                pieces.push_back(Piece::Summary(delta.into()));
            }
            "response.completed" if matches!(text(response, "status"), "failed" | "cancelled") => {
                pieces.extend(usage(&response["usage"]).map(Piece::Usage));
                return Err(refusal::of_event(&response["error"]));
            }
            kind @ ("response.completed" | "response.incomplete") => {
                self.finish_output(&response["output"], pieces);
                pieces.extend(usage(&response["usage"]).map(Piece::Usage));
                pieces.extend(members(response).map(Box::new).map(Remark::Members).map(Piece::Remark));
                let is_whole = kind == "response.completed" && text(response, "status") != "incomplete";
                pieces.push_back(Piece::End(match text(&response["incomplete_details"], "reason") {
                    _ if is_whole => self.completed_reason(),
                    "content_filter" => GenerationEnd::Filtered,
                    "" | "max_output_tokens" => GenerationEnd::Limit,
                    _ => GenerationEnd::BrokenOff,
                }));
            }
            "response.failed" => {
                pieces.extend(usage(&response["usage"]).map(Piece::Usage));
                return Err(refusal::of_event(&response["error"]));
            }
            "error" => return Err(refusal::of_event(event.get("error").unwrap_or(&event))),
            _ => {}
        }
        Ok(())
    }

    /// Every response says how it ends.
    fn close(&mut self, _: &mut VecDeque<Piece>) -> Result<(), Failure> {
        Err(refusal::truncated())
    }

    /// Its last event ends it.
    fn is_complete(&self) -> bool {
        false
    }
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    let number = |place: &str| usage.pointer(place).and_then(Value::as_u64).map(Tokens);
    Some(TokenUsage {
        prompt: number("/input_tokens")?,
        cache_read: number("/input_tokens_details/cached_tokens").unwrap_or_default(),
        cache_write: number("/input_tokens_details/cache_write_tokens").unwrap_or_default(),
        cache_hour: None,
        completion: number("/output_tokens")?,
        thinking: number("/output_tokens_details/reasoning_tokens"),
    })
}

/// What a response says besides, for callers of the same API: the tier that it was served in, and counts that no other API has.
fn members(response: &Value) -> Option<ProviderMembers> {
    let mut members = ProviderMembers::new(AnswerApi::Responses);
    let tier = response.get("service_tier").filter(|tier| tier.is_string());
    members.answer.extend(tier.map(|tier| ("service_tier".to_owned(), tier.clone())));
    if let Value::Object(usage) = &response["usage"] {
        members.usage = uncounted(usage.clone());
    }
    (!members.is_empty()).then_some(members)
}
