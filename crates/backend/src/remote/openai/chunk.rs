//! A chunk of a stream, as the many write it.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess};
use serde_json::Value;

use super::choice_list::ChoiceList;
use super::lenient_text::LenientText;
use super::members_visitor::{ForeignMembers, KnownMembers, read_object};
use super::rare_value::RareValue;

/// One event of a stream.
#[derive(Debug, Default)]
pub(super) struct OpenAiChunk<'a> {
    pub(super) choices: Option<ChoiceList<OpenAiChunkChoice<'a>>>,
    /// Read leniently: a usage that makes no sense is no reason to lose the answer.
    pub(super) usage: RareValue,
    /// llama.cpp's own count.
    pub(super) timings: RareValue,
    pub(super) error: RareValue,
    /// What it runs in, as it calls it. Read leniently.
    pub(super) system_fingerprint: LenientText<'a>,
    /// All others, of which its callers may know some.
    pub(super) unknown: ForeignMembers<'a>,
}

impl<'de> KnownMembers<'de> for OpenAiChunk<'de> {
    const IGNORED: &'static [&'static str] = &[
        "id",
        "object",
        "created",
        "model",
        "budget",
        "obfuscation",
        "prompt_token_ids",
        "prompt_logprobs",
        "kv_transfer_params",
    ];

    fn read_member<M: MapAccess<'de>>(&mut self, name: &str, members: &mut M) -> Result<bool, M::Error> {
        match name {
            "choices" => self.choices = members.next_value()?,
            "usage" => self.usage = members.next_value()?,
            "timings" => self.timings = members.next_value()?,
            "error" => self.error = members.next_value()?,
            "system_fingerprint" => self.system_fingerprint = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown(&mut self) -> &mut ForeignMembers<'de> {
        &mut self.unknown
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OpenAiChunk<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OpenAiChunk<'a>, D::Error> {
        read_object(from)
    }
}

/// What came of one choice.
#[derive(Debug, Default)]
pub(super) struct OpenAiChunkChoice<'a> {
    pub(super) index: u32,
    /// What is new.
    delta: Option<OpenAiDelta<'a>>,
    /// All of the answer; some have it in each chunk, as far as it has come.
    message: Option<Box<OpenAiDelta<'a>>>,
    pub(super) finish_reason: Option<Cow<'a, str>>,
    /// The tokens of this chunk, if they are reported.
    token_ids: RareValue,
    /// Some have it here.
    pub(super) usage: RareValue,
    /// The chances of this chunk's tokens, where they were asked for. Read leniently.
    logprobs: RareValue,
    /// All others.
    pub(super) unknown: ForeignMembers<'a>,
}

impl<'de> KnownMembers<'de> for OpenAiChunkChoice<'de> {
    const IGNORED: &'static [&'static str] = &["prompt_token_ids", "prompt_logprobs"];

    fn read_member<M: MapAccess<'de>>(&mut self, name: &str, members: &mut M) -> Result<bool, M::Error> {
        match name {
            "index" => self.index = members.next_value::<Option<_>>()?.unwrap_or_default(),
            "delta" => self.delta = members.next_value::<Option<_>>()?.or(self.delta.take()),
            "message" => self.message = members.next_value::<Option<_>>()?.or(self.message.take()),
            "finish_reason" => self.finish_reason = borrowed_text(members)?,
            "token_ids" => self.token_ids = members.next_value()?,
            "usage" => self.usage = members.next_value()?,
            "logprobs" => self.logprobs = members.next_value()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unknown(&mut self) -> &mut ForeignMembers<'de> {
        &mut self.unknown
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OpenAiChunkChoice<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<OpenAiChunkChoice<'a>, D::Error> {
        read_object(from)
    }
}

/// A text or `null`, not copied where it has no escapes.
fn borrowed_text<'de, M: MapAccess<'de>>(members: &mut M) -> Result<Option<Cow<'de, str>>, M::Error> {
    #[derive(Deserialize)]
    struct Borrowed<'a>(#[serde(borrow)] Option<Cow<'a, str>>);
    Ok(members.next_value::<Borrowed<'de>>()?.0)
}

