//! Estimates how much of a prompt a target has in its cache, from what the same conversation sent there lately.
//!
//! Most engines do not report it, and those that do report it at the end. The estimate may be wrong: a cache may have
//! dropped the prompt, or have it from another conversation with the same instructions.

use std::time::Duration;

use tokio::time::Instant;

use stint_types::units::Tokens;

/// How many conversations are remembered for each target. A newer one may replace an older one.
const SLOTS: usize = 1024;
/// For how long a prompt stays in a cache, at a guess: the shortest that providers promise.
const CACHE_LIFETIME: Duration = Duration::from_secs(300);

/// What was sent to one target lately.
#[derive(Debug, Default)]
pub(super) struct PromptCacheEstimate {
    /// Allocated with the first prompt: most targets of most fleets never need it.
    slots: Vec<Option<CachedPrompt>>,
}

#[derive(Debug, Clone, Copy)]
struct CachedPrompt {
    conversation: u64,
    tokens: Tokens,
    at: Instant,
}

impl PromptCacheEstimate {
    /// Notes that a prompt of a conversation is sent now; returns how many of its tokens the target has not read before.
    pub(super) fn record_prompt(&mut self, conversation: u64, tokens: Tokens, now: Instant) -> Tokens {
        self.slots.resize(SLOTS, None);
        let place = usize::try_from(conversation % SLOTS as u64).unwrap_or(0);
        let Some(slot) = self.slots.get_mut(place) else { return tokens };
        let fresh = |sent: &CachedPrompt| {
            sent.conversation == conversation && now.saturating_duration_since(sent.at) < CACHE_LIFETIME
        };
        let before = slot.filter(fresh).map_or(Tokens::ZERO, |sent| sent.tokens);
        *slot = Some(CachedPrompt { conversation, tokens, at: now });
        tokens.saturating_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_next_turn_only_what_is_new_is_read_while_the_last_one_is_cached() {
        let (mut cached, now) = (PromptCacheEstimate::default(), Instant::now());
        let mut check = |conversation, tokens, seconds, read| {
            let at = now + Duration::from_secs(seconds);
            assert_eq!(
                cached.record_prompt(conversation, Tokens(tokens), at),
                Tokens(read),
                "{tokens} after {seconds}"
            );
        };
        check(7, 10_000, 0, 10_000);
        check(7, 10_400, 10, 400);
        check(8, 10_400, 10, 10_400);
        check(7, 10_500, 310, 10_500);
        check(7 + SLOTS as u64, 300, 311, 300);
        check(7, 10_600, 312, 10_600);
    }
}
