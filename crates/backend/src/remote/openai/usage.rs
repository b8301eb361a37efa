//! Parses an upstream's own token counts, in every known form.

use serde_json::Value;

use crate::TokenUsage;
use stint_types::units::Tokens;

use super::reported_usage::{ReportedDetails, ReportedUsage};

/// Reads the counts of one stream; the last one that makes sense wins.
#[derive(Debug, Default)]
pub(super) struct UsageReader {
    last: Option<TokenUsage>,
    /// What it says of the thought itself.
    told: Option<Tokens>,
    /// What was written while there was only thought, if that was reported in between.
    thought: Option<Tokens>,
}

/// What the stream has shown until now.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamProgress {
    /// Some thought.
    pub(super) has_thought: bool,
    /// This chunk has more of it.
    pub(super) is_thinking: bool,
    /// Some of the answer.
    pub(super) has_answer: bool,
}

impl UsageReader {
    /// The usage, if it is news. Counts only grow, so one that is smaller than an earlier one is ignored.
    pub(super) fn read(
        &mut self,
        usage: Option<ReportedUsage>,
        timings: &Value,
        shown: StreamProgress,
    ) -> Option<TokenUsage> {
        // Most chunks have neither.
        if usage.is_none() && timings.is_null() {
            return None;
        }
        let usage = usage.and_then(token_usage).or_else(|| parse_timings(timings))?;
        if self.last.is_some_and(|last| usage.completion < last.completion) {
            return None;
        }
        self.told = usage.thinking.or(self.told);
        if shown.is_thinking && !shown.has_answer {
            self.thought = Some(usage.completion);
        }
        // Some say 0 for every thought.
        let told = usage.thinking.filter(|tokens| *tokens > Tokens::ZERO || !shown.has_thought);
        let only = (shown.has_thought && !shown.has_answer).then_some(usage.completion);
        let usage = TokenUsage { thinking: told.or(self.thought).or(only), ..usage };
        let news = self.last != Some(usage);
        self.last = Some(usage);
        news.then_some(usage)
    }

    /// The reported count of the thought, if there was one.
    pub(super) fn told(&self) -> Option<Tokens> {
        self.told
    }

    /// The usage, where what was shown as a thought was none.
    pub(super) fn unthought(&self) -> Option<TokenUsage> {
        let thinking = Some(self.told.unwrap_or_default());
        self.last.map(|last| TokenUsage { thinking, ..last })
    }
}

/// What `usage` comes to, as OpenAI means it.
fn token_usage(usage: ReportedUsage) -> Option<TokenUsage> {
    let ReportedUsage { total, reasoning, cache_hit, of_prompt, of_completion, .. } = usage;
    let ReportedDetails { cached, cache_write, cache_creation, .. } = of_prompt;
    let (cached, written) = (cached.or(cache_hit), cache_write.or(cache_creation).or(usage.cache_write));
    let (prompt, completion) = (usage.prompt?, usage.completion?);
    // Some leave out what they had cached. No more of a prompt can be in the cache than there is; or else the total tells.
    let (read, wrote) = (cached.unwrap_or_default(), written.unwrap_or_default());
    let with_cached = prompt + read + wrote;
    let thinking = of_completion.reasoning.or(reasoning);
    // A thought beside the answer that is as long as what was cached tells the same total.
    let is_thought = thinking == Some(read + wrote);
    let leaves_out =
        read > prompt || wrote > prompt || (total == Some(with_cached + completion) && !is_thought);
    let whole = if leaves_out { with_cached } else { prompt };
    let beside = thought_beside(thinking, total, whole + completion).unwrap_or_default();
    Some(TokenUsage {
        prompt: whole,
        cache_read: read,
        cache_write: wrote,
        cache_hour: None,
        completion: completion + beside,
        thinking: thinking.or((beside > Tokens::ZERO).then_some(beside)),
    })
}

/// The thought that is counted beside the answer and not in it; the total tells. xAI says how long it was, Google's compatible API
/// does not.
fn thought_beside(thinking: Option<Tokens>, total: Option<Tokens>, counted: Tokens) -> Option<Tokens> {
    let more = total?.saturating_sub(counted);
    match thinking {
        Some(thought) => (more == thought).then_some(thought),
        None => Some(more),
    }
}

