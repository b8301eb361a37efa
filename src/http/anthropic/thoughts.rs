//! What an answer shows of its thoughts.

/// What an answer shows of its thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnthropicThoughts {
    /// Nothing.
    Hidden,
    /// What their provider signed, so that they can be sent back, and not their text.
    Sealed,
    /// All.
    Shown,
}
