//! The chunks of a stream as our pieces.

use std::collections::VecDeque;

use serde_json::Value;

use crate::remote::answer_end::{AnswerEnd, is_done};
use crate::remote::finish_word;
use crate::remote::json_text::from_json;
use crate::remote::refusal;
use crate::remote::uncounted::{refusal_begins, stop};
use crate::{BackendCall, Failure, Fault, GenerationEnd, GenerationPart, Piece, Remark, TagEdge};
use stint_prompt::tags::{Splitter, TaggedSpan};
use stint_types::chat::{AnswerNote, ThoughtSigner};
use stint_types::units::Tokens;

use super::chat_members::{ChatMembers, made_media};
use super::chunk::{OpenAiChunk, OpenAiChunkChoice};
use super::details::ReasoningDetails;
use super::dialect::{ResumeMethod, ThoughtReplay};
use super::implicit_thought::{AnswerOpening, ImplicitThought};
use super::lenient_text::LenientText;
use super::rare_value::RareValue;
use super::reported_usage::lenient;
use super::streamed_calls::StreamedCalls;
use super::usage::{StreamProgress, UsageReader};
use super::{Settings, request};

/// The longest name of a configuration that is passed on.
const FINGERPRINT_MAX: usize = 128;

/// Reads one stream of chunks.
#[derive(Debug)]
pub(super) struct OpenAiChatReader {
    splitter: Splitter,
    /// Where the template opens a thought.
    beginning: Option<AnswerOpening>,
    /// True if a closed thought was gone on from in the content: what is taken for a thought there is none.
    answers_only: bool,
    ending: Option<GenerationEnd>,
    answer_end: AnswerEnd,
    counter: UsageReader,
    progress: StreamProgress,
    calls: StreamedCalls,
    /// True once it is told what the model runs in.
    fingerprint: bool,
    /// Who signs what it says.
    signer: ThoughtSigner,
    details: Option<ReasoningDetails>,
    /// True once the model declines.
    refuses: bool,
    /// What it says besides, for callers of the same API.
    besides: ChatMembers,
    /// The chances of tokens whose text was not shown yet; nothing if nobody asked for them.
    logprobs: Option<Vec<Value>>,
    /// The pieces of the chunk that is read: empty between two, and kept for its room.
    new: VecDeque<Piece>,
}

impl OpenAiChatReader {
    pub(super) fn new(
        settings: &Settings,
        signer: ThoughtSigner,
        call: &BackendCall,
        opening: &ImplicitThought,
    ) -> OpenAiChatReader {
        let Settings { start_tag, end_tag, dialect, .. } = settings;
        let (start, end) = (start_tag.as_str(), end_tag.as_str());
        let resumes = request::resumes(settings, call);
        let thinks = match &call.part {
            GenerationPart::Solution { .. } => false,
            GenerationPart::Whole { thinking, .. } => *thinking > Tokens::ZERO,
            GenerationPart::Thought { .. } | GenerationPart::Total { .. } => true,
        };
        let opens = settings.starts_in_thinking && thinks && !resumes;
        let beginning = opens.then(|| AnswerOpening::new(opening, end, call.request.cache_owner.clone()));
        let splitter = if resumes {
            Splitter::after_thought(start, end)
        } else {
            Splitter::new(start, end, beginning.as_ref().is_some_and(|beginning| beginning.is_open))
        };
        let keeps = dialect.thought_replay == ThoughtReplay::Details;
        OpenAiChatReader {
            splitter,
            beginning,
            answers_only: resumes && dialect.resume == ResumeMethod::FinalMessage,
            ending: None,
            answer_end: AnswerEnd::default(),
            counter: UsageReader::default(),
            progress: StreamProgress::default(),
            calls: StreamedCalls::new(call),
            fingerprint: false,
            signer,
            details: keeps.then(ReasoningDetails::default),
            refuses: false,
            besides: ChatMembers::default(),
            logprobs: call.request.logprobs.map(|_| Vec::new()),
            new: VecDeque::new(),
        }
    }

