//! How much of each quota window one replica takes, and what it gives back. Pure; the lease manager calls it inside an
//! exchange with the coordinator.

use super::coordinator::LeaseAdjustment;
use super::window::QuotaBalance;

/// One quota window as its replica sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LocalWindow {
    /// What it has spent and reserved.
    pub(crate) used: u64,
    /// The limit.
    pub(crate) max: u64,
    /// Set if the replica returns quota: how much unused quota it keeps.
    pub(crate) retain: Option<u64>,
    /// True if nothing of it is reserved.
    pub(crate) is_idle: bool,
}

/// A request that waits, and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuotaDemand {
    /// How much of which windows, by their indices.
    pub(crate) needs: Vec<(usize, u64)>,
    /// True if the others were asked already.
    pub(crate) has_recalled: bool,
    /// True if it may wait for them.
    pub(crate) can_wait: bool,
    /// True if it needs nothing, and only demands to know what is left when they have answered.
    pub(crate) is_refresh: bool,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseVerdict {
    /// All its windows have room for it now.
    Granted,
    /// The others are asked to return what they do not use.
    Recalled,
    /// They have not answered yet.
    Waiting,
    /// There is no room.
    Refused,
}

/// The decision about all windows and all requests of one exchange.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LeaseDecision {
    pub(crate) adjustments: Vec<LeaseAdjustment>,
    pub(crate) verdicts: Vec<LeaseVerdict>,
    /// By window: a request was refused, and no other replica holds anything unused.
    pub(crate) exhausted: Vec<bool>,
}

/// Decides: first come, first served; each request is served whole or not at all.
pub(crate) fn decide(
    items: &[LocalWindow],
    demands: &[QuotaDemand],
    balances: &[QuotaBalance],
) -> LeaseDecision {
    let mut targets: Vec<u64> = items.iter().map(|item| item.used).collect();
    let rooms: Vec<u64> =
        items.iter().zip(balances).map(|(item, balance)| lease_max(item, balance)).collect();
    let mut is_short = vec![false; items.len()];
    let mut recalls = vec![false; items.len()];
    let mut known = vec![false; items.len()];
    let mut verdicts = Vec::new();
    for demand in demands {
        let lacking: Vec<usize> = demand
            .needs
            .iter()
            .filter(|(at, needed)| targets[*at].saturating_add(*needed) > rooms[*at])
            .map(|(at, _)| *at)
            .collect();
        if lacking.is_empty() {
            demand.needs.iter().for_each(|(at, needed)| targets[*at] += needed);
            verdicts.push(LeaseVerdict::Granted);
            continue;
        }
        let verdict = refusal(demand, &lacking, balances);
        for at in lacking {
            is_short[at] = true;
            recalls[at] |= verdict == LeaseVerdict::Recalled;
            let is_all = is_alone(&balances[at]) || (demand.has_recalled && !balances[at].is_recall_pending);
            known[at] |= verdict == LeaseVerdict::Refused && is_all;
        }
        verdicts.push(verdict);
    }
    let adjustment = |at: usize| {
        let amount = lease_size(&items[at], &balances[at], targets[at], rooms[at], is_short[at]);
        let is_tight = amount <= targets[at];
        let is_final = is_tight && items[at].is_idle && targets[at] == items[at].used;
        LeaseAdjustment { amount, is_tight, is_final, is_recalling: recalls[at] }
    };
    LeaseDecision { adjustments: (0..items.len()).map(adjustment).collect(), verdicts, exhausted: known }
}

/// If nobody else holds anything unused, nothing can come back.
fn is_alone(balance: &QuotaBalance) -> bool {
    balance.others == 0 || balance.is_final
}

/// The largest lease that this replica may have.
fn lease_max(item: &LocalWindow, balance: &QuotaBalance) -> u64 {
    item.max.saturating_sub(balance.granted.saturating_sub(balance.own))
}

fn refusal(demand: &QuotaDemand, lacking: &[usize], balances: &[QuotaBalance]) -> LeaseVerdict {
    let mut alone = lacking.iter().map(|at| is_alone(&balances[*at]));
    let is_vain = if demand.is_refresh { alone.all(|is| is) } else { alone.any(|is| is) };
    if !demand.can_wait || is_vain {
        return LeaseVerdict::Refused;
    }
    if !demand.has_recalled {
        return LeaseVerdict::Recalled;
    }
    let is_pending = lacking.iter().any(|at| balances[*at].is_recall_pending);
    if is_pending { LeaseVerdict::Waiting } else { LeaseVerdict::Refused }
}

