//! Whether a tool must be called, and which may be.
//!
//! A choice names tools as their caller does. What models know them by is found when all that is offered is known: items
//! of the conversation may offer more than the request itself.

use serde_json::{Value, json};

use crate::http::error::Problem;
use crate::http::fields::Fields;

use super::offer::Offer;
use super::tools::{SEARCH, is_dispensable};

/// What a caller says of it.
#[derive(Debug)]
pub(super) enum Choice {
    /// `auto`, `none` or `required`.
    Word(String),
    /// This one must be called.
    One(Named),
    /// No other than these may be called, and one of them must be where the mode says so.
    Allowed { mode: String, path: String, tools: Vec<Named> },
}

/// A tool, and the member that names it.
#[derive(Debug)]
pub(super) struct Named {
    path: String,
    space: Option<String>,
    name: String,
    /// True for the search for tools: there is one, and its kind is its name.
    is_search: bool,
}

/// Reads it.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read(fields: &mut Fields) -> Result<Option<Choice>, Problem> {
    let must = "must be auto, none, required, or one of the request's own tools";
    let wrong = || Problem::invalid(Some("tool_choice"), must);
    match fields.take("tool_choice") {
        None => Ok(None),
        Some(Value::String(word)) if ["auto", "none", "required"].contains(&word.as_str()) => {
            Ok(Some(Choice::Word(word)))
        }
        Some(value @ Value::Object(_)) => {
            let mut choice = Fields::of("tool_choice", value)?;
            let read = match choice.text("type")?.as_deref() {
                Some("allowed_tools") => allowed(&mut choice)?,
                kind => Choice::One(Named::read(&mut choice, kind)?.ok_or_else(wrong)?),
            };
            choice.end()?;
            Ok(Some(read))
        }
        Some(_) => Err(wrong()),
    }
}

fn allowed(choice: &mut Fields) -> Result<Choice, Problem> {
    let mode = choice.need("mode")?;
    if !["auto", "required"].contains(&mode.as_str()) {
        return Err(Problem::invalid(Some(&choice.name("mode")), "must be auto or required"));
    }
    let path = choice.name("tools");
    let mut tools = Vec::new();
    for (at, tool) in choice.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let mut tool = Fields::of(&format!("{path}[{at}]"), tool)?;
        let kind = tool.text("type")?;
        if kind.as_deref().is_some_and(is_dispensable) {
            continue;
        }
        let wrong = Problem::invalid(Some(&tool.name("type")), "must be function, custom or tool_search");
        tools.push(Named::read(&mut tool, kind.as_deref())?.ok_or(wrong)?);
    }
    Ok(Choice::Allowed { mode, path, tools })
}

impl Choice {
    /// What models are told of it; the offer takes in which may be called.
    ///
    /// # Errors
    /// 400 where it names a tool that is not offered, or allows none.
    pub(super) fn of(self, offer: &mut Offer) -> Result<Value, Problem> {
        match self {
            Choice::Word(word) => Ok(word.into()),
            Choice::One(tool) => {
                let name = tool.known_as(offer)?;
                Ok(json!({ "type": "function", "function": { "name": name } }))
            }
            Choice::Allowed { mode, path, mut tools } => {
                // A provider's search is left out of the offer, so it is left out here.
                tools.retain(|tool| !tool.is_search || tool.known_as(offer).is_ok());
                if tools.is_empty() {
                    return Err(Problem::invalid(
                        Some(&path),
                        "must name at least one of the request's own tools",
                    ));
                }
                offer.only = Some(tools.iter().map(|tool| tool.known_as(offer)).collect::<Result<_, _>>()?);
                Ok(mode.into())
            }
        }
    }
}

impl Named {
    /// None where it is no kind of tool that can be chosen.
    fn read(fields: &mut Fields, kind: Option<&str>) -> Result<Option<Named>, Problem> {
        Ok(match kind {
            Some("function" | "custom") => Some(Named {
                path: fields.name("name"),
                space: fields.text("namespace")?,
                name: fields.need("name")?,
                is_search: false,
            }),
            Some(SEARCH) => Some(Named {
                path: fields.name("type"),
                space: None,
                name: SEARCH.to_owned(),
                is_search: true,
            }),
            _ => None,
        })
    }

    fn known_as(&self, offer: &Offer) -> Result<String, Problem> {
        let found = offer.find(self.space.as_deref(), &self.name);
        found.map(str::to_owned).map_err(|why| Problem::invalid(Some(&self.path), why))
    }
}
