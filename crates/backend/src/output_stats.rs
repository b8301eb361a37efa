//! How a target writes, learned from its finished answers: its highest speed, and its characters per token.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use stint_types::units::Tokens;

use super::{GenerationEnd, Piece, TokenUsage};

/// An upper bound of the tokens per second of an unknown target: several times what usual targets write.
const UNKNOWN_SPEED: f64 = 500.0;
/// What a target may write at its best beyond what was ever seen of it.
const SPEED_MARGIN: f64 = 2.0;
/// A shorter time does not show how fast a target writes: what a proxy held back or one packet brought comes at once.
const MEASURED_TIME_MIN: Duration = Duration::from_millis(500);
/// How much of the fastest that was seen is left by the next answer, so that what was once seen wrongly is forgotten.
const FASTEST_DECAY: f64 = 0.98;
/// How much the newest answer weighs.
const WEIGHT: f64 = 0.2;
/// Shorter answers tell too little.
const TOKENS_MIN: Tokens = Tokens(16);
/// No text has more or fewer characters to a token; counts that say so are of something else.
const CHARACTERS_PER_TOKEN: std::ops::RangeInclusive<f64> = 1.0..=12.0;

/// How a target writes. Nothing is known by default.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct OutputStats {
    /// The fastest answer's tokens per second.
    pub tokens_per_second_max: Option<f64>,
    /// Characters per token, as [`weighted_characters`] counts them.
    pub characters_per_token: Option<f64>,
    /// What a prompt has of the tokens that it was bounded by.
    pub prompt_share: Option<f64>,
}

impl OutputStats {
    /// The most that can be written in a second.
    pub fn max_tokens_per_second(&self) -> f64 {
        SPEED_MARGIN * self.tokens_per_second_max.unwrap_or(UNKNOWN_SPEED)
    }

    /// The most that can have been written in this time.
    pub fn max_tokens_in(&self, time: Duration) -> Tokens {
        Tokens::round((self.max_tokens_per_second() * time.as_secs_f64()).ceil())
    }
}

/// What a character beyond English counts in characters of English: about a token of its own.
const NON_ASCII_WEIGHT: u64 = 4;

/// Characters, as the counts of characters per token mean them.
pub fn weighted_characters(text: &str) -> u64 {
    text.chars().map(|character| if character.is_ascii() { 1 } else { NON_ASCII_WEIGHT }).sum()
}

/// What is learned of one target.
#[derive(Debug, Default)]
pub(crate) struct OutputTracker(Mutex<OutputStats>);

impl OutputTracker {
    /// What is known now.
    pub(crate) fn stats(&self) -> OutputStats {
        *self.lock()
    }

    /// A prompt that has at most so many tokens was reported to have so many.
    pub(crate) fn record_prompt(&self, told: Tokens, most: Tokens) {
        let share = told.as_f64() / most.as_f64().max(1.0);
        if told > Tokens::ZERO && share <= 1.0 {
            let mut known = self.lock();
            let before = known.prompt_share.unwrap_or(share);
            known.prompt_share = Some(before + WEIGHT * (share - before));
        }
    }

    fn lock(&self) -> MutexGuard<'_, OutputStats> {
        // It is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One answer of a target, from its call to its end.
#[derive(Debug)]
pub(crate) struct OutputMeasurement {
    began: Instant,
    first: Option<Instant>,
    counted: Tokens,
    thought: u64,
    answer: u64,
    calls_tools: bool,
    usage: TokenUsage,
}

impl OutputMeasurement {
    pub(crate) fn new() -> OutputMeasurement {
        let (began, first) = (Instant::now(), None);
        let (counted, thought, answer, calls_tools) = (Tokens::ZERO, 0, 0, false);
        OutputMeasurement {
            began,
            first,
            counted,
            thought,
            answer,
            calls_tools,
            usage: TokenUsage::default(),
        }
    }

