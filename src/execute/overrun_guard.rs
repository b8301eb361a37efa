//! Detects upstreams that write more than their limit: a lower bound of what a call has written, compared with what it was
//! allowed.
//!
//! An upstream that ignores its limit may report wrong counts too. So the bound also uses the length of the text: a text of
//! so many characters has at least so many tokens, whatever the upstream reports. A long word may be one token, though: a caller may
//! ask for a text of nothing else.

use stint_backend::{Piece, TokenUsage};
use stint_types::units::Tokens;

/// A text has a token for so many of its characters at least.
const CHARACTERS_PER_TOKEN: u64 = 8;
/// What a character weighs.
const CHARACTER: u64 = 8;
/// What a Chinese, Japanese or Korean one does: a token has two of them at most, on average.
const IDEOGRAPH: u64 = 24;
/// Of a longer word, which may be one token with the blank before it, only the first letters weigh, and what it has beyond the longest
/// that tokenizers have tokens for.
const WORD_LETTERS: u64 = 7;
const WORD_MAX: u64 = 24;
/// What one more of the same does where tokenizers have tokens for long runs: blanks, and lines drawn with marks.
const REPEATED: u64 = 1;
/// What a provider signs of a thought may have so many bytes for each token of the limit, and so many beside.
const SIGNED_PER_TOKEN: u64 = 64;
const SIGNED_BESIDE: u64 = 1 << 20;

/// The least number of tokens that a text has. It grows piece by piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TokenLowerBound {
    sum: u64,
    last: Option<char>,
    /// How many letters the word has so far that it ends with.
    letters: u64,
}

/// Watches what one call writes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OverrunGuard {
    limit: Tokens,
    token_each: bool,
    thought: ObservedOutput,
    answer: ObservedOutput,
    /// The summary of a hidden thought.
    summary: TokenLowerBound,
    signed: u64,
    usage: TokenUsage,
}

/// What was written of a thought or an answer.
#[derive(Debug, Clone, Copy, Default)]
struct ObservedOutput {
    weight: TokenLowerBound,
    /// Pieces that had text.
    pieces: u64,
    /// Tokens that were reported one by one.
    counted: Tokens,
}

impl TokenLowerBound {
    pub(super) fn add(&mut self, text: &str) {
        if text.is_ascii() {
            self.add_ascii(text.as_bytes());
        } else {
            text.chars().for_each(|character| self.push(character));
        }
    }

    /// The same of plain letters, of which each weighs as much unless it is a mark that is repeated.
    fn add_ascii(&mut self, text: &[u8]) {
        let (Some(first), Some(last)) = (text.first(), text.last()) else { return };
        let before = self.last.and_then(|last| u8::try_from(last).ok());
        let begins_so = before.is_some_and(|before| is_repeat(before, *first));
        let repeats = u64::from(begins_so) + repeats(text);
        let unweighed: u64 =
            text.iter().map(|byte| u64::from(self.advance_word(byte.is_ascii_alphabetic()))).sum();
        let weight = CHARACTER * (text.len() as u64 - repeats - unweighed) + REPEATED * repeats;
        self.sum = self.sum.saturating_add(weight);
        self.last = Some(char::from(*last));
    }

    pub(super) fn tokens(self) -> Tokens {
        Tokens(self.sum / (CHARACTER * CHARACTERS_PER_TOKEN))
    }

    /// What was counted there counts here.
    pub(super) fn take_over(&mut self, other: TokenLowerBound) {
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many bytes of `text` may be added until there are surely more than so many tokens.
    pub(super) fn bytes_within(mut self, text: &str, most: Tokens) -> usize {
        let most = most.0.saturating_mul(CHARACTER * CHARACTERS_PER_TOKEN);
        // No character weighs more than this for each of its bytes.
        if self.sum.saturating_add(CHARACTER.saturating_mul(text.len() as u64)) <= most {
            return text.len();
        }
        let mut whole = self;
        whole.add(text);
        if whole.sum <= most {
            return text.len();
        }
        let beyond = |(_, character): &(usize, char)| {
            self.push(*character);
            self.sum > most
        };
        text.char_indices().find(beyond).map_or(text.len(), |(at, _)| at)
    }

    fn push(&mut self, character: char) {
        let repeats = self.last == Some(character) && !character.is_alphanumeric();
        self.last = Some(character);
        let weight = match character {
            _ if repeats => REPEATED,
            '\u{1100}'..='\u{11FF}' | '\u{2E80}'..='\u{D7FF}' | '\u{F900}'..='\u{FAFF}' => IDEOGRAPH,
            '\u{20000}'..='\u{3FFFF}' => IDEOGRAPH,
            _ => CHARACTER,
        };
        if !self.advance_word(weight == CHARACTER && character.is_alphabetic()) {
            self.sum = self.sum.saturating_add(weight);
        }
    }

    /// The next character came, a letter or not: true if it is one of those of a long word that weigh nothing.
    fn advance_word(&mut self, is_letter: bool) -> bool {
        self.letters = if is_letter { self.letters.saturating_add(1) } else { 0 };
        (WORD_LETTERS + 1..=WORD_MAX).contains(&self.letters)
    }
}

/// How many bytes of plain letters are marks behind the same mark.
fn repeats(text: &[u8]) -> u64 {
    // So many are counted in one byte, and with that many at once.
    const COUNTED: usize = u8::MAX as usize;
    let pieces = text.chunks(COUNTED).zip(text[1..].chunks(COUNTED));
    let count = |(before, after): (&[u8], &[u8])| -> u8 {
        before.iter().zip(after).map(|(before, byte)| u8::from(is_repeat(*before, *byte))).sum()
    };
    pieces.map(|piece| u64::from(count(piece))).sum()
}

/// Whether a byte is a mark behind the same mark.
fn is_repeat(before: u8, byte: u8) -> bool {
    (before == byte) & !byte.is_ascii_alphanumeric()
}

impl ObservedOutput {
    fn record(&mut self, text: &str, counted: Tokens) {
        self.weight.add(text);
        self.pieces += u64::from(!text.is_empty());
        self.counted += counted;
    }

