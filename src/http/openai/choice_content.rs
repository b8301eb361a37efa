//! The events of a choice put together, as a whole completion has them.

use serde_json::{Map, Value, json};

use crate::http::collected_choice::CollectedChoice;
use crate::http::provider_members::DECLINED;
use crate::http::signed;
use stint_types::chat::{AnswerNote, ChoiceEvent, CommentaryPlace, ToolCallDelta};

/// What the events of a choice come to.
#[derive(Debug, Default)]
pub(super) struct ChoiceContent {
    pub(super) thought: String,
    pub(super) answer: String,
    pub(super) refusal: Option<String>,
    pub(super) annotations: Vec<Value>,
    pub(super) images: Vec<Value>,
    pub(super) audio: Map<String, Value>,
    pub(super) tool_calls: Vec<(u32, Value)>,
    pub(super) extras: Vec<(u32, Value)>,
    pub(super) reasoning_details: Vec<Value>,
    pub(super) logprobs: Value,
}

impl ChoiceContent {
    /// Of all events of a choice.
    pub(super) fn of(choice: CollectedChoice, commentary: CommentaryPlace) -> ChoiceContent {
        let mut content = ChoiceContent::default();
        let events = choice.with_commentary(commentary).into_events();
        events.into_iter().for_each(|event| content.add(event));
        // The model said only at the end that all of it declines.
        if content.refusal.as_ref().is_some_and(String::is_empty) {
            content.refusal = Some(std::mem::take(&mut content.answer));
        }
        content
    }

    fn add(&mut self, event: ChoiceEvent) {
        match event {
            ChoiceEvent::Thought(text) => append(&mut self.thought, text),
            ChoiceEvent::Answer(text) => append(self.refusal.as_mut().unwrap_or(&mut self.answer), text),
            ChoiceEvent::Note(note) => self.add_note(note),
            ChoiceEvent::Logprobs(entries) => self.logprobs = logprobs_member(entries),
            ChoiceEvent::Signed(signed) => match signed::call_extra(&signed) {
                Some(extra) => self.extras.push(extra),
                None => self.reasoning_details.push(signed::reasoning_detail(&signed)),
            },
            ChoiceEvent::ToolCall(call) => self.tool_calls.push((call.index, tool_call(call))),
        }
    }

    fn add_note(&mut self, note: AnswerNote) {
        match note {
            AnswerNote::Refusal => self.refusal = Some(String::new()),
            AnswerNote::Declined(why) => self.decline(why),
            AnswerNote::Annotation(source) => self.annotations.push(source),
            AnswerNote::Image(image) => self.images.push(image),
            AnswerNote::Audio(audio) => join_audio(&mut self.audio, audio),
            // Chat completions have one message; its texts have their places already.
            AnswerNote::Phase(_) => {}
        }
    }

    /// Its provider withholds the rest. Where it does not say why, what the model wrote is why.
    fn decline(&mut self, why: Option<Box<str>>) {
        let has_text = !self.answer.trim().is_empty() || self.refusal.is_some();
        let why = match why {
            Some(why) => why.into_string(),
            None if has_text => String::new(),
            None => DECLINED.to_owned(),
        };
        append(self.refusal.get_or_insert_default(), why);
    }
}

/// Adds a text, which mostly is all of it.
fn append(text: &mut String, more: String) {
    if text.is_empty() { *text = more } else { *text += &more }
}

/// Adds a piece of a sound: its data and its words come in pieces, all else whole.
fn join_audio(audio: &mut Map<String, Value>, piece: Value) {
    let Value::Object(piece) = piece else { return };
    for (name, value) in piece {
        match (audio.get_mut(&name), &value) {
            (Some(Value::String(text)), Value::String(more)) if name == "data" || name == "transcript" => {
                text.push_str(more);
            }
            _ => drop(audio.insert(name, value)),
        }
    }
}

fn tool_call(ToolCallDelta { id, name, arguments, .. }: ToolCallDelta) -> Value {
    let function = json!({ "name": name.unwrap_or_default(), "arguments": arguments });
    json!({ "id": id.unwrap_or_default(), "type": "function", "function": function })
}

/// The chances of tokens, as OpenAI has them in a choice.
pub(super) fn logprobs_member(entries: Vec<Value>) -> Value {
    json!({ "content": Value::Array(entries), "refusal": null })
}
