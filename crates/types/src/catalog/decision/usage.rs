//! What an execution used.

use serde::{Deserialize, Serialize};

use crate::catalog::models::{BilledCall, Tariff};
use crate::chat::ProviderMembers;
use crate::units::{Money, Tokens};

/// How a thought ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingStopReason {
    /// There was none.
    #[default]
    None,
    /// The model closed it.
    Closed,
    /// The budget ran out, and the hand-off closed it.
    Cut,
    /// The model ended its text without closing it.
    Stopped,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SolutionStopReason {
    /// It did not begin, was broken off, or nothing of it passed.
    #[default]
    None,
    /// The model was done.
    Stop,
    /// The model was done, and wants tools to be called.
    ToolCalls,
    /// A limit that the caller stated.
    #[serde(alias = "length")]
    Caller,
    /// A limit that the operator stated.
    Operator,
    /// The model's own limit: its context, or the most that its provider lets it write.
    Model,
    /// No money, or no tokens of an account's limit, were left for more.
    Money,
    /// The ledger did not answer, so that nothing more could be set aside.
    Ledger,
    /// The deadline.
    Deadline,
    /// The upstream: it withheld the rest, broke it off, or wrote beyond its limit and was hung up on.
    Upstream,
}

impl ThinkingStopReason {
    /// The word in metrics and traces.
    pub fn as_str(self) -> &'static str {
        match self {
            ThinkingStopReason::None => "none",
            ThinkingStopReason::Closed => "closed",
            ThinkingStopReason::Cut => "cut",
            ThinkingStopReason::Stopped => "stopped",
        }
    }
}

impl SolutionStopReason {
    /// Every way.
    pub const ALL: [SolutionStopReason; 10] = [
        SolutionStopReason::None,
        SolutionStopReason::Stop,
        SolutionStopReason::ToolCalls,
        SolutionStopReason::Caller,
        SolutionStopReason::Operator,
        SolutionStopReason::Model,
        SolutionStopReason::Money,
        SolutionStopReason::Ledger,
        SolutionStopReason::Deadline,
        SolutionStopReason::Upstream,
    ];

    /// The word for it on the wire and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            SolutionStopReason::None => "none",
            SolutionStopReason::Stop => "stop",
            SolutionStopReason::ToolCalls => "tool_calls",
            SolutionStopReason::Caller => "caller",
            SolutionStopReason::Operator => "operator",
            SolutionStopReason::Model => "model",
            SolutionStopReason::Money => "money",
            SolutionStopReason::Ledger => "ledger",
            SolutionStopReason::Deadline => "deadline",
            SolutionStopReason::Upstream => "upstream",
        }
    }

    /// True if the model would have gone on.
    pub fn is_cut(self) -> bool {
        !matches!(self, SolutionStopReason::None | SolutionStopReason::Stop | SolutionStopReason::ToolCalls)
    }
}

/// Who limits an answer. Nobody does so by an estimate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LimitedBy {
    /// The caller, who stated a limit.
    Caller,
    /// The operator, who set one.
    Operator,
    /// The model: its context, or the most that its provider lets it write.
    #[default]
    Model,
    /// What is left under a limit on money or tokens.
    Money,
}

impl From<LimitedBy> for SolutionStopReason {
    fn from(by: LimitedBy) -> SolutionStopReason {
        match by {
            LimitedBy::Caller => SolutionStopReason::Caller,
            LimitedBy::Operator => SolutionStopReason::Operator,
            LimitedBy::Model => SolutionStopReason::Model,
            LimitedBy::Money => SolutionStopReason::Money,
        }
    }
}

/// A prompt by what the provider's cache had of it. `fresh`, `read` and `write` are all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptCacheUsage {
    /// Tokens that the cache neither had nor took.
    pub fresh: Tokens,
    /// Tokens that it had.
    pub read: Tokens,
    /// Tokens that were put there.
    pub write: Tokens,
    /// How many of those are kept for an hour.
    pub hour: Tokens,
}

