//! Reads the system prompt and the messages of a Messages request, block by block.

use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::tool_pairing::{self, TurnGrouping, UnpairedTool};
use crate::http::{cache_control, documents, signed};
use stint_prompt::image_type;
use stint_types::chat::{ContentPart, EffortChange, Message, Role, ToolCall};

/// How deep to think from some message on.
#[derive(Debug)]
pub(super) struct EffortOverride {
    /// The member that says so.
    pub(super) name: String,
    /// What it says, and behind how many messages.
    pub(super) change: EffortChange,
}

/// `system` and `messages`; and how deep to think, by each message of the system's that says so.
pub(super) fn read(fields: &mut Fields) -> Result<(Vec<Message>, Vec<EffortOverride>), ApiError> {
    let mut conversation: Vec<Message> = system(fields)?.into_iter().collect();
    let mut efforts = Vec::new();
    let must = "a list with at least one message";
    let list = fields.list("messages")?.ok_or_else(|| ApiError::missing("messages", must))?;
    if list.is_empty() {
        return Err(ApiError::invalid(Some("messages"), format!("must be {must}")));
    }
    for (at, value) in list.into_iter().enumerate() {
        efforts.extend(read_message(&format!("messages[{at}]"), value, &mut conversation)?);
    }
    tool_pairing::check(&conversation, TurnGrouping::Consecutive)
        .map_err(|unpaired| unpaired_error(&unpaired))?;
    Ok((conversation, efforts))
}

/// Anthropic refuses such conversations too.
fn unpaired_error(unpaired: &UnpairedTool<'_>) -> ApiError {
    let what = match unpaired {
        UnpairedTool::Call(_, ToolCall { id, name, .. }) => format!(
            "have a tool_use of {name} ({id}) without its result: begin the next message with a tool_result of that \
             tool_use_id, or leave the call out"
        ),
        UnpairedTool::Result(_, id) => format!(
            "have a tool_result of {id}, which the message before it did not call, or which has its result: send that \
             message too, or leave the result out"
        ),
    };
    ApiError::invalid(Some("messages"), what)
}

fn system(fields: &mut Fields) -> Result<Option<Message>, ApiError> {
    let must = "must be a string or a list of text blocks";
    let content = match fields.take("system") {
        None => return Ok(None),
        Some(Value::String(text)) => vec![ContentPart::Text(text)],
        Some(Value::Array(list)) => {
            let mut content = Vec::new();
            for (at, block) in list.into_iter().enumerate() {
                let mut block = Fields::from_value(format!("system[{at}]"), block)?;
                if block.text("type")?.as_deref() != Some("text") {
                    return Err(ApiError::invalid(Some("system"), must));
                }
                text(block, &mut content)?;
            }
            content
        }
        Some(_) => return Err(ApiError::invalid(Some("system"), must)),
    };
    Ok(Some(Message { content, ..Message::text(Role::System, "") }))
}

/// One turn. Results of tools are messages of their own in the canonical conversation, in the order they stand in.
/// Gives back the effort that it sets.
fn read_message(
    path: &str,
    value: Value,
    conversation: &mut Vec<Message>,
) -> Result<Option<EffortOverride>, ApiError> {
    let mut fields = Fields::from_value(path, value)?;
    let role = match fields.text("role")?.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => {
            let must = "must be user or assistant; the system's words go into system";
            return Err(ApiError::invalid(Some(&fields.full_name("role")), must));
        }
    };
    let config = if role == Role::System { fields.fields("output_config")? } else { None };
    let name = fields.full_name("content");
    let blocks = match fields.take("content") {
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        Some(Value::Array(blocks)) => blocks,
        None if config.is_some() => Vec::new(),
        None => return Err(ApiError::missing(&name, "a string or a list of blocks")),
        Some(_) => return Err(ApiError::invalid(Some(&name), "must be a string or a list of blocks")),
    };
    fields.finish()?;
    if blocks.is_empty() && role != Role::Assistant && config.is_none() {
        return Err(ApiError::invalid(Some(&name), "is empty"));
    }
    let mut message = empty(role);
    for (at, block) in blocks.into_iter().enumerate() {
        let block = Fields::from_value(format!("{name}[{at}]"), block)?;
        if let Some(result) = read_block(block, &mut message)? {
            if !message.content.is_empty() {
                conversation.push(std::mem::replace(&mut message, empty(role)));
            }
            conversation.push(result);
        }
    }
    let has_content =
        !message.content.is_empty() || !message.tool_calls.is_empty() || role == Role::Assistant;
    if has_content {
        conversation.push(message);
    }
    config.map_or(Ok(None), |config| effort(config, conversation.len()))
}

