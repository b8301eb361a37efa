//! The usage query and its answer: what was used, by group.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use stint_types::units::{AccountId, Timestamp};

use super::entry::ResolutionEntry;
use super::span::RollupSpan;
use super::usage_sums::UsageSums;

/// By what usage is grouped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupBy {
    /// By the day of UTC on which requests were admitted.
    pub day: bool,
    /// By the account that made them.
    pub key: bool,
    /// By the model: requests are those that it answered, money and tokens what it took itself, also of others' requests.
    pub model: bool,
}

/// A query of usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageQuery {
    /// Of this account and all below it; of everybody, if absent.
    pub account: Option<AccountId>,
    /// Requests admitted at this moment or later.
    pub from: Timestamp,
    /// Requests admitted before this moment.
    pub to: Timestamp,
    /// By what to group them.
    pub by: GroupBy,
    /// Groups after this one.
    pub after: Option<UsageGroup>,
    /// The most groups.
    pub limit: usize,
}

/// What the requests of one group have in common; what they are not grouped by is empty. In the order of its
/// members.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageGroup {
    /// When their day began.
    pub day: Timestamp,
    /// Their account.
    pub key: Arc<str>,
    /// The model that took it; empty also where none was chosen.
    pub model: Arc<str>,
}

/// What one group used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupUsage {
    /// Which group.
    pub group: UsageGroup,
    /// What it used.
    pub sums: UsageSums,
}

impl UsageQuery {
    /// The answer from a plain list of resolutions.
    pub(crate) fn evaluate<'a>(&self, rows: impl Iterator<Item = &'a ResolutionEntry>) -> Vec<GroupUsage> {
        let mut groups: BTreeMap<UsageGroup, UsageSums> = BTreeMap::new();
        for row in rows.filter(|row| self.matches(row)) {
            if !self.by.model {
                groups.entry(self.group(row, None)).or_default().add(row);
                continue;
            }
            for (model, share) in row.shares() {
                *groups.entry(self.group(row, model)).or_default() += share;
            }
        }
        let usages = groups.into_iter().map(|(group, sums)| GroupUsage { group, sums });
        let later = |usage: &GroupUsage| {
            self.after.as_ref().is_none_or(|after| usage.group.cmp(after) == Ordering::Greater)
        };
        usages.filter(later).take(self.limit).collect()
    }

    fn matches(&self, row: &ResolutionEntry) -> bool {
        let is_in = (self.from..self.to).contains(&row.admitted);
        is_in && self.account.as_ref().is_none_or(|account| account.contains(&row.account))
    }

    fn group(&self, row: &ResolutionEntry, model: Option<&Arc<str>>) -> UsageGroup {
        let day = RollupSpan::Day.start(row.admitted);
        UsageGroup {
            day: if self.by.day { day } else { Timestamp(0) },
            key: if self.by.key { row.account.as_str().into() } else { Arc::default() },
            model: model.cloned().unwrap_or_default(),
        }
    }
}
