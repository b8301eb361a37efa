//! The system's words and the turns of a conversation, block by block.

use serde_json::{Value, json};

use crate::chat::{Message, Part, Role, ToolCall};
use crate::http::error::Problem;
use crate::http::fields::Fields;
use crate::http::paired::{self, Turns, Unpaired};
use crate::http::{marks, signed};

/// How deep to think from some message on: the member that says so, and its word.
pub(super) type Effort = (String, String);

/// `system` and `messages`; and how deep to think, by each message of the system's that says so.
pub(super) fn read(fields: &mut Fields) -> Result<(Vec<Message>, Vec<Effort>), Problem> {
    let mut conversation: Vec<Message> = system(fields)?.into_iter().collect();
    let mut efforts = Vec::new();
    let must = "a list with at least one message";
    let list = fields.list("messages")?.ok_or_else(|| Problem::missing("messages", must))?;
    if list.is_empty() {
        return Err(Problem::invalid(Some("messages"), format!("must be {must}")));
    }
    for (at, value) in list.into_iter().enumerate() {
        efforts.extend(turn(&format!("messages[{at}]"), value, &mut conversation)?);
    }
    paired::check(&conversation, Turns::Joined).map_err(|unpaired| unanswered(&unpaired))?;
    Ok((conversation, efforts))
}

/// Anthropic refuses such conversations too.
fn unanswered(unpaired: &Unpaired<'_>) -> Problem {
    let what = match unpaired {
        Unpaired::Call(_, ToolCall { id, name, .. }) => format!(
            "have a tool_use of {name} ({id}) without its result: begin the next message with a tool_result of that \
             tool_use_id, or leave the call out"
        ),
        Unpaired::Result(_, id) => format!(
            "have a tool_result of {id}, which the message before it did not call, or which has its result: send that \
             message too, or leave the result out"
        ),
    };
    Problem::invalid(Some("messages"), what)
}

fn system(fields: &mut Fields) -> Result<Option<Message>, Problem> {
    let must = "must be a string or a list of text blocks";
    let content = match fields.take("system") {
        None => return Ok(None),
        Some(Value::String(text)) => vec![Part::Text(text)],
        Some(Value::Array(list)) => {
            let mut content = Vec::new();
            for (at, block) in list.into_iter().enumerate() {
                let mut block = Fields::of(&format!("system[{at}]"), block)?;
                if block.text("type")?.as_deref() != Some("text") {
                    return Err(Problem::invalid(Some("system"), must));
                }
                text(block, &mut content)?;
            }
            content
        }
        Some(_) => return Err(Problem::invalid(Some("system"), must)),
    };
    Ok(Some(Message { content, ..Message::text(Role::System, "") }))
}

/// One turn. Results of tools are messages of their own in the canonical conversation, in the order they stand in.
/// Gives back the effort that it sets.
fn turn(path: &str, value: Value, conversation: &mut Vec<Message>) -> Result<Option<Effort>, Problem> {
    let mut fields = Fields::of(path, value)?;
    let role = match fields.text("role")?.as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => {
            let must = "must be user or assistant; the system's words go into system";
            return Err(Problem::invalid(Some(&fields.name("role")), must));
        }
    };
    let config = if role == Role::System { fields.fields("output_config")? } else { None };
    let name = fields.name("content");
    let blocks = match fields.take("content") {
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        Some(Value::Array(blocks)) => blocks,
        None if config.is_some() => Vec::new(),
        None => return Err(Problem::missing(&name, "a string or a list of blocks")),
        Some(_) => return Err(Problem::invalid(Some(&name), "must be a string or a list of blocks")),
    };
    fields.end()?;
    if blocks.is_empty() && role != Role::Assistant && config.is_none() {
        return Err(Problem::invalid(Some(&name), "is empty"));
    }
    let mut message = empty(role);
    for (at, block) in blocks.into_iter().enumerate() {
        let block = Fields::of(&format!("{name}[{at}]"), block)?;
        if let Some(result) = read_block(block, &mut message)? {
            if !message.content.is_empty() {
                conversation.push(std::mem::replace(&mut message, empty(role)));
            }
            conversation.push(result);
        }
    }
    let said = !message.content.is_empty() || !message.tool_calls.is_empty() || role == Role::Assistant;
    if said {
        conversation.push(message);
    }
    config.map_or(Ok(None), effort)
}

/// The effort that a message of the system's sets.
fn effort(mut config: Fields) -> Result<Option<Effort>, Problem> {
    let (name, word) = (config.name("effort"), config.text("effort")?);
    config.end()?;
    Ok(word.map(|word| (name, word)))
}

