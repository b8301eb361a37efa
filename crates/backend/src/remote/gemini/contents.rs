//! Translates a conversation to Gemini's contents.

use std::collections::BTreeMap;

use reqwest::Url;
use serde_json::{Map, Value, json};

use crate::remote::begun_answer;
use crate::remote::call_ids::MADE_ID_PREFIX;
use crate::remote::caller_options::{DocumentPart, ImageSource, insert_present, parse_arguments};
use crate::remote::{tool_media, user_turn};
use crate::{Failure, UnsupportedFeature};
use stint_types::chat::{ContentPart, Message, Request, Role, ToolCall};

use super::Settings;
use super::signature::{GeminiSignature, SignedPart};

/// Files that were uploaded with a key are read below this host, and with that key alone.
const UPLOADS_HOST: &str = "generativelanguage.googleapis.com";

/// The contents of a conversation; neighbours of one role are one content.
pub(super) fn contents(settings: &Settings, request: &Request) -> Result<Value, Failure> {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let messages = tool_media::moved(&request.messages, |part| stays_in_result(settings, part));
    for message in messages.iter().filter(|message| message.role != Role::System) {
        names.extend(message.tool_calls.iter().map(|call| (call.id.as_str(), call.name.as_str())));
        let (role, parts) = match message.role {
            Role::Assistant => ("model", model_parts(settings, message)?),
            Role::Tool => ("user", vec![function_response(settings, message, &names)?]),
            Role::User | Role::System => ("user", parts(settings, &message.content)?),
        };
        match contents.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, all)) if *last == role => all.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    match contents.last() {
        None => Err(user_turn::missing(request)),
        Some(("model", _)) => Err(begun_answer::cannot_continue()),
        Some(_) => {
            Ok(contents.into_iter().map(|(role, parts)| json!({"role": role, "parts": parts})).collect())
        }
    }
}

/// A turn of the model: its shown thought where that was signed, its text, its calls.
fn model_parts(settings: &Settings, message: &Message) -> Result<Vec<Value>, Failure> {
    let signatures = GeminiSignature::all(message, &settings.signer());
    let mut all = Vec::new();
    for signature in &signatures {
        if let SignedPart::Thought(text) = &signature.on {
            all.push(json!({"text": text, "thought": true, "thoughtSignature": signature.thought_signature}));
        }
    }
    let is_signed = signatures.iter().any(|signature| matches!(signature.on, SignedPart::Text(_)));
    if !is_signed || message.content.iter().any(|part| matches!(part, ContentPart::Other(_))) {
        all.extend(parts(settings, &message.content)?);
    } else {
        all.extend(text_parts(&message.plain_text(), &signatures));
    }
    let mut of_calls: BTreeMap<usize, &String> = BTreeMap::new();
    for signature in &signatures {
        if let SignedPart::Call(at) = signature.on {
            of_calls.entry(at).or_insert(&signature.thought_signature);
        }
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        // Of several calls at once only the first is signed.
        let stand_in = settings.placeholder_signature.as_ref().filter(|_| at == 0);
        all.push(function_call(call, of_calls.get(&at).copied().or(stand_in)));
    }
    Ok(all)
}

/// A turn in which so many signed texts are missing is another one.
const MISSED_MAX: usize = 16;

/// A text, split so that signed parts of it stand by themselves.
fn text_parts(text: &str, signatures: &[GeminiSignature]) -> Vec<Value> {
    let (mut parts, mut rest, mut missed) = (Vec::new(), text, 0);
    let plain = |text: &str| json!({"text": text});
    for GeminiSignature { on, thought_signature } in signatures {
        let SignedPart::Text(signed) = on else { continue };
        // An empty part came last. What the caller changed is no longer what was signed.
        let find = || if missed < MISSED_MAX { rest.find(signed.as_str()) } else { None };
        let Some(at) = (if signed.is_empty() { Some(rest.len()) } else { find() }) else {
            missed += 1;
            continue;
        };
        let (before, from) = rest.split_at(at);
        parts.extend((!before.is_empty()).then(|| plain(before)));
        parts.push(json!({"text": signed, "thoughtSignature": thought_signature}));
        rest = from.get(signed.len()..).unwrap_or_default();
    }
    parts.extend((!rest.is_empty()).then(|| plain(rest)));
    parts
}