    fn take_over(&mut self, other: ObservedOutput) {
        self.weight.take_over(other.weight);
        self.pieces += other.pieces;
        self.counted += other.counted;
    }

    fn min_tokens(&self, token_each: bool) -> Tokens {
        self.counted_tokens(token_each).max(self.weight.tokens())
    }

    /// The same without what the length of its text shows.
    fn counted_tokens(&self, token_each: bool) -> Tokens {
        let pieces = if token_each { Tokens(self.pieces) } else { Tokens::ZERO };
        self.counted.max(pieces)
    }
}

/// What a call with this limit may be seen to write before it is hung up on: providers count a little differently than we
/// do.
pub(super) fn with_tolerance(limit: Tokens) -> Tokens {
    limit + Tokens(limit.0 / 10) + Tokens(32)
}

impl OverrunGuard {
    /// Watches a call that may write so much. `token_each` where each piece of its text is a token at least.
    pub(super) fn new(limit: Tokens, token_each: bool) -> OverrunGuard {
        OverrunGuard { limit, token_each, ..OverrunGuard::default() }
    }

    pub(super) fn limit(&self) -> Tokens {
        self.limit
    }

    pub(super) fn record(&mut self, piece: &Piece) {
        match piece {
            Piece::Thought { text, tokens, .. } => self.thought.record(text, *tokens),
            Piece::Answer { text, tokens } => self.answer.record(text, *tokens),
            Piece::ToolCall(call) => {
                let names = call.name.iter().chain(&call.id);
                names.for_each(|name| self.answer.weight.add(name));
                self.answer.record(&call.arguments, Tokens::ZERO);
            }
            Piece::Summary(text) => self.summary.add(text),
            Piece::Signed(signed) => {
                self.signed =
                    self.signed.saturating_add(u64::try_from(signed.block.len()).unwrap_or(u64::MAX));
            }
            Piece::Usage(usage) => self.usage = *usage,
            Piece::Unthought => self.answer.take_over(std::mem::take(&mut self.thought)),
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Remark(_)
            | Piece::Logprobs(_)
            | Piece::Note(_)
            | Piece::End(_) => {}
        }
    }

    /// The least that the call has written.
    pub(super) fn written(&self) -> Tokens {
        let seen = self.thinking_tokens() + self.answer.min_tokens(self.token_each);
        seen.max(self.usage.completion).max(self.summary.tokens())
    }

    /// The least that it has thought of what shows.
    pub(super) fn thinking_tokens(&self) -> Tokens {
        self.thought.min_tokens(self.token_each)
    }

    /// The least that it has answered, also by its usage if that reports the thought separately.
    pub(super) fn answer_tokens(&self) -> Tokens {
        let reported = self.usage.thinking.map(|thought| self.usage.completion.saturating_sub(thought));
        self.answer.min_tokens(self.token_each).max(reported.unwrap_or_default())
    }

    /// True once its usage reports that its answer has no more than so many tokens, with or without a thought.
    pub(super) fn reports_within(&self, most: Tokens) -> bool {
        let TokenUsage { completion, thinking, .. } = self.usage;
        let answered = completion.saturating_sub(thinking.unwrap_or_default());
        completion > Tokens::ZERO && answered <= most
    }

    /// True if what it has written was reported.
    pub(super) fn is_counted(&self) -> bool {
        self.usage.completion > Tokens::ZERO || self.counts_each_token()
    }

    /// True if each of its tokens was reported.
    pub(super) fn counts_each_token(&self) -> bool {
        self.answer.counted > Tokens::ZERO
    }

    pub(super) fn is_exceeded(&self) -> bool {
        let signed = self.limit.0.saturating_mul(SIGNED_PER_TOKEN).saturating_add(SIGNED_BESIDE);
        self.written() > with_tolerance(self.limit) || self.signed > signed
    }