/// The effort that a message of the system's sets.
fn effort(mut config: Fields, after: usize) -> Result<Option<EffortOverride>, ApiError> {
    let (name, word) = (config.full_name("effort"), config.text("effort")?);
    config.finish()?;
    Ok(word.map(|word| EffortOverride { name, change: EffortChange { after, word } }))
}

fn empty(role: Role) -> Message {
    Message { content: Vec::new(), ..Message::text(role, "") }
}

/// Puts one block into a message; the result of a tool is given back instead.
fn read_block(mut block: Fields, message: &mut Message) -> Result<Option<Message>, ApiError> {
    let kind = block.text("type")?.unwrap_or_default();
    match (kind.as_str(), message.role) {
        ("text", _) => text(block, &mut message.content)?,
        ("image", Role::User) => image(block, &mut message.content)?,
        ("document", Role::User) => document(block, &mut message.content)?,
        ("tool_result", Role::User) => return result(block).map(Some),
        ("tool_use", Role::Assistant) => message.tool_calls.push(call(block)?),
        ("thinking", Role::Assistant) => {
            let thought = block.require("thinking")?;
            message.signed.extend(block.text("signature")?.as_deref().and_then(signed::unseal));
            // One that was not shown comes back without its text.
            if !thought.is_empty() {
                message.thought.get_or_insert_default().push_str(&thought);
            }
            block.finish()?;
        }
        ("redacted_thinking", Role::Assistant) => {
            message.signed.extend(signed::unseal(&block.require("data")?));
            block.finish()?;
        }
        _ => {
            let must = match message.role {
                Role::Assistant => "must be text, tool_use, thinking or redacted_thinking",
                _ => "must be text, image, document or tool_result",
            };
            return Err(ApiError::invalid(Some(&block.full_name("type")), must));
        }
    }
    Ok(None)
}

/// Citations are not part of the answer.
fn text(mut block: Fields, content: &mut Vec<ContentPart>) -> Result<(), ApiError> {
    content.push(ContentPart::Text(block.require("text")?));
    block.take_all(&["citations"]);
    end(block, content)
}

/// The end of a block, which may be marked.
fn end(mut block: Fields, content: &mut Vec<ContentPart>) -> Result<(), ApiError> {
    if let Some(keep) = cache_control::take(&mut block)? {
        cache_control::add_mark(content, keep);
    }
    block.finish()
}

/// An image by its address, or in it, as OpenAI writes it, which is how the canonical conversation has it.
fn image(mut block: Fields, content: &mut Vec<ContentPart>) -> Result<(), ApiError> {
    let mut source = block.require_fields("source")?;
    let url = match source.text("type")?.as_deref() {
        Some("base64") => {
            format!("data:{};base64,{}", source.require("media_type")?, source.require("data")?)
        }
        Some("url") => source.require("url")?,
        _ => return Err(ApiError::invalid(Some(&source.full_name("type")), "must be base64 or url")),
    };
    source.finish()?;
    let url = image_type::with_media_type(url);
    content.push(ContentPart::Other(json!({ "type": "image_url", "image_url": { "url": url } })));
    end(block, content)
}

/// A document: a PDF file as chat completions have it, or texts and images, as such. Citations are not part of the answer.
fn document(mut block: Fields, content: &mut Vec<ContentPart>) -> Result<(), ApiError> {
    let (title, context) = (block.text("title")?, block.text("context")?);
    block.take_all(&["citations"]);
    let paragraph = |text: String| ContentPart::Text(text + "\n\n");
    content.extend(context.filter(|text| !text.is_empty()).map(paragraph));
    let start = content.len();
    let mut source = block.require_fields("source")?;
    let kind = source.text("type")?;
    match kind.as_deref() {
        Some("base64") => {
            let (path, media_type) = (source.full_name("data"), source.require("media_type")?);
            let file = documents::inline(&media_type, &source.require("data")?, title);
            content.push(file.ok_or_else(|| ApiError::invalid(Some(&path), documents::ONLY_PDF))?);
        }
        Some("url") => {
            let (path, file) = (source.full_name("url"), documents::at_url(source.require("url")?, title));
            content.push(file.ok_or_else(|| ApiError::invalid(Some(&path), documents::ONLY_PDF))?);
        }
        Some("text") => {
            source.take_all(&["media_type"]);
            content.extend(title.map(paragraph));
            content.push(ContentPart::Text(source.require("data")?));
            end_paragraph(&mut content[start..]);
        }
        Some("content") => {
            content.extend(title.map(paragraph));
            inner_content(&mut source, content)?;
            end_paragraph(&mut content[start..]);
        }
        _ => {
            let must = "must be base64, url, text or content; there are no files here";
            return Err(ApiError::invalid(Some(&source.full_name("type")), must));
        }
    }
    source.finish()?;
    end(block, content)
}

