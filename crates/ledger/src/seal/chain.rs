//! Seals: a chain of hashes over what was resolved, and sums that spare reading it again. Pure.
//!
//! A seal's hash is the SHA-256 of, one after the other:
//!
//! - `stint seal 1\n`, the hash of the seal before (32 zero bytes for the first), its own number;
//! - for each resolution that it covers, in the order of their numbers: `S`, that number, the id, the account, what it
//!   was about, when it was admitted and resolved, how, what it was charged, what of that was overrun, the four counts
//!   of tokens, the outcome; then `R` and its reservation (account, about, held, prices, what is posted if abandoned,
//!   admitted, expires); then for each extension `E`, its step, the model and how much more; then for each metering
//!   `M`, its step and how much;
//! - of a step of an episode and of tool calls, after each `S` and `R` and what belongs to it: `A`, the episode, what the tool
//!   calls cost, of how many tools there were any, and the name and the count of each; and `B`, where it is no turn of its
//!   episode;
//! - of what other models took than the one that answered, after the `S`, its `A` and `B`: for each `P`, its model, the money, and
//!   the tokens: thinking, prompt, overhead, solution, other;
//! - `Z`, when it was sealed, how many resolutions it covers.
//!
//! Whole numbers are 8 bytes, the high one first. Texts are their length and their bytes. What may be absent is a byte
//! 0, or a byte 1 and the value. Of amounts, money, thinking tokens and tool calls are hashed, in that order.

use std::collections::BTreeMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::rows::{RequestScope, ResolutionEntry, RollupSpan, UsageSums};
use stint_types::units::{AccountId, Timestamp};

use super::bytes::SealBytes;
use super::record::ResolutionRecord;

/// The most resolutions that one seal covers: writing their sums down must not hold up the writer. A busy day has
/// several seals.
pub const SEAL_MAX: usize = 10_000;

/// What is known of a seal once it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// 1, 2, 3, …
    pub number: i64,
    /// The number of the last resolution that it covers.
    pub through: i64,
    /// How many it covers.
    pub resolutions: usize,
    /// When it was made.
    pub at: Timestamp,
    /// What it comes to.
    pub hash: [u8; 32],
}

/// Sums by time of admission, account and scope. Whole requests have no model as the last part of the key. Parts that other
/// models took are summed under their own model, and the last part of the key is the model whose requests they are part of.
pub type Rollups = BTreeMap<(RollupSpan, Timestamp, AccountId, RequestScope, Option<Arc<str>>), UsageSums>;

/// A seal in the making.
#[derive(Debug)]
pub struct SealBuilder {
    hash: Sha256,
    number: i64,
    through: i64,
    resolutions: usize,
    rollups: Rollups,
}

impl Seal {
    /// True if it covers as many as it may, so that more may be waiting.
    pub fn is_full(&self) -> bool {
        self.resolutions >= SEAL_MAX
    }

