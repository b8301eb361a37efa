//! Where entries become durable, behind a trait. Entries are immutable and never deleted.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::catalog::Prices;
use crate::chat::ToolCounts;
use crate::units::{EpisodeId, Money, RequestId, Timestamp, Tokens};

use super::{
    AbandonPolicy, AccountId, Amounts, EpisodeUsage, GroupUsage, JournalError, RequestScope, Seal,
    SpendByModel, SpendRate, UsageQuery, spend_sums, usage,
};

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalEntry {
    /// Something is about to be sent for this reservation.
    Dispatched(DispatchEntry),
    /// More was set aside for it.
    Extended(ExtensionEntry),
    /// So much of it was used so far.
    Metered(MeterEntry),
    /// It was resolved.
    Resolved(ResolutionEntry),
}

/// A reservation whose request goes upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchEntry {
    /// Which reservation.
    pub id: RequestId,
    /// Whose.
    pub account: AccountId,
    /// What it is about.
    pub about: RequestScope,
    /// What was set aside for it until then.
    pub held: Amounts,
    /// The tool calls of that.
    pub tools: ToolCounts,
    /// What those cost at most, which is part of the money.
    pub tools_cost: Money,
    /// The prices in force, at which it will be settled.
    pub prices: Option<Prices>,
    /// What it is charged if nobody settles it.
    pub if_abandoned: AbandonPolicy,
    /// How fast it takes money at most, where that is known. It says what is charged if nobody settles it, and is no part of a seal.
    pub rate: Option<SpendRate>,
    /// What was used of it when it was last looked at; nothing, at the dispatch.
    pub metered: Option<Amounts>,
    /// When that was.
    pub metered_at: Option<Timestamp>,
    /// When it was admitted: the moment that says to which windows it belongs.
    pub admitted: Timestamp,
    /// When it expires unless renewed.
    pub expires: Timestamp,
}

/// More set aside for a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionEntry {
    /// Which reservation.
    pub id: RequestId,
    /// Counts its extensions.
    pub step: u32,
    /// How much more.
    pub more: Amounts,
    /// Which model serves it from then on.
    pub model: Option<Arc<str>>,
}

/// What was used of a reservation while it runs. Of several the last one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterEntry {
    /// Which reservation.
    pub id: RequestId,
    /// Counts them.
    pub step: u32,
    /// All that was used until then.
    pub spent: Amounts,
    /// When it was; like the rate, no part of a seal.
    pub at: Option<Timestamp>,
}

/// How a reservation was resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ResolutionKind {
    /// At what was really used.
    Settled,
    /// Given back whole: nothing was sent.
    Voided,
    /// Posted whole: it was dispatched, and nobody said what was used.
    Expired,
}

/// The end of a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolutionEntry {
    /// Which reservation.
    pub id: RequestId,
    /// Whose.
    pub account: AccountId,
    /// What it was about in the end.
    pub about: RequestScope,
    /// When it was admitted.
    pub admitted: Timestamp,
    /// When it was resolved.
    pub at: Timestamp,
    /// How.
    pub how: ResolutionKind,
    /// What it is charged.
    pub spent: Amounts,
    /// What of that was more than the reservation.
    pub overrun: Amounts,
    /// What was done for it.
    pub detail: SettlementDetail,
}

/// What was done for the money.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettlementDetail {
    /// Prompt tokens as billed.
    pub prompt: Tokens,
    /// Tags, hand-off and end of text.
    pub overhead: Tokens,
    /// Solution tokens.
    pub solution: Tokens,
    /// Output tokens that were not delivered, thoughts apart: those are counted with all thoughts.
    pub other: Tokens,
    /// Tool calls that passed.
    pub tools: ToolCounts,
    /// What those cost, which is part of what was charged.
    pub tools_cost: Money,
    /// What each model took of it, where several did. In a row they are those of other models than its own.
    pub parts: SpendByModel,
    /// How it ended, in one word.
    pub outcome: std::borrow::Cow<'static, str>,
}

/// What an account spent on some of its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountSpend {
    /// Whose; its ancestors' sums are not in it.
    pub account: AccountId,
    /// What those requests were about.
    pub about: RequestScope,
    /// They were admitted at this moment or later, within the same quarter of an hour.
    pub since: Timestamp,
    /// What they were charged.
    pub spent: Amounts,
    /// What of that was more money than reserved.
    pub overrun: Money,
    /// How many of them were settled; neither voided nor expired.
    pub settled: u64,
}