fn lease_size(item: &LocalWindow, balance: &QuotaBalance, target: u64, room: u64, is_short: bool) -> u64 {
    let wanted = match item.retain {
        // While a request goes without, nobody holds more than is needed.
        _ if is_short => target,
        Some(keeps) => balance.own.min(target.saturating_add(keeps)),
        None if target > balance.own => target.max(balance.own.saturating_add(balance.idle_share(item.max))),
        None => balance.own,
    };
    // What is used stands, even if an upstream billed more than was reserved or a limit was lowered since.
    wanted.min(room).max(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 10_000;

    fn item(used: u64) -> LocalWindow {
        LocalWindow { used, max: MAX, retain: None, is_idle: false }
    }

    fn balance(granted: u64, lease: u64) -> QuotaBalance {
        QuotaBalance { granted, own: lease, others: granted - lease, replicas: 2, ..QuotaBalance::default() }
    }

    fn want(needed: u64) -> QuotaDemand {
        QuotaDemand { needs: vec![(0, needed)], has_recalled: false, can_wait: true, is_refresh: false }
    }

    /// One window, of which so much is used: the lease that it ends with, and what becomes of the requests.
    fn check(
        item: LocalWindow,
        balance: QuotaBalance,
        wants: &[QuotaDemand],
        lease: u64,
        expected: &[LeaseVerdict],
    ) {
        let LeaseDecision { adjustments: orders, verdicts, .. } = decide(&[item], wants, &[balance]);
        assert_eq!((orders[0].amount, verdicts.as_slice()), (lease, expected));
    }

    #[test]
    fn while_much_is_left_a_share_of_it_is_taken_beyond_the_need() {
        check(item(0), balance(0, 0), &[want(10)], 50, &[LeaseVerdict::Granted]);
        check(item(0), balance(0, 0), &[want(80)], 80, &[LeaseVerdict::Granted]);
        check(item(50), balance(5_000, 50), &[want(10)], 75, &[LeaseVerdict::Granted]);
    }

    #[test]
    fn when_little_is_left_exactly_what_is_needed_is_taken() {
        check(
            item(40),
            balance(9_900, 50),
            &[want(30), want(20)],
            90,
            &[LeaseVerdict::Granted, LeaseVerdict::Granted],
        );
    }

    #[test]
    fn a_request_is_served_whole_or_not_at_all_and_a_smaller_one_behind_it_may_fit() {
        let verdicts = [LeaseVerdict::Granted, LeaseVerdict::Recalled, LeaseVerdict::Granted];
        check(item(0), balance(9_900, 0), &[want(60), want(50), want(40)], 100, &verdicts);
    }

    #[test]
    fn nobody_is_asked_who_holds_nothing_and_nobody_twice() {
        let alone = QuotaBalance { others: 0, ..balance(MAX, 50) };
        check(item(50), alone, &[want(1)], 50, &[LeaseVerdict::Refused]);
        let again = QuotaDemand { has_recalled: true, ..want(1) };
        check(item(50), balance(MAX, 50), std::slice::from_ref(&again), 50, &[LeaseVerdict::Refused]);
        let awaited = QuotaBalance { is_recall_pending: true, ..balance(MAX, 50) };
        check(item(50), awaited, std::slice::from_ref(&again), 50, &[LeaseVerdict::Waiting]);
        check(item(50), awaited, &[QuotaDemand { can_wait: false, ..again }], 50, &[LeaseVerdict::Refused]);
    }

    #[test]
    fn nobody_is_asked_who_has_nothing_open_and_used_it_all() {
        let over = QuotaBalance { is_final: true, ..balance(MAX, 50) };
        check(item(50), over, &[want(1)], 50, &[LeaseVerdict::Refused]);
        let is_final = |is_quiet, wants: &[QuotaDemand]| {
            decide(
                &[LocalWindow { is_idle: is_quiet, retain: Some(0), ..item(50) }],
                wants,
                &[balance(60, 60)],
            )
            .adjustments[0]
                .is_final
        };
        assert!(is_final(true, &[]));
        assert!(!is_final(false, &[]), "what is reserved may come back");
        assert!(!is_final(true, &[want(1)]), "and what is about to be");
    }

    #[test]
    fn who_only_looks_waits_for_those_who_may_hand_something_back() {
        let look = QuotaDemand { needs: vec![(0, u64::MAX), (1, u64::MAX)], is_refresh: true, ..want(0) };
        let alone = QuotaBalance { others: 0, ..balance(50, 50) };
        let verdict =
            |second| decide(&[item(50); 2], std::slice::from_ref(&look), &[alone, second]).verdicts[0];
        assert_eq!(verdict(balance(70, 50)), LeaseVerdict::Recalled);
        assert_eq!(verdict(alone), LeaseVerdict::Refused);
    }

    #[test]
    fn who_cannot_be_served_holds_nothing_back() {
        check(item(20), balance(MAX, 50), &[want(100)], 20, &[LeaseVerdict::Recalled]);
    }

    #[test]
    fn what_is_handed_back_is_all_that_is_not_used_but_for_what_is_kept() {
        check(LocalWindow { retain: Some(0), ..item(20) }, balance(900, 500), &[], 20, &[]);
        check(LocalWindow { retain: Some(45), ..item(20) }, balance(900, 500), &[], 65, &[]);
        check(LocalWindow { retain: Some(45), ..item(20) }, balance(900, 30), &[], 30, &[]);
    }

    #[test]
    fn what_is_used_beyond_a_lowered_limit_stands_and_nothing_is_added() {
        let lowered = LocalWindow { max: 100, ..item(70) };
        check(lowered, balance(400, 200), &[want(1)], 70, &[LeaseVerdict::Recalled]);
        check(lowered, balance(120, 90), &[], 70, &[]);
    }
}
