//! The names of the tools that a request declares.

use std::collections::BTreeSet;

use stint_types::chat::Tool;

/// The names of declared tools. Any name may be one where no tools are known.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolNames(Option<BTreeSet<String>>);

impl ToolNames {
    pub(super) fn of(tools: &[Tool]) -> ToolNames {
        ToolNames(Some(tools.iter().map(|tool| tool.name.clone()).collect()))
    }

    /// Whether a tool may have this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.contains(name))
    }

    /// Whether the name of a tool may begin so.
    pub(super) fn has_beginning(&self, name: &str) -> bool {
        self.0.as_ref().is_none_or(|names| names.iter().any(|known| known.starts_with(name)))
    }
}
