//! The tools of a request, and which of them may be called.
//!
//! A custom tool takes plain text. Backends know functions, so it is told to them as one with a text called `input`; what
//! its grammar is they are told in words, and nobody holds them to it. So it is with a search for tools that the caller
//! makes. A search that a provider would make is left out: here all tools are told at once.

use serde_json::{Map, Value, json};

use crate::chat::Tool;
use crate::http::error::Problem;
use crate::http::fields::Fields;

use super::offer::{Form, Kind, Offer, known_as};

/// The one argument of a custom tool.
const INPUT: &str = "input";

/// What a search for tools is called.
pub(super) const SEARCH: &str = "tool_search";

/// What agents offer by themselves beside their own tools, and do without.
const DISPENSABLE: &[&str] = &["web_search", "web_search_2025_08_26"];

/// The tools of a list, put into an offer. Gives back the names that models know them by.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(fields: &mut Fields, offer: &mut Offer) -> Result<Vec<String>, Problem> {
    let path = fields.name("tools");
    let list = fields.list("tools")?.unwrap_or_default();
    let mut named = Vec::new();
    for (at, tool) in list.into_iter().enumerate() {
        one(&format!("{path}[{at}]"), tool, offer, &mut named)?;
    }
    Ok(named)
}

fn one(path: &str, tool: Value, offer: &mut Offer, named: &mut Vec<String>) -> Result<(), Problem> {
    if is_left_out(&tool) {
        offer.left_out.get_or_insert_with(|| format!("{path}.type"));
        return Ok(());
    }
    match tool["type"].as_str() {
        Some("namespace") => namespace(path, tool, offer, named),
        Some(SEARCH) if tool["execution"] != "client" => Ok(()),
        _ => {
            let (kind, tool) = declared(path, tool, None)?;
            named.push(tool.name.clone());
            offer.put(path, kind, tool)
        }
    }
}

/// The tools of a namespace. What it says of itself stands before what its first tool does.
fn namespace(path: &str, tool: Value, offer: &mut Offer, named: &mut Vec<String>) -> Result<(), Problem> {
    let mut fields = Fields::of(path, tool)?;
    fields.text("type")?;
    let space = fields.need("name")?;
    let mut about = fields.text("description")?.filter(|about| !about.is_empty());
    let tools = fields.name("tools");
    for (at, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let path = format!("{tools}[{at}]");
        let (kind, mut tool) = declared(&path, tool, Some(&space))?;
        if let Some(about) = about.take() {
            let said = &mut tool.declaration["function"]["description"];
            *said = format!("{about}\n\n{}", said.as_str().unwrap_or_default()).trim_end().into();
        }
        named.push(tool.name.clone());
        offer.put(&path, kind, tool)?;
    }
    fields.end()
}

/// One tool that the caller runs.
fn declared(path: &str, tool: Value, space: Option<&str>) -> Result<(Kind, Tool), Problem> {
    let mut fields = Fields::of(path, tool)?;
    let kind = fields.text("type")?;
    let (form, mut function) = match kind.as_deref() {
        Some("function") => (Form::Function, function(&mut fields)?),
        Some("custom") => (Form::Custom, free(&mut fields)?),
        Some(SEARCH) if space.is_none() => (Form::Search, search(&mut fields)?),
        _ => {
            let must = "must be function, custom, namespace or tool_search: tools that run at a provider are not offered";
            return Err(Problem::invalid(Some(&fields.name("type")), must));
        }
    };
    // Who may call it, when it is told, and what comes of it: none of it changes what a model is asked.
    fields.pass(&["allowed_callers", "defer_loading", "output_schema", "async"]);
    fields.end()?;
    let name = function["name"].as_str().unwrap_or_default().to_owned();
    let known_as = known_as(space, &name);
    function["name"] = known_as.clone().into();
    let tool = Tool {
        name: known_as,
        declaration: json!({ "type": "function", "function": function }),
        marked: None,
    };
    Ok((Kind { form, space: space.map(str::to_owned), name }, tool))
}

/// True for a tool that is told to no model.
pub(super) fn is_left_out(tool: &Value) -> bool {
    tool["type"].as_str().is_some_and(|kind| DISPENSABLE.contains(&kind))
}