    /// True if the limit is exceeded by what the upstream counts, or by its pieces, where each is a token. A text of very long words may
    /// look longer than it is, and a caller may ask for one.
    pub(super) fn is_counted_beyond_limit(&self) -> bool {
        let counted = [self.thought, self.answer].map(|output| output.counted_tokens(self.token_each));
        counted.into_iter().sum::<Tokens>().max(self.usage.completion) > with_tolerance(self.limit)
    }

    /// How many pieces of text came, and the upstream's count of a hidden thought, which has no pieces.
    pub(super) fn pieces(&self) -> (u64, Option<Tokens>) {
        let hidden =
            if self.thought.pieces == 0 { self.usage.thinking.unwrap_or_default() } else { Tokens::ZERO };
        let told =
            (self.usage.completion > Tokens::ZERO).then(|| self.usage.completion.saturating_sub(hidden));
        (self.thought.pieces + self.answer.pieces, told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn least(text: &str) -> u64 {
        let mut weight = TokenLowerBound::default();
        weight.add(text);
        weight.tokens().0
    }

    fn answer(text: &str) -> Piece {
        Piece::Answer { text: text.to_owned(), tokens: Tokens::ZERO }
    }

    #[test]
    fn a_text_has_a_token_for_eight_characters_at_least_in_every_script() {
        assert_eq!(least(&"the answer is so ".repeat(8)), 17);
        // Russian has five characters to a token in the newest vocabularies, in ten bytes.
        assert_eq!(least(&"привет мир ".repeat(16)), 22);
        assert_eq!(least(&"今天天气很好".repeat(8)), 18);
        assert_eq!(least(&" ".repeat(640)), 10, "a run of blanks is one token in many vocabularies");
        assert_eq!(least(&"1".repeat(640)), 80);
        assert_eq!(least(&"x".repeat(640)), 77, "no word is so long");
    }

    #[test]
    fn a_word_that_may_be_one_token_is_no_more_however_often_it_comes() {
        for word in [" telecommunications", " responsibilities", " соответственно"] {
            assert_eq!(least(&word.repeat(500)), 500, "{word:?}");
        }
    }

    #[test]
    fn plain_letters_weigh_the_same_together_and_one_by_one() {
        for text in ["", "a", "a--b", "----", "  x  ..", "xx yy", "unreasonably long words"] {
            for (last, letters) in
                [(None, 0), (Some(' '), 0), (Some('-'), 0), (Some('a'), 6), (Some('a'), 22), (Some('é'), 90)]
            {
                let before = TokenLowerBound { sum: 3, last, letters };
                let (mut together, mut each) = (before, before);
                together.add(text);
                text.chars().for_each(|character| each.push(character));
                assert_eq!(together, each, "{text:?} after {before:?}");
            }
        }
    }

    #[test]
    fn a_call_is_beyond_its_limit_by_what_it_wrote_or_by_what_it_says() {
        let mut brake = OverrunGuard::new(Tokens(10), false);
        brake.record(&answer(&"so ".repeat(114)));
        assert!(!brake.is_exceeded(), "342 characters are 42 tokens");
        brake.record(&answer("so it goes on"));
        assert!(brake.is_exceeded());
        let mut brake = OverrunGuard::new(Tokens(10), false);
        brake.record(&Piece::Usage(TokenUsage { completion: Tokens(44), ..TokenUsage::default() }));
        assert!(brake.is_exceeded());
        let mut brake = OverrunGuard::new(Tokens(10), true);
        (0..44).for_each(|_| brake.record(&answer("a")));
        assert!(brake.is_exceeded(), "each piece is a token here");
    }

    #[test]
    fn a_long_text_alone_shows_no_count_beyond_the_limit() {
        let mut brake = OverrunGuard::new(Tokens(10), false);
        (0..60).for_each(|_| brake.record(&answer(" telecommunications")));
        assert!(brake.is_exceeded() && !brake.is_counted_beyond_limit());
        brake.record(&Piece::Usage(TokenUsage { completion: Tokens(60), ..TokenUsage::default() }));
        assert!(brake.is_counted_beyond_limit());
        let mut brake = OverrunGuard::new(Tokens(10), true);
        (0..60).for_each(|_| brake.record(&answer(" so")));
        assert!(brake.is_counted_beyond_limit());
    }

    #[test]
    fn of_a_huge_piece_so_much_passes_as_the_limit_allows() {
        let mut weight = TokenLowerBound::default();
        assert_eq!(weight.bytes_within(&"1".repeat(1_000), Tokens(10)), 80);
        weight.add(&"1".repeat(60));
        assert_eq!(weight.bytes_within(&"ü".repeat(1_000), Tokens(10)), 2 * (20 + 17), "17 weigh nothing");
        assert_eq!(weight.bytes_within("short", Tokens(10)), 5);
    }
}
