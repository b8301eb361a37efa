//! What the words of a text say, looked up while it is read.

use std::cell::Cell;

use stint_types::catalog::TextPriors;

use super::grams::LexemeBuffer;
use super::known_grams::KnownGrams;
use super::rarest_words::RarestWords;

/// The words of a text so far.
pub(super) struct TextWords<'p> {
    /// What the priors know of those that were looked up.
    pub known: KnownGrams<'p>,
    /// Those of them by which requests are told apart.
    pub rarest: Box<RarestWords>,
    buffer: LexemeBuffer,
}

/// The memory of a text that was read, for the next one.
#[derive(Default)]
struct SpareMemory {
    met: Vec<u64>,
    rarest: Box<RarestWords>,
}

thread_local! {
    /// To ask the allocator for so much takes longer than to read most texts.
    static SPARE: Cell<Option<SpareMemory>> = const { Cell::new(None) };
}

impl<'p> TextWords<'p> {
    /// None so far; nothing where the priors cannot tell anything.
    pub(super) fn of(priors: &'p TextPriors) -> Option<TextWords<'p>> {
        if priors.general().surface.is_empty() {
            return None;
        }
        let SpareMemory { met, mut rarest } = SPARE.take().unwrap_or_default();
        let known = KnownGrams::with_memory(priors, met)?;
        rarest.clear();
        Some(TextWords { known, rarest, buffer: LexemeBuffer::default() })
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

    /// Leaves its memory to the next text that this thread reads.
    pub(super) fn leave_memory(self) {
        SPARE.set(Some(SpareMemory { met: self.known.into_memory(), rarest: self.rarest }));
    }
}
