//! What one choice has taken over all its calls: exact where the backend reports it, else estimated and marked so. The
//! phase machine keeps it; the ledger settles the sum.

use stint_backend::{OutputStats, TokenUsage};
use stint_prompt::token_bound;
use stint_types::catalog::ChoiceUsage;
use stint_types::chat::CacheTtl;
use stint_types::units::Tokens;

use super::running_part::{CountBias, PartEnd, RunningPart, estimate_tokens};

/// The account of a choice: what earlier parts took, and what the running one has shown so far.
#[derive(Debug, Clone)]
pub(super) struct UsageAccount {
    pub(super) spent: ChoiceUsage,
    running: Option<RunningPart>,
    /// An upper bound of the prompt, until the backend reports it.
    prompt: Tokens,
    /// What the backend reported of it.
    prompt_reported: Option<Tokens>,
    /// What a resent prompt may have besides prompt and thought.
    overhead: Tokens,
    /// The longest that its caller wants any of the prompt kept in the provider's cache.
    cache_ttl: CacheTtl,
    /// How its target writes, learned from finished answers.
    output_stats: OutputStats,
    /// The most that the running part can have written unseen, where it is broken off.
    unseen_max: Option<Tokens>,
}

impl UsageAccount {
    pub(super) fn new(prompt: Tokens, overhead: Tokens, cache_ttl: CacheTtl) -> UsageAccount {
        UsageAccount {
            spent: ChoiceUsage::default(),
            running: None,
            prompt,
            prompt_reported: None,
            overhead,
            cache_ttl,
            output_stats: OutputStats::default(),
            unseen_max: None,
        }
    }

    /// How its target writes, as far as that is known.
    pub(super) fn set_output_stats(&mut self, stats: OutputStats) {
        self.output_stats = stats;
    }

    /// The running part can have written so much unseen, and no more.
    pub(super) fn set_unseen_max(&mut self, most: Option<Tokens>) {
        self.unseen_max = most;
    }

    /// What was taken so far, if the running part were broken off now and could have written so much unseen.
    pub(super) fn spent_within(&self, unseen_max: Option<Tokens>) -> ChoiceUsage {
        let mut account = UsageAccount { unseen_max, ..self.clone() };
        account.book(PartEnd::BrokenOff);
        account.spent
    }

    /// Everything written until now, delivered or not: what is billed, by the best count there is.
    pub(super) fn written(&self) -> Tokens {
        self.spent.output() + self.running_tokens(|part| part.written(&self.output_stats))
    }

    /// How many tokens a text has that nobody counted.
    pub(super) fn estimate_tokens(&self, text: &str) -> Tokens {
        estimate_tokens(text, &self.output_stats)
    }

    /// The first part begins. `hidden` is everything it may write, where its thought is hidden.
    pub(super) fn begin(&mut self, hidden: Option<Tokens>) {
        self.running = Some(RunningPart::first(hidden));
    }

    /// The running part is over, and the next one begins.
    pub(super) fn next_part(&mut self, end: PartEnd) {
        self.book(end);
        self.running = Some(RunningPart::repeat(None));
    }

    /// The part that was refused is asked for again. `hidden` is everything it may write, where its thought is hidden.
    pub(super) fn begin_repeat(&mut self, hidden: Option<Tokens>) {
        self.running = Some(RunningPart::repeat(hidden));
    }

    /// The running part failed: what it wrote is not delivered, and the next one begins.
    pub(super) fn restart(&mut self, hidden: Option<Tokens>) {
        self.book(PartEnd::Completed);
        let spent = &mut self.spent;
        spent.undelivered += spent.completion().saturating_sub(spent.injected);
        spent.undelivered_thinking += spent.thinking;
        (spent.thinking, spent.overhead, spent.solution) = (Tokens::ZERO, Tokens::ZERO, Tokens::ZERO);
        (spent.injected, spent.members) = (Tokens::ZERO, None);
        spent.extra_calls += 1;
        self.running = Some(RunningPart::repeat(hidden));
    }

    /// No more than that is booked as written of the running part.
    pub(super) fn set_limit(&mut self, most: Tokens) {
        self.update_running(|part| part.most = Some(most));
    }

