//! The tools of a list: those of a request, or of an item in it.
//!
//! A custom tool takes plain text. Backends know functions, so it is told to them as one with a text called `input`; what
//! its grammar is they are told in words, and nobody holds them to it. So it is with a search for tools that the caller
//! makes. A search that a provider would make is left out: here all tools are told at once.

use serde_json::{Map, Value, json};

use crate::chat::Tool;
use crate::http::error::Problem;
use crate::http::fields::Fields;

use super::arguments::INPUT;
use super::offer::{Form, Kind, Offer, known_as};

/// What a search for tools is called.
pub(super) const SEARCH: &str = "tool_search";

/// What agents offer by themselves beside their own tools, and do without.
const DISPENSABLE: &[&str] = &["web_search", "web_search_2025_08_26"];

/// The tools of a list.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(fields: &mut Fields) -> Result<Offer, Problem> {
    let path = fields.name("tools");
    let mut offer = Offer::default();
    for (at, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        one(&format!("{path}[{at}]"), tool, &mut offer)?;
    }
    Ok(offer)
}

fn one(path: &str, tool: Value, offer: &mut Offer) -> Result<(), Problem> {
    if is_left_out(&tool) {
        offer.left_out.get_or_insert_with(|| format!("{path}.type"));
        return if tool["type"] == SEARCH { hosted(path, tool) } else { Ok(()) };
    }
    if tool["type"] == "namespace" {
        return namespace(path, tool, offer);
    }
    let (kind, tool) = declared(path, tool, None)?;
    offer.put(path, kind, tool)
}

/// A search that a provider would make: it is left out, and what is wrong with it is said all the same.
fn hosted(path: &str, tool: Value) -> Result<(), Problem> {
    let mut fields = Fields::of(path, tool)?;
    fields.text("type")?;
    if !matches!(fields.text("execution")?.as_deref(), None | Some("server")) {
        return Err(Problem::invalid(Some(&fields.name("execution")), "must be client or server"));
    }
    search(&mut fields)?;
    fields.end()
}

/// The tools of a namespace. What it says of itself stands before what its first tool does.
fn namespace(path: &str, tool: Value, offer: &mut Offer) -> Result<(), Problem> {
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
    tool["type"].as_str().is_some_and(is_dispensable)
        || (tool["type"] == SEARCH && tool["execution"] != "client")
}

/// True for a provider's tool that agents do without.
pub(super) fn is_dispensable(kind: &str) -> bool {
    DISPENSABLE.contains(&kind)
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
