//! A completion as server-sent events: chunks, as OpenAI has them.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::execute::AnswerPhases;
use crate::gateway::{AnsweringModel, RequestReceipt, RequestTask};
use crate::http::budget_report::budget;
use crate::http::dialect::StreamWriter;
use crate::http::error::ApiError;
use crate::http::provider_members::{self, DECLINED};
use crate::http::signed;
use stint_types::chat::{AnswerApi, AnswerNote, ChoiceEvent};
use stint_types::units::Timestamp;

use super::choice_content::logprobs_member;
use super::chunk::{CallPiece, ChunkChoice, ChunkDelta, CompletionChunk, FunctionPiece};
use super::list_places::ListPlaces;
use super::render::{CompletionFormat, OpenAiRenderOptions};
use super::usage::usage;

/// Keeps a silent stream alive; clients skip it.
const COMMENT: &str = ": thinking\n\n";

/// What most events take, in bytes, and what most choices do.
const EVENT_USUAL: usize = 320;
const CHOICE_USUAL: usize = 128;
/// And what quotes and escapes of a piece of text do.
const ESCAPES_USUAL: usize = 16;

/// Writes the chunks of one answer.
#[derive(Debug, Clone)]
pub(super) struct OpenAiStreamWriter {
    id: String,
    answering: AnsweringModel,
    /// Its name, once the answer begins.
    model: Arc<str>,
    created: i64,
    include_usage: bool,
    options: OpenAiRenderOptions,
    /// What every event begins with, up to its choices, and what it ends with: only the choice between differs.
    frame: (String, &'static str),
    begun: Vec<bool>,
    /// What stands around each choice's text in an event that brings nothing else, once one did.
    text_frames: Vec<Option<TextFrame>>,
    /// The chances of each choice's next tokens: they go out with their text.
    logprobs: Vec<Value>,
    /// The choices whose model declines.
    refusing: Vec<bool>,
    /// Where each choice's texts stand, and the entries of its lists.
    phases: Vec<AnswerPhases>,
    places: Vec<ListPlaces>,
}

impl OpenAiStreamWriter {
    pub(super) fn new(
        task: &RequestTask,
        created: Timestamp,
        include_usage: bool,
        options: OpenAiRenderOptions,
    ) -> OpenAiStreamWriter {
        let choices = usize::try_from(task.choices()).unwrap_or(usize::MAX);
        OpenAiStreamWriter {
            id: options.kind.id(task.id()),
            answering: task.model().clone(),
            model: "".into(),
            created: created.as_seconds(),
            include_usage,
            options,
            frame: (String::new(), ""),
            begun: vec![false; choices],
            text_frames: vec![None; choices],
            logprobs: vec![Value::Null; choices],
            refusing: vec![false; choices],
            phases: vec![AnswerPhases::new(options.commentary); choices],
            places: vec![ListPlaces::default(); choices],
        }
    }

    /// The model that answers is known from the first choice on that is written.
    fn begin(&mut self) {
        if self.frame.0.is_empty() {
            self.model = self.answering.name();
            self.frame = frame(&self.chunk(&[]));
        }
    }

    /// A chunk with this choice, as an event.
    fn event(&self, choice: &ChunkChoice<'_>) -> String {
        let (head, tail) = (self.frame.0.as_bytes(), self.frame.1.as_bytes());
        let mut text = Vec::with_capacity(EVENT_USUAL.max(head.len() + CHOICE_USUAL));
        text.extend_from_slice(head);
        // Values of ours always have JSON, and JSON is always text.
        let _ = serde_json::to_writer(&mut text, choice);
        text.extend_from_slice(tail);
        String::from_utf8(text).unwrap_or_default()
    }

    /// An event that brings more of a choice's text and nothing else, as most do: what stands around the text is written once.
    /// Nothing if it brings more.
    fn text_event(&mut self, index: u32, text: &str) -> Option<String> {
        let at = usize::try_from(index).ok()?;
        let brings_text_alone = self.options.kind == CompletionFormat::Chat
            && *self.begun.get(at)?
            && !self.is_refusing(index)
            && self.logprobs.get(at)?.is_null();
        if !brings_text_alone {
            return None;
        }
        if self.text_frames[at].is_none() {
            let empty = self.choice(index, ChunkDelta { content: Some(""), ..ChunkDelta::default() }, None);
            self.text_frames[at] = TextFrame::around_empty(&self.event(&empty));
        }
        self.text_frames[at].as_ref().map(|frame| frame.event(text))
    }

