//! How fast a backend is, measured on its recent calls.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "local")]
use std::time::Duration;

use tokio::time::Instant;

use stint_types::catalog::ModelConditions;

use super::prefill::Prefill;
use super::{Piece, TokenUsage};

/// How much the newest measurement weighs.
const WEIGHT: f64 = 0.2;
/// A call that was given up shows the speed of tokens from so many on.
const TELLING_TOKENS: u64 = 16;
/// Until it is known, a call is taken to wait as long as for so many tokens of prompt more: so that the wait of a short prompt does
/// not make one that is a little longer look hopeless.
const CALL_AS_TOKENS: f64 = 200.0;
/// After so many seconds half of a silence is forgotten.
const SILENCE_HALF_LIFE: f64 = 60.0;

/// Moving averages of a backend's speed. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpeedEstimator(Arc<Mutex<SpeedAverages>>);

#[derive(Debug, Default)]
struct SpeedAverages {
    /// Until the first token.
    first: Option<f64>,
    /// How much longer than that calls were silent whose caller's time was over.
    silence: Option<(f64, Instant)>,
    prefill: Option<f64>,
    /// The wait for the first token by the prompt's length.
    prefill_model: Prefill,
    token: Option<f64>,
}

/// One generation under the stopwatch.
#[derive(Debug)]
pub(crate) struct CallTimer {
    estimator: SpeedEstimator,
    started: Instant,
    first: Option<Instant>,
    tokens: u64,
    shows_thought: bool,
    is_queued: bool,
    is_whole: bool,
    usage: TokenUsage,
    is_finished: bool,
}

impl SpeedEstimator {
    /// A token takes so long, as long as no call has shown it.
    #[cfg(feature = "local")]
    pub(crate) fn expect_token(&self, time: Duration) {
        self.lock().token.get_or_insert(time.as_secs_f64());
    }

    /// What is known now.
    pub(crate) fn conditions(&self) -> ModelConditions {
        let measured = self.lock();
        let (constant, per_token) = measured.prefill_model.line().unwrap_or_else(|| measured.prefill_guess());
        let queue = constant + measured.current_silence(Instant::now());
        ModelConditions {
            queue,
            queue_least: queue,
            prefill: per_token,
            token: measured.token.unwrap_or(0.0),
            // Who fails is left alone by the fleet.
            healthy: true,
        }
    }

    /// Starts the stopwatch for a call.
    pub(crate) fn start(&self) -> CallTimer {
        let started = Instant::now();
        let usage = TokenUsage::default();
        CallTimer {
            estimator: self.clone(),
            started,
            first: None,
            tokens: 0,
            shows_thought: false,
            is_queued: false,
            is_whole: false,
            usage,
            is_finished: false,
        }
    }

    /// From how many prompts it was measured how long reading takes.
    #[cfg(all(test, feature = "local"))]
    pub(crate) fn prompts_measured(&self) -> usize {
        self.lock().prefill_model.sample_count()
    }

    fn lock(&self) -> MutexGuard<'_, SpeedAverages> {
        // Averages are whole between any two statements, so a poisoned lock is as good as another.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpeedAverages {
    /// A constant and a time for each token of the prompt, until prompts of several lengths tell the two apart.
    fn prefill_guess(&self) -> (f64, f64) {
        let per_token = self.prefill.unwrap_or(0.0);
        (CALL_AS_TOKENS * per_token, per_token)
    }

    /// A first token came after so many seconds.
    fn record_first(&mut self, silent: f64, now: Instant) {
        let beyond = (silent - self.first.unwrap_or(silent)).max(0.0);
        let known = self.current_silence(now);
        self.silence = (known > 0.0).then_some((known + WEIGHT * (beyond - known), now));
        average(&mut self.first, silent);
    }

    /// A target that counts as silent gets no calls, so no call would show that it has recovered. So the silence is
    /// forgotten after a while.
    fn current_silence(&self, now: Instant) -> f64 {
        self.silence.map_or(0.0, |(silence, at)| {
            let age = now.saturating_duration_since(at).as_secs_f64();
            silence * (-age / SILENCE_HALF_LIFE).exp2()
        })
    }
}

