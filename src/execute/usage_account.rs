//! What one choice has taken, to the token where the backend says it, else reckoned and marked so.

use crate::backend::{OutputStats, TokenUsage, weighted_characters};
use crate::catalog::{BilledCall, ChoiceUsage};
use crate::chat::CacheTtl;
use crate::units::Tokens;

/// Characters per token where a target's finished answers did not tell it yet: what English text takes.
const CHARACTERS_PER_TOKEN: f64 = 3.5;
/// The same, where a thought must be stopped in time: it is rather stopped early.
const CHARACTERS_PER_TOKEN_LEAST: f64 = 3.0;
/// The same, where a thought is only stopped once it has surely gone too far.
const CHARACTERS_PER_TOKEN_MOST: f64 = 5.0;

/// The account of a choice: what earlier parts took, and what the running one has shown so far.
#[derive(Debug, Clone)]
pub(super) struct UsageAccount {
    pub(super) spent: ChoiceUsage,
    running: Option<RunningPart>,
    /// An upper bound of the prompt, until the backend says what it was.
    prompt: Tokens,
    /// What the backend said of it.
    prompt_reported: Option<Tokens>,
    /// What a resent prompt may have besides prompt and thought.
    overhead: Tokens,
    /// The longest that its caller wants any of the prompt kept in the provider's cache.
    cache_ttl: CacheTtl,
    /// How its target writes, as finished answers told.
    output_stats: OutputStats,
    /// The most that the running part can have written unseen, where it is broken off.
    unseen_max: Option<Tokens>,
}

#[derive(Debug, Clone, Default)]
struct RunningPart {
    /// True for a part whose prompt was sent before.
    is_repeat: bool,
    /// Everything it may write, where its thought is hidden.
    hidden: Option<Tokens>,
    /// No more than that can have been written, whatever is said or seen in one piece.
    most: Option<Tokens>,
    usage: Option<TokenUsage>,
    thinking: Tokens,
    solution: Tokens,
    overhead: Tokens,
    injected: Tokens,
    discarded: Tokens,
    thought_characters: u64,
    /// Bytes of thought that came after the last usage.
    thought_bytes_since_usage: u64,
    answer_characters: u64,
    /// Of what came after the caller's stop text.
    dropped_characters: u64,
}

/// What a part wrote.
struct PartUsage {
    thinking: Tokens,
    solution: Tokens,
    /// What came after the caller's stop text.
    dropped: Tokens,
}

impl PartUsage {
    /// No more than that altogether.
    fn within(self, most: Option<Tokens>) -> PartUsage {
        let Some(most) = most else { return self };
        let thinking = self.thinking.min(most);
        let solution = self.solution.min(most.saturating_sub(thinking));
        let dropped = self.dropped.min(most.saturating_sub(thinking + solution));
        PartUsage { thinking, solution, dropped }
    }
}

/// To which side an unsure count errs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountBias {
    /// Rather too many tokens.
    High,
    /// Rather too few.
    Low,
}

/// How a part came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartEnd {
    /// The backend ended it.
    Completed,
    /// We did, or the connection broke: more may have been written than was seen.
    BrokenOff,
}

impl UsageAccount {
    pub(super) fn new(prompt: Tokens, overhead: Tokens, keep: CacheTtl) -> UsageAccount {
        let (spent, running, prompt_told) = (ChoiceUsage::default(), None, None);
        let (writing, unseen_max) = (OutputStats::default(), None);
        UsageAccount {
            spent,
            running,
            prompt,
            prompt_reported: prompt_told,
            overhead,
            cache_ttl: keep,
            output_stats: writing,
            unseen_max,
        }
    }

    /// Its target writes like that, as far as it is known.
    pub(super) fn set_output_stats(&mut self, writing: OutputStats) {
        self.output_stats = writing;
    }

    /// The running part can have written so much unseen, and no more.
    pub(super) fn set_unseen_max(&mut self, most: Option<Tokens>) {
        self.unseen_max = most;
    }