    fn chunk<'a>(&'a self, choices: &'a [ChunkChoice<'a>]) -> CompletionChunk<'a> {
        CompletionChunk {
            id: &self.id,
            object: self.options.kind.objects().1,
            created: self.created,
            model: &self.model,
            choices,
            usage: self.include_usage.then_some(None),
            budget: None,
            system_fingerprint: None,
        }
    }

    /// What is new of a choice, in the form that was asked for.
    fn choice<'a>(
        &mut self,
        index: u32,
        mut delta: ChunkDelta<'a>,
        finish_reason: Option<&'a str>,
    ) -> ChunkChoice<'a> {
        self.begin();
        if self.options.kind == CompletionFormat::Text {
            let text = Some(delta.content.unwrap_or_default());
            return ChunkChoice { index, delta: None, text, logprobs: Value::Null, finish_reason };
        }
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let is_first = self.begun.get_mut(at).is_some_and(|begun| !std::mem::replace(begun, true));
        delta.role = is_first.then_some("assistant");
        let logprobs = self.logprobs.get_mut(at).map(Value::take).unwrap_or_default();
        ChunkChoice { index, delta: Some(delta), text: None, logprobs, finish_reason }
    }

    /// A choice's text is a refusal from here on; how a text goes on has no other place for it.
    fn refuse(&mut self, index: u32) {
        let choice = self.refusing.get_mut(usize::try_from(index).unwrap_or(usize::MAX));
        choice.into_iter().for_each(|refuses| *refuses = self.options.kind == CompletionFormat::Chat);
    }

    fn is_refusing(&self, index: u32) -> bool {
        usize::try_from(index).is_ok_and(|at| self.refusing.get(at).is_some_and(|refuses| *refuses))
    }

    /// An event, as its place among the others has it; nothing if it has none.
    fn place(&mut self, index: u32, event: ChoiceEvent) -> Option<ChoiceEvent> {
        let at = usize::try_from(index).ok()?;
        let event = self.phases.get_mut(at)?.place(event)?;
        Some(self.places.get_mut(at)?.number(event))
    }

    fn number_detail(&mut self, index: u32, detail: &mut Value) {
        let places = self.places.get_mut(usize::try_from(index).unwrap_or(usize::MAX));
        places.into_iter().for_each(|places| places.number_detail(detail));
    }

    /// What an event shows of a choice; nothing if it is not shown.
    fn delta<'a>(&self, index: u32, event: &'a ChoiceEvent) -> Option<ChunkDelta<'a>> {
        let delta = ChunkDelta::default();
        match event {
            ChoiceEvent::Answer(text) if self.is_refusing(index) => {
                Some(ChunkDelta { refusal: Some(text), ..delta })
            }
            ChoiceEvent::Answer(text) => Some(ChunkDelta { content: Some(text), ..delta }),
            ChoiceEvent::Note(note) if self.options.kind == CompletionFormat::Chat => note_delta(note),
            ChoiceEvent::Logprobs(_) | ChoiceEvent::Note(_) => None,
            ChoiceEvent::Thought(_) | ChoiceEvent::Signed(_) if !self.options.thoughts => None,
            ChoiceEvent::ToolCall(_) if self.options.kind == CompletionFormat::Text => None,
            ChoiceEvent::Signed(signed) => {
                Some(ChunkDelta { reasoning_details: Some([signed::reasoning_detail(signed)]), ..delta })
            }
            ChoiceEvent::Thought(text) => {
                let reasoning = self.options.mirror.then_some(text.as_str());
                let reasoning_details = reasoning.map(|text| [signed::text_detail(text)]);
                Some(ChunkDelta { reasoning, reasoning_content: Some(text), reasoning_details, ..delta })
            }
            ChoiceEvent::ToolCall(call) => {
                let function = FunctionPiece { name: call.name.as_deref(), arguments: &call.arguments };
                let id = call.id.as_deref();
                let kind = id.map(|_| "function");
                let piece = CallPiece { index: call.index, function, id, kind, extra_content: None };
                Some(ChunkDelta { tool_calls: Some([piece]), ..delta })
            }
        }
    }

    /// What a provider added to one of a choice's calls.
    fn call_extra(&mut self, choice: u32, call: u32, extra: &Value) -> String {
        if self.options.kind == CompletionFormat::Text {
            return String::new();
        }
        let function = FunctionPiece { name: None, arguments: "" };
        let piece = CallPiece { index: call, function, id: None, kind: None, extra_content: Some(extra) };
        let delta = ChunkDelta { tool_calls: Some([piece]), ..ChunkDelta::default() };
        let choice = self.choice(choice, delta, None);
        self.event(&choice)
    }

    /// The finishing chunks, the budget on the last of them, usage where it was asked for, and the end mark.
    fn done(&mut self, receipt: &RequestReceipt) -> String {
        let mut text = String::new();
        let fingerprint = Some(&*receipt.fingerprint);
        let of_answer = provider_members::of_answer(receipt, AnswerApi::Chat);
        let last = receipt.choices.len().saturating_sub(1);
        for (at, choice) in receipt.choices.iter().enumerate() {
            let index = u32::try_from(at).unwrap_or(u32::MAX);
            let choices = [self.choice(index, ChunkDelta::default(), Some(choice.finish.as_str()))];
            let chunk = self.chunk(&choices);
            let mut chunk = json!(if at == last {
                CompletionChunk { budget: Some(budget(receipt)), system_fingerprint: fingerprint, ..chunk }
            } else {
                chunk
            });
            if let Some(members) = provider_members::of_choice(choice, AnswerApi::Chat) {
                provider_members::add(&mut chunk["choices"][0], members.choice.clone());
                provider_members::add(&mut chunk["choices"][0]["delta"], members.message.clone());
            }
            provider_members::add(&mut chunk, of_answer.clone());
            text += &data(&chunk);
        }
        if self.include_usage {
            let usage = Some(Some(usage(receipt)));
            let system_fingerprint = fingerprint;
            let mut chunk = json!(CompletionChunk { usage, system_fingerprint, ..self.chunk(&[]) });
            provider_members::add(&mut chunk, of_answer);
            text += &data(&chunk);
        }
        text + "data: [DONE]\n\n"
    }
}

