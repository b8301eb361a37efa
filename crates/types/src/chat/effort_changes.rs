//! How deep a model is to think, where a caller changes it in the middle of a conversation.

/// What a caller says of it, in its words. Where it is all one, nothing is here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EffortChanges {
    /// What it says of the whole conversation, which it goes on saying in every request.
    pub whole: Option<String>,
    /// What it says from some place on, in the order of the places.
    pub changes: Vec<EffortChange>,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffortChange {
    /// How many messages stand before it.
    pub after: usize,
    /// The word from there on.
    pub word: String,
}

impl EffortChanges {
    /// The word that holds at the end.
    pub fn last(&self) -> Option<&str> {
        let last = self.changes.last().map(|change| &change.word);
        last.or(self.whole.as_ref()).map(String::as_str)
    }
}