    /// Everything written until now, whoever sees it: what is billed, by the best count there is.
    pub(super) fn written(&self) -> Tokens {
        let running = self.running.as_ref().map(|part| part.written(self.characters_per_token()));
        self.spent.output() + running.unwrap_or_default()
    }

    /// How many tokens a text is that nobody counted.
    pub(super) fn estimate_tokens(&self, text: &str) -> Tokens {
        estimate_tokens(weighted_characters(text), self.characters_per_token())
    }

    fn characters_per_token(&self) -> f64 {
        self.output_stats.characters_per_token.unwrap_or(CHARACTERS_PER_TOKEN)
    }

    /// The first part begins. `hidden` is everything it may write, where its thought is hidden.
    pub(super) fn begin(&mut self, hidden: Option<Tokens>) {
        self.running = Some(RunningPart { hidden, ..RunningPart::default() });
    }

    /// The running part is over, and the next one begins.
    pub(super) fn next_part(&mut self, close: PartEnd) {
        self.book(close);
        self.running = Some(RunningPart { is_repeat: true, ..RunningPart::default() });
    }

    /// The running part failed: what it wrote is not delivered, and the next one begins.
    pub(super) fn restart(&mut self, hidden: Option<Tokens>) {
        self.book(PartEnd::Completed);
        let spent = &mut self.spent;
        spent.undelivered += spent.completion().saturating_sub(spent.injected);
        spent.undelivered_thinking += spent.thinking;
        (spent.thinking, spent.overhead, spent.solution) = (Tokens::ZERO, Tokens::ZERO, Tokens::ZERO);
        spent.injected = Tokens::ZERO;
        spent.extra_calls += 1;
        self.running = Some(RunningPart { is_repeat: true, hidden, ..RunningPart::default() });
    }

    /// No more than that is booked as written of the running part.
    pub(super) fn set_limit(&mut self, most: Tokens) {
        if let Some(part) = &mut self.running {
            part.most = Some(most);
        }
    }

    /// The running part's thought turned out to be no hidden one.
    pub(super) fn mark_thought_visible(&mut self) {
        if let Some(part) = &mut self.running {
            part.hidden = None;
        }
    }

    /// Of what is booked as the answer no more than that was delivered.
    pub(super) fn cap_delivered(&mut self, most: Tokens) {
        let excess = self.spent.solution.saturating_sub(most);
        self.spent.solution = self.spent.solution.min(most);
        self.spent.undelivered += excess;
    }

    /// The running part was refused before a model saw it.
    pub(super) fn discard_running(&mut self) {
        self.running = None;
    }

    pub(super) fn add_thinking(&mut self, text: &str, tokens: Tokens) {
        if let Some(part) = &mut self.running {
            part.thinking += tokens;
            part.thought_characters += weighted_characters(text);
            part.thought_bytes_since_usage += u64::try_from(text.len()).unwrap_or(u64::MAX);
        }
    }

    pub(super) fn add_solution(&mut self, text: &str, tokens: Tokens) {
        if let Some(part) = &mut self.running {
            part.solution += tokens;
            part.answer_characters += weighted_characters(text);
        }
    }

    /// What the running part has shown as its thought was its answer.
    pub(super) fn unthink(&mut self) {
        let Some(part) = &mut self.running else { return };
        part.solution += std::mem::take(&mut part.thinking);
        part.answer_characters += std::mem::take(&mut part.thought_characters);
        part.thought_bytes_since_usage = 0;
    }

    /// Tags, hand-off, end of text.
    pub(super) fn add_overhead(&mut self, tokens: Tokens) {
        if let Some(part) = &mut self.running {
            part.overhead += tokens;
        }
    }

    /// What of tags and hand-offs came in the running part.
    pub(super) fn overhead_now(&self) -> Tokens {
        self.running.as_ref().map_or(Tokens::ZERO, |part| part.overhead)
    }