    /// What the running part writes unseen is its answer.
    pub(super) fn mark_unseen_answer(&mut self) {
        self.update_running(|part| part.is_unseen_answer = true);
    }

    /// The running part's thought turned out to be no hidden one.
    pub(super) fn mark_thought_visible(&mut self) {
        self.update_running(|part| part.hidden = None);
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
        self.update_running(|part| part.add_thinking(text, tokens));
    }

    /// More of a hidden thought's summary.
    pub(super) fn add_summary(&mut self, text: &str) {
        self.update_running(|part| part.add_summary(text));
    }

    pub(super) fn add_solution(&mut self, text: &str, tokens: Tokens) {
        self.update_running(|part| part.add_solution(text, tokens));
    }

    /// What the running part has shown as its thought was its answer.
    pub(super) fn unthink(&mut self) {
        self.update_running(RunningPart::unthink);
    }

    /// Tags, hand-off, end of text.
    pub(super) fn add_overhead(&mut self, tokens: Tokens) {
        self.update_running(|part| part.overhead += tokens);
    }

    /// A hand-off that was read as part of the prompt, not written.
    pub(super) fn add_injected(&mut self, tokens: Tokens) {
        self.add_overhead(tokens);
        self.update_running(|part| part.injected += tokens);
    }

    /// Written, billed, and not delivered.
    pub(super) fn add_discarded(&mut self, text: &str, tokens: Tokens) {
        let tokens = if tokens > Tokens::ZERO { tokens } else { self.estimate_tokens(text) };
        if let Some(part) = &mut self.running {
            self.spent.undelivered += part.add_discarded(tokens);
        }
    }

    /// The same of a thought, which is none that was hidden then.
    pub(super) fn add_discarded_thought(&mut self, text: &str, tokens: Tokens) {
        self.mark_thought_visible();
        let before = self.spent.undelivered;
        self.add_discarded(text, tokens);
        self.spent.undelivered_thinking += self.spent.undelivered.saturating_sub(before);
    }

    /// Written after the caller's stop text, billed, and not delivered.
    pub(super) fn add_dropped(&mut self, text: &str, tokens: Tokens) {
        if tokens > Tokens::ZERO {
            return self.add_discarded(text, tokens);
        }
        self.update_running(|part| part.add_dropped(text));
    }

    /// What its upstream reports, as far as that can be.
    pub(super) fn set_usage(&mut self, reported: TokenUsage) {
        let resent = self.prompt + self.spent.thinking + self.spent.solution + self.overhead;
        let usage = believed(reported, token_bound::believable(resent));
        self.update_running(|part| {
            part.is_unbelievable |= usage != reported;
            part.set_usage(usage);
        });
    }

    /// True if the running part may think unseen.
    pub(super) fn is_hidden(&self) -> bool {
        self.running.as_ref().is_some_and(|part| part.hidden.is_some())
    }

    /// True if the running part may have a hidden thought that nothing has reported yet.
    pub(super) fn is_hidden_uncounted(&self) -> bool {
        self.running.as_ref().is_some_and(RunningPart::is_hidden_uncounted)
    }

    /// True if the running part has surely written more than it was allowed.
    pub(super) fn is_beyond_limit(&self) -> bool {
        self.running.as_ref().is_some_and(RunningPart::is_beyond_limit)
    }

    /// True if the running part has shown a thought.
    pub(super) fn has_visible_thought(&self) -> bool {
        self.running.as_ref().is_some_and(RunningPart::has_visible_thought)
    }

    /// True if a thought, or what closes one, came before what comes now.
    pub(super) fn has_thought(&self) -> bool {
        let before = self.spent.thinking + self.spent.overhead > Tokens::ZERO;
        before || self.has_visible_thought() || self.overhead_now() > Tokens::ZERO
    }

    /// Tags and hand-offs of the running part.
    pub(super) fn overhead_now(&self) -> Tokens {
        self.running_tokens(|part| part.overhead)
    }

    /// Thinking tokens of the running part, where each is reported.
    pub(super) fn thinking_now(&self) -> Tokens {
        self.running_tokens(|part| part.thinking)
    }

