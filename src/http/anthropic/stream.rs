//! Answers out as Anthropic's events: blocks that open, grow and close, one at a time.

use serde_json::{Value, json};

use crate::execute::AnswerPhases;
use crate::gateway::{AnsweringModel, RequestReceipt, RequestTask};
use crate::http::budget_report::budget;
use crate::http::call_sequence::CallSequence;
use crate::http::dialect::StreamWriter;
use crate::http::error::ApiError;
use crate::http::provider_members;
use crate::http::signed;
use stint_types::chat::{AnswerApi, AnswerNote, ChoiceEvent, CommentaryPlace, SignedThought, ToolCallDelta};
use stint_types::units::{RequestId, Tokens};

use super::blocks;
use super::errors;
use super::render::{ToldRefusal, empty_message, note_refusal, prompt_usage, stop, usage};
use super::thoughts::AnthropicThoughts;

/// Anthropic sends one near the beginning of each stream, and others where nothing else comes.
const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// The block that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
enum AnthropicOpenBlock {
    Thinking,
    Text,
    /// A call, by its index.
    Call(u32),
}

/// Writes the events of one answer.
#[derive(Debug, Clone)]
pub(super) struct AnthropicStreamWriter {
    id: RequestId,
    model: AnsweringModel,
    /// What the model reads, as far as that is known before it has read it.
    prompt: Tokens,
    thoughts: AnthropicThoughts,
    begun: bool,
    open: Option<AnthropicOpenBlock>,
    /// How many blocks were opened.
    opened: u32,
    phases: AnswerPhases,
    calls: CallSequence,
    /// That the model declines, and why, once it does.
    refusal: Option<ToldRefusal>,
}

impl AnthropicStreamWriter {
    pub(super) fn new(
        task: &RequestTask,
        thoughts: AnthropicThoughts,
        commentary: CommentaryPlace,
    ) -> AnthropicStreamWriter {
        AnthropicStreamWriter {
            id: task.id(),
            model: task.model().clone(),
            prompt: task.prompt(),
            thoughts,
            begun: false,
            open: None,
            opened: 0,
            phases: AnswerPhases::new(commentary),
            calls: CallSequence::default(),
            refusal: None,
        }
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) {
            return String::new();
        }
        // Some clients look only here. What was really read is told at the end.
        let message = empty_message(self.id, &self.model.name(), &prompt_usage(self.prompt));
        event("message_start", json!({ "message": message })) + PING
    }

    fn event(&mut self, event: ChoiceEvent) -> String {
        note_refusal(&mut self.refusal, &event);
        let Some(event) = self.phases.place(event) else { return String::new() };
        if self.is_shown(&event) {
            self.calls.push(event);
        }
        self.ready()
    }

    fn is_shown(&self, event: &ChoiceEvent) -> bool {
        match event {
            ChoiceEvent::Thought(_) => self.thoughts == AnthropicThoughts::Shown,
            ChoiceEvent::Signed(_) => self.thoughts != AnthropicThoughts::Hidden,
            ChoiceEvent::Answer(_) | ChoiceEvent::ToolCall(_) | ChoiceEvent::Note(AnswerNote::Phase(_)) => {
                true
            }
            ChoiceEvent::Note(_) | ChoiceEvent::Logprobs(_) => false,
        }
    }

    /// Writes what has its turn.
    fn ready(&mut self) -> String {
        let mut text = String::new();
        while let Some(event) = self.calls.pop() {
            text += &self.block(event);
        }
        text
    }

    /// Writes one event into its block.
    fn block(&mut self, event: ChoiceEvent) -> String {
        match event {
            ChoiceEvent::Thought(text) => {
                let opened = self.open(AnthropicOpenBlock::Thinking, || blocks::thinking("", ""));
                opened + &self.delta(&json!({ "type": "thinking_delta", "thinking": text }))
            }
            ChoiceEvent::Signed(signed) => self.signed(&signed),
            ChoiceEvent::Answer(text) => {
                let opened = self.open(AnthropicOpenBlock::Text, || blocks::text_block(""));
                opened + &self.delta(&json!({ "type": "text_delta", "text": text }))
            }
            ChoiceEvent::ToolCall(piece) => self.call(&piece),
            // What is said on the way and the final answer are blocks of their own.
            ChoiceEvent::Note(AnswerNote::Phase(_)) if self.open == Some(AnthropicOpenBlock::Text) => {
                self.close()
            }
            ChoiceEvent::Note(_) | ChoiceEvent::Logprobs(_) => String::new(),
        }
    }

    /// Opens a block of that kind, unless one is open; what else is open is closed.
    fn open(&mut self, kind: AnthropicOpenBlock, block: impl Fn() -> Value) -> String {
        if self.open.as_ref() == Some(&kind) {
            return String::new();
        }
        let closed = self.close();
        self.open = Some(kind);
        self.opened += 1;
        closed
            + &event("content_block_start", json!({ "index": self.block_index(), "content_block": block() }))
    }

    fn close(&mut self) -> String {
        match self.open.take() {
            // A thought ends with its signature; one that nobody signed has an empty one.
            Some(AnthropicOpenBlock::Thinking) => self.signature("") + &self.stop(),
            Some(AnthropicOpenBlock::Text | AnthropicOpenBlock::Call(_)) => self.stop(),
            None => String::new(),
        }
    }

    fn signature(&self, signature: &str) -> String {
        self.delta(&json!({ "type": "signature_delta", "signature": signature }))
    }

    fn stop(&self) -> String {
        event("content_block_stop", json!({ "index": self.block_index() }))
    }

    fn block_index(&self) -> u32 {
        self.opened.saturating_sub(1)
    }

    fn delta(&self, delta: &Value) -> String {
        event("content_block_delta", json!({ "index": self.block_index(), "delta": delta }))
    }

    /// A signature closes the thought that it is of; where thoughts are not shown, it has one without a text.
    fn signed(&mut self, signed: &SignedThought) -> String {
        let mut text = String::new();
        if self.thoughts == AnthropicThoughts::Sealed {
            text += &self.open(AnthropicOpenBlock::Thinking, || blocks::thinking("", ""));
        }
        if self.open == Some(AnthropicOpenBlock::Thinking) {
            self.open = None;
            return text + &self.signature(&signed::seal(signed)) + &self.stop();
        }
        let closed = self.close();
        self.opened += 1;
        let at = self.block_index();
        let start =
            event("content_block_start", json!({ "index": at, "content_block": blocks::redacted(signed) }));
        closed + &start + &event("content_block_stop", json!({ "index": at }))
    }

    /// More of the open call, or another one.
    fn call(&mut self, piece: &ToolCallDelta) -> String {
        let opened = self.open(AnthropicOpenBlock::Call(piece.index), || {
            let (id, name) = (piece.id.as_deref(), piece.name.as_deref());
            blocks::tool_use(id.unwrap_or_default(), name.unwrap_or_default(), &json!({}))
        });
        opened + &self.delta(&json!({ "type": "input_json_delta", "partial_json": piece.arguments }))
    }

    /// Nothing more comes: writes what waits, and closes every block.
    fn close_all(&mut self) -> String {
        self.calls.end();
        let mut text = self.ready();
        text += &self.close();
        self.calls.flush_held();
        text += &self.ready();
        text + &self.close()
    }

    fn done(&mut self, receipt: &RequestReceipt) -> String {
        let text = self.begin() + &self.close_all();
        let delta = stop(receipt, self.refusal.as_ref());
        let mut end = json!({ "delta": delta, "usage": usage(receipt), "budget": budget(receipt) });
        provider_members::add(&mut end, provider_members::of_answer(receipt, AnswerApi::Messages));
        text + &event("message_delta", end) + &event("message_stop", json!({}))
    }
}