    /// A hand-off that was read as part of the prompt, not written.
    pub(super) fn add_injected(&mut self, tokens: Tokens) {
        self.add_overhead(tokens);
        if let Some(part) = &mut self.running {
            part.injected += tokens;
        }
    }

    /// Written, billed, and not delivered.
    pub(super) fn add_discarded(&mut self, text: &str, tokens: Tokens) {
        let tokens = if tokens > Tokens::ZERO { tokens } else { self.estimate_tokens(text) };
        let Some(part) = &mut self.running else { return };
        let tokens = part.most.map_or(tokens, |most| tokens.min(most));
        part.discarded += tokens;
        self.spent.undelivered += tokens;
    }

    /// Written after the caller's stop text, billed, and not delivered.
    pub(super) fn add_dropped(&mut self, text: &str, tokens: Tokens) {
        if tokens > Tokens::ZERO {
            return self.add_discarded(text, tokens);
        }
        if let Some(part) = &mut self.running {
            part.dropped_characters += weighted_characters(text);
        }
    }

    /// True where the running part may think unseen.
    pub(super) fn is_hidden(&self) -> bool {
        self.running.as_ref().is_some_and(|part| part.hidden.is_some())
    }

    /// True where the running part may think unseen and nothing has told of that yet.
    pub(super) fn is_hidden_uncounted(&self) -> bool {
        self.running.as_ref().is_some_and(|part| {
            let counted = part.thinking + part.solution > Tokens::ZERO;
            part.hidden.is_some()
                && !counted
                && part.thought_characters == 0
                && part.reported_usage().is_none()
        })
    }

    /// True where the running part has surely written more than it was allowed.
    pub(super) fn is_beyond_limit(&self) -> bool {
        self.running.as_ref().is_some_and(|part| {
            let written = part.answer_characters + part.dropped_characters;
            part.hidden.is_some_and(|limit| estimate_tokens(written, CHARACTERS_PER_TOKEN_MOST) > limit)
        })
    }

    pub(super) fn set_usage(&mut self, usage: TokenUsage) {
        if let Some(part) = &mut self.running {
            part.usage = Some(usage);
            if usage.completion > Tokens::ZERO {
                part.thought_bytes_since_usage = 0;
            }
        }
    }

    /// Thinking tokens of the running part, where each is reported.
    pub(super) fn thinking_now(&self) -> Tokens {
        self.running.as_ref().map_or(Tokens::ZERO, |part| part.thinking)
    }

    /// Thinking tokens of the running part with one more piece: by the best count there is. That is each token, else
    /// what the upstream says in between, else the characters.
    pub(super) fn thinking_with(&self, text: &str, tokens: Tokens, lean: CountBias) -> Tokens {
        let Some(part) = &self.running else { return tokens };
        if part.thinking + tokens > Tokens::ZERO {
            return part.thinking + tokens;
        }
        if let Some(told) = part.usage.and_then(|usage| part.reported_thinking(&usage)) {
            return told;
        }
        let per_token = match lean {
            CountBias::High => CHARACTERS_PER_TOKEN_LEAST,
            CountBias::Low => CHARACTERS_PER_TOKEN_MOST,
        };
        estimate_tokens(part.thought_characters + weighted_characters(text), per_token)
    }

    /// The most tokens that the running part's thought can have: as they were counted, else what the upstream said of them
    /// last and a token for each byte since.
    pub(super) fn thinking_upper_bound(&self) -> Tokens {
        let Some(part) = &self.running else { return Tokens::ZERO };
        if part.thinking > Tokens::ZERO {
            return part.thinking;
        }
        let told = part.usage.and_then(|usage| part.reported_thinking(&usage));
        told.unwrap_or_default() + Tokens(part.thought_bytes_since_usage)
    }

