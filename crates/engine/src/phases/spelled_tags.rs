//! Tags of thinking that are no tokens of the vocabulary: they are read from what the tokens of a generation spell.

use std::fmt;
use std::sync::Arc;

/// A thought may begin behind so much white space, in bytes.
const SPACE_MAX: usize = 256;

/// The tags of a model that has no tokens for them.
#[derive(Clone, PartialEq, Eq)]
pub struct SpelledTags {
    /// What a thought begins with.
    pub start: Arc<str>,
    /// What closes it.
    pub end: Arc<str>,
    /// What each token spells, by their ids.
    pub texts: Arc<[Box<[u8]>]>,
}

impl fmt::Debug for SpelledTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpelledTags")
            .field("start", &self.start)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl SpelledTags {
    fn text_of(&self, id: u32) -> &[u8] {
        self.texts.get(id as usize).map_or(&[], |text| text)
    }
}

/// What a generation's first tokens may come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThoughtStart {
    /// They are the answer's.
    Absent,
    /// A thought may still begin.
    Possible,
    /// The thought has begun.
    Complete,
}

/// The text of a generation, as far as a tag may begin in it.
#[derive(Debug, Clone, Default)]
pub(super) struct TagSearch {
    text: Vec<u8>,
}

impl TagSearch {
    /// Takes a token of which it is not known yet whether a thought begins with it.
    pub(super) fn begin(&mut self, tags: &SpelledTags, id: u32) -> ThoughtStart {
        self.text.extend_from_slice(tags.text_of(id));
        let (start, text) = (tags.start.as_bytes(), self.text.trim_ascii_start());
        if self.text.len() - text.len() > SPACE_MAX {
            return ThoughtStart::Absent;
        }
        if let Some(rest) = text.strip_prefix(start) {
            self.text = rest.to_vec();
            return ThoughtStart::Complete;
        }
        if start.starts_with(text) { ThoughtStart::Possible } else { ThoughtStart::Absent }
    }

    /// Takes a token of a thought; true if the thought is closed by it.
    pub(super) fn close(&mut self, tags: &SpelledTags, id: u32) -> bool {
        self.text.extend_from_slice(tags.text_of(id));
        let end = tags.end.as_bytes();
        let is_closed = self.text.windows(end.len().max(1)).any(|part| part == end);
        let passed = self.text.len().saturating_sub(end.len().saturating_sub(1));
        self.text.drain(..passed);
        is_closed
    }
}