impl CallTimer {
    /// Marks the call as one that waited for others, so that the wait for the first piece shows nothing of the backend.
    #[cfg(feature = "local")]
    pub(crate) fn mark_queued(&mut self) {
        self.is_queued = true;
    }

    /// Marks the call as one whose answer comes in one piece, so that its first piece shows nothing of the wait for a first token.
    pub(crate) fn mark_whole(&mut self) {
        self.is_whole = true;
    }

    /// Notes a piece as it passes; the last one ends the lap.
    pub(crate) fn record(&mut self, piece: &Piece) {
        match piece {
            Piece::Thought { tokens, .. } | Piece::Answer { tokens, .. } => {
                self.first.get_or_insert_with(Instant::now);
                // Where tokens are not reported, a piece is about one.
                self.tokens += tokens.0.max(1);
                self.shows_thought |= matches!(piece, Piece::Thought { .. });
            }
            Piece::Usage(usage) => self.usage = *usage,
            Piece::End(_) => self.finish(),
            Piece::Tag { .. }
            | Piece::HandOff { .. }
            | Piece::Summary(_)
            | Piece::Signed(_)
            | Piece::Remark(_)
            | Piece::Unthought
            | Piece::Logprobs(_)
            | Piece::Note(_)
            | Piece::ToolCall(_) => {}
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "statistics do not need counts beyond 2^53 exactly")]
    fn finish(&mut self) {
        self.is_finished = true;
        let now = Instant::now();
        let mut measured = self.estimator.lock();
        if self.is_whole {
            let writing = (now - self.started).as_secs_f64() - measured.first.unwrap_or(0.0);
            let tokens = self.usage.completion.as_f64();
            if tokens > 0.0 && writing > 0.0 {
                average(&mut measured.token, writing / tokens);
            }
            return;
        }
        let Some(first) = self.first else { return };
        if !self.is_queued {
            measured.record_first((first - self.started).as_secs_f64(), now);
        }
        let hidden = self.usage.thinking.is_some_and(|tokens| tokens.0 > 0) && !self.shows_thought;
        if hidden {
            // The first piece came after the thought: only the whole says how fast tokens are.
            let all = self.usage.completion.as_f64().max(1.0);
            average(&mut measured.token, (now - self.started).as_secs_f64() / all);
            return;
        }
        if self.tokens > 1 {
            average(&mut measured.token, (now - first).as_secs_f64() / (self.tokens - 1) as f64);
        }
        let read = self.usage.prompt.saturating_sub(self.usage.cache_read);
        if read.0 > 0 && !self.is_queued {
            let reading = (first - self.started).as_secs_f64();
            average(&mut measured.prefill, reading / (read.as_f64() + CALL_AS_TOKENS));
            measured.prefill_model.add(read, reading);
            measured.prefill_model.fit_if_due();
        }
    }
}

impl Drop for CallTimer {
    /// A call that was given up shows how long it was silent at least, or how fast it wrote until then.
    #[expect(clippy::cast_precision_loss, reason = "statistics do not need counts beyond 2^53 exactly")]
    fn drop(&mut self) {
        if self.is_finished || self.is_whole {
            return;
        }
        let now = Instant::now();
        let mut measured = self.estimator.lock();
        match self.first {
            // A wait in a queue of our own is known as such.
            None if self.is_queued => {}
            None => {
                let beyond = (now - self.started).as_secs_f64() - measured.first.unwrap_or(0.0);
                if beyond > measured.current_silence(now) {
                    measured.silence = Some((beyond, now));
                }
            }
            Some(first) if self.tokens >= TELLING_TOKENS => {
                average(&mut measured.token, (now - first).as_secs_f64() / (self.tokens - 1) as f64);
            }
            Some(_) => {}
        }
    }
}

fn average(value: &mut Option<f64>, newest: f64) {
    *value = Some(value.map_or(newest, |old| old + WEIGHT * (newest - old)));
}

#[cfg(test)]
mod tests {
    #[cfg(not(feature = "local"))]
    use std::time::Duration;

    use super::*;
    use crate::GenerationEnd;
    use stint_types::units::Tokens;

    async fn run(pace: &SpeedEstimator, thinking: Option<Tokens>) {
        reads(pace, (40, 0), 400, thinking).await;
    }

