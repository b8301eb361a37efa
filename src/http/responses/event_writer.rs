//! Writes an answer item by item as the typed events of the API, and remembers the items.

use serde_json::{Value, json};

use crate::http::call_sequence::CallSequence;
use crate::http::provider_members::DECLINED;
use stint_types::chat::{AnswerNote, ChoiceEvent, SignedThought, ToolCallDelta, is_complete_json};
use stint_types::units::RequestId;

use super::compaction;
use super::open_message::OpenMessage;
use super::output::{self, OutputItem, ResponsesRenderOptions, ResponsesThoughts};
use super::tool_set::ToolCallForm;

/// The item that is open.
#[derive(Debug, Clone)]
enum OpenItem {
    Thought(String),
    Message(OpenMessage),
    Call(ToolCallDelta),
    Summary(String),
}

/// Writes the events of one answer's items.
#[derive(Debug, Clone)]
pub(super) struct EventWriter {
    /// The request's id, without what it begins with.
    hex: String,
    options: ResponsesRenderOptions,
    /// How many events there were.
    sequence: u64,
    items: Vec<OutputItem>,
    open: Option<OpenItem>,
    /// Chances of tokens whose text has not come.
    logprobs: Vec<Value>,
    calls: CallSequence,
    /// True once the model declines.
    refuses: bool,
    /// How many characters of the answer are in messages that are closed.
    letters: usize,
    /// Sources whose text has not come.
    sources: Vec<Value>,
    /// What the messages from here on are for, where their model says so.
    phase: Option<Box<str>>,
}

impl EventWriter {
    pub(super) fn new(id: RequestId, options: ResponsesRenderOptions) -> EventWriter {
        let hex = id.to_string().replacen("req_", "", 1);
        EventWriter {
            hex,
            options,
            sequence: 0,
            items: Vec::new(),
            open: None,
            logprobs: Vec::new(),
            calls: CallSequence::default(),
            refuses: false,
            letters: 0,
            sources: Vec::new(),
            phase: None,
        }
    }

    /// All items so far, those among them that the caller does not see.
    pub(super) fn items(&self) -> &[OutputItem] {
        &self.items
    }

    /// An event.
    pub(super) fn emit(&mut self, name: &str, members: Value) -> String {
        let number = self.sequence;
        self.sequence += 1;
        event(name, number, members)
    }

    /// The text that one event of a choice puts on the wire, and those that waited for it.
    pub(super) fn write(&mut self, event: ChoiceEvent) -> String {
        self.calls.push(event);
        self.ready()
    }

    /// Writes what has its turn.
    fn ready(&mut self) -> String {
        let mut text = String::new();
        while let Some(event) = self.calls.pop() {
            text += &self.event(event);
        }
        text
    }

    fn event(&mut self, event: ChoiceEvent) -> String {
        match event {
            ChoiceEvent::ToolCall(piece) => self.call(&piece),
            ChoiceEvent::Thought(text) => self.thought(&text),
            ChoiceEvent::Signed(signed) => self.signed(&signed),
            ChoiceEvent::Answer(text) if self.options.is_compaction => self.summary(&text),
            ChoiceEvent::Answer(text) => self.answer(&text),
            ChoiceEvent::Note(note) => self.note(note),
            ChoiceEvent::Logprobs(entries) => {
                self.logprobs.extend(entries);
                String::new()
            }
        }
    }

    fn note(&mut self, note: AnswerNote) -> String {
        match note {
            AnswerNote::Refusal => self.refuses = true,
            AnswerNote::Annotation(source) => {
                self.sources.push(source);
                return self.annotate();
            }
            AnswerNote::Phase(word) => return self.begin_phase(word),
            AnswerNote::Declined(_) if self.options.is_compaction => {}
            AnswerNote::Declined(why) => {
                self.refuses = true;
                return self.answer(why.as_deref().unwrap_or(DECLINED));
            }
            // Responses have pictures of a tool that is not offered, and no sound.
            AnswerNote::Image(_) | AnswerNote::Audio(_) => {}
        }
        String::new()
    }

    /// Closes what is open. Where the answer is not whole, its last item is not either.
    pub(super) fn end(&mut self, status: &str) -> String {
        self.calls.end();
        let mut text = self.ready();
        text += &self.close(status);
        self.calls.flush_held();
        text += &self.ready();
        text + &self.close(status)
    }

    fn thought(&mut self, text: &str) -> String {
        let mut events = String::new();
        if !matches!(self.open, Some(OpenItem::Thought(_))) {
            events += &self.close("completed");
            events += &self.begin_thought();
        }
        if let Some(OpenItem::Thought(so_far)) = &mut self.open {
            so_far.push_str(text);
        }
        events + &self.part(self.thought_event("delta"), json!({ "delta": text }))
    }