impl<'a> OpenAiChunkChoice<'a> {
    /// What is new of the answer. A message beside it repeats what came before, unless nothing did: some write a whole answer so.
    pub(super) fn take_new(&mut self, has_begun: bool) -> OpenAiDelta<'a> {
        let message = self.message.take().map(|message| *message);
        match (self.delta.take(), message) {
            (Some(delta), Some(message)) if !has_begun && delta.is_blank() => message,
            (Some(delta), _) => delta,
            (None, message) => message.unwrap_or_default(),
        }
    }

    /// The chances of the content's tokens.
    pub(super) fn take_logprobs(&mut self) -> Vec<Value> {
        match self.logprobs.get_mut("content").map(Value::take) {
            Some(Value::Array(entries)) => entries,
            _ => Vec::new(),
        }
    }

    /// How many tokens this chunk is, if that is reported.
    pub(super) fn tokens(&self) -> u64 {
        self.token_ids.as_array().map_or(0, |ids| ids.len() as u64)
    }
}

/// What is new.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenAiDelta<'a> {
    #[serde(borrow)]
    pub(super) content: LenientText<'a>,
    #[serde(borrow)]
    pub(super) refusal: LenientText<'a>,
    /// The sources of the content. Read leniently.
    pub(super) annotations: RareValue,
    /// Pictures that the model made.
    pub(super) images: RareValue,
    /// Sound that it made.
    pub(super) audio: RareValue,
    /// What some say besides, each read leniently.
    pub(super) citations: RareValue,
    pub(super) executed_tools: RareValue,
    pub(super) provider_specific_fields: RareValue,
    #[serde(borrow)]
    pub(super) reasoning_content: LenientText<'a>,
    #[serde(borrow)]
    pub(super) reasoning: LenientText<'a>,
    pub(super) reasoning_details: RareValue,
    #[serde(borrow)]
    pub(super) thinking: LenientText<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<OpenAiCallDelta<'a>>>,
    /// The only call, as older servers tell it. Read leniently.
    function_call: RareValue,
}

impl<'a> OpenAiDelta<'a> {
    /// True if it has nothing of the answer.
    fn is_blank(&self) -> bool {
        let has_calls = self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty());
        let has_text = self.content.present().is_some() || self.refusal.present().is_some();
        let has_more = has_text || !self.content.as_array().is_empty() || self.function_call.is_object();
        !has_calls && !has_more && self.thought().is_empty()
    }

    /// More of the only call, as older servers tell it. One that has not begun begins with its name.
    pub(super) fn take_function_call(&mut self, has_begun: bool) -> Option<OpenAiCallDelta<'a>> {
        let Value::Object(mut told) = self.function_call.take() else { return None };
        let name = told.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let name = name.map(str::to_owned);
        let arguments = match told.get_mut("arguments").map(Value::take) {
            Some(Value::String(text)) => LenientText::Text(text.into()),
            None | Some(Value::Null) => LenientText::Absent,
            Some(other) => LenientText::Other(Box::new(other)),
        };
        let function = (name.is_some() || has_begun).then_some(OpenAiFunctionDelta { name, arguments });
        function.map(|function| OpenAiCallDelta {
            index: Some(0),
            id: None,
            function: Some(function),
            extra_content: RareValue::default(),
        })
    }

    /// More of the thought, under whichever name: several may say the same.
    pub(super) fn thought(&self) -> String {
        let named = [&self.reasoning_content, &self.reasoning, &self.thinking];
        let said = named.into_iter().find_map(LenientText::present);
        let details = || self.reasoning_details.as_array().into_iter().flatten();
        let text = |detail: &Value| detail.get("text").or(detail.get("summary"))?.as_str().map(str::to_owned);
        said.map_or_else(|| details().filter_map(text).collect(), str::to_owned)
    }

    /// What it has besides, by the names that callers are told it under.
    pub(super) fn take_members(&mut self) -> impl Iterator<Item = (&'static str, Value)> {
        let members = [
            ("citations", self.citations.take()),
            ("executed_tools", self.executed_tools.take()),
            ("provider_specific_fields", self.provider_specific_fields.take()),
        ];
        members.into_iter().filter(|(_, value)| !value.is_null())
    }
}

/// More of a tool call.
#[derive(Debug, Deserialize)]
pub(super) struct OpenAiCallDelta<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default, borrow)]
    pub(super) function: Option<OpenAiFunctionDelta<'a>>,
    /// What its provider wants back with it. Read leniently.
    #[serde(default)]
    pub(super) extra_content: RareValue,
}

/// More of its function.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenAiFunctionDelta<'a> {
    pub(super) name: Option<String>,
    /// Text; some send the object itself.
    #[serde(borrow)]
    pub(super) arguments: LenientText<'a>,
}