    /// How much shorter the running part's prompt was than was set aside for it, at least: some leave out of their count what
    /// they had cached, and nobody can tell who does.
    pub(super) fn prompt_spare(&self) -> Tokens {
        let usage =
            self.running.as_ref().and_then(|part| part.usage).filter(|usage| usage.prompt > Tokens::ZERO);
        let most = |usage: TokenUsage| usage.prompt + usage.cache_read + usage.cache_write;
        usage.map_or(Tokens::ZERO, |usage| self.prompt.saturating_sub(most(usage)))
    }

    /// What the backend said of the prompt of the first part, once that is over.
    pub(super) fn prompt_reported(&self) -> Option<Tokens> {
        self.prompt_reported
    }

    /// Solution tokens so far, also where only the upstream's usage tells of them.
    pub(super) fn solution_so_far(&self) -> Tokens {
        let mut account = self.clone();
        account.book(PartEnd::Completed);
        account.spent.solution
    }

    /// Solution tokens of the running part.
    pub(super) fn solution_now(&self) -> Tokens {
        self.running.as_ref().map_or(Tokens::ZERO, |part| part.solution)
    }

    /// True where the running part has shown a thought.
    pub(super) fn has_visible_thought(&self) -> bool {
        self.running.as_ref().is_some_and(|part| part.thought_characters > 0 || part.thinking > Tokens::ZERO)
    }

    /// True where a thought, or what closes one, came before what comes now.
    pub(super) fn has_thought(&self) -> bool {
        let before = self.spent.thinking + self.spent.overhead > Tokens::ZERO;
        before
            || self.has_visible_thought()
            || self.running.as_ref().is_some_and(|part| part.overhead > Tokens::ZERO)
    }

    /// Books the running part, if there is one.
    pub(super) fn book(&mut self, close: PartEnd) {
        let Some(part) = self.running.take() else { return };
        let prompt = self.prompt_tokens(&part, close);
        self.spent.estimated |= part.prompt_reported().is_none();
        if part.is_repeat {
            self.spent.prompt_rebilled += prompt;
        } else {
            self.spent.prompt = prompt;
            self.prompt_reported = part.prompt_reported();
        }
        let PartUsage { thinking, solution, dropped } = self.split(&part, close).within(part.most);
        self.spent.calls.push(part.billed(prompt, thinking + solution + dropped, self.cache_ttl));
        self.spent.thinking += thinking;
        self.spent.solution += solution;
        self.spent.undelivered += dropped;
        self.spent.overhead += part.overhead;
        self.spent.injected += part.injected;
    }

    /// What the part read, by the upstream's word or by our bound; of one that was broken off, by what is usual of that.
    fn prompt_tokens(&self, part: &RunningPart, close: PartEnd) -> Tokens {
        let resent = || self.prompt + self.spent.thinking + self.spent.solution + self.overhead;
        let bound = || if part.is_repeat { resent() } else { self.prompt };
        let usual = |most: Tokens| match self.output_stats.prompt_share {
            Some(share) if close == PartEnd::BrokenOff => Tokens::round((most.as_f64() * share).ceil()),
            _ => most,
        };
        part.prompt_reported().unwrap_or_else(|| usual(bound()))
    }

