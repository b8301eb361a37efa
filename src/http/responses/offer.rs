//! What a caller offers its model to call, and what the calls are told as.
//!
//! Models know functions with one name each. Here tools may stand in namespaces, take plain text, or find other tools: what a
//! model calls by the name that it knows is told as a call of the tool that was meant.

use std::collections::{BTreeMap, BTreeSet};

use crate::chat::{Tool, short_name};
use crate::http::error::Problem;

/// OpenAI's word for the tools that are in no namespace.
const PLAIN: &str = "functions";

/// What calls of a tool look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// With arguments.
    #[default]
    Function,
    /// With plain text.
    Custom,
    /// As a search for tools, which the caller makes.
    Search,
}

/// What a call of a tool is told as.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) form: Form,
    /// The namespace that it stands in.
    pub(super) space: Option<String>,
    /// Its name there.
    pub(super) name: String,
}

impl Kind {
    /// True where both are one tool, and calls of it look alike.
    fn is_same(&self, other: &Kind) -> bool {
        let spaces = [self, other].map(|kind| within(kind.space.as_deref()));
        self.form == other.form && self.name == other.name && spaces[0] == spaces[1]
    }
}

/// The tools by the names that models know them by.
pub(super) type Kinds = BTreeMap<String, Kind>;

/// The tools of a request, from wherever they come.
#[derive(Debug, Clone, Default)]
pub(super) struct Offer {
    tools: Vec<Tool>,
    places: BTreeMap<String, usize>,
    pub(super) kinds: Kinds,
    /// The only ones that may be called, where the caller says so.
    pub(super) only: Option<BTreeSet<String>>,
    /// Where the first tool stands that was left out since it runs at a provider.
    pub(super) left_out: Option<String>,
}

impl Offer {
    /// The tools that there are; none where more may yet be found.
    pub(super) fn listed(&self) -> &[Tool] {
        let finds_more = self.kinds.values().any(|kind| kind.form == Form::Search);
        if finds_more { &[] } else { &self.tools }
    }

    /// One more tool of a list. The same again takes the earlier one's place.
    ///
    /// # Errors
    /// 400 where a model could not tell it from another.
    pub(super) fn put(&mut self, path: &str, kind: Kind, tool: Tool) -> Result<(), Problem> {
        if self.kinds.get(&tool.name).is_some_and(|known| !known.is_same(&kind)) {
            let why =
                format!("is known to models as {}, and so is another tool; rename one of them", tool.name);
            return Err(Problem::invalid(Some(&format!("{path}.name")), why));
        }
        self.set(kind, tool);
        Ok(())
    }

    /// These too, which were declared later: they take the places of those that models know by the same names. What a
    /// conversation once declared is no reason to refuse what it declares now.
    pub(super) fn renew(&mut self, later: Offer) {
        self.left_out = self.left_out.take().or_else(|| later.left_out.clone());
        later.each(|kind, tool| self.set(kind, tool));
    }

    /// These too, which were declared earlier: they come behind, and only where models know no other by the same name.
    pub(super) fn join(&mut self, earlier: Offer) {
        self.left_out = self.left_out.take().or_else(|| earlier.left_out.clone());
        earlier.each(|kind, tool| {
            if !self.kinds.contains_key(&tool.name) {
                self.set(kind, tool);
            }
        });
    }

    fn set(&mut self, kind: Kind, tool: Tool) {
        self.kinds.insert(tool.name.clone(), kind);
        match self.places.get(&tool.name) {
            Some(&at) => self.tools[at] = tool,
            None => {
                self.places.insert(tool.name.clone(), self.tools.len());
                self.tools.push(tool);
            }
        }
    }

    fn each(mut self, mut take: impl FnMut(Kind, Tool)) {
        for tool in self.tools {
            take(self.kinds.remove(&tool.name).unwrap_or_default(), tool);
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
        if let Some((known_as, _)) = self.kinds.get_key_value(&known_as(space, name)) {
            return Ok(known_as);
        }
        let mut named = self.kinds.iter().filter(|(_, kind)| space.is_none() && kind.name == name);
        match (named.next(), named.next()) {
            (Some((known_as, _)), None) => Ok(known_as),
            (Some(_), Some(_)) => Err("is the name of tools in several namespaces; say which with namespace"),
            (None, _) => Err("names no tool that is offered; name one of the request's own"),
        }
    }

    /// What the model is told of.
    ///
    /// # Errors
    /// 400 where all that is offered runs at a provider: who offers nothing else wants that.
    pub(super) fn tools(&mut self) -> Result<Vec<Tool>, Problem> {
        if let Some(path) = self.left_out.as_ref().filter(|_| self.tools.is_empty()) {
            let why =
                "runs at a provider, which is not offered: it is left out only beside tools of your own";
            return Err(Problem::invalid(Some(path), why));
        }
        let mut tools = std::mem::take(&mut self.tools);
        if let Some(only) = &self.only {
            tools.retain(|tool| only.contains(&tool.name));
        }
        Ok(tools)
    }
}

/// The name that models know a tool by.
pub(super) fn known_as(space: Option<&str>, name: &str) -> String {
    match within(space) {
        None => short_name(name).into(),
        Some(space) => short_name(&format!("{}__{name}", space.trim_end_matches('_'))).into(),
    }
}

/// The namespace, unless it is that of the tools that are in none.
fn within(space: Option<&str>) -> Option<&str> {
    space.filter(|space| !["", PLAIN].contains(space))
}
