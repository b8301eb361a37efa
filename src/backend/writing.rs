//! How a target writes, as its finished answers told: how fast at most, and how many characters a token has.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::units::Tokens;

use super::{Ending, Piece, Usage};

/// Tokens per second that no target is taken to reach of which nothing is known: several times what the usual ones write.
const UNKNOWN: f64 = 500.0;
/// What a target may write at its best beyond what was ever seen of it.
const BEYOND: f64 = 2.0;
/// Over less time than this nothing is said of how fast a target writes: what a proxy held back or one packet brought comes at once.
const FLOW_MIN: Duration = Duration::from_millis(500);
/// How much of the fastest that was seen is left by the next answer, so that what was once seen wrongly is forgotten.
const LEFT: f64 = 0.98;
/// How much the newest answer weighs.
const WEIGHT: f64 = 0.2;
/// Shorter answers tell too little.
const TOKENS_MIN: Tokens = Tokens(16);
/// No text has more or fewer characters to a token; counts that say so are of something else.
const CHARACTERS: std::ops::RangeInclusive<f64> = 1.0..=12.0;

/// How a target writes. Nothing is known by default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Writing {
    /// The fastest answer's tokens per second.
    pub fastest: Option<f64>,
    /// Characters per token, as [`characters`] counts them.
    pub characters_per_token: Option<f64>,
    /// What a prompt has of the tokens that it was bounded by.
    pub prompt_share: Option<f64>,
}

impl Writing {
    /// The most that can be written in a second.
    pub fn per_second(&self) -> f64 {
        BEYOND * self.fastest.unwrap_or(UNKNOWN)
    }

    /// The most that can have been written in this time.
    pub fn most_in(&self, time: Duration) -> Tokens {
        Tokens::round((self.per_second() * time.as_secs_f64()).ceil())
    }
}

/// What a character beyond English counts in characters of English: about a token of its own.
const FOREIGN: u64 = 4;

/// Characters, as the counts of characters per token mean them.
pub fn characters(text: &str) -> u64 {
    text.chars().map(|character| if character.is_ascii() { 1 } else { FOREIGN }).sum()
}

/// What is learned of one target.
#[derive(Debug, Default)]
pub(crate) struct Written(Mutex<Writing>);

impl Written {
    /// What is known now.
    pub(crate) fn known(&self) -> Writing {
        *self.lock()
    }