/// What one choice really took, to the token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChoiceUsage {
    /// Thinking tokens: neither tags nor hand-off nor end of text.
    pub thinking: Tokens,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// How much of the overhead was sent to the model rather than written by it: a hand-off in a second
    /// prompt, already billed as part of that.
    pub injected: Tokens,
    /// Solution tokens.
    pub solution: Tokens,
    /// The caller's prompt, once.
    pub prompt: Tokens,
    /// Prompt tokens that were billed again (a second phase, a retry).
    pub prompt_rebilled: Tokens,
    /// Output tokens of what was not delivered (failed attempts, discarded tokens).
    pub undelivered: Tokens,
    /// How many of those were thought.
    pub undelivered_thinking: Tokens,
    /// How many calls were made beyond the first.
    pub extra_calls: u32,
    /// Each call of the backend as it is billed, in order.
    pub calls: Vec<BilledCall>,
    /// How often the answer spoke like a thought that goes on (`ThinkDial`, arXiv 2508.18773): only looked for where
    /// the thought was cut.
    pub leaks: u32,
    /// True if the backend's own budget did not hold.
    pub overran: bool,
    /// How many tool calls were broken off by a limit before their arguments were whole.
    pub unfinished_calls: u32,
    /// Thoughts of earlier turns that its provider did not accept any more.
    pub thoughts_dropped: u32,
    /// True if a count was reckoned rather than reported.
    pub estimated: bool,
    /// How the thought ended.
    pub thinking_ended: ThinkingStopReason,
    /// How the answer ended.
    pub solution_ended: SolutionStopReason,
    /// Which of the caller's stop texts ended it, where one did and it is known.
    pub stopped_by: Option<Box<str>>,
    /// What its upstream calls the configuration that it ran the model in.
    pub fingerprint: Option<Box<str>>,
    /// What its provider says of it in members that only its own API has.
    pub members: Option<Box<ProviderMembers>>,
}

impl ChoiceUsage {
    /// What is reported to the caller as `completion_tokens`.
    pub fn completion(&self) -> Tokens {
        self.thinking + self.overhead + self.solution
    }

    /// Takes on what was spent on another answer, which is not delivered. A hand-off that it read is part of what it read.
    pub fn absorb(&mut self, lost: &ChoiceUsage) {
        self.prompt_rebilled += lost.prompt + lost.prompt_rebilled;
        self.undelivered += lost.completion().saturating_sub(lost.injected) + lost.undelivered;
        self.undelivered_thinking += lost.thinking_total();
        self.extra_calls += lost.extra_calls;
        self.calls.extend_from_slice(&lost.calls);
        self.overran |= lost.overran;
        self.thoughts_dropped = self.thoughts_dropped.max(lost.thoughts_dropped);
        self.estimated |= lost.estimated;
    }

    /// Takes on what the provider says of one more of its calls.
    pub fn add_members(&mut self, more: ProviderMembers) {
        match &mut self.members {
            Some(members) => members.absorb(more),
            None => self.members = Some(Box::new(more)),
        }
    }

    /// Everything thought, delivered or not: what limits on thinking count.
    pub fn thinking_total(&self) -> Tokens {
        self.thinking + self.undelivered_thinking
    }

    /// Everything read, as billed.
    pub fn input(&self) -> Tokens {
        self.calls.iter().map(|call| call.input).sum()
    }

    /// Everything written, as billed.
    pub fn output(&self) -> Tokens {
        self.calls.iter().map(|call| call.output).sum()
    }

    /// What the provider's cache had.
    pub fn cache_read(&self) -> Tokens {
        self.calls.iter().map(|call| call.cache_read).sum()
    }

    /// What was put into a cache, in all calls.
    pub fn cache_write(&self) -> Tokens {
        self.calls.iter().map(|call| call.cache_write).sum()
    }

    /// How the provider's cache served the caller's prompt: when it was first read. A later call of the same answer finds there what
    /// the first one put there.
    pub fn prompt_cache(&self) -> PromptCacheUsage {
        let first = self.calls.first().copied().unwrap_or_default();
        let read = first.cache_read.min(self.prompt);
        let write = first.cache_write.min(self.prompt.saturating_sub(read));
        let hour = first.cache_hour.min(write);
        PromptCacheUsage { fresh: self.prompt.saturating_sub(read + write), read, write, hour }
    }

    /// What it all costs.
    pub fn cost(&self, tariff: &Tariff) -> Money {
        self.calls.iter().map(|call| tariff.cost(call)).sum()
    }
}