    fn begin_thought(&mut self) -> String {
        let id = self.id("rs");
        let item = output::reasoning(&id, "", self.options.thoughts, None);
        let opened = self.open(
            OpenItem::Thought(String::new()),
            item,
            self.options.thoughts != ResponsesThoughts::Hidden,
        );
        opened + &self.part(self.thought_part("added"), json!({ "part": self.thought_text("") }))
    }

    fn thought_event(&self, what: &str) -> String {
        match self.options.thoughts {
            ResponsesThoughts::Summary => format!("response.reasoning_summary_text.{what}"),
            ResponsesThoughts::Content | ResponsesThoughts::Hidden => {
                format!("response.reasoning_text.{what}")
            }
        }
    }

    fn thought_part(&self, what: &str) -> String {
        match self.options.thoughts {
            ResponsesThoughts::Summary => format!("response.reasoning_summary_part.{what}"),
            ResponsesThoughts::Content | ResponsesThoughts::Hidden => format!("response.content_part.{what}"),
        }
    }

    fn thought_text(&self, text: &str) -> Value {
        let kind = match self.options.thoughts {
            ResponsesThoughts::Summary => "summary_text",
            ResponsesThoughts::Content | ResponsesThoughts::Hidden => "reasoning_text",
        };
        json!({ "type": kind, "text": text })
    }

    /// A signature closes the thought that it is of; one without a thought is an item of its own.
    fn signed(&mut self, signed: &SignedThought) -> String {
        let mut events = String::new();
        if !matches!(self.open, Some(OpenItem::Thought(_))) {
            events += &self.close("completed");
            let item = output::reasoning(&self.id("rs"), "", self.options.thoughts, None);
            events += &self.open(
                OpenItem::Thought(String::new()),
                item,
                self.options.thoughts != ResponsesThoughts::Hidden,
            );
        }
        events + &self.close_thought(Some(signed), "completed")
    }

    fn answer(&mut self, text: &str) -> String {
        let is_open = matches!(&self.open, Some(OpenItem::Message(open)) if open.refuses == self.refuses);
        let opened = if is_open { String::new() } else { self.begin_message() };
        let logprobs = std::mem::take(&mut self.logprobs);
        let Some(OpenItem::Message(message)) = &mut self.open else { return opened };
        let (name, members) = message.push(text, &logprobs);
        opened + &self.part(name, members) + &self.annotate()
    }

    /// Tells the sources of the open message that have come.
    fn annotate(&mut self) -> String {
        let Some(OpenItem::Message(message)) = &mut self.open else { return String::new() };
        let told: Vec<Value> =
            self.sources.drain(..).filter_map(|source| message.annotate(&source)).collect();
        told.into_iter().map(|it| self.part("response.output_text.annotation.added", it)).collect()
    }

    /// Another message begins; the summary of a compaction is one whatever it is made of.
    fn begin_phase(&mut self, word: Box<str>) -> String {
        self.phase = Some(word);
        if matches!(self.open, Some(OpenItem::Message(_))) { self.close("completed") } else { String::new() }
    }

    fn begin_message(&mut self) -> String {
        let closed = self.close("completed");
        let message = OpenMessage::new(self.refuses, self.phase.clone(), self.letters);
        let (item, part) = (message.empty_item(&self.id("msg")), message.part());
        let opened = self.open(OpenItem::Message(message), item, true);
        closed + &opened + &self.part("response.content_part.added", json!({ "part": part }))
    }

    /// Nothing of a summary is told before it is whole.
    fn summary(&mut self, text: &str) -> String {
        if let Some(OpenItem::Summary(so_far)) = &mut self.open {
            so_far.push_str(text);
            return String::new();
        }
        let closed = self.close("completed");
        let item = compaction::item(&self.id("cmp"), "");
        closed + &self.open(OpenItem::Summary(text.to_owned()), item, true)
    }

    /// More of the open call, or another one.
    fn call(&mut self, piece: &ToolCallDelta) -> String {
        let form = match &mut self.open {
            Some(OpenItem::Call(call)) if call.index == piece.index => {
                call.arguments.push_str(&piece.arguments);
                self.options.tool_identity(call).form
            }
            _ => return self.begin_call(piece),
        };
        self.more_arguments(form, &piece.arguments)
    }

    fn begin_call(&mut self, call: &ToolCallDelta) -> String {
        let closed = self.close("completed");
        let kind = self.options.tool_identity(call);
        let empty = ToolCallDelta { arguments: String::new(), ..call.clone() };
        let id = self.id(match kind.form {
            ToolCallForm::Function => "fc",
            ToolCallForm::Custom => "ctc",
            ToolCallForm::Search => "tsc",
        });
        let opened = self.open(OpenItem::Call(call.clone()), output::call(&id, &empty, &kind), true);
        closed + &opened + &self.more_arguments(kind.form, &call.arguments)
    }

