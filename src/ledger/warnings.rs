//! What is told of limits before somebody has to ask.

use crate::tenant::TenantLimit;
use crate::units::{Facet, Holder, Limit, Timestamp, Unit, Window};

use super::account::Account;
use super::tree::{Place, Tree};
use super::wish::Wish;
use super::{AccountId, Accounts, Ledger, Line};

/// A limit that somebody should look at; told once in each window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// Whose limit it is.
    pub account: AccountId,
    /// How it stands.
    pub line: Line,
    /// Why it is told of.
    pub cause: Cause,
}

/// Why a limit is told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// What was spent reached the share at which its account warns; of requests at once, what is open.
    NearlyUsedUp,
    /// It refused a request before that.
    Refused,
}

impl Account {
    /// Tells of limits that are nearly used up, once in each window. What is only set aside counts for nothing but
    /// requests at once: most of it is given back.
    fn warn(&mut self, wish: &Wish<'_>, id: &AccountId, now: Timestamp, warnings: &mut Vec<Warning>) {
        for at in 0..self.limits.len() {
            let TenantLimit { window, max, scope } = &self.limits[at];
            let (window, max, Some(facet)) = (*window, *max, wish.about.facet(scope)) else { continue };
            let (unit, tally) = (max.unit(), self.tally(&facet, window, wish.admitted));
            let used = if unit == Unit::Concurrency { tally.size(unit) } else { tally.used(unit).0.size() };
            let is_reached =
                self.warn_at.is_reached(used.saturating_add(tally.slice(unit).others), max.size());
            match (is_reached && tally.holds(now), unit) {
                (true, _) => {
                    let holder = wish.holder(id);
                    let warned = self.announce(at, (facet, &holder), id, now, Cause::NearlyUsedUp);
                    warnings.extend(warned);
                }
                (false, Unit::Concurrency) => {
                    let all = self.tallies_mut(&facet);
                    all.and_then(|all| all.at_mut(window, now))
                        .into_iter()
                        .for_each(|one| one.warn_again(unit));
                }
                (false, _) => {}
            }
        }
    }

    /// A limit of this account refused something: tells of it, unless it was told of in this window.
    fn refused(&mut self, limit: &Limit, id: &AccountId, now: Timestamp) -> Option<Warning> {
        self.roll(now);
        let is_it = |one: &TenantLimit| {
            (one.max.unit(), one.window) == (limit.unit, limit.window) && one.scope.covers(&limit.facet)
        };
        let at = self.limits.iter().position(is_it)?;
        self.announce(at, (limit.facet.clone(), &limit.holder), id, now, Cause::Refused)
    }

    /// Requests at once have no window, and come and go: each rise is told of, but not twice in a minute.
    fn announce(
        &mut self,
        at: usize,
        (facet, holder): (Facet, &Holder),
        id: &AccountId,
        now: Timestamp,
        cause: Cause,
    ) -> Option<Warning> {
        let (unit, window) = (self.limits[at].max.unit(), self.limits[at].window);
        let all = self.tallies_mut(&facet)?;
        let is_new = all.at_mut(window, now)?.warn_once(unit);
        let mut is_first = |window| all.at_mut(window, now).is_none_or(|tally| tally.warn_once(unit));
        if !is_new || (unit == Unit::Concurrency && !is_first(Window::Minute)) {
            return None;
        }
        let line = self.line(&self.limits[at], holder, facet, now);
        Some(Warning { account: id.clone(), line, cause })
    }
}

impl Tree {
    /// The limits of a lineage on such requests that are nearly used up since they were last looked at.
    pub(super) fn warn(&mut self, place: Place, wish: &Wish<'_>, now: Timestamp) -> Vec<Warning> {
        let mut warnings = Vec::new();
        self.each_of(place, |id, account| account.warn(wish, id, now, &mut warnings));
        warnings
    }

    /// A limit refused a request of this account: what is to be told of it.
    fn refused(&mut self, account: &AccountId, limit: &Limit, now: Timestamp) -> Option<Warning> {
        let id = match &limit.holder {
            Holder::Request | Holder::Episode => return None,
            Holder::Key => account,
            Holder::Account(id) => id,
        };
        self.account(id)?.refused(limit, id, now)
    }
}

impl Accounts {
    /// A limit refused a request of this account: what is to be told of it.
    pub fn refused(&mut self, account: &AccountId, limit: &Limit) -> Option<Warning> {
        self.tree.refused(account, limit, self.latest)
    }
}

impl Ledger {
    /// A limit refused a request of this account; told of, unless it was in this window.
    pub fn refused(&self, account: &AccountId, limit: &Limit) {
        let warning = self.accounts().refused(account, limit);
        self.warn(warning.as_slice());
    }

    /// In the log, and to whoever watches.
    pub(super) fn warn(&self, warnings: &[Warning]) {
        for warning in warnings {
            let Line { limit, spent, reserved, max, .. } = &warning.line;
            let account = &warning.account;
            match warning.cause {
                Cause::NearlyUsedUp => {
                    tracing::warn!(%account, %limit, %spent, %reserved, %max, "a limit is nearly used up");
                }
                Cause::Refused => {
                    tracing::warn!(%account, %limit, %spent, %reserved, %max, "a limit refuses requests");
                }
            }
            self.observer().warned(warning);
        }
    }
}