fn search(fields: &mut Fields) -> Result<Value, Problem> {
    fields.text("execution")?;
    let description = fields.text("description")?.unwrap_or_default();
    let path = fields.name("parameters");
    let parameters = fields.take("parameters").unwrap_or_else(|| json!({ "type": "object" }));
    if !parameters.is_object() {
        return Err(Problem::invalid(Some(&path), "must be an object"));
    }
    Ok(json!({ "name": SEARCH, "description": description, "parameters": parameters }))
}

fn function(fields: &mut Fields) -> Result<Value, Problem> {
    let mut function = Map::new();
    function.insert("name".into(), fields.need("name")?.into());
    if let Some(description) = fields.text("description")? {
        function.insert("description".into(), description.into());
    }
    let path = fields.name("parameters");
    let parameters =
        fields.take("parameters").unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if !parameters.is_object() {
        return Err(Problem::invalid(Some(&path), "must be an object"));
    }
    function.insert("parameters".into(), parameters);
    if let Some(strict) = fields.flag("strict")? {
        function.insert("strict".into(), strict.into());
    }
    Ok(function.into())
}

fn free(fields: &mut Fields) -> Result<Value, Problem> {
    let name = fields.need("name")?;
    let mut description = fields.text("description")?.unwrap_or_default();
    if let Some(mut format) = fields.fields("format")? {
        match format.text("type")?.as_deref() {
            Some("text") => {}
            Some("grammar") => {
                let (syntax, definition) = (format.need("syntax")?, format.need("definition")?);
                description += &format!("\n\nThe input must match this grammar ({syntax}):\n{definition}");
            }
            _ => return Err(Problem::invalid(Some(&format.name("type")), "must be text or grammar")),
        }
        format.end()?;
    }
    let input = json!({ "type": "string", "description": "The whole input, as plain text." });
    let parameters = json!({
        "type": "object", "properties": { INPUT: input }, "required": [INPUT], "additionalProperties": false,
    });
    Ok(json!({ "name": name, "description": description.trim_start(), "parameters": parameters }))
}

/// The plain text in the arguments of a call of a custom tool; what has another form is passed on as it is.
pub(super) fn input(arguments: &str) -> String {
    let mut read = serde_json::from_str(arguments).unwrap_or(Value::Null);
    match read[INPUT].take() {
        Value::String(input) => input,
        _ => arguments.to_owned(),
    }
}

/// What a search is to find; what has no form of its own is passed on as it is.
pub(super) fn searched(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(read @ Value::Object(_)) => read,
        _ if arguments.trim().is_empty() => json!({}),
        _ => arguments.into(),
    }
}

/// The arguments of a call of a custom tool with that input.
pub(super) fn arguments(input: &str) -> String {
    json!({ INPUT: input }).to_string()
}

/// Whether a tool must be called, and which; the offer takes in which may be.
pub(super) fn choice(fields: &mut Fields, offer: &mut Offer) -> Result<Option<Value>, Problem> {
    let must = "must be auto, none, required, or one of the request's own tools";
    let wrong = || Problem::invalid(Some("tool_choice"), must);
    match fields.take("tool_choice") {
        None => Ok(None),
        Some(Value::String(word)) if ["auto", "none", "required"].contains(&word.as_str()) => {
            Ok(Some(word.into()))
        }
        Some(value @ Value::Object(_)) => {
            let mut choice = Fields::of("tool_choice", value)?;
            let kind = choice.text("type")?;
            let chosen = match kind.as_deref() {
                Some("function" | "custom") => {
                    let space = choice.text("namespace")?;
                    let name = known_as(space.as_deref(), &choice.need("name")?);
                    json!({ "type": "function", "function": { "name": name } })
                }
                Some("allowed_tools") => allowed(&mut choice, offer)?,
                _ => return Err(wrong()),
            };
            choice.end()?;
            Ok(Some(chosen))
        }
        Some(_) => Err(wrong()),
    }
}

fn allowed(choice: &mut Fields, offer: &mut Offer) -> Result<Value, Problem> {
    let mode = choice.need("mode")?;
    if !["auto", "required"].contains(&mode.as_str()) {
        return Err(Problem::invalid(Some(&choice.name("mode")), "must be auto or required"));
    }
    let named = choice.list("tools")?.unwrap_or_default();
    let known = |tool: &Value| Some(known_as(tool["namespace"].as_str(), tool["name"].as_str()?));
    offer.only = Some(named.iter().filter_map(known).collect());
    Ok(mode.into())
}
