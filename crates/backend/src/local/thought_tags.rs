//! What stands around a local model's thoughts: tokens of their own, or text.

use stint_engine::{SpelledTags, ThinkingPhase};
use stint_prompt::{PromptError, PromptFormat};

/// The tags of a model that thinks.
#[derive(Debug, Clone)]
pub(super) struct ThoughtTags {
    /// The tokens that begin a thought.
    pub(super) start: Vec<u32>,
    /// Those that close it.
    pub(super) end: Vec<u32>,
    /// The tags themselves, where they are no tokens.
    spelled: Option<SpelledTags>,
}

impl ThoughtTags {
    /// The tags of a model that is spoken to so; none where it does not think.
    ///
    /// # Errors
    /// Where they cannot be tokenized.
    pub(super) fn of(format: &PromptFormat) -> Result<Option<ThoughtTags>, PromptError> {
        if let Some(tags) = format.tags() {
            return Ok(Some(ThoughtTags { start: vec![tags.start], end: vec![tags.end], spelled: None }));
        }
        let Some([start, end]) = format.spelled_tags() else { return Ok(None) };
        let texts = format.token_texts();
        let spelled = SpelledTags { start: start.as_str().into(), end: end.as_str().into(), texts };
        let (start, end) = (format.encode(start)?, format.encode(end)?);
        Ok(Some(ThoughtTags { start, end, spelled: Some(spelled) }))
    }

    /// A thought between these tags.
    pub(super) fn phase(&self, thought: ThinkingPhase) -> ThinkingPhase {
        match (&self.spelled, &self.start[..], &self.end[..]) {
            (None, [start], [end]) => ThinkingPhase { start: Some(*start), end: *end, ..thought },
            (spelled, ..) => {
                ThinkingPhase { start: None, end: u32::MAX, spelled: spelled.clone(), ..thought }
            }
        }
    }
}