    /// A prompt that has at most so many tokens was said to have so many.
    pub(crate) fn read(&self, told: Tokens, most: Tokens) {
        let share = told.as_f64() / most.as_f64().max(1.0);
        if told > Tokens::ZERO && share <= 1.0 {
            let mut known = self.lock();
            let before = known.prompt_share.unwrap_or(share);
            known.prompt_share = Some(before + WEIGHT * (share - before));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        // It is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One answer of a target, from its call to its end.
#[derive(Debug)]
pub(crate) struct Draft {
    began: Instant,
    first: Option<Instant>,
    counted: Tokens,
    thought: u64,
    answer: u64,
    calls_tools: bool,
    usage: Usage,
}

impl Draft {
    pub(crate) fn new() -> Draft {
        let (began, first) = (Instant::now(), None);
        let (counted, thought, answer, calls_tools) = (Tokens::ZERO, 0, 0, false);
        Draft { began, first, counted, thought, answer, calls_tools, usage: Usage::default() }
    }

    /// Notes a piece as it passes; an answer that came to its end is learned from.
    pub(crate) fn note(&mut self, piece: &Piece, written: &Written) {
        match piece {
            Piece::Thought { text, tokens, .. } => {
                self.thought += characters(text);
                self.comes(*tokens);
            }
            Piece::Answer { text, tokens } => {
                self.answer += characters(text);
                self.comes(*tokens);
            }
            Piece::ToolCall(_) => {
                self.calls_tools = true;
                self.comes(Tokens::ZERO);
            }
            Piece::Usage(usage) => self.usage = *usage,
            Piece::End(Ending::Filtered) => {}
            Piece::End(_) => self.learn(written),
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::StoppedBy(_)
            | Piece::Unthought
            | Piece::Logprobs(_) => {}
        }
    }

    fn comes(&mut self, tokens: Tokens) {
        self.first.get_or_insert_with(Instant::now);
        self.counted += tokens;
    }

    /// How long it was written, where that can be told: since its first piece, or since its call where a thought that nobody saw came
    /// before that or all of it came at once.
    fn time(&self, hidden: Tokens) -> Option<Duration> {
        let since_first = self.first.filter(|_| hidden == Tokens::ZERO).map(|first| first.elapsed());
        let times = [since_first, Some(self.began.elapsed())];
        times.into_iter().flatten().find(|time| *time >= FLOW_MIN)
    }

    fn learn(&self, written: &Written) {
        let all = self.usage.completion.max(self.counted);
        if all < TOKENS_MIN {
            return;
        }
        let hides = self.thought == 0;
        let hidden = if hides { self.usage.thinking.unwrap_or_default() } else { Tokens::ZERO };
        let shown = all.saturating_sub(hidden);
        let each = Tokens(self.thought + self.answer).as_f64() / shown.as_f64().max(1.0);
        let mut known = written.lock();
        if let Some(time) = self.time(hidden) {
            let rate = all.as_f64() / time.as_secs_f64();
            known.fastest = Some(known.fastest.map_or(rate, |fastest| rate.max(fastest * LEFT)));
        }
        if shown >= TOKENS_MIN && !self.calls_tools && CHARACTERS.contains(&each) {
            let before = known.characters_per_token.unwrap_or(each);
            known.characters_per_token = Some(before + WEIGHT * (each - before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(written: &Written, text: &str, usage: Usage, times: u32) {
        let mut draft = Draft::new();
        for _ in 0..times {
            tokio::time::advance(Duration::from_millis(100)).await;
            draft.note(&Piece::Answer { text: text.to_owned(), tokens: Tokens::ZERO }, written);
        }
        draft.note(&Piece::Usage(usage), written);
        draft.note(&Piece::End(Ending::Limit), written);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_to_its_end_tells_how_its_target_writes() {
        let written = Written::default();
        assert_eq!(written.known().most_in(Duration::from_secs(2)), Tokens(2000), "nothing is known");
        let usage = Usage { completion: Tokens(50), ..Usage::default() };
        answer(&written, "eight ch", usage, 26).await;
        let known = written.known();
        assert!((known.characters_per_token.unwrap() - 4.16).abs() < 1e-9, "{known:?}");
        assert!((known.fastest.unwrap() - 20.0).abs() < 1e-9, "{known:?}");
        assert_eq!(known.most_in(Duration::from_secs(3)), Tokens(120), "twice as fast as ever");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hidden_thought_counts_for_the_speed_and_not_for_the_characters() {
        let written = Written::default();
        let (completion, thinking) = (Tokens(120), Some(Tokens(100)));
        answer(&written, "eight ch", Usage { completion, thinking, ..Usage::default() }, 10).await;
        let known = written.known();
        assert!((known.characters_per_token.unwrap() - 4.0).abs() < 1e-9, "{known:?}");
        assert!((known.fastest.unwrap() - 120.0).abs() < 1e-9, "{known:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_at_once_is_as_fast_as_its_call_took() {
        let written = Written::default();
        let usage = Usage { completion: Tokens(400), ..Usage::default() };
        answer(&written, "all of it", usage, 1).await;
        assert_eq!(written.known().fastest, None, "a tenth of a second says nothing");
        let mut draft = Draft::new();
        tokio::time::advance(Duration::from_secs(8)).await;
        draft.note(&Piece::Answer { text: "all of it".into(), tokens: Tokens::ZERO }, &written);
        draft.note(&Piece::Usage(usage), &written);
        draft.note(&Piece::End(Ending::Limit), &written);
        assert!((written.known().fastest.unwrap() - 50.0).abs() < 1e-9, "{:?}", written.known());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_fast_once_is_forgotten() {
        let written = Written::default();
        let usage = |completion| Usage { completion: Tokens(completion), ..Usage::default() };
        answer(&written, "eight ch", usage(9000), 10).await;
        let most = written.known().fastest.unwrap();
        for _ in 0..200 {
            answer(&written, "eight ch", usage(50), 10).await;
        }
        let fastest = written.known().fastest.unwrap();
        assert!(most > 9000.0 && fastest < most / 50.0, "{most} and then {fastest}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_words_tell_nothing() {
        let written = Written::default();
        answer(&written, "eight ch", Usage { completion: Tokens(15), ..Usage::default() }, 4).await;
        assert_eq!(written.known(), Writing::default());
    }
}
