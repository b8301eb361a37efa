//! Where the characters of a turn's text stand: phases and reasoning have their places by characters, and a turn may have thousands of
//! them.

/// The bytes at which the characters of a text begin.
#[derive(Debug)]
pub(super) struct LetterPlaces {
    starts: Vec<usize>,
    end: usize,
}

impl LetterPlaces {
    /// Those of this text, if they are asked for.
    pub(super) fn of(text: &str, is_needed: bool) -> LetterPlaces {
        let starts = if is_needed { text.char_indices().map(|(at, _)| at).collect() } else { Vec::new() };
        LetterPlaces { starts, end: text.len() }
    }

    /// The byte behind so many characters; the end of the text where it has no more.
    pub(super) fn byte(&self, letters: usize) -> usize {
        self.starts.get(letters).copied().unwrap_or(self.end)
    }
}
