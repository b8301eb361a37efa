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
    let (cached, written) = (cached.or(cache_hit), cache_write.or(cache_creation));
    let (prompt, completion) = (usage.prompt?, usage.completion?);
    // Some leave out what they had cached. No more of a prompt can be in the cache than there is.
    let (read, wrote) = (cached.unwrap_or_default(), written.unwrap_or_default());
    let whole = if read > prompt || wrote > prompt { prompt + read + wrote } else { prompt };
    let thinking = of_completion.reasoning.or(reasoning);
    // xAI counts the thought beside the answer, not in it; the total tells.
    let beside = thinking.filter(|thought| total == Some(prompt + completion + *thought));
    Some(TokenUsage {
        prompt: whole,
        cache_read: read,
        cache_write: wrote,
        cache_hour: None,
        completion: completion + beside.unwrap_or_default(),
        thinking,
    })
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
    fn a_prompt_of_which_is_not_told_what_was_kept_is_not_known() {
        let told = |timings: Value| parse_timings(&timings).map(|usage| (usage.prompt.0, usage.completion.0));
        assert_eq!(told(json!({"prompt_n": 5, "cache_n": 40, "predicted_n": 7})), Some((45, 7)));
        assert_eq!(told(json!({"prompt_n": 5, "predicted_n": 7})), Some((0, 7)));
    }
}