fn function_call(call: &ToolCall, signature: Option<&String>) -> Value {
    let mut function = Map::new();
    insert_present(
        &mut function,
        [
            ("id", provider_id(&call.id)),
            ("name", Some(json!(call.name))),
            ("args", Some(parse_arguments(&call.arguments))),
        ],
    );
    let mut part = json!({"functionCall": function});
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn function_response(
    settings: &Settings,
    message: &Message,
    names: &BTreeMap<&str, &str>,
) -> Result<Value, Failure> {
    let of = message.tool_call_id.as_deref().unwrap_or_default();
    let Some(name) = names.get(of).copied().or(message.name.as_deref()) else {
        return Err(Failure::incapable(
            UnsupportedFeature::Prompt,
            "a tool's message answers no call: its tool_call_id is that of none before it",
        ));
    };
    let media = message.content.iter().filter(|part| matches!(part, ContentPart::Other(_)));
    let media: Vec<Value> =
        media.filter_map(|part| self::part(settings, part).transpose()).collect::<Result<_, _>>()?;
    let mut response = Map::new();
    insert_present(
        &mut response,
        [
            ("id", provider_id(of)),
            ("name", Some(json!(name))),
            ("response", Some(json!({"output": message.paragraphs()}))),
            ("parts", (!media.is_empty()).then(|| json!(media))),
        ],
    );
    Ok(json!({"functionResponse": response}))
}

/// The images that a function's response takes (`functionResponse.parts`), where the model takes any: from Gemini 3 on.
fn stays_in_result(settings: &Settings, part: &Value) -> bool {
    let version = settings.model.rsplit('/').next().unwrap_or_default().strip_prefix("gemini-");
    let major = version.and_then(|version| version.split(['.', '-']).next()?.parse::<u32>().ok());
    let inline = match ImageSource::of(part) {
        Some(ImageSource::Inline(kind, _)) => ["image/png", "image/jpeg", "image/webp"].contains(&kind),
        Some(ImageSource::Url(_)) | None => false,
    };
    inline && major.is_some_and(|major| major >= 3)
}

/// Ids that we made up mean nothing to the provider.
fn provider_id(id: &str) -> Option<Value> {
    (!id.starts_with(MADE_ID_PREFIX)).then(|| json!(id))
}

fn parts(settings: &Settings, parts: &[ContentPart]) -> Result<Vec<Value>, Failure> {
    parts.iter().filter_map(|part| self::part(settings, part).transpose()).collect()
}

/// What a part is here; nothing for what says nothing.
fn part(settings: &Settings, part: &ContentPart) -> Result<Option<Value>, Failure> {
    let value = match part {
        ContentPart::Text(text) => return Ok((!text.is_empty()).then(|| json!({"text": text}))),
        ContentPart::Other(value) => value,
        ContentPart::AdditionStart { .. } | ContentPart::CacheBreakpoint(_) => return Ok(None),
    };
    let inline = |kind: &str, data: &str| Some(json!({"inlineData": {"mimeType": kind, "data": data}}));
    if let Some(file) = DocumentPart::of(value) {
        return document(settings, &file).map(Some);
    }
    let sound = |name: &str| value.pointer(&format!("/input_audio/{name}")).and_then(Value::as_str);
    match (ImageSource::of(value), sound("format").zip(sound("data"))) {
        (Some(ImageSource::Inline(kind, data)), _) => Ok(inline(kind, data)),
        (Some(ImageSource::Url(_)), _) => {
            Err(Failure::incapable(UnsupportedFeature::Prompt, "this model takes images as data: URLs only"))
        }
        (None, Some((format, data))) => Ok(inline(&format!("audio/{format}"), data)),
        (None, None) => Err(Failure::incapable(
            UnsupportedFeature::Prompt,
            "this model takes text, images, sound and PDF files only",
        )),
    }
}

/// A PDF file: in the message, or at an address where the provider itself reads it.
fn document(settings: &Settings, file: &DocumentPart<'_>) -> Result<Value, Failure> {
    const PDF: &str = "application/pdf";
    match (file.bytes(), file.url) {
        (Some(data), _) => Ok(json!({"inlineData": {"mimeType": PDF, "data": data}})),
        (None, Some(url)) if is_upload(url) => Err(Failure::incapable(
            UnsupportedFeature::Prompt,
            "no file that was uploaded to the provider is read; send the file itself",
        )),
        (None, Some(url)) if reads_addresses(settings) => {
            Ok(json!({"fileData": {"mimeType": PDF, "fileUri": url}}))
        }
        (None, _) => Err(Failure::incapable(
            UnsupportedFeature::Prompt,
            "this model takes files in the message only, not at an address",
        )),
    }
}

/// Whether the model reads files at public addresses: Gemini 2.0 and what came before it do not.
fn reads_addresses(settings: &Settings) -> bool {
    let name = settings.model.rsplit('/').next().unwrap_or_default();
    !["gemini-1.", "gemini-2.0"].iter().any(|old| name.starts_with(old))
}

/// Whether an address is one of the provider's own API: it would read there, with our key, what anybody has uploaded with it.
fn is_upload(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    host.trim_end_matches('.') == UPLOADS_HOST
}
