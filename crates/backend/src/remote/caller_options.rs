//! Translates options in OpenAI's terms for upstreams that have other terms for them.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::{Failure, UnsupportedFeature};
use stint_types::chat::{Message, Request, Role, Tool};

/// Whether tools are to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenAiToolChoice {
    /// As the model sees fit.
    Auto,
    /// None.
    None,
    /// One at least.
    Any,
    /// This one.
    Named(String),
}

impl OpenAiToolChoice {
    /// What a request says, where it says anything.
    pub(crate) fn of(request: &Request) -> Result<Option<OpenAiToolChoice>, Failure> {
        let Some(choice) = &request.tool_choice else { return Ok(None) };
        let named = choice.pointer("/function/name").and_then(Value::as_str);
        match (choice.as_str(), named) {
            (Some("auto"), _) => Ok(Some(OpenAiToolChoice::Auto)),
            (Some("none"), _) => Ok(Some(OpenAiToolChoice::None)),
            (Some("required"), _) => Ok(Some(OpenAiToolChoice::Any)),
            (None, Some(name)) => Ok(Some(OpenAiToolChoice::Named(name.to_owned()))),
            _ => Err(Failure::incapable(
                UnsupportedFeature::Choice,
                "this model knows tool_choice as none, auto, required and one function only",
            )),
        }
    }

    /// True if the model may not answer without a tool.
    pub(crate) fn is_forced(&self) -> bool {
        matches!(self, OpenAiToolChoice::Any | OpenAiToolChoice::Named(_))
    }
}

/// The mode of a list of allowed tools, and the names of those that may be called, where others are withheld and the choice is
/// left to the model; nothing where no tool is left.
pub(super) fn allowed_tools<'r>(
    request: &'r Request,
    choice: Option<&OpenAiToolChoice>,
) -> Option<(&'static str, impl Iterator<Item = &'r str> + use<'r>)> {
    let mode = match choice {
        None | Some(OpenAiToolChoice::Auto) => "auto",
        Some(OpenAiToolChoice::Any) => "required",
        Some(OpenAiToolChoice::None | OpenAiToolChoice::Named(_)) => return None,
    };
    let is_withheld = |name: &&str| request.withheld_tools.iter().any(|withheld| **withheld == **name);
    let all = || request.tools.iter().map(|tool| tool.name.as_str());
    let (some, left) = (all().any(|name| is_withheld(&name)), all().any(|name| !is_withheld(&name)));
    (some && left).then(|| (mode, all().filter(move |name| !is_withheld(name))))
}

/// A function as it was declared.
#[derive(Debug)]
pub(crate) struct FunctionDeclaration<'t> {
    pub(crate) name: &'t str,
    pub(super) description: Option<&'t str>,
    /// A JSON schema; of an object without members where none was declared.
    pub(crate) parameters: Value,
    pub(crate) strict: bool,
}

impl<'t> FunctionDeclaration<'t> {
    pub(crate) fn of(tool: &'t Tool) -> FunctionDeclaration<'t> {
        let declared = tool.declaration.get("function").unwrap_or(&tool.declaration);
        let parameters = declared.get("parameters").filter(|schema| schema.is_object());
        FunctionDeclaration {
            name: &tool.name,
            description: declared.get("description").and_then(Value::as_str),
            parameters: parameters.cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}})),
            strict: declared.get("strict") == Some(&Value::Bool(true)),
        }
    }
}

/// The form that the answer must have.
#[derive(Debug)]
pub(crate) enum OpenAiResponseFormat<'r> {
    /// Any text.
    Text,
    /// Some JSON object.
    Json,
    /// JSON that fits a schema; this is `json_schema`, with its name and its schema.
    Schema(&'r Value),
}