    /// Thinking tokens of the running part with one more piece, by the best count there is.
    pub(super) fn thinking_with(&self, text: &str, tokens: Tokens, bias: CountBias) -> Tokens {
        self.running.as_ref().map_or(tokens, |part| part.thinking_with(text, tokens, bias))
    }

    /// The most tokens that the running part's thought can have.
    pub(super) fn thinking_upper_bound(&self) -> Tokens {
        self.running_tokens(RunningPart::thinking_upper_bound)
    }

    /// Solution tokens of the running part.
    pub(super) fn solution_now(&self) -> Tokens {
        self.running_tokens(|part| part.solution)
    }

    /// Solution tokens so far, also if only the upstream's usage reports them.
    pub(super) fn solution_so_far(&self) -> Tokens {
        let mut account = self.clone();
        account.book(PartEnd::Completed);
        account.spent.solution
    }

    /// How much shorter the running part's prompt was than was reserved for it, at least.
    pub(super) fn prompt_spare(&self) -> Tokens {
        let most = self.running.as_ref().and_then(RunningPart::prompt_upper_bound);
        most.map_or(Tokens::ZERO, |most| self.prompt.saturating_sub(most))
    }

    /// What the backend reported of the prompt of the first part, once that is over.
    pub(super) fn prompt_reported(&self) -> Option<Tokens> {
        self.prompt_reported
    }

    /// Books the running part, if there is one.
    pub(super) fn book(&mut self, end: PartEnd) {
        let Some(part) = self.running.take() else { return };
        let prompt = self.prompt_tokens(&part, end);
        let usage = part.usage(end, &self.output_stats, self.unseen_max);
        let spent = &mut self.spent;
        spent.estimated |= part.prompt_reported().is_none() || part.is_unbelievable || usage.estimated;
        if part.is_repeat {
            spent.prompt_rebilled += prompt;
        } else {
            spent.prompt = prompt;
            self.prompt_reported = part.prompt_reported();
        }
        spent.calls.push(part.billed(prompt, &usage, self.cache_ttl));
        spent.thinking += usage.thinking;
        spent.solution += usage.solution;
        spent.undelivered += usage.dropped;
        spent.overhead += part.overhead;
        spent.injected += part.injected;
    }

    /// What the part read, by the upstream's report or by our bound; of one that was broken off, by what is usual of that.
    fn prompt_tokens(&self, part: &RunningPart, end: PartEnd) -> Tokens {
        let resent = || self.prompt + self.spent.thinking + self.spent.solution + self.overhead;
        let bound = || if part.is_repeat { resent() } else { self.prompt };
        let usual = |most: Tokens| match self.output_stats.prompt_share {
            Some(share) if end == PartEnd::BrokenOff => Tokens::round((most.as_f64() * share).ceil()),
            _ => most,
        };
        part.prompt_reported().unwrap_or_else(|| usual(bound()))
    }

    fn update_running(&mut self, update: impl FnOnce(&mut RunningPart)) {
        if let Some(part) = &mut self.running {
            update(part);
        }
    }

    /// Some tokens of the running part; none where no part runs.
    fn running_tokens(&self, tokens: impl FnOnce(&RunningPart) -> Tokens) -> Tokens {
        self.running.as_ref().map_or(Tokens::ZERO, tokens)
    }
}

/// A report without counts that no model can have: of a prompt not more than so much, and of what was written not more than one ever
/// wrote.
fn believed(usage: TokenUsage, prompt_max: Tokens) -> TokenUsage {
    const WRITTEN_MAX: Tokens = Tokens(1 << 24);
    TokenUsage {
        prompt: usage.prompt.min(prompt_max),
        cache_read: usage.cache_read.min(prompt_max),
        cache_write: usage.cache_write.min(prompt_max),
        cache_hour: usage.cache_hour.map(|hour| hour.min(prompt_max)),
        completion: usage.completion.min(WRITTEN_MAX),
        thinking: usage.thinking.map(|thinking| thinking.min(WRITTEN_MAX)),
    }
}
