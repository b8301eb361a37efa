//! What the reading of calls must know of the tools that a request declares.

use std::collections::BTreeSet;

use stint_types::chat::Tool;

use super::coder::StringParams;

/// The declared tools, as far as a family's calls need them.
#[derive(Debug, Clone, Default)]
pub(super) struct DeclaredTools {
    /// Nothing where no tools are known: any name may be one then.
    names: Option<BTreeSet<String>>,
    /// Which parameters are texts, whatever they look like.
    pub(super) string_params: StringParams,
}

impl DeclaredTools {
    /// With their names.
    pub(super) fn named(tools: &[Tool]) -> DeclaredTools {
        let names = tools.iter().map(|tool| tool.name.clone()).collect();
        DeclaredTools { names: Some(names), ..DeclaredTools::default() }
    }

    /// With the parameters that are texts.
    pub(super) fn with_string_params(tools: &[Tool]) -> DeclaredTools {
        DeclaredTools { string_params: StringParams::of(tools), ..DeclaredTools::default() }
    }

    /// Whether a tool may have this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }

    /// Whether the name of a tool may begin so.
    pub(super) fn has_beginning(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.iter().any(|known| known.starts_with(name)))
    }
}