impl<'r> OpenAiResponseFormat<'r> {
    pub(crate) fn of(request: &'r Request) -> Result<OpenAiResponseFormat<'r>, Failure> {
        let Some(format) = &request.response_format else { return Ok(OpenAiResponseFormat::Text) };
        let schema = format.get("json_schema").filter(|named| named.get("schema").is_some());
        match (format.get("type").and_then(Value::as_str), schema) {
            (Some("text"), _) => Ok(OpenAiResponseFormat::Text),
            (Some("json_object"), _) => Ok(OpenAiResponseFormat::Json),
            (Some("json_schema"), Some(schema)) => Ok(OpenAiResponseFormat::Schema(schema)),
            _ => Err(Failure::incapable(
                UnsupportedFeature::Form,
                "this model knows response_format as text, json_object and json_schema only",
            )),
        }
    }
}

/// Where an image is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ImageSource<'p> {
    /// In the message: its media type and its bytes in base 64.
    Inline(&'p str, &'p str),
    /// Elsewhere.
    Url(&'p str),
}

impl<'p> ImageSource<'p> {
    /// The image that a part is, if it is one.
    pub(super) fn of(part: &'p Value) -> Option<ImageSource<'p>> {
        let url = part.pointer("/image_url/url").and_then(Value::as_str)?;
        let Some(data) = url.strip_prefix("data:") else { return Some(ImageSource::Url(url)) };
        let (kind, bytes) = data.split_once(',')?;
        Some(ImageSource::Inline(kind.strip_suffix(";base64")?, bytes))
    }
}

/// A PDF file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DocumentPart<'p> {
    /// What it is called.
    pub(super) name: &'p str,
    /// In the message: a `data:` URL.
    pub(super) data: Option<&'p str>,
    /// Elsewhere.
    pub(super) url: Option<&'p str>,
    /// How closely it is to be looked at, in a word of OpenAI's Responses.
    pub(super) detail: Option<&'p str>,
}

impl<'p> DocumentPart<'p> {
    /// The file that a part is, if it is one.
    pub(super) fn of(part: &'p Value) -> Option<DocumentPart<'p>> {
        let file = part.get("file").filter(|_| part["type"] == "file")?;
        let text = |name: &str| file.get(name).and_then(Value::as_str);
        Some(DocumentPart {
            name: text("filename").unwrap_or_default(),
            data: text("file_data"),
            url: text("file_url"),
            detail: text("detail"),
        })
    }

    /// The bytes in base 64, where they are in the message.
    pub(super) fn bytes(&self) -> Option<&'p str> {
        self.data?.split_once(',').map(|(_, bytes)| bytes)
    }
}

/// The PDF files of a conversation.
fn files(request: &Request) -> impl Iterator<Item = DocumentPart<'_>> {
    request.messages.iter().flat_map(Message::media).filter_map(DocumentPart::of)
}

/// True if there is a PDF file in the conversation.
pub(super) fn has_files(request: &Request) -> bool {
    files(request).next().is_some()
}

/// Refuses files at addresses, for APIs that take them in the message only.
pub(super) fn refuse_file_urls(request: &Request) -> Result<(), Failure> {
    if files(request).any(|file| file.url.is_some()) {
        let why = "this model takes files in the message only, not at an address";
        return Err(Failure::incapable(UnsupportedFeature::Prompt, why));
    }
    Ok(())
}

/// Refuses images and files among the system's words, for APIs that take only text there: they would be left out without a word.
pub(super) fn refuse_media_in_instructions(request: &Request) -> Result<(), Failure> {
    let mut instructions = request.messages.iter().filter(|message| message.role == Role::System);
    if instructions.any(|message| message.media().next().is_some()) {
        let why = "this model takes images and files in a user's message only";
        return Err(Failure::incapable(UnsupportedFeature::Prompt, why));
    }
    Ok(())
}

/// The arguments of a call as an object. What a model wrote that is none is kept as text.
pub(super) fn parse_arguments(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Value::Object(object),
        _ if text.trim().is_empty() => json!({}),
        _ => json!({ "arguments": text }),
    }
}

/// The members that make tokens less likely which came before. Where they are not taken they are left out, as temperatures are.
pub(super) const PENALTIES: [&str; 2] = ["presence_penalty", "frequency_penalty"];

/// Refuses biases that would change something.
pub(super) fn refuse_bias(request: &Request) -> Result<(), Failure> {
    let bias = request.extra.get("logit_bias").and_then(Value::as_object);
    if bias.is_some_and(|bias| !bias.is_empty()) {
        return Err(Failure::incapable(UnsupportedFeature::Penalties, "this model takes no logit_bias"));
    }
    Ok(())
}

/// Whom the request is for, by the name that the caller gave.
pub(super) fn end_user(request: &Request) -> Option<&str> {
    let text = |name: &str| request.extra.get(name).and_then(Value::as_str);
    text("safety_identifier").or_else(|| text("user"))
}

/// The longest name of a user that OpenAI, and those in front of it, take; agents write whole objects there.
const USER_MAX: usize = 64;

/// A member as it is passed on: as it came, but for a user's name that is too long, of which the hash goes.
pub(super) fn passed_member(name: &str, value: &Value) -> (String, Value) {
    let long = match (name, value) {
        ("user" | "safety_identifier", Value::String(user)) if user.chars().count() > USER_MAX => user,
        _ => return (name.to_owned(), value.clone()),
    };
    let hash: String = Sha256::digest(long).iter().map(|byte| format!("{byte:02x}")).collect();
    (name.to_owned(), hash.into())
}

/// True if only one tool may be called at a time.
pub(crate) fn disables_parallel_tools(request: &Request) -> bool {
    request.extra.get("parallel_tool_calls") == Some(&Value::Bool(false))
}

/// Adds members that are there.
pub(super) fn insert_present<const N: usize>(
    object: &mut Map<String, Value>,
    members: [(&str, Option<Value>); N],
) {
    for (name, value) in members {
        if let Some(value) = value {
            object.insert(name.to_owned(), value);
        }
    }
}
