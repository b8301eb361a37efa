//! Warnings about limits that are nearly used up or refuse requests. Each limit warns once in each window.

use stint_types::tenant::TenantLimit;
use stint_types::units::{AccountId, Facet, Limit, Timestamp, Unit, Window};

use super::account::AccountState;
use super::demand::ExtraDemand;
use super::statement::LimitStatus;

/// A warning about a limit that an operator should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWarning {
    /// Whose limit it is.
    pub account: AccountId,
    /// How it stands.
    pub status: LimitStatus,
    /// Why.
    pub cause: WarningCause,
}

/// Why there is a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningCause {
    /// What was spent (of requests at once, what is open) reached the share at which its account warns.
    NearlyUsedUp,
    /// It refused a request before that.
    Refused,
}

/// Adds a warning for each limit of the account that is nearly used up. What is only reserved does not count, except for
/// requests at once: most of it is given back.
pub(super) fn warn_nearly_used_up(
    account: &mut AccountState,
    demand: &ExtraDemand<'_>,
    id: &AccountId,
    now: Timestamp,
    warnings: &mut Vec<LimitWarning>,
) {
    for at in 0..account.limits.len() {
        let TenantLimit { window, max, scope } = &account.limits[at];
        let (window, max, Some(facet)) = (*window, *max, demand.about.facet(scope)) else { continue };
        let (unit, tally) = (max.unit(), account.tally(&facet, window, demand.admitted));
        let used = if unit == Unit::Concurrency { tally.size(unit) } else { tally.used(unit).0.size() };
        let used = used.saturating_add(tally.lease(unit).others);
        if account.warn_at.is_reached(used, max.size()) && tally.contains(now) {
            let place = LimitPlace { at, facet, id, asker: demand.account };
            warnings.extend(announce(account, place, now, WarningCause::NearlyUsedUp));
        } else if unit == Unit::Concurrency {
            let tally = account.tallies_mut(&facet).and_then(|tallies| tallies.at_mut(window, now));
            tally.into_iter().for_each(|tally| tally.reset_warning(unit));
        }
    }
}

/// A limit of this account refused a request of `asker`: the warning, unless there was one in this window.
pub(super) fn warn_refused(
    account: &mut AccountState,
    limit: &Limit,
    id: &AccountId,
    asker: &AccountId,
    now: Timestamp,
) -> Option<LimitWarning> {
    account.roll(now);
    let is_it = |one: &TenantLimit| {
        (one.max.unit(), one.window) == (limit.unit, limit.window) && one.scope.covers(&limit.facet)
    };
    let at = account.limits.iter().position(is_it)?;
    announce(account, LimitPlace { at, facet: limit.facet.clone(), id, asker }, now, WarningCause::Refused)
}

/// Which limit of an account a warning is about, in which of its facets, and who asks.
struct LimitPlace<'a> {
    at: usize,
    facet: Facet,
    id: &'a AccountId,
    asker: &'a AccountId,
}

/// Requests at once have no window, and come and go: each rise warns, but not twice in a minute.
fn announce(
    account: &mut AccountState,
    place: LimitPlace<'_>,
    now: Timestamp,
    cause: WarningCause,
) -> Option<LimitWarning> {
    let LimitPlace { at, facet, id, asker } = place;
    let (unit, window) = (account.limits[at].max.unit(), account.limits[at].window);
    let tallies = account.tallies_mut(&facet)?;
    let is_new = tallies.at_mut(window, now)?.warn_once(unit);
    let mut is_first = |window| tallies.at_mut(window, now).is_none_or(|tally| tally.warn_once(unit));
    if !is_new || (unit == Unit::Concurrency && !is_first(Window::Minute)) {
        return None;
    }
    let status = account.counted(id, &account.limits[at], facet, now).status(asker);
    Some(LimitWarning { account: id.clone(), status, cause })
}
