//! `Tools`: the configured price of each tool, and how its calls are counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use stint_types::units::{Count, Money};

use super::arguments;

/// What is known about one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolTerms {
    /// What one call costs, or one element of the list that is counted.
    pub price: Money,
    /// The argument whose elements are counted in place of calls: a search with four queries is four.
    pub counts: Option<Arc<str>>,
}

/// Tools by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools(pub BTreeMap<Arc<str>, ToolTerms>);

impl Tools {
    /// The argument whose elements are counted, where they are.
    pub fn list(&self, tool: &str) -> Option<&str> {
        self.0.get(tool)?.counts.as_deref()
    }

    /// What one call costs.
    pub fn price(&self, tool: &str) -> Money {
        self.0.get(tool).map_or(Money::ZERO, |terms| terms.price)
    }

    /// Those that cost something.
    pub fn priced(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().filter(|(_, terms)| terms.price > Money::ZERO).map(|(tool, _)| tool)
    }

    /// For how many calls a call counts: one, where its list is absent, empty, or cannot be read.
    pub fn count(&self, tool: &str, arguments: &str) -> Count {
        self.list(tool).and_then(|list| arguments::elements(arguments, list)).unwrap_or(Count::ONE)
    }
}