    fn choice(
        &mut self,
        mut choice: OpenAiChunkChoice<'_>,
        pieces: &mut VecDeque<Piece>,
    ) -> Result<(), Failure> {
        let (tokens, before) = (Tokens(choice.tokens()), pieces.len());
        let mut delta = choice.take_new(self.progress.has_thought || self.progress.has_answer);
        self.besides.keep_of_choice(choice.unknown);
        let text = delta.thought();
        if !text.is_empty() || delta.content.present().is_some() {
            self.calls.release(pieces);
        }
        if !text.is_empty() {
            if self.answers_only {
                self.text(&text, pieces);
            } else {
                self.thinks_apart();
                pieces.push_back(thought(text));
            }
        }
        if let Some(details) = &mut self.details {
            details.push(delta.reasoning_details.take());
        }
        self.content(&delta.content, pieces);
        if let Some(text) = delta.refusal.present() {
            pieces.extend(refusal_begins(&mut self.refuses));
            pieces.push_back(answer(text.to_owned()));
        }
        if let Value::Array(sources) = delta.annotations.take() {
            let sources = sources.into_iter().filter(Value::is_object);
            pieces.extend(sources.map(AnswerNote::Annotation).map(Piece::Note));
        }
        self.besides.keep_of_message(&mut delta);
        pieces.extend(made_media(&mut delta));
        let only_call = delta.take_function_call(!self.calls.is_empty());
        let calls = delta.tool_calls.unwrap_or_default();
        for call in only_call.filter(|_| calls.is_empty()).into_iter().chain(calls) {
            self.calls.read(call, pieces);
        }
        distribute_tokens(tokens, pieces);
        if let Some(word) = &choice.finish_reason {
            self.ending = Some(finish_word::ending(word)?);
        }
        self.answer_end.read(pieces.len() > before, choice.finish_reason.as_deref());
        Ok(())
    }

    /// A string, or a list of parts as Mistral and Databricks send it.
    fn content(&mut self, content: &LenientText<'_>, pieces: &mut VecDeque<Piece>) {
        match content {
            LenientText::Text(text) => self.text(text, pieces),
            parts => parts.as_array().iter().for_each(|part| self.part(part, pieces)),
        }
    }

    fn text(&mut self, text: &str, pieces: &mut VecDeque<Piece>) {
        let spans = self.splitter.push(text);
        self.note(&spans);
        pieces.extend(spans.into_iter().map(span_piece));
    }

    fn part(&mut self, part: &Value, pieces: &mut VecDeque<Piece>) {
        if let Some(texts) = thought_texts(part) {
            self.thinks_apart();
            pieces.extend(texts.into_iter().map(|text| thought(text.to_owned())));
        } else if let Some(text) = part.get("text").and_then(Value::as_str) {
            self.text(text, pieces);
        }
    }

    /// A thought comes by another way than the text.
    fn thinks_apart(&mut self) {
        self.splitter.plain();
        self.beginning.iter_mut().for_each(AnswerOpening::thought_is_separate);
    }

    /// Most name it in every chunk; it is told once.
    fn note_fingerprint(&mut self, name: &LenientText<'_>, pieces: &mut VecDeque<Piece>) {
        let named = name.present().filter(|name| name.len() <= FINGERPRINT_MAX);
        if let Some(name) = named.filter(|_| !std::mem::replace(&mut self.fingerprint, true)) {
            pieces.push_back(Piece::Remark(Remark::Fingerprint(name.into())));
        }
    }

    /// Looks at what the text turned out to be.
    fn note(&mut self, spans: &[TaggedSpan]) {
        let Some(beginning) = &mut self.beginning else { return };
        for span in spans {
            match span {
                TaggedSpan::End => beginning.thought_closed(),
                TaggedSpan::Answer(text) => beginning.check_answer(text),
                TaggedSpan::Start | TaggedSpan::Thought(_) => {}
            }
        }
    }

    /// Looks at what a chunk has brought, so that a count in the middle can be told apart.
    fn update_progress<'p>(&mut self, pieces: impl Iterator<Item = &'p Piece>) {
        self.progress.is_thinking = false;
        // The beginning of a call may be held back.
        self.progress.has_answer |= !self.calls.is_empty();
        for piece in pieces {
            match piece {
                Piece::Thought { .. } => {
                    (self.progress.is_thinking, self.progress.has_thought) = (true, true);
                }
                Piece::Answer { .. } | Piece::ToolCall(_) => self.progress.has_answer = true,
                _ => {}
            }
        }
    }

    /// Puts the chances of tokens before the answer's text that is made of them. Those of a thought are dropped; those of text
    /// that is held back, as it may be a tag, wait for it.
    fn place_logprobs(&mut self, entries: Vec<Value>, pieces: &mut VecDeque<Piece>) {
        let Some(waiting) = &mut self.logprobs else { return };
        waiting.extend(entries);
        let says = |piece: &Piece| matches!(piece, Piece::Answer { .. });
        if let Some(at) = pieces.iter().position(says) {
            let entries = std::mem::take(waiting);
            if !entries.is_empty() {
                pieces.insert(at, Piece::Logprobs(entries));
            }
        } else if pieces.iter().any(is_no_answer) {
            waiting.clear();
        }
    }

    fn end(&mut self, ending: GenerationEnd, pieces: &mut VecDeque<Piece>) {
        self.calls.release(pieces);
        let mut last: VecDeque<Piece> = self.splitter.finish().into_iter().map(span_piece).collect();
        self.place_logprobs(Vec::new(), &mut last);
        pieces.append(&mut last);
        let (stops, told) = (matches!(ending, GenerationEnd::Stop { .. }), self.counter.told());
        if self
            .beginning
            .as_mut()
            .is_some_and(|beginning| beginning.text_ended(stops, told.map(|told| told.0)))
        {
            pieces.push_back(Piece::Unthought);
            pieces.extend(self.counter.unthought().map(Piece::Usage));
        }
        if let Some(details) = &mut self.details {
            pieces.extend(details.signed(&self.signer).map(Piece::Signed));
        }
        let extras = self.calls.take_extras().filter_map(|extra| extra.signed(self.signer.clone()));
        pieces.extend(extras.map(Piece::Signed));
        pieces.extend(self.besides.take().map(Box::new).map(Remark::Members).map(Piece::Remark));
        pieces.push_back(Piece::End(ending));
    }
}