    /// The hash in hexadecimal.
    pub fn hex(&self) -> String {
        self.hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl SealBuilder {
    /// The seal that follows this one; the first, if there is none.
    pub fn after(previous: Option<&Seal>) -> SealBuilder {
        let mut hash = Sha256::new();
        let number = previous.map_or(0, |seal| seal.number) + 1;
        hash.update(b"stint seal 1\n");
        hash.update(previous.map_or([0; 32], |seal| seal.hash));
        hash.update(number.to_be_bytes());
        let through = previous.map_or(0, |seal| seal.through);
        SealBuilder { hash, number, through, resolutions: 0, rollups: Rollups::new() }
    }

    /// The number of the last resolution that is covered so far.
    pub fn through(&self) -> i64 {
        self.through
    }

    /// How many more it may cover.
    pub fn remaining(&self) -> usize {
        SEAL_MAX.saturating_sub(self.resolutions)
    }

    /// Covers the next resolution.
    pub fn add(&mut self, record: &ResolutionRecord) {
        self.hash.update(SealBytes::of(record).0);
        (self.through, self.resolutions) = (record.number, self.resolutions + 1);
        let ResolutionEntry { account, about, admitted, detail, .. } = &record.resolved;
        let (whole, own) = (about.without_episode(), about.model.clone().unwrap_or_default());
        for span in RollupSpan::ALL {
            let start = span.start(*admitted);
            let key = (span, start, account.clone(), whole.clone(), None);
            self.rollups.entry(key).or_default().add(&record.resolved);
            for (model, part) in detail.parts.iter() {
                let theirs = RequestScope { model: Some(model.clone()), ..whole.clone() };
                let key = (span, start, account.clone(), theirs, Some(own.clone()));
                *self.rollups.entry(key).or_default() += part.into();
            }
        }
    }

    /// The seal and its sums; nothing, where it covers nothing.
    pub fn finish(self, at: Timestamp) -> Option<(Seal, Rollups)> {
        let SealBuilder { mut hash, number, through, resolutions, rollups } = self;
        if resolutions == 0 {
            return None;
        }
        hash.update(b"Z");
        hash.update(at.0.to_be_bytes());
        hash.update(u64::try_from(resolutions).unwrap_or(u64::MAX).to_be_bytes());
        Some((Seal { number, through, resolutions, at, hash: hash.finalize().into() }, rollups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{amounts, dispatched, resolved};
    use crate::{ModelSpend, ResolutionKind};
    use stint_types::units::{Money, RequestId};

    fn record(number: i64) -> ResolutionRecord {
        let row = dispatched("a", 10, amounts(5, 6));
        let resolved = resolved(&row, ResolutionKind::Settled, amounts(3, 4));
        ResolutionRecord {
            number,
            resolved,
            dispatched: Some(row),
            extended: Vec::new(),
            metered: Vec::new(),
        }
    }

    fn hash(previous: Option<&Seal>, records: &[&ResolutionRecord]) -> [u8; 32] {
        let mut sealing = SealBuilder::after(previous);
        records.iter().for_each(|record| sealing.add(record));
        sealing.finish(Timestamp(7)).unwrap().0.hash
    }

    #[test]
    fn a_seal_depends_on_every_row_their_order_and_the_seal_before() {
        let (one, two) = (record(1), record(2));
        let whole = hash(None, &[&one, &two]);
        assert_eq!(whole, hash(None, &[&one, &two]));
        assert_ne!(whole, hash(None, &[&two, &one]));
        assert_ne!(whole, hash(None, &[&one]));
        let before = Seal { number: 1, through: 0, resolutions: 1, at: Timestamp(0), hash: [1; 32] };
        assert_ne!(whole, hash(Some(&before), &[&one, &two]));
        let unreserved = ResolutionRecord { dispatched: None, ..one.clone() };
        assert_ne!(whole, hash(None, &[&unreserved, &two]));
        let mut step = one.clone();
        step.resolved.about.episode = Some("run".parse().unwrap());
        let is_step = hash(None, &[&step, &two]);
        assert_ne!(whole, is_step);
        step.resolved.about.beside_turns = true;
        assert_ne!(is_step, hash(None, &[&step, &two]));
        step.resolved.about.beside_turns = false;
        step.resolved.detail.tools.each.insert("search".into(), stint_types::units::Count(1));
        assert_ne!(is_step, hash(None, &[&step, &two]));
    }

    #[test]
    fn a_seal_depends_on_every_part() {
        let (part, mut record) = (ModelSpend { money: Money(2), ..ModelSpend::default() }, record(1));
        let mut hashes = vec![hash(None, &[&record])];
        for model in ["judge", "judge", "draft"] {
            record.resolved.detail.parts.add(&model.into(), part);
            hashes.push(hash(None, &[&record]));
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 4);
    }

    /// What was sealed before there were parts comes to what it came to.
    #[test]
    fn a_seal_of_requests_of_one_model_is_as_it_always_was() {
        let mut record = record(1);
        record.resolved.id = RequestId::from_bytes([7; 16]);
        let (seal, _) = {
            let mut sealing = SealBuilder::after(None);
            sealing.add(&record);
            sealing.finish(Timestamp(7)).unwrap()
        };
        assert_eq!(seal.hex(), "29f24beaf9f29158fa6d43d744a2aee01b2becb6a74f95b6498339f471a7ab63");
    }

    #[test]
    fn parts_are_summed_up_beside_whole_requests() {
        let mut record = record(1);
        record
            .resolved
            .detail
            .parts
            .add(&"judge".into(), ModelSpend { money: Money(2), ..ModelSpend::default() });
        let mut sealing = SealBuilder::after(None);
        sealing.add(&record);
        let (_, rollups) = sealing.finish(Timestamp(7)).unwrap();
        let of = |span: RollupSpan| -> Vec<_> {
            let lines = rollups.iter().filter(|((of, ..), _)| *of == span);
            lines
                .map(|((_, _, _, about, of), sums)| {
                    (about.model.as_deref().unwrap(), of.as_deref(), sums.spent.money.0)
                })
                .collect()
        };
        for span in RollupSpan::ALL {
            assert_eq!(of(span), [("judge", Some("reasoner"), 2), ("reasoner", None, 3)]);
        }
    }

    #[test]
    fn nothing_is_not_sealed() {
        assert!(SealBuilder::after(None).finish(Timestamp(0)).is_none());
    }
}