/// `timings`, as llama.cpp has it: the prompt is what was read now and what was kept of before. Older servers do not tell the
/// second, and then nobody knows the prompt.
fn parse_timings(timings: &Value) -> Option<TokenUsage> {
    let number = |name: &str| timings.get(name).and_then(Value::as_u64).map(Tokens);
    let completion = number("predicted_n")?;
    let (prompt, cache_read) = match (number("prompt_n"), number("cache_n")) {
        (Some(read), Some(kept)) => (read + kept, kept),
        _ => (Tokens::ZERO, Tokens::ZERO),
    };
    Some(TokenUsage { prompt, cache_read, completion, ..TokenUsage::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::reported_usage::lenient;
    use super::*;

    #[test]
    fn a_prompt_that_is_told_without_what_was_cached_is_counted_whole() {
        let told = |prompt: u64, cached: u64, written: u64| {
            let details = json!({"cached_tokens": cached, "cache_write_tokens": written});
            let usage =
                json!({"prompt_tokens": prompt, "completion_tokens": 7, "prompt_tokens_details": details});
            lenient(&usage).and_then(token_usage).map(|usage| (usage.prompt.0, usage.cache_read.0))
        };
        assert_eq!(told(100, 100, 0), Some((100, 100)));
        assert_eq!(told(20, 80, 0), Some((100, 80)));
        assert_eq!(told(20, 0, 80), Some((100, 0)));
        assert_eq!(told(100, 60, 50), Some((100, 60)), "it may write anew over what it has read");
    }

    #[test]
    fn what_is_cached_is_read_wherever_it_stands() {
        let told = |usage: Value| {
            let usage = lenient(&usage).and_then(token_usage).unwrap();
            [usage.prompt, usage.cache_read, usage.cache_write, usage.completion].map(|count| count.0)
        };
        let moonshot = json!({"prompt_tokens": 1336, "completion_tokens": 31, "total_tokens": 1367, "cached_tokens": 1280});
        assert_eq!(told(moonshot), [1336, 1280, 0, 31]);
        let passed_on = json!({"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 97,
            "cache_read_input_tokens": 30, "cache_creation_input_tokens": 10});
        assert_eq!(told(passed_on), [90, 30, 10, 7], "the total has what was cached besides");
        let xai = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 160,
            "prompt_tokens_details": {"cached_tokens": 50}, "completion_tokens_details": {"reasoning_tokens": 50}});
        assert_eq!(told(xai), [100, 50, 0, 60], "the total has the thought besides");
    }

    #[test]
    fn a_thought_that_only_the_total_has_is_counted() {
        let told = |usage: Value| {
            let usage = lenient(&usage).and_then(token_usage).unwrap();
            (usage.completion.0, usage.thinking.map(|thinking| thinking.0))
        };
        let of = |prompt: u64, completion: u64, total: Option<u64>| json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total});
        assert_eq!(told(of(9, 3, Some(105))), (96, Some(93)), "Gemini's compatible API");
        assert_eq!(told(of(9, 3, Some(12))), (3, None));
        assert_eq!(told(of(9, 3, Some(9))), (3, None));
        assert_eq!(told(of(9, 3, None)), (3, None));
        let xai = |reasoning: u64, total: u64| {
            json!({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": total,
            "completion_tokens_details": {"reasoning_tokens": reasoning}})
        };
        assert_eq!(told(xai(93, 105)), (96, Some(93)));
        assert_eq!(told(xai(2, 12)), (3, Some(2)));
        assert_eq!(told(xai(0, 12)), (3, Some(0)));
    }

    #[test]
    fn a_prompt_of_which_is_not_told_what_was_kept_is_not_known() {
        let told = |timings: Value| parse_timings(&timings).map(|usage| (usage.prompt.0, usage.completion.0));
        assert_eq!(told(json!({"prompt_n": 5, "cache_n": 40, "predicted_n": 7})), Some((45, 7)));
        assert_eq!(told(json!({"prompt_n": 5, "predicted_n": 7})), Some((0, 7)));
    }
}
