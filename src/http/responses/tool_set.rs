//! What a caller offers its model to call, and what the calls are shown as.
//!
//! Models know functions with one name each. Here tools may stand in namespaces, take plain text, or find other tools: what a
//! model calls by the name that it knows is shown as a call of the tool that was meant.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::http::error::ApiError;
use stint_types::chat::{Tool, short_tool_name};

/// OpenAI's word for the tools that are in no namespace.
const PLAIN: &str = "functions";

/// What calls of a tool look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum ToolCallForm {
    /// With arguments.
    #[default]
    Function,
    /// With plain text.
    Custom,
    /// As a search for tools, which the caller makes.
    Search,
}

/// What a call of a tool is shown as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ToolIdentity {
    pub(super) form: ToolCallForm,
    /// The namespace that it stands in.
    pub(super) namespace: Option<String>,
    /// Its name there.
    pub(super) name: String,
}

impl ToolIdentity {
    /// True if both are one tool, and calls of it look alike.
    fn is_same(&self, other: &ToolIdentity) -> bool {
        let spaces = [self, other].map(|kind| named_namespace(kind.namespace.as_deref()));
        self.form == other.form && self.name == other.name && spaces[0] == spaces[1]
    }
}

/// The tools by the names that models know them by.
pub(super) type ToolIdentities = BTreeMap<String, ToolIdentity>;

/// The tools of a request, from wherever they come.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolSet {
    tools: Vec<Tool>,
    places: BTreeMap<String, usize>,
    pub(super) identities: ToolIdentities,
    /// The names that models know tools by, by the names that their namespaces know them by.
    known_as: BTreeMap<String, BTreeSet<String>>,
    /// Those that are left out.
    pub(super) omitted: OmittedTools,
}

/// The tools that are left out since they run at a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OmittedTools {
    /// Where the first of them stands.
    path: Option<String>,
    kinds: BTreeSet<String>,
}

impl OmittedTools {
    /// This one is left out.
    pub(super) fn note(&mut self, path: &str, kind: &Value) {
        self.path.get_or_insert_with(|| path.to_owned());
        self.kinds.extend(kind.as_str().map(str::to_owned));
    }

    /// Their kinds, in alphabetic order.
    pub(super) fn kinds(&self) -> impl Iterator<Item = &str> {
        self.kinds.iter().map(String::as_str)
    }

    fn join(&mut self, other: &OmittedTools) {
        self.path = self.path.take().or_else(|| other.path.clone());
        self.kinds.extend(other.kinds.iter().cloned());
    }
}

impl ToolSet {
    /// The tools that there are; none where more may yet be found.
    pub(super) fn listed(&self) -> &[Tool] {
        let finds_more = self.identities.values().any(|kind| kind.form == ToolCallForm::Search);
        if finds_more { &[] } else { &self.tools }
    }

    /// One more tool of a list. The same again takes the earlier one's place.
    ///
    /// # Errors
    /// 400 where a model could not tell it from another.
    pub(super) fn insert(&mut self, path: &str, kind: ToolIdentity, tool: Tool) -> Result<(), ApiError> {
        if self.identities.get(&tool.name).is_some_and(|known| !known.is_same(&kind)) {
            let why =
                format!("is known to models as {}, and so is another tool; rename one of them", tool.name);
            return Err(ApiError::invalid(Some(&format!("{path}.name")), why));
        }
        self.set(kind, tool);
        Ok(())
    }

    /// These too, which were declared later: they take the places of those that models know by the same names. What a
    /// conversation once declared is no reason to refuse what it declares now.
    pub(super) fn override_with(&mut self, later: ToolSet) {
        self.omitted.join(&later.omitted);
        later.each(|kind, tool| self.set(kind, tool));
    }

    /// These too, which were declared earlier: they come behind, and only where models know no other by the same name.
    pub(super) fn merge_earlier(&mut self, earlier: ToolSet) {
        self.omitted.join(&earlier.omitted);
        earlier.each(|kind, tool| {
            if !self.identities.contains_key(&tool.name) {
                self.set(kind, tool);
            }
        });
    }

    fn set(&mut self, kind: ToolIdentity, tool: Tool) {
        let names = self.known_as.entry(kind.name.clone()).or_default();
        names.insert(tool.name.clone());
        if let Some(before) = self.identities.insert(tool.name.clone(), kind)
            && self.identities.get(&tool.name).is_some_and(|now| now.name != before.name)
            && let Some(names) = self.known_as.get_mut(&before.name)
        {
            names.remove(&tool.name);
        }
        match self.places.get(&tool.name) {
            Some(&at) => self.tools[at] = tool,
            None => {
                self.places.insert(tool.name.clone(), self.tools.len());
                self.tools.push(tool);
            }
        }
    }

    fn each(mut self, mut take: impl FnMut(ToolIdentity, Tool)) {
        for tool in self.tools {
            take(self.identities.remove(&tool.name).unwrap_or_default(), tool);
        }
    }

    /// The names that models know its tools by.
    pub(super) fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// What models know a tool as that is named with its namespace, or without where no other has its name.
    ///
    /// # Errors
    /// Why it is none, in words.
    pub(super) fn find(&self, space: Option<&str>, name: &str) -> Result<&str, &'static str> {
        if let Some((known_as, _)) = self.identities.get_key_value(&flat_name(space, name)) {
            return Ok(known_as);
        }
        let mut named = self.known_as.get(name).filter(|_| space.is_none()).into_iter().flatten();
        match (named.next(), named.next()) {
            (Some(known_as), None) => Ok(known_as),
            (Some(_), Some(_)) => Err("is the name of tools in several namespaces; say which with namespace"),
            (None, _) => Err("names no tool that is offered; name one of the request's own"),
        }
    }

    /// The tools as the model gets them.
    ///
    /// # Errors
    /// 400 where all that is offered runs at a provider: who offers nothing else wants that.
    pub(super) fn tools(&mut self) -> Result<Vec<Tool>, ApiError> {
        if let Some(path) = self.omitted.path.as_ref().filter(|_| self.tools.is_empty()) {
            let kinds: Vec<&str> = self.omitted.kinds().collect();
            let why = format!(
                "is {}, which runs at a provider and is not offered: it is left out only beside tools of your own",
                kinds.join(", ")
            );
            return Err(ApiError::invalid(Some(path), why));
        }
        Ok(std::mem::take(&mut self.tools))
    }
}

/// The name that models know a tool by.
pub(super) fn flat_name(space: Option<&str>, name: &str) -> String {
    match named_namespace(space) {
        None => short_tool_name(name).into(),
        Some(space) => short_tool_name(&format!("{}__{name}", space.trim_end_matches('_'))).into(),
    }
}

/// The namespace, unless it is that of the tools that are in none.
fn named_namespace(space: Option<&str>) -> Option<&str> {
    space.filter(|space| !["", PLAIN].contains(space))
}
