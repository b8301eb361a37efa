//! What the words of a text say, looked up while it is read.

use stint_types::catalog::TextPriors;

use super::grams::LexemeBuffer;
use super::known_grams::KnownGrams;
use super::rarest_words::RarestWords;

/// The words of a text so far.
pub(super) struct TextWords<'p> {
    /// What the priors know of those that were looked up.
    pub known: KnownGrams<'p>,
    /// Those of them by which requests are told apart.
    pub rarest: RarestWords,
    buffer: LexemeBuffer,
}

impl<'p> TextWords<'p> {
    /// None so far; nothing where the priors cannot tell anything.
    pub(super) fn of(priors: &'p TextPriors) -> Option<TextWords<'p>> {
        let known = KnownGrams::of(priors).filter(|_| !priors.general().surface.is_empty())?;
        Some(TextWords { known, rarest: RarestWords::default(), buffer: LexemeBuffer::default() })
    }

    /// Adds a lexeme.
    #[inline(always)]
    pub(super) fn add(&mut self, lexeme: u64) {
        self.buffer.push(lexeme);
        if self.buffer.is_full() {
            self.look_up();
        }
    }

    /// Looks up what was added since it was last done, which is due at the end of the text.
    #[inline(never)]
    pub(super) fn look_up(&mut self) {
        self.buffer.show(|batch| {
            if batch.are_lexemes {
                self.known.add(batch.grams, |lexeme| self.rarest.add(lexeme));
            } else {
                self.known.add(batch.grams, |_| ());
            }
        });
    }

    /// How many lexemes there are.
    pub(super) fn lexemes(&self) -> usize {
        self.buffer.count()
    }
}