    /// Reads so many tokens, some of them from a cache, for so many milliseconds.
    async fn reads(
        pace: &SpeedEstimator,
        (prompt, cached): (u64, u64),
        millis: u64,
        thinking: Option<Tokens>,
    ) {
        let mut lap = pace.start();
        tokio::time::advance(Duration::from_millis(millis)).await;
        for _ in 0..5 {
            lap.record(&Piece::Answer { text: "x".to_owned(), tokens: Tokens::ZERO });
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        lap.record(&Piece::Usage(TokenUsage {
            prompt: Tokens(prompt),
            cache_read: Tokens(cached),
            completion: Tokens(90),
            thinking,
            ..TokenUsage::default()
        }));
        lap.record(&Piece::End(GenerationEnd::Limit));
    }

    #[tokio::test(start_paused = true)]
    async fn reading_and_writing_are_measured_apart() {
        let pace = SpeedEstimator::default();
        run(&pace, None).await;
        let conditions = pace.conditions();
        let first = conditions.queue + 40.0 * conditions.prefill;
        assert!((first - 0.4).abs() < 1e-3, "{conditions:?}");
        assert!((conditions.token - 0.125).abs() < 1e-3, "{conditions:?}");
    }

    /// The bound of a prompt that nobody counted is several times its length, and is no reason to expect several times the wait.
    #[tokio::test(start_paused = true)]
    async fn a_prompt_a_little_longer_than_the_first_one_takes_hardly_longer() {
        let pace = SpeedEstimator::default();
        reads(&pace, (10, 0), 30, None).await;
        let conditions = pace.conditions();
        let first = conditions.queue + 60.0 * conditions.prefill;
        assert!(first < 0.040, "{conditions:?}");
    }

    #[cfg(feature = "local")]
    #[tokio::test(start_paused = true)]
    async fn a_wait_in_a_queue_of_our_own_is_no_silence_of_the_backend() {
        let pace = SpeedEstimator::default();
        pace.expect_token(Duration::from_millis(2));
        let mut lap = pace.start();
        lap.mark_queued();
        tokio::time::advance(Duration::from_secs(3)).await;
        drop(lap);
        let conditions = pace.conditions();
        assert!(conditions.queue < 1e-9 && (conditions.token - 0.002).abs() < 1e-9, "{conditions:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_its_time_in_any_case_is_told_apart_from_what_each_token_takes() {
        let pace = SpeedEstimator::default();
        for number in 0..20 {
            let read = 100 + 1_000 * (number % 5);
            reads(&pace, (read + 300, 300), 250 + read, None).await;
        }
        let conditions = pace.conditions();
        assert!((conditions.queue - 0.250).abs() < 0.01, "{conditions:?}");
        assert!((conditions.prefill - 0.001).abs() < 1e-5, "{conditions:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_hidden_thought_counts_into_the_time_of_a_token() {
        let pace = SpeedEstimator::default();
        run(&pace, Some(Tokens(80))).await;
        let conditions = pace.conditions();
        assert!((conditions.token - 0.010).abs() < 1e-3, "{conditions:?}");
        assert!(conditions.prefill.abs() < 1e-9);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_in_silence_is_a_wait_that_fades() {
        let pace = SpeedEstimator::default();
        let lap = pace.start();
        tokio::time::advance(Duration::from_millis(300)).await;
        drop(lap);
        assert!((pace.conditions().queue - 0.3).abs() < 1e-3);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!((pace.conditions().queue - 0.15).abs() < 1e-3);
        run(&pace, None).await;
        let (lap, known) = (pace.start(), pace.conditions().queue);
        tokio::time::advance(Duration::from_millis(350)).await;
        drop(lap);
        assert!(pace.conditions().queue <= known, "a silence that is usual there is no news");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_given_up_while_it_wrote_tells_how_fast_it_was() {
        let pace = SpeedEstimator::default();
        let mut lap = pace.start();
        for _ in 0..20 {
            lap.record(&Piece::Answer { text: "x".to_owned(), tokens: Tokens::ZERO });
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        drop(lap);
        assert!((pace.conditions().token - 0.1).abs() < 0.01);
    }
}