    /// A part's thinking and solution tokens: its own count where its tokens were seen, else the upstream's
    /// total, shared by the characters that were seen, else those characters alone. A hidden thought that was
    /// broken off is taken for as long as it could be: the upstream bills it, whoever hung up.
    fn split(&mut self, part: &RunningPart, close: PartEnd) -> PartUsage {
        if part.thinking + part.solution > Tokens::ZERO {
            return PartUsage { thinking: part.thinking, solution: part.solution, dropped: Tokens::ZERO };
        }
        // More may be on its way than was seen. Where no finished answer told how many characters a token has, the most tokens
        // that English text has are booked.
        let per_token = match (close, self.output_stats.characters_per_token) {
            (PartEnd::BrokenOff, None) => CHARACTERS_PER_TOKEN_LEAST,
            _ => self.characters_per_token(),
        };
        let reckoned = |characters| estimate_tokens(characters, per_token);
        let (thought, solution) = (reckoned(part.thought_characters), reckoned(part.answer_characters));
        let dropped = reckoned(part.dropped_characters);
        let Some(usage) = part.reported_usage() else {
            self.spent.estimated = true;
            let thinking = match part.hidden {
                Some(limit) if close == PartEnd::BrokenOff && part.thought_characters == 0 => {
                    let limit = self.unseen_max.map_or(limit, |most| most.min(limit));
                    limit.saturating_sub(solution + dropped)
                }
                _ => thought,
            };
            return PartUsage { thinking, solution, dropped };
        };
        let thinking = usage.thinking.unwrap_or_else(|| {
            self.spent.estimated |= thought > Tokens::ZERO;
            share(usage.completion, thought, solution + dropped)
        });
        let counted = usage.completion.saturating_sub(part.overhead.saturating_sub(part.injected));
        let answered = counted.saturating_sub(thinking);
        let dropped = share(answered, dropped, solution);
        PartUsage { thinking: thinking.min(counted), solution: answered.saturating_sub(dropped), dropped }
    }
}

/// What falls to `one` of so many tokens that it shares with `other`.
fn share(tokens: Tokens, one: Tokens, other: Tokens) -> Tokens {
    Tokens::round(tokens.as_f64() * one.as_f64() / (one + other).as_f64().max(1.0))
}

impl RunningPart {
    /// What it has written until now. Where an upstream counts as it goes, its count may lag behind what was seen.
    fn written(&self, per_token: f64) -> Tokens {
        let counted = self.thinking + self.solution;
        let seen = self.thought_characters + self.answer_characters + self.dropped_characters;
        let shown = if counted > Tokens::ZERO { counted } else { estimate_tokens(seen, per_token) };
        let all = shown + self.overhead.saturating_sub(self.injected) + self.discarded;
        all.max(self.usage.map_or(Tokens::ZERO, |usage| usage.completion))
    }

    /// What the upstream says of its prompt.
    fn prompt_reported(&self) -> Option<Tokens> {
        self.usage.map(|usage| usage.prompt).filter(|told| *told > Tokens::ZERO)
    }

    /// The upstream's count, where it says what was written: at first it may know only the prompt.
    fn reported_usage(&self) -> Option<TokenUsage> {
        self.usage.filter(|usage| usage.completion > Tokens::ZERO)
    }

    /// What a usage in the middle says of the thought: all of it, while no answer has come.
    fn reported_thinking(&self, usage: &TokenUsage) -> Option<Tokens> {
        let thinks = self.answer_characters == 0 && usage.completion > Tokens::ZERO;
        usage.thinking.or_else(|| thinks.then_some(usage.completion))
    }

    /// The call as it is billed: by the upstream's count, and never for less than was seen.
    /// Who does not tell what was kept for an hour is taken to have kept it all for as long as was wanted.
    fn billed(&self, input: Tokens, written: Tokens, keep: CacheTtl) -> BilledCall {
        let seen = written + self.overhead.saturating_sub(self.injected) + self.discarded;
        let usage = self.usage.unwrap_or_default();
        let TokenUsage { cache_read, cache_write, cache_hour, completion, .. } = usage;
        let hour = if keep == CacheTtl::Hour { cache_write } else { Tokens::ZERO };
        let cache_hour = cache_hour.unwrap_or(hour).min(cache_write);
        let output = seen.max(completion);
        let output = self.most.map_or(output, |most| output.min(most.max(self.hidden.unwrap_or_default())));
        BilledCall { input, cache_read, cache_write, cache_hour, output }
    }
}

fn estimate_tokens(characters: u64, per_token: f64) -> Tokens {
    Tokens::round((Tokens(characters).as_f64() / per_token).ceil())
}
