//! Which tools an answer may call, written into the request's own fields.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

use stint_types::chat::Request;

use super::additions::{self, AddedWords};

/// Which tools an answer may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AllowedTools {
    /// All but these.
    Without(Vec<Arc<str>>),
    /// None. They stay declared, so that what a provider has cached of the prompt goes on holding.
    None,
    /// None, since what an agent may take is used up: where its provider takes that, it is told so at the end of the prompt
    /// alone.
    UsedUp,
}

/// True if the caller wants no tool called.
pub(super) fn is_none(request: &Request) -> bool {
    request.tool_choice.as_ref().is_some_and(|choice| choice == "none")
}

/// The names of the tools that may be called, where the caller lists them.
pub(super) fn listed_names(request: &Request) -> Option<HashSet<&str>> {
    listed(request).map(|(_, names)| names.collect())
}

/// The mode of the caller's list of tools that may be called, and their names, where it has one.
fn listed(request: &Request) -> Option<(&str, impl Iterator<Item = &str>)> {
    let list = request.tool_choice.as_ref()?.get("allowed_tools")?;
    let names = list["tools"].as_array()?.iter();
    Some((list["mode"].as_str()?, names.filter_map(|tool| tool.pointer("/function/name")?.as_str())))
}

/// The one tool that the caller wants called, where there is one.
pub(super) fn forced(request: &Request) -> Option<&str> {
    request.tool_choice.as_ref()?.pointer("/function/name")?.as_str()
}

/// True if the caller wants one call at a time.
pub(super) fn forbids_parallel_calls(request: &Request) -> bool {
    request.extra.get("parallel_tool_calls") == Some(&Value::Bool(false))
}

/// Changes what may be called. The list of tools stays as it is: it stands before all else in a prompt, so that a provider
/// that has cached or signed something behind another list takes it for another prompt.
pub(super) fn apply(choice: &AllowedTools, request: &mut Request) {
    match choice {
        AllowedTools::None => request.tool_choice = Some(json!("none")),
        AllowedTools::UsedUp => {
            request.withheld_tools = declared(request);
            let mode = listed(request).map(|(mode, _)| json!(mode));
            let asked = request.tool_choice.replace(json!("none"));
            request.asked_tool_choice = mode.or(asked);
        }
        AllowedTools::Without(withheld) => {
            let choice = listed(request).map(|(mode, _)| among_listed(request, withheld, mode));
            request.tool_choice = choice.or(request.tool_choice.take());
            request.withheld_tools.clone_from(withheld);
        }
    }
}

/// What is said in place of a list of the tools that may be called: whether one must be. The others are withheld, which each
/// upstream is told in the form that it has.
fn among_listed(request: &Request, withheld: &[Arc<str>], mode: &str) -> Value {
    let withheld: HashSet<&str> = withheld.iter().map(|name| &**name).collect();
    let is_left = |name: &&str| !withheld.contains(name);
    let names = request.tools.iter().map(|tool| tool.name.as_str());
    match (names.filter(is_left).collect::<Vec<_>>().as_slice(), mode) {
        ([], _) => json!("none"),
        ([only], "required") => json!({"type": "function", "function": {"name": only}}),
        (_, mode) => json!(mode),
    }
}

/// The same request for a model that called tools although it must not, with something added at its end. The tools stay
/// declared, and none may be called.
pub(super) fn without_calls(request: &Request, words: Option<&AddedWords>) -> Request {
    let mut request = request.clone();
    if !request.tools.is_empty() {
        request.tool_choice = Some(json!("none"));
        (request.withheld_tools, request.asked_tool_choice) = (Vec::new(), None);
    }
    if let Some(words) = words {
        additions::append_last(words, &mut request.messages);
    }
    request
}

/// The names of the tools.
fn declared(request: &Request) -> Vec<Arc<str>> {
    request.tools.iter().map(|tool| tool.name.as_str().into()).collect()
}