/// A durable list of entries. `conformance` says in tests what one must do.
pub trait Journal: Send + Sync {
    /// Makes all entries durable, or none. An entry that is there already (by its reservation, its kind and, where it has one,
    /// its step) is left as it is, so that appending again is safe after any failure.
    fn append<'a>(&'a self, entries: &'a [JournalEntry]) -> BoxFuture<'a, Result<(), JournalError>>;

    /// The dispatched reservations that are not resolved, with all that was set aside for each, what was metered last,
    /// and the model that it came to.
    fn unresolved(&self) -> BoxFuture<'_, Result<Vec<DispatchEntry>, JournalError>>;

    /// What each account spent on requests admitted at `since` or later, by the quarter of an hour of the admission:
    /// no time zone's days begin elsewhere.
    fn spend_since(&self, since: Timestamp) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>>;

    /// What each account spent on requests admitted at the first of these moments or later, each request under the last
    /// of them that it was not admitted before; by moment, account, and what the
    /// requests were about. They are in order, and none is of voided requests alone.
    fn spend_between<'a>(
        &'a self,
        moments: &'a [Timestamp],
    ) -> BoxFuture<'a, Result<Vec<AccountSpend>, JournalError>> {
        spend_sums::spend_between(self, moments).boxed()
    }

    /// What the steps of one run of an account took that are resolved, however long ago.
    fn episode_usage<'a>(
        &'a self,
        account: &'a AccountId,
        episode: &'a EpisodeId,
    ) -> BoxFuture<'a, Result<EpisodeUsage, JournalError>>;

    /// What each account spent over all time; `since` in it is the beginning of time.
    fn balances(&self) -> BoxFuture<'_, Result<Vec<AccountSpend>, JournalError>>;

    /// Seals the oldest resolutions that are not sealed yet, as many as one seal may cover; nothing, where there are none, or
    /// where another did so while this one waited for it. Sums are the same before and after. A journal that nobody can look into later need not.
    fn seal(&self, now: Timestamp) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        let _ = now;
        async { Ok(None) }.boxed()
    }

    /// The last seal.
    fn last_seal(&self) -> BoxFuture<'_, Result<Option<Seal>, JournalError>> {
        async { Ok(None) }.boxed()
    }

    /// What was used, by group, in the order of the groups.
    fn usage<'a>(&'a self, query: &'a UsageQuery) -> BoxFuture<'a, Result<Vec<GroupUsage>, JournalError>> {
        let _ = query;
        async { Err(usage::unsupported()) }.boxed()
    }
}

/// The quarter of an hour that holds a moment, in milliseconds.
pub const QUARTER_HOUR_MS: i64 = 15 * 60 * 1000;

impl JournalEntry {
    /// Which reservation it is about.
    pub fn id(&self) -> RequestId {
        match self {
            JournalEntry::Dispatched(dispatched) => dispatched.id,
            JournalEntry::Extended(extended) => extended.id,
            JournalEntry::Metered(metered) => metered.id,
            JournalEntry::Resolved(resolved) => resolved.id,
        }
    }
}

impl ResolutionKind {
    /// The word for it in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            ResolutionKind::Settled => "settled",
            ResolutionKind::Voided => "voided",
            ResolutionKind::Expired => "expired",
        }
    }

    /// What a word of the journal means.
    pub fn parse(word: &str) -> Option<ResolutionKind> {
        [ResolutionKind::Settled, ResolutionKind::Voided, ResolutionKind::Expired]
            .into_iter()
            .find(|how| how.as_str() == word)
    }
}

impl AbandonPolicy {
    /// The word for it in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            AbandonPolicy::PostWhole => "whole",
            AbandonPolicy::PostMetered => "metered",
        }
    }

    /// What a word of the journal means; whatever is not known is posted whole.
    pub fn parse(word: &str) -> AbandonPolicy {
        if word == AbandonPolicy::PostMetered.as_str() {
            AbandonPolicy::PostMetered
        } else {
            AbandonPolicy::PostWhole
        }
    }
}
