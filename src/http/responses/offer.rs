//! What a caller offers its model to call, and what the calls are told as.
//!
//! Models know functions with one name each. Here tools may stand in namespaces, take plain text, or find other tools: what a
//! model calls by the name that it knows is told as a call of the tool that was meant.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use crate::chat::Tool;
use crate::http::error::Problem;

/// OpenAI's word for the tools that are in no namespace.
const PLAIN: &str = "functions";

/// The longest name that every provider takes.
const NAME_MAX: usize = 64;

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
    /// One more tool. The same again takes the earlier one's place.
    ///
    /// # Errors
    /// 400 where a model could not tell it from another.
    pub(super) fn put(&mut self, path: &str, kind: Kind, tool: Tool) -> Result<(), Problem> {
        let known_as = tool.name.clone();
        let Some(&at) = self.places.get(&known_as) else {
            self.places.insert(known_as.clone(), self.tools.len());
            self.kinds.insert(known_as, kind);
            self.tools.push(tool);
            return Ok(());
        };
        if self.kinds.get(&known_as) != Some(&kind) {
            let why = format!("is known to models as {known_as}, and so is another tool; rename one of them");
            return Err(Problem::invalid(Some(&format!("{path}.name")), why));
        }
        self.tools[at] = tool;
        Ok(())
    }

    /// These too.
    ///
    /// # Errors
    /// 400 where a model could not tell one from another.
    pub(super) fn join(&mut self, more: Offer) -> Result<(), Problem> {
        for tool in more.tools {
            let kind = more.kinds.get(&tool.name).cloned().unwrap_or_default();
            self.put("input", kind, tool)?;
        }
        self.left_out = self.left_out.take().or(more.left_out);
        Ok(())
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
    let Some(space) = space.filter(|space| !["", PLAIN].contains(space)) else { return name.to_owned() };
    let joined = format!("{}__{name}", space.trim_end_matches('_'));
    if joined.len() <= NAME_MAX {
        return joined;
    }
    let hash = Sha256::digest(&joined);
    let begins: String = joined.chars().take(NAME_MAX - 9).collect();
    format!("{begins}_{:08x}", u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]))
}
