//! The priority of requests that wait.

/// Who goes first where requests wait for a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody waits for the answer.
    #[default]
    Interactive,
    /// Nobody does: it goes when nothing interactive waits, and is the first to be refused.
    Batch,
}

impl Priority {
    /// The word in configuration and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Priority::Interactive => "interactive",
            Priority::Batch => "batch",
        }
    }

    /// All of them.
    pub const ALL: [Priority; 2] = [Priority::Interactive, Priority::Batch];

    /// The one with that word.
    pub fn named(word: &str) -> Option<Priority> {
        Priority::ALL.into_iter().find(|known| known.as_str() == word)
    }

    /// The lower one of the two: a request may give way to others, never push ahead of its key.
    #[must_use]
    pub fn lowered(self, other: Priority) -> Priority {
        self.max(other)
    }
}