    /// Of plain text nothing can be shown before its wrapping is whole; a search has no pieces.
    fn more_arguments(&mut self, form: ToolCallForm, arguments: &str) -> String {
        if form != ToolCallForm::Function || arguments.is_empty() {
            return String::new();
        }
        self.event_of_item("response.function_call_arguments.delta", json!({ "delta": arguments }))
    }

    fn id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.hex, self.items.len())
    }

    fn open(&mut self, kind: OpenItem, mut item: Value, shown: bool) -> String {
        set_status(&mut item, "in_progress");
        self.open = Some(kind);
        self.items.push(OutputItem { value: item.clone(), is_visible: shown });
        self.item_event("response.output_item.added", &item)
    }

    fn close(&mut self, status: &str) -> String {
        match self.open.take() {
            None => String::new(),
            Some(OpenItem::Thought(text)) => {
                self.open = Some(OpenItem::Thought(text));
                self.close_thought(None, status)
            }
            Some(OpenItem::Message(message)) => self.close_message(message, status),
            Some(OpenItem::Call(call)) => self.close_call(&call, status),
            Some(OpenItem::Summary(text)) => {
                let item = compaction::item(&self.item_id(), &text);
                self.done(item, status)
            }
        }
    }

    fn close_thought(&mut self, signed: Option<&SignedThought>, status: &str) -> String {
        let Some(OpenItem::Thought(text)) = self.open.take() else { return String::new() };
        let mut events = String::new();
        if !text.is_empty() {
            events += &self.part(self.thought_event("done"), json!({ "text": text }));
            events += &self.part(self.thought_part("done"), json!({ "part": self.thought_text(&text) }));
        }
        let item = output::reasoning(&self.item_id(), &text, self.options.thoughts, signed);
        events + &self.done(item, status)
    }

    fn close_message(&mut self, mut message: OpenMessage, status: &str) -> String {
        self.letters = message.letters();
        let (name, members) = message.finish(&std::mem::take(&mut self.logprobs));
        let done = self.part(name, members);
        let part = self.part("response.content_part.done", json!({ "part": message.part() }));
        let item = message.item(&self.item_id());
        done + &part + &self.done(item, status)
    }

    fn close_call(&mut self, call: &ToolCallDelta, status: &str) -> String {
        let kind = self.options.tool_identity(call);
        let item = output::call(&self.item_id(), call, &kind);
        if status != "completed" && !is_complete_json(&call.arguments) {
            // What a limit cut off is not shown as if it were whole.
            return self.done(item, status);
        }
        let events = match kind.form {
            ToolCallForm::Custom => {
                let input = item["input"].clone();
                let delta =
                    self.event_of_item("response.custom_tool_call_input.delta", json!({ "delta": input }));
                delta + &self.event_of_item("response.custom_tool_call_input.done", json!({ "input": input }))
            }
            ToolCallForm::Function => {
                let members = json!({ "name": item["name"], "arguments": item["arguments"] });
                self.event_of_item("response.function_call_arguments.done", members)
            }
            ToolCallForm::Search => String::new(),
        };
        events + &self.done(item, status)
    }

    fn done(&mut self, mut item: Value, status: &str) -> String {
        set_status(&mut item, status);
        if let Some(last) = self.items.last_mut() {
            last.value.clone_from(&item);
        }
        self.item_event("response.output_item.done", &item)
    }

    fn item_id(&self) -> String {
        self.items.last().and_then(|item| item.value["id"].as_str()).unwrap_or_default().to_owned()
    }

    /// The last item's place among those that are shown; none where it is hidden.
    fn output_index(&self) -> Option<usize> {
        let shown = self.items.iter().filter(|item| item.is_visible).count();
        self.items.last().filter(|item| item.is_visible)?;
        Some(shown.saturating_sub(1))
    }

    fn item_event(&mut self, name: &str, item: &Value) -> String {
        match self.output_index() {
            None => String::new(),
            Some(place) => self.emit(name, json!({ "output_index": place, "item": item })),
        }
    }

    fn event_of_item(&mut self, name: &str, mut members: Value) -> String {
        let Some(place) = self.output_index() else { return String::new() };
        members["item_id"] = self.item_id().into();
        members["output_index"] = place.into();
        self.emit(name, members)
    }

    /// An event of an item's only part.
    fn part(&mut self, name: impl AsRef<str>, mut members: Value) -> String {
        let at = if name.as_ref().contains("summary") { "summary_index" } else { "content_index" };
        members[at] = 0.into();
        self.event_of_item(name.as_ref(), members)
    }
}

/// How far an item is; a compaction does not say.
fn set_status(item: &mut Value, status: &str) {
    if !compaction::is_compaction(item) {
        item["status"] = status.into();
    }
}

/// An event, whose name stands in it too.
fn event(name: &str, number: u64, mut members: Value) -> String {
    let mut data = json!({ "type": name, "sequence_number": number });
    if let (Some(all), Some(members)) = (data.as_object_mut(), members.as_object_mut()) {
        all.append(members);
    }
    format!("event: {name}\ndata: {data}\n\n")
}
