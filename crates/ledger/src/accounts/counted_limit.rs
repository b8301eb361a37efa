//! One limit together with what it counts. Queries on limits are written here once, for accounts and for episodes.

use crate::quota::{QuotaBalance, QuotaLease, QuotaWindow};
use stint_types::units::{AccountId, Amount, Facet, Holder, Limit, Timestamp, Unit};

use super::error::{QuotaNeed, Shortfall};
use super::statement::LimitStatus;
use super::tally::WindowTally;

/// One limit of an account or of an episode, with the tally of the window that it counts.
#[derive(Debug, Clone)]
pub(crate) struct CountedLimit<'a> {
    /// Whose limit it is; an episode's belongs to the account of its key.
    pub(crate) account: &'a AccountId,
    pub(crate) facet: Facet,
    pub(crate) max: Amount,
    pub(crate) tally: WindowTally,
    /// Since when this replica counts it, if it used something before and does not know how much yet.
    pub(crate) counted_since: Option<Timestamp>,
}

impl CountedLimit<'_> {
    /// How it stands, for an account that asks: the holder of the limit or one below it.
    pub(crate) fn status(&self, asker: &AccountId) -> LimitStatus {
        let (unit, max, others) = (self.max.unit(), self.max, self.lease().others);
        let (spent, reserved) = self.tally.used(unit);
        let used = self.used().saturating_add(others);
        let left = Amount::new(unit, max.size().saturating_sub(used));
        let holder = match &self.facet {
            Facet::Episode(_) | Facet::Tool(..) => Holder::Episode,
            _ if self.account == asker => Holder::Key,
            _ => Holder::Account(self.account.clone()),
        };
        let limit = Limit { holder, facet: self.facet.clone(), unit, window: self.tally.window };
        // What others hold counts as spent: they may have spent it, and return what they do not use.
        let spent = Amount::new(unit, spent.size().saturating_add(others));
        LimitStatus { limit, max, spent, reserved, left, resets_at: self.tally.end }
    }

    /// Whether so much more fits. Where replicas share the account, `needs` takes what is missing of this replica's lease
    /// if it may fit once the replica holds more.
    pub(crate) fn check(
        &self,
        needed: Amount,
        asker: &AccountId,
        needs: &mut Option<Vec<QuotaNeed>>,
        now: Timestamp,
    ) -> Result<(), Shortfall> {
        if needed.size() == 0 {
            return Ok(());
        }
        let (max, lease) = (self.max.size(), self.lease());
        let wanted = self.used().saturating_add(needed.size());
        if wanted > max || lease.is_spent(wanted, max, now) {
            return Err(self.need(needed, asker).shortfall);
        }
        if let Some(needs) = needs.as_mut().filter(|_| !lease.covers(wanted, max)) {
            needs.push(self.need(needed, asker));
        }
        Ok(())
    }

    fn need(&self, needed: Amount, asker: &AccountId) -> QuotaNeed {
        let LimitStatus { limit, left, resets_at, .. } = self.status(asker);
        let shortfall = Shortfall { limit, needed, left, resets_at };
        let counted_since = self.counted_since;
        QuotaNeed { window: self.quota_window(), max: self.max.size(), counted_since, shortfall }
    }

    /// More than it can ever leave. It is never granted; asking for it finds out what is left.
    pub(crate) fn need_all(&self) -> QuotaNeed {
        self.need(Amount::new(self.max.unit(), u64::MAX), self.account)
    }

    /// As replicas share it.
    pub(crate) fn quota_window(&self) -> QuotaWindow {
        QuotaWindow {
            account: self.account.clone(),
            facet: self.facet.clone(),
            unit: self.max.unit(),
            window: self.tally.window,
            begins: self.tally.start,
            ends: self.tally.end,
        }
    }

    /// Whether what others leave of it is known exactly.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        now < self.lease().fresh_until
    }

    /// What this replica spent and reserved under it.
    pub(crate) fn used(&self) -> u64 {
        self.tally.size(self.max.unit())
    }

    /// What this replica holds of it.
    pub(crate) fn lease(&self) -> QuotaLease {
        self.tally.lease(self.max.unit())
    }

    /// What it holds and does not use.
    pub(crate) fn spare(&self) -> u64 {
        self.lease().own.saturating_sub(self.used())
    }

    /// How much of that one of so many replicas keeps. Of an episode it keeps nothing.
    pub(crate) fn retained(&self, replicas: u64) -> u64 {
        if self.is_of_episode() {
            return 0;
        }
        let QuotaLease { own, others, .. } = self.lease();
        let balance =
            QuotaBalance { granted: own.saturating_add(others), replicas, ..QuotaBalance::default() };
        balance.idle_share(self.max.size())
    }

    /// Whether the lease should be returned: it holds more than twice what it may keep, or the coordinator must be
    /// asked. Once nothing of an episode is open, the coordinator is notified, and nobody needs to ask.
    pub(crate) fn is_idle(&self, replicas: u64) -> bool {
        let (lease, used) = (self.lease(), self.used());
        if self.is_of_episode() {
            return self.tally.is_idle() || lease.is_uncertain || lease.own != used;
        }
        let is_doubtful = lease.is_stale || lease.is_uncertain || lease.own < used;
        is_doubtful || self.spare() > self.retained(replicas).saturating_mul(2)
    }

    /// Whether this replica holds something of it. A finished lease of an episode is no longer worth mentioning.
    pub(crate) fn is_leased(&self) -> bool {
        let lease = self.lease();
        lease.is_uncertain || (lease.own > 0 && !(lease.is_final && self.is_of_episode()))
    }

    /// Money that this replica holds of it and does not use.
    pub(crate) fn stranded(&self) -> u64 {
        if self.max.unit() == Unit::Money { self.spare() } else { 0 }
    }

    fn is_of_episode(&self) -> bool {
        matches!(self.facet, Facet::Episode(_) | Facet::Tool(..))
    }
}
