//! What is told of limits before somebody has to ask.

use crate::tenant::TenantLimit;
use crate::units::{Facet, Holder, Limit, Timestamp, Unit, Window};

use super::account::AccountState;
use super::extra_demand::ExtraDemand;
use super::tree::{AccountIndex, AccountTree};
use super::{AccountId, Ledger, LedgerState, LimitStatus};

/// A limit that somebody should look at; told once in each window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWarning {
    /// Whose limit it is.
    pub account: AccountId,
    /// How it stands.
    pub status: LimitStatus,
    /// Why it is told of.
    pub cause: WarningCause,
}

/// Why a limit is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningCause {
    /// What was spent reached the share at which its account warns; of requests at once, what is open.
    NearlyUsedUp,
    /// It refused a request before that.
    Refused,
}

impl AccountState {
    /// Tells of limits that are nearly used up, once in each window. What is only set aside counts for nothing but
    /// requests at once: most of it is given back.
    fn warn(
        &mut self,
        wish: &ExtraDemand<'_>,
        id: &AccountId,
        now: Timestamp,
        warnings: &mut Vec<LimitWarning>,
    ) {
        for at in 0..self.limits.len() {
            let TenantLimit { window, max, scope } = &self.limits[at];
            let (window, max, Some(facet)) = (*window, *max, wish.about.facet(scope)) else { continue };
            let (unit, tally) = (max.unit(), self.tally(&facet, window, wish.admitted));
            let used = if unit == Unit::Concurrency { tally.size(unit) } else { tally.used(unit).0.size() };
            let is_reached =
                self.warn_at.is_reached(used.saturating_add(tally.lease(unit).others), max.size());
            match (is_reached && tally.contains(now), unit) {
                (true, _) => {
                    let holder = wish.holder(id);
                    let warned = self.announce(at, (facet, &holder), id, now, WarningCause::NearlyUsedUp);
                    warnings.extend(warned);
                }
                (false, Unit::Concurrency) => {
                    let all = self.tallies_mut(&facet);
                    all.and_then(|all| all.at_mut(window, now))
                        .into_iter()
                        .for_each(|one| one.reset_warning(unit));
                }
                (false, _) => {}
            }
        }
    }

    /// A limit of this account refused something: tells of it, unless it was told of in this window.
    fn record_refusal(&mut self, limit: &Limit, id: &AccountId, now: Timestamp) -> Option<LimitWarning> {
        self.roll(now);
        let is_it = |one: &TenantLimit| {
            (one.max.unit(), one.window) == (limit.unit, limit.window) && one.scope.covers(&limit.facet)
        };
        let at = self.limits.iter().position(is_it)?;
        self.announce(at, (limit.facet.clone(), &limit.holder), id, now, WarningCause::Refused)
    }

    /// Requests at once have no window, and come and go: each rise is told of, but not twice in a minute.
    fn announce(
        &mut self,
        at: usize,
        (facet, holder): (Facet, &Holder),
        id: &AccountId,
        now: Timestamp,
        cause: WarningCause,
    ) -> Option<LimitWarning> {
        let (unit, window) = (self.limits[at].max.unit(), self.limits[at].window);
        let all = self.tallies_mut(&facet)?;
        let is_new = all.at_mut(window, now)?.warn_once(unit);
        let mut is_first = |window| all.at_mut(window, now).is_none_or(|tally| tally.warn_once(unit));
        if !is_new || (unit == Unit::Concurrency && !is_first(Window::Minute)) {
            return None;
        }
        let line = self.limit_status(&self.limits[at], holder, facet, now);
        Some(LimitWarning { account: id.clone(), status: line, cause })
    }
}

impl AccountTree {
    /// The limits of a lineage on such requests that are nearly used up since they were last looked at.
    pub(super) fn warn(
        &mut self,
        place: AccountIndex,
        wish: &ExtraDemand<'_>,
        now: Timestamp,
    ) -> Vec<LimitWarning> {
        let mut warnings = Vec::new();
        self.for_lineage_with_id(place, |id, account| account.warn(wish, id, now, &mut warnings));
        warnings
    }

    /// A limit refused a request of this account: what is to be told of it.
    fn record_refusal(&mut self, account: &AccountId, limit: &Limit, now: Timestamp) -> Option<LimitWarning> {
        let id = match &limit.holder {
            Holder::Request | Holder::Episode => return None,
            Holder::Key => account,
            Holder::Account(id) => id,
        };
        self.find_account_mut(id)?.record_refusal(limit, id, now)
    }
}

impl LedgerState {
    /// A limit refused a request of this account: what is to be told of it.
    pub fn record_refusal(&mut self, account: &AccountId, limit: &Limit) -> Option<LimitWarning> {
        self.tree.record_refusal(account, limit, self.latest)
    }
}

impl Ledger {
    /// A limit refused a request of this account; told of, unless it was in this window.
    pub fn record_refusal(&self, account: &AccountId, limit: &Limit) {
        let warning = self.accounts().record_refusal(account, limit);
        self.warn(warning.as_slice());
    }

    /// In the log, and to whoever watches.
    pub(super) fn warn(&self, warnings: &[LimitWarning]) {
        for warning in warnings {
            let LimitStatus { limit, spent, reserved, max, .. } = &warning.status;
            let account = &warning.account;
            match warning.cause {
                WarningCause::NearlyUsedUp => {
                    tracing::warn!(%account, %limit, %spent, %reserved, %max, "a limit is nearly used up");
                }
                WarningCause::Refused => {
                    tracing::warn!(%account, %limit, %spent, %reserved, %max, "a limit refuses requests");
                }
            }
            self.observer().warned(warning);
        }
    }
}
