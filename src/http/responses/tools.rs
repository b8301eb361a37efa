//! The tools of a list: those of a request, or of an item in it.
//!
//! A custom tool takes plain text. Upstreams of Responses get it as it is. Other backends know functions, so they get it as one
//! with a text called `input`; its grammar is put into words, and nobody holds models to it. So it is with a search for tools
//! that the caller makes. A search that a provider would make is left out: here models get all tools at once.

use serde_json::{Map, Value, json};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::hosted_tools;
use stint_types::chat::{CUSTOM_INPUT, Tool};

use super::tool_set::{ToolCallForm, ToolIdentity, ToolSet, flat_name};

/// What a search for tools is called.
pub(super) const SEARCH: &str = "tool_search";

/// What agents offer by themselves beside their own tools, and do without.
const DISPENSABLE: &[&str] =
    &["web_search", "web_search_2025_08_26", "image_generation", "local_shell", "mcp"];

/// What OpenAI's models know by themselves, and callers run.
const RUN_BY_CALLERS: [&str; 4] = ["shell", "apply_patch", "computer", "computer_use_preview"];

/// The tools of a list.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(fields: &mut Fields) -> Result<ToolSet, ApiError> {
    let path = fields.full_name("tools");
    let mut offer = ToolSet::default();
    for (at, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        add_tool(&format!("{path}[{at}]"), tool, &mut offer)?;
    }
    Ok(offer)
}

fn add_tool(path: &str, tool: Value, offer: &mut ToolSet) -> Result<(), ApiError> {
    if is_omitted(&tool) {
        offer.omitted.note(&format!("{path}.type"), &tool["type"]);
        return if tool["type"] == SEARCH { check_hosted_search(path, tool) } else { Ok(()) };
    }
    if tool["type"] == "namespace" {
        return namespace(path, tool, offer);
    }
    let (kind, tool) = read_tool(path, tool, None)?;
    offer.insert(path, kind, tool)
}

/// A search that a provider would make: it is left out, and refused all the same where something is wrong with it.
fn check_hosted_search(path: &str, tool: Value) -> Result<(), ApiError> {
    let mut fields = Fields::from_value(path, tool)?;
    fields.text("type")?;
    if !matches!(fields.text("execution")?.as_deref(), None | Some("server")) {
        return Err(ApiError::invalid(Some(&fields.full_name("execution")), "must be client or server"));
    }
    search(&mut fields)?;
    fields.finish()
}

/// The tools of a namespace. What it says of itself stands before what its first tool does.
fn namespace(path: &str, tool: Value, offer: &mut ToolSet) -> Result<(), ApiError> {
    let mut fields = Fields::from_value(path, tool)?;
    fields.text("type")?;
    let space = fields.require("name")?;
    let mut about = fields.text("description")?.filter(|about| !about.is_empty());
    let tools = fields.full_name("tools");
    for (at, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let path = format!("{tools}[{at}]");
        let (kind, mut tool) = read_tool(&path, tool, Some(&space))?;
        if let Some(about) = about.take() {
            let text = &mut tool.declaration["function"]["description"];
            *text = format!("{about}\n\n{}", text.as_str().unwrap_or_default()).trim_end().into();
        }
        offer.insert(&path, kind, tool)?;
    }
    fields.finish()
}

