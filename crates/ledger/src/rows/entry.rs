//! The entries of the journal: dispatches, extensions, meterings and resolutions. They are immutable and never deleted.

use std::sync::Arc;

use stint_types::catalog::Prices;
use stint_types::chat::ToolCounts;
use stint_types::units::{AccountId, Money, RequestId, Timestamp, Tokens};

use super::abandon_policy::{AbandonPolicy, SpendRate};
use super::amounts::Amounts;
use super::model_spend::{ModelSpend, SpendByModel};
use super::scope::RequestScope;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalEntry {
    /// Something is about to be sent for this reservation.
    Dispatched(DispatchEntry),
    /// More was reserved for it.
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
    /// What was reserved for it until then.
    pub held: Amounts,
    /// The tool calls of that.
    pub tools: ToolCounts,
    /// What those cost at most, which is part of the money.
    pub tools_cost: Money,
    /// The prices in force, at which it will be settled.
    pub prices: Option<Prices>,
    /// What it is charged if nobody settles it.
    pub if_abandoned: AbandonPolicy,
    /// How fast it uses money at most, if that is known. It decides what is charged if nobody settles it, and is no part of a
    /// seal.
    pub rate: Option<SpendRate>,
    /// What was used of it when it was last looked at; nothing, at the dispatch.
    pub metered: Option<Amounts>,
    /// When that was.
    pub metered_at: Option<Timestamp>,
    /// When it was admitted: this decides to which windows it belongs.
    pub admitted: Timestamp,
    /// When it expires unless renewed.
    pub expires: Timestamp,
}

/// More reserved for a reservation.
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
    /// Posted: it was dispatched, and nobody settled it.
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

/// The most tokens of a kind in one entry.
const TOKENS_MAX: Tokens = Tokens(1 << 40);

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
    /// What each model took of it, if several did. In an entry, only those of other models than its own.
    pub parts: SpendByModel,
    /// How it ended, in one word.
    pub outcome: std::borrow::Cow<'static, str>,
}

impl SettlementDetail {
    /// The nearest that one entry can hold: more is a broken counter, and sums of millions of entries still fit the 64 bits of a
    /// database.
    #[must_use]
    pub(crate) fn clamped(self) -> SettlementDetail {
        let least = |tokens: Tokens| tokens.min(TOKENS_MAX);
        SettlementDetail {
            prompt: least(self.prompt),
            overhead: least(self.overhead),
            solution: least(self.solution),
            other: least(self.other),
            tools_cost: self.tools_cost.min(Amounts::MONEY_MAX),
            parts: self.parts.within(ModelSpend {
                money: Amounts::MONEY_MAX,
                thinking: TOKENS_MAX,
                prompt: TOKENS_MAX,
                overhead: TOKENS_MAX,
                solution: TOKENS_MAX,
                other: TOKENS_MAX,
            }),
            ..self
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_holds_more_than_sums_of_many_can() {
        let broken = Tokens(u64::MAX);
        let mut parts = SpendByModel::default();
        parts.add(&"m".into(), ModelSpend { prompt: broken, ..ModelSpend::default() });
        let detail = SettlementDetail { prompt: broken, other: broken, parts, ..SettlementDetail::default() };
        let clamped = detail.clamped();
        assert_eq!((clamped.prompt, clamped.other, clamped.solution), (TOKENS_MAX, TOKENS_MAX, Tokens::ZERO));
        assert!(clamped.parts.iter().all(|(_, part)| part.prompt == TOKENS_MAX));
    }
}