    /// Notes a piece as it passes; an answer that came to its end is learned from.
    pub(crate) fn record(&mut self, piece: &Piece, written: &OutputTracker) {
        match piece {
            Piece::Thought { text, tokens, .. } => {
                self.thought += weighted_characters(text);
                self.record_tokens(*tokens);
            }
            Piece::Answer { text, tokens } => {
                self.answer += weighted_characters(text);
                self.record_tokens(*tokens);
            }
            Piece::ToolCall(_) => {
                self.calls_tools = true;
                self.record_tokens(Tokens::ZERO);
            }
            Piece::Usage(usage) => self.usage = *usage,
            Piece::End(GenerationEnd::Filtered) => {}
            Piece::End(_) => self.learn(written),
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::Remark(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Note(_) => {}
        }
    }

    fn record_tokens(&mut self, tokens: Tokens) {
        self.first.get_or_insert_with(Instant::now);
        self.counted += tokens;
    }

    /// How long it was written, if that is known: since its first piece, or since its call where a thought that nobody
    /// saw came before that or all of it came at once.
    fn writing_time(&self, hidden: Tokens) -> Option<Duration> {
        let since_first = self.first.filter(|_| hidden == Tokens::ZERO).map(|first| first.elapsed());
        let times = [since_first, Some(self.began.elapsed())];
        times.into_iter().flatten().find(|time| *time >= MEASURED_TIME_MIN)
    }

    fn learn(&self, written: &OutputTracker) {
        let all = self.usage.completion.max(self.counted);
        if all < TOKENS_MIN {
            return;
        }
        let hides = self.thought == 0;
        let hidden = if hides { self.usage.thinking.unwrap_or_default() } else { Tokens::ZERO };
        let shown = all.saturating_sub(hidden);
        let each = Tokens(self.thought + self.answer).as_f64() / shown.as_f64().max(1.0);
        let mut known = written.lock();
        if let Some(time) = self.writing_time(hidden) {
            let rate = all.as_f64() / time.as_secs_f64();
            known.tokens_per_second_max =
                Some(known.tokens_per_second_max.map_or(rate, |fastest| rate.max(fastest * FASTEST_DECAY)));
        }
        if shown >= TOKENS_MIN && !self.calls_tools && CHARACTERS_PER_TOKEN.contains(&each) {
            let before = known.characters_per_token.unwrap_or(each);
            known.characters_per_token = Some(before + WEIGHT * (each - before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(written: &OutputTracker, text: &str, usage: TokenUsage, times: u32) {
        let mut draft = OutputMeasurement::new();
        for _ in 0..times {
            tokio::time::advance(Duration::from_millis(100)).await;
            draft.record(&Piece::Answer { text: text.to_owned(), tokens: Tokens::ZERO }, written);
        }
        draft.record(&Piece::Usage(usage), written);
        draft.record(&Piece::End(GenerationEnd::Limit), written);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_to_its_end_tells_how_its_target_writes() {
        let written = OutputTracker::default();
        assert_eq!(written.stats().max_tokens_in(Duration::from_secs(2)), Tokens(2000), "nothing is known");
        let usage = TokenUsage { completion: Tokens(50), ..TokenUsage::default() };
        answer(&written, "eight ch", usage, 26).await;
        let known = written.stats();
        assert!((known.characters_per_token.unwrap() - 4.16).abs() < 1e-9, "{known:?}");
        assert!((known.tokens_per_second_max.unwrap() - 20.0).abs() < 1e-9, "{known:?}");
        assert_eq!(known.max_tokens_in(Duration::from_secs(3)), Tokens(120), "twice as fast as ever");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hidden_thought_counts_for_the_speed_and_not_for_the_characters() {
        let written = OutputTracker::default();
        let (completion, thinking) = (Tokens(120), Some(Tokens(100)));
        answer(&written, "eight ch", TokenUsage { completion, thinking, ..TokenUsage::default() }, 10).await;
        let known = written.stats();
        assert!((known.characters_per_token.unwrap() - 4.0).abs() < 1e-9, "{known:?}");
        assert!((known.tokens_per_second_max.unwrap() - 120.0).abs() < 1e-9, "{known:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_comes_at_once_is_as_fast_as_its_call_took() {
        let written = OutputTracker::default();
        let usage = TokenUsage { completion: Tokens(400), ..TokenUsage::default() };
        answer(&written, "all of it", usage, 1).await;
        assert_eq!(written.stats().tokens_per_second_max, None, "a tenth of a second says nothing");
        let mut draft = OutputMeasurement::new();
        tokio::time::advance(Duration::from_secs(8)).await;
        draft.record(&Piece::Answer { text: "all of it".into(), tokens: Tokens::ZERO }, &written);
        draft.record(&Piece::Usage(usage), &written);
        draft.record(&Piece::End(GenerationEnd::Limit), &written);
        assert!(
            (written.stats().tokens_per_second_max.unwrap() - 50.0).abs() < 1e-9,
            "{:?}",
            written.stats()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_fast_once_is_forgotten() {
        let written = OutputTracker::default();
        let usage = |completion| TokenUsage { completion: Tokens(completion), ..TokenUsage::default() };
        answer(&written, "eight ch", usage(9000), 10).await;
        let most = written.stats().tokens_per_second_max.unwrap();
        for _ in 0..200 {
            answer(&written, "eight ch", usage(50), 10).await;
        }
        let fastest = written.stats().tokens_per_second_max.unwrap();
        assert!(most > 9000.0 && fastest < most / 50.0, "{most} and then {fastest}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_few_words_tell_nothing() {
        let written = OutputTracker::default();
        answer(&written, "eight ch", TokenUsage { completion: Tokens(15), ..TokenUsage::default() }, 4).await;
        assert_eq!(written.stats(), OutputStats::default());
    }
}