/// One tool that the caller runs.
fn read_tool(path: &str, tool: Value, space: Option<&str>) -> Result<(ToolIdentity, Tool), ApiError> {
    let mut fields = Fields::from_value(path, tool)?;
    let kind = fields.text("type")?;
    let (form, mut function, mut as_custom) = match kind.as_deref() {
        Some("function") => (ToolCallForm::Function, function(&mut fields)?, None),
        Some(known) if RUN_BY_CALLERS.contains(&known) => {
            let must = "is a tool that OpenAI's models know by themselves and callers run, which is not passed on here: declare it as a \
                        function or as a custom tool";
            return Err(ApiError::invalid(Some(&fields.full_name("type")), must));
        }
        Some("custom") => {
            let (function, custom) = custom(&mut fields)?;
            (ToolCallForm::Custom, function, Some(custom))
        }
        Some(SEARCH) if space.is_none() => (ToolCallForm::Search, search(&mut fields)?, None),
        kind => return Err(ApiError::invalid(Some(&fields.full_name("type")), not_offered(kind))),
    };
    // Who may call it, when it is loaded, and what comes of it: none of it changes what a model is asked.
    fields.take_all(&["allowed_callers", "defer_loading", "output_schema", "async"]);
    fields.finish()?;
    let name = function["name"].as_str().unwrap_or_default().to_owned();
    let known_as = flat_name(space, &name);
    function["name"] = known_as.clone().into();
    if let Some(custom) = &mut as_custom {
        custom["name"] = known_as.clone().into();
    }
    let declaration = json!({ "type": "function", "function": function });
    let tool = Tool { custom: as_custom, ..Tool::new(known_as, declaration) };
    Ok((ToolIdentity { form, namespace: space.map(str::to_owned), name }, tool))
}

/// Why there is no such tool here.
fn not_offered(kind: Option<&str>) -> String {
    const MUST: &str = "must be function, custom, namespace or tool_search";
    match kind {
        None | Some("namespace" | SEARCH) => MUST.to_owned(),
        Some(kind) => hosted_tools::not_offered(MUST, kind),
    }
}

/// True for a tool that no model gets.
pub(super) fn is_omitted(tool: &Value) -> bool {
    tool["type"].as_str().is_some_and(is_dispensable)
        || (tool["type"] == SEARCH && tool["execution"] != "client")
}

/// True for a provider's tool that agents do without.
pub(super) fn is_dispensable(kind: &str) -> bool {
    DISPENSABLE.contains(&kind)
}

fn search(fields: &mut Fields) -> Result<Value, ApiError> {
    fields.text("execution")?;
    let description = fields.text("description")?.unwrap_or_default();
    let path = fields.full_name("parameters");
    let parameters = fields.take("parameters").unwrap_or_else(|| json!({ "type": "object" }));
    if !parameters.is_object() {
        return Err(ApiError::invalid(Some(&path), "must be an object"));
    }
    Ok(json!({ "name": SEARCH, "description": description, "parameters": parameters }))
}

fn function(fields: &mut Fields) -> Result<Value, ApiError> {
    let mut function = Map::new();
    function.insert("name".into(), fields.require("name")?.into());
    if let Some(description) = fields.text("description")? {
        function.insert("description".into(), description.into());
    }
    let path = fields.full_name("parameters");
    let parameters =
        fields.take("parameters").unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if !parameters.is_object() {
        return Err(ApiError::invalid(Some(&path), "must be an object"));
    }
    function.insert("parameters".into(), parameters);
    if let Some(strict) = fields.boolean("strict")? {
        function.insert("strict".into(), strict.into());
    }
    Ok(function.into())
}

/// A tool that takes plain text, as a function and as it is.
fn custom(fields: &mut Fields) -> Result<(Value, Value), ApiError> {
    let name = fields.require("name")?;
    let said = fields.text("description")?;
    let mut custom = json!({ "type": "custom", "name": name });
    if let Some(said) = &said {
        custom["description"] = said.as_str().into();
    }
    let mut description = said.unwrap_or_default();
    if let Some(mut format) = fields.fields("format")? {
        match format.text("type")?.as_deref() {
            Some("text") => custom["format"] = json!({ "type": "text" }),
            Some("grammar") => {
                let (syntax, definition) = (format.require("syntax")?, format.require("definition")?);
                description += &format!("\n\nThe input must match this grammar ({syntax}):\n{definition}");
                custom["format"] = json!({ "type": "grammar", "syntax": syntax, "definition": definition });
            }
            _ => return Err(ApiError::invalid(Some(&format.full_name("type")), "must be text or grammar")),
        }
        format.finish()?;
    }
    let input = json!({ "type": "string", "description": "The whole input, as plain text." });
    let parameters = json!({
        "type": "object", "properties": { CUSTOM_INPUT: input }, "required": [CUSTOM_INPUT], "additionalProperties": false,
    });
    let function = json!({ "name": name, "description": description.trim_start(), "parameters": parameters });
    Ok((function, custom))
}