fn empty(role: Role) -> Message {
    Message { content: Vec::new(), ..Message::text(role, "") }
}

/// Puts one block into a message; the result of a tool is given back instead.
fn read_block(mut block: Fields, message: &mut Message) -> Result<Option<Message>, Problem> {
    let kind = block.text("type")?.unwrap_or_default();
    match (kind.as_str(), message.role) {
        ("text", _) => text(block, &mut message.content)?,
        ("image", Role::User) => image(block, &mut message.content)?,
        ("tool_result", Role::User) => return result(block).map(Some),
        ("tool_use", Role::Assistant) => message.tool_calls.push(call(block)?),
        ("thinking", Role::Assistant) => {
            let thought = block.need("thinking")?;
            message.signed.extend(block.text("signature")?.as_deref().and_then(signed::unsealed));
            // One that was not shown comes back without its text.
            if !thought.is_empty() {
                message.thought.get_or_insert_default().push_str(&thought);
            }
            block.end()?;
        }
        ("redacted_thinking", Role::Assistant) => {
            message.signed.extend(signed::unsealed(&block.need("data")?));
            block.end()?;
        }
        _ => {
            let must = match message.role {
                Role::Assistant => "must be text, tool_use, thinking or redacted_thinking",
                _ => "must be text, image or tool_result",
            };
            return Err(Problem::invalid(Some(&block.name("type")), must));
        }
    }
    Ok(None)
}

/// Citations are not part of what is said.
fn text(mut block: Fields, content: &mut Vec<Part>) -> Result<(), Problem> {
    content.push(Part::Text(block.need("text")?));
    block.pass(&["citations"]);
    end(block, content)
}

/// The end of a block, which may be marked.
fn end(mut block: Fields, content: &mut Vec<Part>) -> Result<(), Problem> {
    if let Some(keep) = marks::take(&mut block)? {
        marks::put(content, keep);
    }
    block.end()
}

/// An image by its address, or in it, as OpenAI writes it, which is how the canonical conversation has it.
fn image(mut block: Fields, content: &mut Vec<Part>) -> Result<(), Problem> {
    let mut source = block.need_fields("source")?;
    let url = match source.text("type")?.as_deref() {
        Some("base64") => format!("data:{};base64,{}", source.need("media_type")?, source.need("data")?),
        Some("url") => source.need("url")?,
        _ => return Err(Problem::invalid(Some(&source.name("type")), "must be base64 or url")),
    };
    source.end()?;
    content.push(Part::Other(json!({ "type": "image_url", "image_url": { "url": url } })));
    end(block, content)
}

fn call(mut block: Fields) -> Result<ToolCall, Problem> {
    let input = block.take("input").unwrap_or_else(|| json!({}));
    let call = ToolCall { id: block.need("id")?, name: block.need("name")?, arguments: input.to_string() };
    // A call stands behind all that is said in its turn, and is kept with the next mark.
    marks::take(&mut block)?;
    block.pass(&["caller", "toolset_name"]);
    block.end()?;
    Ok(call)
}

/// What a tool gave back. That it failed is said in words: not every model has a sign for it.
fn result(mut block: Fields) -> Result<Message, Problem> {
    let id = block.need("tool_use_id")?;
    let failed = block.flag("is_error")? == Some(true);
    let name = block.name("content");
    let mut content = match block.take("content") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![Part::Text(text)],
        Some(Value::Array(list)) => {
            let mut content = Vec::new();
            for (at, part) in list.into_iter().enumerate() {
                given(&name, at, part, &mut content)?;
            }
            content
        }
        Some(_) => return Err(Problem::invalid(Some(&name), "must be a string or a list of blocks")),
    };
    if failed {
        content.insert(0, Part::Text("Error: ".into()));
    }
    if content.is_empty() {
        content.push(Part::Text(String::new()));
    }
    block.pass(&["toolset_name"]);
    end(block, &mut content)?;
    Ok(Message { content, tool_call_id: Some(id), ..Message::text(Role::Tool, "") })
}

fn given(path: &str, at: usize, part: Value, content: &mut Vec<Part>) -> Result<(), Problem> {
    let mut block = Fields::of(&format!("{path}[{at}]"), part)?;
    match block.text("type")?.as_deref() {
        Some("text") => text(block, content),
        Some("image") => image(block, content),
        // What a search of the caller's found: every tool of the request is told anyway, so its name is enough.
        Some("tool_reference") => {
            content.push(Part::Text(format!("tool: {}\n", block.need("tool_name")?)));
            end(block, content)
        }
        _ => Err(Problem::invalid(Some(&block.name("type")), "must be text, image or tool_reference")),
    }
}
