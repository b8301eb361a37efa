//! How much of what is left one replica takes, and what it gives back. Pure.

use super::lease::{Balance, Order};

/// At most this part of what is left is handed out beyond what is needed, to all replicas together.
const SHARE: u64 = 100;

/// One purse as its replica sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// What it has spent and reserved.
    pub(super) used: u64,
    /// The limit.
    pub(super) max: u64,
    /// Where it wants to hand back: so much of what it does not use it keeps.
    pub(super) keeps: Option<u64>,
    /// True where nothing of it is reserved.
    pub(super) is_quiet: bool,
}

/// A request that waits, with what it needs of which purses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Want {
    pub(super) needs: Vec<(usize, u64)>,
    /// True where the others were asked already.
    pub(super) has_recalled: bool,
    /// True where it may wait for them.
    pub(super) may_wait: bool,
    /// True where nothing is needed, but to know what there is when they have answered.
    pub(super) only_looks: bool,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All its purses have room for it now.
    Granted,
    /// The others are asked to hand back what they do not use.
    Recalled,
    /// They have not answered yet.
    Waits,
    /// There is no room.
    Refused,
}

/// The part of what is left that a replica may hold without needing it.
pub(super) fn share(max: u64, balance: &Balance) -> u64 {
    max.saturating_sub(balance.granted) / SHARE / balance.replicas.max(1)
}

/// What becomes of purses and of those who wait for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) orders: Vec<Order>,
    pub(super) verdicts: Vec<Verdict>,
    /// Of which purses somebody was refused, and nobody else holds anything that is not used.
    pub(super) known: Vec<bool>,
}

/// First come, first served; each request whole or not at all.
pub(super) fn decide(items: &[Item], wants: &[Want], balances: &[Balance]) -> Decision {
    let mut targets: Vec<u64> = items.iter().map(|item| item.used).collect();
    let rooms: Vec<u64> = items.iter().zip(balances).map(|(item, balance)| room(item, balance)).collect();
    let mut is_short = vec![false; items.len()];
    let mut recalls = vec![false; items.len()];
    let mut known = vec![false; items.len()];
    let mut verdicts = Vec::new();
    for want in wants {
        let lacking: Vec<usize> = want
            .needs
            .iter()
            .filter(|(at, needed)| targets[*at].saturating_add(*needed) > rooms[*at])
            .map(|(at, _)| *at)
            .collect();
        if lacking.is_empty() {
            want.needs.iter().for_each(|(at, needed)| targets[*at] += needed);
            verdicts.push(Verdict::Granted);
            continue;
        }
        let verdict = refusal(want, &lacking, balances);
        for at in lacking {
            is_short[at] = true;
            recalls[at] |= verdict == Verdict::Recalled;
            let is_all = is_alone(&balances[at]) || (want.has_recalled && !balances[at].is_awaited);
            known[at] |= verdict == Verdict::Refused && is_all;
        }
        verdicts.push(verdict);
    }
    let order = |at: usize| {
        let slice = slice(&items[at], &balances[at], targets[at], rooms[at], is_short[at]);
        let is_tight = slice <= targets[at];
        let is_final = is_tight && items[at].is_quiet && targets[at] == items[at].used;
        Order { slice, is_tight, is_final, recalls: recalls[at] }
    };
    Decision { orders: (0..items.len()).map(order).collect(), verdicts, known }
}

/// Where nobody else holds anything that is not used, nothing can come back.
fn is_alone(balance: &Balance) -> bool {
    balance.others == 0 || balance.is_final
}

/// What this replica's slice may be at most.
fn room(item: &Item, balance: &Balance) -> u64 {
    item.max.saturating_sub(balance.granted.saturating_sub(balance.slice))
}

fn refusal(want: &Want, lacking: &[usize], balances: &[Balance]) -> Verdict {
    let mut alone = lacking.iter().map(|at| is_alone(&balances[*at]));
    let is_vain = if want.only_looks { alone.all(|is| is) } else { alone.any(|is| is) };
    if !want.may_wait || is_vain {
        return Verdict::Refused;
    }
    match want.has_recalled {
        false => Verdict::Recalled,
        true if lacking.iter().any(|at| balances[*at].is_awaited) => Verdict::Waits,
        true => Verdict::Refused,
    }
}