impl crate::remote::EventReader for OpenAiChatReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if is_done(data) {
            let unsaid = if self.calls.is_empty() { stop() } else { GenerationEnd::ToolCalls };
            self.end(self.ending.unwrap_or(unsaid), pieces);
            return Ok(());
        }
        if data.trim_ascii().is_empty() {
            return Ok(());
        }
        let OpenAiChunk { choices, usage, timings, error, system_fingerprint, unknown } = from_json(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no chunk"))?;
        self.note_fingerprint(&system_fingerprint, pieces);
        self.besides.keep_of_answer(unknown);
        let mut new = std::mem::take(&mut self.new);
        let mut inner = RareValue::default();
        let mut read = if error.is_null() { Ok(()) } else { Err(refusal::of_event(&error)) };
        for mut choice in choices.into_iter().flatten().filter(|choice| choice.index == 0) {
            inner = std::mem::take(&mut choice.usage);
            let entries = choice.take_logprobs();
            read = read.and(self.choice(choice, &mut new));
            self.place_logprobs(entries, &mut new);
        }
        self.update_progress(new.iter());
        pieces.append(&mut new);
        self.new = new;
        let usage = if usage.is_null() { inner } else { usage };
        pieces.extend(self.counter.read(lenient(&usage), &timings, self.progress).map(Piece::Usage));
        self.besides.keep_usage(usage);
        read
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let ending = self.ending.ok_or_else(refusal::truncated)?;
        self.end(ending, pieces);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.answer_end.is_reached()
    }
}

/// Shares a chunk's tokens among its texts by their length. Those that show nothing are tags, or the end of the text.
fn distribute_tokens(tokens: Tokens, pieces: &mut VecDeque<Piece>) {
    if tokens == Tokens::ZERO {
        return;
    }
    let length = |piece: &Piece| match piece {
        Piece::Thought { text, .. } | Piece::Answer { text, .. } => text.len() as u64,
        Piece::ToolCall(call) => call.arguments.len() as u64,
        _ => 0,
    };
    let all: u64 = pieces.iter().map(length).sum();
    let (mut seen, mut given) = (0, 0);
    for piece in pieces.iter_mut() {
        seen += length(piece);
        let share = (tokens.0 * seen).checked_div(all).unwrap_or(0).saturating_sub(given);
        if let Piece::Thought { tokens, .. } | Piece::Answer { tokens, .. } = piece {
            *tokens = Tokens(share);
            given += share;
        }
    }
    let rest = Tokens(tokens.0.saturating_sub(given));
    pieces.extend((rest > Tokens::ZERO).then_some(Piece::Tag { tokens: rest, edge: TagEdge::Start }));
}

/// True for what ends the waiting for an answer's text: a thought, a call, or a tag that was split off.
fn is_no_answer(piece: &Piece) -> bool {
    matches!(piece, Piece::Thought { .. } | Piece::ToolCall(_) | Piece::Tag { tokens: Tokens::ZERO, .. })
}

fn span_piece(span: TaggedSpan) -> Piece {
    match span {
        TaggedSpan::Thought(text) => thought(text),
        TaggedSpan::Answer(text) => answer(text),
        TaggedSpan::Start => Piece::Tag { tokens: Tokens::ZERO, edge: TagEdge::Start },
        TaggedSpan::End => Piece::Tag { tokens: Tokens::ZERO, edge: TagEdge::End },
    }
}

/// The texts of a part that is a thought: Mistral has them under `thinking`, Databricks under `summary`.
fn thought_texts(part: &Value) -> Option<Vec<&str>> {
    let texts = match part.get("thinking").or_else(|| part.get("summary"))? {
        Value::String(text) => vec![text.as_str()],
        list => list.as_array()?.iter().filter_map(|inner| inner.get("text")?.as_str()).collect(),
    };
    Some(texts)
}

fn thought(text: String) -> Piece {
    Piece::Thought { text, tokens: Tokens::ZERO, ids: Vec::new() }
}

fn answer(text: String) -> Piece {
    Piece::Answer { text, tokens: Tokens::ZERO }
}
