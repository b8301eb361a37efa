//! Text completions: OpenAI's older endpoint, which most servers still have.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::remote::answer_end::{AnswerEnd, is_done};
use crate::remote::caller_options::PENALTIES;
use crate::remote::finish_word;
use crate::remote::refusal;
use crate::remote::uncounted::stop;
use crate::remote::wire::decimal;
use crate::{BackendCall, Failure, Fault, GenerationEnd, Piece};
use stint_types::chat::RawPrompt;
use stint_types::units::Tokens;

use super::Settings;
use super::reported_usage::lenient;
use super::usage::{StreamProgress, UsageReader};

/// Members of the caller's that mean the same here.
const PASSED: [&str; 4] = ["presence_penalty", "frequency_penalty", "logit_bias", "user"];

/// The body of the call.
pub(super) fn body(settings: &Settings, call: &BackendCall, prompt: &RawPrompt, tokens: Tokens) -> Value {
    let sampling = &call.request.sampling;
    let stops = &sampling.stop[..sampling.stop.len().min(settings.dialect.stops_max)];
    let mut body = Map::from_iter([
        ("model".to_owned(), json!(settings.model)),
        ("prompt".to_owned(), prompt.to_json()),
        ("max_tokens".to_owned(), json!(tokens)),
        ("stream".to_owned(), json!(true)),
        ("stream_options".to_owned(), json!({"include_usage": true})),
    ]);
    let optional = [
        ("temperature", sampling.temperature.map(decimal)),
        ("top_p", sampling.top_p.map(decimal)),
        ("seed", sampling.seed.map(|_| json!(call.seed & i64::MAX.cast_unsigned()))),
        ("stop", (!stops.is_empty()).then(|| json!(stops))),
    ];
    let is_taken = |name: &&&str| settings.penalties || !PENALTIES.contains(*name);
    let passed = PASSED.iter().filter(is_taken).map(|&name| (name, call.request.extra.get(name).cloned()));
    let present = optional.into_iter().chain(passed);
    body.extend(present.filter_map(|(name, value)| value.map(|value| (name.to_owned(), value))));
    Value::Object(body)
}

/// Reads one stream of chunks.
#[derive(Debug, Default)]
pub(super) struct OpenAiCompletionReader {
    ending: Option<GenerationEnd>,
    answer_end: AnswerEnd,
    counter: UsageReader,
}

#[derive(Debug, Deserialize)]
struct OpenAiCompletionChunk {
    #[serde(default)]
    choices: Vec<OpenAiCompletionChoice>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Debug, Deserialize)]
struct OpenAiCompletionChoice {
    #[serde(default)]
    text: String,
    #[serde(default)]
    finish_reason: Option<String>,
}

impl crate::remote::EventReader for OpenAiCompletionReader {
    fn read(&mut self, data: &[u8], pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if is_done(data) {
            pieces.push_back(Piece::End(self.ending.unwrap_or_else(stop)));
            return Ok(());
        }
        if data.trim_ascii().is_empty() {
            return Ok(());
        }
        let chunk: OpenAiCompletionChunk = serde_json::from_slice(data)
            .map_err(|_| Failure::new(Fault::Backend, "the upstream sent an event that is no chunk"))?;
        let usage = self.counter.read(lenient(&chunk.usage), &Value::Null, StreamProgress::default());
        if !chunk.error.is_null() {
            pieces.extend(usage.map(Piece::Usage));
            return Err(refusal::of_event(&chunk.error));
        }
        for choice in chunk.choices.into_iter().take(1) {
            let has_more = !choice.text.is_empty();
            if has_more {
                pieces.push_back(Piece::Answer { text: choice.text, tokens: Tokens::ZERO });
            }
            if let Some(word) = &choice.finish_reason {
                self.ending = Some(finish_word::ending(word)?);
            }
            self.answer_end.read(has_more, choice.finish_reason.as_deref());
        }
        pieces.extend(usage.map(Piece::Usage));
        Ok(())
    }

    fn close(&mut self, pieces: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let ending = self.ending.ok_or_else(refusal::truncated)?;
        pieces.push_back(Piece::End(ending));
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.answer_end.is_reached()
    }
}
