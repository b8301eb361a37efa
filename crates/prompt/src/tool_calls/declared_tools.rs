//! What the reading of calls must know of the tools that a request declares.

use super::coder::StringParams;
use super::tool_names::ToolNames;

/// The declared tools, as far as a family's calls need them.
#[derive(Debug, Clone, Default)]
pub(super) struct DeclaredTools {
    pub(super) names: ToolNames,
    /// Which parameters are texts, whatever they look like.
    pub(super) string_params: StringParams,
}