fn slice(item: &Item, balance: &Balance, target: u64, room: u64, is_short: bool) -> u64 {
    let wanted = match item.keeps {
        // Where somebody does without, nobody holds what is not needed.
        _ if is_short => target,
        Some(keeps) => balance.slice.min(target.saturating_add(keeps)),
        None if target > balance.slice => target.max(balance.slice.saturating_add(share(item.max, balance))),
        None => balance.slice,
    };
    // What is used stands, also where an upstream billed more than was reserved or a limit was lowered since.
    wanted.min(room).max(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = 10_000;

    fn item(used: u64) -> Item {
        Item { used, max: MAX, keeps: None, is_quiet: false }
    }

    fn balance(granted: u64, slice: u64) -> Balance {
        Balance { granted, slice, others: granted - slice, replicas: 2, ..Balance::default() }
    }

    fn want(needed: u64) -> Want {
        Want { needs: vec![(0, needed)], has_recalled: false, may_wait: true, only_looks: false }
    }

    /// One purse, of which so much is used: the slice that it ends with, and what becomes of the requests.
    fn check(item: Item, balance: Balance, wants: &[Want], slice: u64, expected: &[Verdict]) {
        let Decision { orders, verdicts, .. } = decide(&[item], wants, &[balance]);
        assert_eq!((orders[0].slice, verdicts.as_slice()), (slice, expected));
    }

    #[test]
    fn while_much_is_left_a_share_of_it_is_taken_beyond_the_need() {
        check(item(0), balance(0, 0), &[want(10)], 50, &[Verdict::Granted]);
        check(item(0), balance(0, 0), &[want(80)], 80, &[Verdict::Granted]);
        check(item(50), balance(5_000, 50), &[want(10)], 75, &[Verdict::Granted]);
    }

    #[test]
    fn when_little_is_left_exactly_what_is_needed_is_taken() {
        check(item(40), balance(9_900, 50), &[want(30), want(20)], 90, &[Verdict::Granted, Verdict::Granted]);
    }

    #[test]
    fn a_request_is_served_whole_or_not_at_all_and_a_smaller_one_behind_it_may_fit() {
        let verdicts = [Verdict::Granted, Verdict::Recalled, Verdict::Granted];
        check(item(0), balance(9_900, 0), &[want(60), want(50), want(40)], 100, &verdicts);
    }

    #[test]
    fn nobody_is_asked_who_holds_nothing_and_nobody_twice() {
        let alone = Balance { others: 0, ..balance(MAX, 50) };
        check(item(50), alone, &[want(1)], 50, &[Verdict::Refused]);
        let again = Want { has_recalled: true, ..want(1) };
        check(item(50), balance(MAX, 50), std::slice::from_ref(&again), 50, &[Verdict::Refused]);
        let awaited = Balance { is_awaited: true, ..balance(MAX, 50) };
        check(item(50), awaited, std::slice::from_ref(&again), 50, &[Verdict::Waits]);
        check(item(50), awaited, &[Want { may_wait: false, ..again }], 50, &[Verdict::Refused]);
    }

    #[test]
    fn nobody_is_asked_who_has_nothing_open_and_used_it_all() {
        let over = Balance { is_final: true, ..balance(MAX, 50) };
        check(item(50), over, &[want(1)], 50, &[Verdict::Refused]);
        let is_final = |is_quiet, wants: &[Want]| {
            decide(&[Item { is_quiet, keeps: Some(0), ..item(50) }], wants, &[balance(60, 60)]).orders[0]
                .is_final
        };
        assert!(is_final(true, &[]));
        assert!(!is_final(false, &[]), "what is reserved may come back");
        assert!(!is_final(true, &[want(1)]), "and what is about to be");
    }

    #[test]
    fn who_only_looks_waits_for_those_who_may_hand_something_back() {
        let look = Want { needs: vec![(0, u64::MAX), (1, u64::MAX)], only_looks: true, ..want(0) };
        let alone = Balance { others: 0, ..balance(50, 50) };
        let verdict =
            |second| decide(&[item(50); 2], std::slice::from_ref(&look), &[alone, second]).verdicts[0];
        assert_eq!(verdict(balance(70, 50)), Verdict::Recalled);
        assert_eq!(verdict(alone), Verdict::Refused);
    }

    #[test]
    fn who_cannot_be_served_holds_nothing_back() {
        check(item(20), balance(MAX, 50), &[want(100)], 20, &[Verdict::Recalled]);
    }

    #[test]
    fn what_is_handed_back_is_all_that_is_not_used_but_for_what_is_kept() {
        check(Item { keeps: Some(0), ..item(20) }, balance(900, 500), &[], 20, &[]);
        check(Item { keeps: Some(45), ..item(20) }, balance(900, 500), &[], 65, &[]);
        check(Item { keeps: Some(45), ..item(20) }, balance(900, 30), &[], 30, &[]);
    }

    #[test]
    fn what_is_used_beyond_a_lowered_limit_stands_and_nothing_is_added() {
        let lowered = Item { max: 100, ..item(70) };
        check(lowered, balance(400, 200), &[want(1)], 70, &[Verdict::Recalled]);
        check(lowered, balance(120, 90), &[], 70, &[]);
    }
}