/// Sets the last text apart from what follows it: some models get all texts of a message as one.
fn end_paragraph(content: &mut [ContentPart]) {
    let last = content.iter_mut().rev().find(|part| !matches!(part, ContentPart::CacheBreakpoint(_)));
    if let Some(ContentPart::Text(text)) = last
        && !text.is_empty()
    {
        text.push_str("\n\n");
    }
}

/// A document's own texts and images.
fn inner_content(source: &mut Fields, content: &mut Vec<ContentPart>) -> Result<(), ApiError> {
    let path = source.full_name("content");
    match source.take("content") {
        Some(Value::String(said)) => content.push(ContentPart::Text(said)),
        Some(Value::Array(list)) => {
            for (at, part) in list.into_iter().enumerate() {
                let mut block = Fields::from_value(format!("{path}[{at}]"), part)?;
                match block.text("type")?.as_deref() {
                    Some("text") => text(block, content)?,
                    Some("image") => image(block, content)?,
                    _ => {
                        return Err(ApiError::invalid(
                            Some(&block.full_name("type")),
                            "must be text or image",
                        ));
                    }
                }
            }
        }
        _ => return Err(ApiError::invalid(Some(&path), "must be a string or a list of blocks")),
    }
    Ok(())
}

fn call(mut block: Fields) -> Result<ToolCall, ApiError> {
    let input = block.take("input").unwrap_or_else(|| json!({}));
    let call =
        ToolCall { id: block.require("id")?, name: block.require("name")?, arguments: input.to_string() };
    // A call stands behind all content of its turn, and is kept with the next mark.
    cache_control::take(&mut block)?;
    block.take_all(&["caller", "toolset_name"]);
    block.finish()?;
    Ok(call)
}

/// What a tool gave back. That it failed is put into words too: not every model has a sign for it.
fn result(mut block: Fields) -> Result<Message, ApiError> {
    let id = block.require("tool_use_id")?;
    let failed = block.boolean("is_error")? == Some(true);
    let name = block.full_name("content");
    let mut content = match block.take("content") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![ContentPart::Text(text)],
        Some(Value::Array(list)) => {
            let mut content = Vec::new();
            for (at, part) in list.into_iter().enumerate() {
                result_part(&name, at, part, &mut content)?;
            }
            content
        }
        Some(_) => return Err(ApiError::invalid(Some(&name), "must be a string or a list of blocks")),
    };
    if failed {
        content.insert(0, ContentPart::Text(Message::FAILED.into()));
    }
    if content.is_empty() {
        content.push(ContentPart::Text(String::new()));
    }
    block.take_all(&["toolset_name"]);
    end(block, &mut content)?;
    Ok(Message { content, tool_call_id: Some(id), is_error: failed, ..Message::text(Role::Tool, "") })
}

fn result_part(path: &str, at: usize, part: Value, content: &mut Vec<ContentPart>) -> Result<(), ApiError> {
    let mut block = Fields::from_value(format!("{path}[{at}]"), part)?;
    match block.text("type")?.as_deref() {
        Some("text") => text(block, content),
        Some("image") => image(block, content),
        // What a search of the caller's found: the model knows every tool of the request anyway, so its name is enough.
        Some("tool_reference") => {
            content.push(ContentPart::Text(format!("tool: {}\n", block.require("tool_name")?)));
            end(block, content)
        }
        Some("document") => document(block, content),
        _ => {
            let must = "must be text, image, document or tool_reference";
            Err(ApiError::invalid(Some(&block.full_name("type")), must))
        }
    }
}