impl StreamWriter for AnthropicStreamWriter {
    fn write_event(&mut self, _: u32, event: ChoiceEvent) -> String {
        let text = self.event(event);
        if text.is_empty() { text } else { self.begin() + &text }
    }

    fn write_end(&mut self, receipt: &RequestReceipt) -> String {
        self.done(receipt)
    }

    fn keep_alive(&self) -> &'static str {
        PING
    }

    fn write_error(&mut self, problem: &ApiError) -> String {
        format!("event: error\ndata: {}\n\n", errors::object(problem, &self.id.to_string()))
    }
}

/// An event whose name stands in it too.
fn event(name: &str, mut members: Value) -> String {
    let mut data = json!({ "type": name });
    if let (Some(all), Some(members)) = (data.as_object_mut(), members.as_object_mut()) {
        all.append(members);
    }
    format!("event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::{SigningDomain, ThoughtSigner};

    fn chunks(thoughts: AnthropicThoughts, commentary: CommentaryPlace) -> AnthropicStreamWriter {
        AnthropicStreamWriter {
            id: RequestId::new(),
            model: AnsweringModel::planned(&"m".into()),
            prompt: Tokens(7),
            thoughts,
            begun: false,
            open: None,
            opened: 0,
            phases: AnswerPhases::new(commentary),
            calls: CallSequence::default(),
            refusal: None,
        }
    }

    fn call(index: u32, name: Option<&str>, arguments: &str) -> ChoiceEvent {
        let name = name.map(str::to_owned);
        ChoiceEvent::ToolCall(ToolCallDelta {
            index,
            id: name.clone(),
            name,
            arguments: arguments.to_owned(),
        })
    }

    /// `3+thinking` opens block 3, `3-` closes it, everything between is what was added to it.
    fn check(thoughts: AnthropicThoughts, said: Vec<ChoiceEvent>, expected: &str) {
        check_commentary(CommentaryPlace::Block, thoughts, said, expected);
    }

    fn check_commentary(
        commentary: CommentaryPlace,
        thoughts: AnthropicThoughts,
        said: Vec<ChoiceEvent>,
        expected: &str,
    ) {
        let mut chunks = chunks(thoughts, commentary);
        let mut text: String = said.into_iter().map(|event| chunks.event(event)).collect();
        text += &chunks.close_all();
        let short = |data: &str| {
            let event: Value = serde_json::from_str(data).unwrap();
            let at = &event["index"];
            match event["type"].as_str().unwrap() {
                "content_block_start" => format!("{at}+{}", event["content_block"]["type"].as_str().unwrap()),
                "content_block_stop" => format!("{at}-"),
                _ => {
                    let delta = event["delta"].as_object().unwrap();
                    let (_, what) = delta.iter().find(|(name, _)| *name != "type").unwrap();
                    what.as_str().unwrap().to_owned()
                }
            }
        };
        let seen: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("data: ")).map(short).collect();
        assert_eq!(seen.join(" "), expected);
    }

    #[test]
    fn blocks_open_and_close_one_after_another() {
        let said = || {
            vec![
                ChoiceEvent::Thought("a".into()),
                ChoiceEvent::Thought("b".into()),
                ChoiceEvent::Answer("c".into()),
            ]
        };
        check(AnthropicThoughts::Shown, said(), "0+thinking a b  0- 1+text c 1-");
        check(AnthropicThoughts::Hidden, said(), "0+text c 0-");
        check(AnthropicThoughts::Sealed, said(), "0+text c 0-");
    }

    #[test]
    fn what_is_said_on_the_way_has_a_block_of_its_own_or_is_thought_where_a_form_is_stated() {
        let phase = |word: &str| ChoiceEvent::Note(AnswerNote::Phase(word.into()));
        let said = || {
            vec![
                phase("commentary"),
                ChoiceEvent::Answer("a".into()),
                phase("final_answer"),
                ChoiceEvent::Answer("b".into()),
                ChoiceEvent::Answer("c".into()),
            ]
        };
        check(AnthropicThoughts::Hidden, said(), "0+text a 0- 1+text b c 1-");
        for (thoughts, expected) in [
            (AnthropicThoughts::Shown, "0+thinking a  0- 1+text b c 1-"),
            (AnthropicThoughts::Hidden, "0+text b c 0-"),
        ] {
            check_commentary(CommentaryPlace::Thought, thoughts, said(), expected);
        }
    }

    #[test]
    fn a_signature_closes_its_thought_and_a_hidden_thought_is_a_block_of_its_own() {
        let signer = ThoughtSigner { model: "m".into(), domain: SigningDomain(7) };
        let part = SignedThought { signer, block: "{}".into() };
        let signed = || ChoiceEvent::Signed(part.clone());
        let seal = signed::seal(&part);
        let said =
            vec![ChoiceEvent::Thought("a".into()), signed(), signed(), ChoiceEvent::Answer("c".into())];
        let shown = format!("0+thinking a {seal} 0- 1+redacted_thinking 1- 2+text c 2-");
        check(AnthropicThoughts::Shown, said.clone(), &shown);
        let sealed = format!("0+thinking {seal} 0- 1+thinking {seal} 1- 2+text c 2-");
        check(AnthropicThoughts::Sealed, said.clone(), &sealed);
        check(AnthropicThoughts::Hidden, said, "0+text c 0-");
    }

    #[test]
    fn what_comes_between_the_pieces_of_a_call_stands_behind_it() {
        let said = |between: ChoiceEvent| {
            vec![
                call(0, Some("f"), "{\"a\":"),
                between.clone(),
                between,
                call(0, None, "1}"),
                call(1, Some("g"), "{}"),
            ]
        };
        let text = || ChoiceEvent::Answer("so ".into());
        let expected = "0+tool_use {\"a\": 1} 0- 1+text so  so  1- 2+tool_use {} 2-";
        check(AnthropicThoughts::Shown, said(text()), expected);
        let thought = || ChoiceEvent::Thought("hm".into());
        let expected = "0+tool_use {\"a\": 1} 0- 1+thinking hm hm  1- 2+tool_use {} 2-";
        check(AnthropicThoughts::Shown, said(thought()), expected);
        check(AnthropicThoughts::Hidden, said(thought()), "0+tool_use {\"a\": 1} 0- 1+tool_use {} 1-");
        // One that is never whole, and one that takes no arguments.
        let cut = vec![call(0, Some("f"), "{"), text(), call(1, Some("g"), "")];
        check(AnthropicThoughts::Shown, cut, "0+tool_use { 0- 1+tool_use  1- 2+text so  2-");
    }

    #[test]
    fn calls_that_overlap_are_told_one_after_another_and_nothing_is_lost() {
        let said = vec![
            call(0, Some("f"), "{"),
            call(1, Some("g"), "["),
            call(0, None, "}"),
            call(1, None, "]"),
            call(2, Some("h"), "{}"),
        ];
        check(AnthropicThoughts::Shown, said, "0+tool_use { } 0- 1+tool_use [] 1- 2+tool_use {} 2-");
        let whole = vec![call(0, Some("f"), "{}"), call(1, Some("g"), "{"), call(1, None, "}")];
        check(AnthropicThoughts::Shown, whole, "0+tool_use {} 0- 1+tool_use { } 1-");
    }
}
