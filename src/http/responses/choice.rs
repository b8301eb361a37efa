//! `tool_choice`: whether a tool must be called, and which may be.
//!
//! A choice names tools as their caller does. What models know them by is found when all that is offered is known: items
//! of the conversation may offer more than the request itself.

use serde_json::{Value, json};

use crate::http::error::ApiError;
use crate::http::fields::Fields;

use super::tool_set::ToolSet;
use super::tools::{SEARCH, is_dispensable};

/// What a caller says of it.
#[derive(Debug)]
pub(super) enum ResponsesToolChoice {
    /// `auto`, `none` or `required`.
    Word(String),
    /// This one must be called.
    One(ToolReference),
    /// No other than these may be called, and one of them must be where the mode says so.
    Allowed { mode: String, path: String, tools: Vec<ToolReference> },
}

/// A tool, and the member that names it.
#[derive(Debug)]
pub(super) struct ToolReference {
    path: String,
    namespace: Option<String>,
    name: String,
    /// True for the search for tools: there is one, and its kind is its name.
    is_search: bool,
}

/// Reads it.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(fields: &mut Fields) -> Result<Option<ResponsesToolChoice>, ApiError> {
    let must = "must be auto, none, required, or one of the request's own tools";
    let wrong = || ApiError::invalid(Some("tool_choice"), must);
    match fields.take("tool_choice") {
        None => Ok(None),
        Some(Value::String(word)) if ["auto", "none", "required"].contains(&word.as_str()) => {
            Ok(Some(ResponsesToolChoice::Word(word)))
        }
        Some(value @ Value::Object(_)) => {
            let mut choice = Fields::from_value("tool_choice", value)?;
            let read = match choice.text("type")?.as_deref() {
                Some("allowed_tools") => allowed(&mut choice)?,
                kind => ResponsesToolChoice::One(ToolReference::read(&mut choice, kind)?.ok_or_else(wrong)?),
            };
            choice.finish()?;
            Ok(Some(read))
        }
        Some(_) => Err(wrong()),
    }
}

fn allowed(choice: &mut Fields) -> Result<ResponsesToolChoice, ApiError> {
    let mode = choice.require("mode")?;
    if !["auto", "required"].contains(&mode.as_str()) {
        return Err(ApiError::invalid(Some(&choice.full_name("mode")), "must be auto or required"));
    }
    let path = choice.full_name("tools");
    let mut tools = Vec::new();
    for (at, tool) in choice.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let mut tool = Fields::from_value(format!("{path}[{at}]"), tool)?;
        let kind = tool.text("type")?;
        if kind.as_deref().is_some_and(is_dispensable) {
            continue;
        }
        let wrong =
            ApiError::invalid(Some(&tool.full_name("type")), "must be function, custom or tool_search");
        tools.push(ToolReference::read(&mut tool, kind.as_deref())?.ok_or(wrong)?);
    }
    Ok(ResponsesToolChoice::Allowed { mode, path, tools })
}

impl ResponsesToolChoice {
    /// The same in the form of chat completions, with the names that models know. What is offered stays as it is: another list
    /// of tools is another prompt for a provider's cache.
    ///
    /// # Errors
    /// 400 where it names a tool that is not offered, or allows none.
    pub(super) fn resolve(self, offer: &ToolSet) -> Result<Value, ApiError> {
        match self {
            ResponsesToolChoice::Word(word) if word == "required" && offer.names().is_empty() => {
                let why = "is required, and no tools are declared; send tools";
                Err(ApiError::invalid(Some("tool_choice"), why))
            }
            ResponsesToolChoice::Word(word) => Ok(word.into()),
            ResponsesToolChoice::One(tool) => {
                let name = tool.flat_name(offer)?;
                Ok(json!({ "type": "function", "function": { "name": name } }))
            }
            ResponsesToolChoice::Allowed { mode, path, mut tools } => {
                // A provider's search is left out of the offer, so it is left out here.
                tools.retain(|tool| !tool.is_search || tool.flat_name(offer).is_ok());
                if tools.is_empty() {
                    return Err(ApiError::invalid(
                        Some(&path),
                        "must name at least one of the request's own tools",
                    ));
                }
                let allow = |tool: &ToolReference| {
                    tool.flat_name(offer).map(|name| json!({"type": "function", "function": {"name": name}}))
                };
                let tools = tools.iter().map(allow).collect::<Result<Vec<Value>, _>>()?;
                Ok(json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}))
            }
        }
    }
}

impl ToolReference {
    /// None where it is no kind of tool that can be chosen.
    fn read(fields: &mut Fields, kind: Option<&str>) -> Result<Option<ToolReference>, ApiError> {
        Ok(match kind {
            Some("function" | "custom") => Some(ToolReference {
                path: fields.full_name("name"),
                namespace: fields.text("namespace")?,
                name: fields.require("name")?,
                is_search: false,
            }),
            Some(SEARCH) => Some(ToolReference {
                path: fields.full_name("type"),
                namespace: None,
                name: SEARCH.to_owned(),
                is_search: true,
            }),
            _ => None,
        })
    }

    fn flat_name(&self, offer: &ToolSet) -> Result<String, ApiError> {
        let found = offer.find(self.namespace.as_deref(), &self.name);
        found.map(str::to_owned).map_err(|why| ApiError::invalid(Some(&self.path), why))
    }
}