impl StreamWriter for OpenAiStreamWriter {
    fn write_event(&mut self, choice: u32, event: ChoiceEvent) -> String {
        let Some(event) = self.place(choice, event) else { return String::new() };
        if let ChoiceEvent::Logprobs(entries) = event {
            if let Some(waiting) = self.logprobs.get_mut(usize::try_from(choice).unwrap_or(usize::MAX)) {
                *waiting = logprobs_member(entries);
            }
            return String::new();
        }
        if event == ChoiceEvent::Note(AnswerNote::Refusal) {
            self.refuse(choice);
        }
        if let ChoiceEvent::Signed(signed) = &event
            && let Some((call, extra)) = signed::call_extra(signed)
        {
            return self.call_extra(choice, call, &extra);
        }
        if let ChoiceEvent::Answer(text) = &event
            && let Some(written) = self.text_event(choice, text)
        {
            return written;
        }
        let Some(mut delta) = self.delta(choice, &event) else { return String::new() };
        if let Some([detail]) = &mut delta.reasoning_details {
            self.number_detail(choice, detail);
        }
        let choice = self.choice(choice, delta, None);
        self.event(&choice)
    }

    fn write_end(&mut self, receipt: &RequestReceipt) -> String {
        self.done(receipt)
    }

    fn keep_alive(&self) -> &'static str {
        COMMENT
    }

    /// No `[DONE]` after it.
    fn write_error(&mut self, problem: &ApiError) -> String {
        data(&problem.to_json())
    }
}

/// What a note is told as.
fn note_delta(note: &AnswerNote) -> Option<ChunkDelta<'_>> {
    let delta = ChunkDelta::default();
    match note {
        AnswerNote::Annotation(source) => Some(ChunkDelta { annotations: Some([source]), ..delta }),
        AnswerNote::Declined(why) => {
            Some(ChunkDelta { refusal: Some(why.as_deref().unwrap_or(DECLINED)), ..delta })
        }
        AnswerNote::Image(image) => Some(ChunkDelta { images: Some([image]), ..delta }),
        AnswerNote::Audio(audio) => Some(ChunkDelta { audio: Some(audio), ..delta }),
        AnswerNote::Refusal | AnswerNote::Phase(_) => None,
    }
}

/// What stands around a text in events that differ in nothing else.
#[derive(Debug, Clone)]
struct TextFrame {
    head: String,
    tail: String,
}

impl TextFrame {
    /// What stands around the empty text in this event.
    fn around_empty(event: &str) -> Option<TextFrame> {
        const EMPTY: &str = "\"\"";
        // It stands in no name of a model: there quotes have backslashes before them.
        let at = event.find("\"content\":\"\"")? + "\"content\":".len();
        let (head, tail) = (&event[..at], &event[at + EMPTY.len()..]);
        Some(TextFrame { head: head.to_owned(), tail: tail.to_owned() })
    }

    fn event(&self, text: &str) -> String {
        let mut event = Vec::with_capacity(self.head.len() + text.len() + self.tail.len() + ESCAPES_USUAL);
        event.extend_from_slice(self.head.as_bytes());
        // A text always has JSON, and JSON is always text.
        let _ = serde_json::to_writer(&mut event, text);
        event.extend_from_slice(self.tail.as_bytes());
        String::from_utf8(event).unwrap_or_default()
    }
}

/// What stands around the choice of each of these chunks, which has none itself.
fn frame(chunk: &CompletionChunk<'_>) -> (String, &'static str) {
    let tail = if chunk.usage.is_some() { "],\"usage\":null}\n\n" } else { "]}\n\n" };
    let mut text = data(chunk);
    text.truncate(text.len() - tail.len());
    (text, tail)
}

/// An event of this.
fn data(value: &impl Serialize) -> String {
    const FRAME: (&[u8], &[u8]) = (b"data: ", b"\n\n");
    let mut text = Vec::with_capacity(EVENT_USUAL);
    text.extend_from_slice(FRAME.0);
    // Values of ours always have JSON, and JSON is always text.
    let _ = serde_json::to_writer(&mut text, value);
    text.extend_from_slice(FRAME.1);
    String::from_utf8(text).unwrap_or_default()
}
