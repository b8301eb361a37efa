//! Tests of the account machine alone.

use std::time::Duration;

use crate::{
    AccountId, Amounts, ClosedReservation, JournalEntry, LedgerError, LedgerState, RequestScope,
    ReserveError, ResolutionKind,
};
use stint_types::tenant::TenantLimit;
use stint_types::units::{Amount, Money, RequestId, Timestamp, Tokens, Window};

use super::{NOW, claim, claim_of, detail, money, terms, thinking, worst};

fn accounts(limits: &[TenantLimit]) -> LedgerState {
    let mut accounts = LedgerState::default();
    accounts.declare([&terms("key", limits)]);
    accounts
}

fn reserve(accounts: &mut LedgerState, nanos: u64, tokens: u64) -> RequestId {
    let claim = claim(nanos, tokens);
    let id = claim.id;
    accounts.reserve(claim).unwrap();
    id
}

/// Spent and reserved money under each limit, now.
fn check(accounts: &LedgerState, now: Timestamp, expected: &[(u64, u64)]) {
    let lines = accounts.statement(&AccountId::new("key"), &RequestScope::default(), now);
    let found: Vec<(u64, u64)> = lines.iter().map(|line| (line.spent.size(), line.reserved.size())).collect();
    assert_eq!(found, expected);
}

fn shortfall<T: std::fmt::Debug>(refused: Result<T, ReserveError>) -> (String, Amount, Amount) {
    match refused {
        Err(ReserveError::Shortfall(short)) => (short.limit.to_string(), short.needed, short.left),
        other => panic!("no shortfall but {other:?}"),
    }
}

#[test]
fn a_refusal_names_the_limit_and_leaves_nothing_set_aside() {
    let mut accounts = accounts(&[thinking(Window::Minute, 50), money(Window::Day, 100)]);
    reserve(&mut accounts, 90, 10);
    let refused = shortfall(accounts.reserve(claim(11, 1)));
    assert_eq!(refused, ("key money day".into(), Amount::Money(Money(11)), Amount::Money(Money(10))));
    let refused = shortfall(accounts.reserve(claim(1, 41)));
    let (needed, left) = (Amount::Thinking(Tokens(41)), Amount::Thinking(Tokens(40)));
    assert_eq!(refused, ("key thinking minute".into(), needed, left));
    check(&accounts, NOW, &[(0, 90), (0, 10)]);
    assert_eq!(accounts.open(), 1);
}

/// LB-04
#[test]
fn what_was_not_used_is_free_at_once() {
    let mut accounts = accounts(&[money(Window::Total, 100)]);
    let id = reserve(&mut accounts, 100, 0);
    accounts.dispatch(id).unwrap();
    accounts.confirm_dispatch(id).unwrap();
    let closed = accounts.settle(id, Amounts { money: Money(30), ..Amounts::ZERO }, detail(), NOW).unwrap();
    assert_eq!((closed.how, closed.overrun), (ResolutionKind::Settled, Amounts::ZERO));
    check(&accounts, NOW, &[(30, 0)]);
    let left =
        accounts.allowance(&AccountId::new("key"), &RequestScope::default(), NOW).overall.money.unwrap();
    assert_eq!((left.amount, left.resets_at), (Money(70), None));
}

/// LB-03
#[test]
fn an_overrun_is_posted_whole_and_the_next_request_sees_it() {
    let mut accounts = accounts(&[money(Window::Total, 100)]);
    let id = reserve(&mut accounts, 60, 0);
    accounts.dispatch(id).unwrap();
    let closed = accounts.settle(id, Amounts { money: Money(130), ..Amounts::ZERO }, detail(), NOW).unwrap();
    assert_eq!(closed.overrun.money, Money(70));
    assert_eq!(accounts.totals()[0].overrun, Money(70));
    check(&accounts, NOW, &[(130, 0)]);
    assert_eq!(shortfall(accounts.reserve(claim(1, 0))).2, Amount::Money(Money(0)));
    accounts.reserve(claim(0, 9)).unwrap();
}

/// LB-11
#[test]
fn a_request_is_charged_to_the_window_of_its_admission() {
    let mut accounts = accounts(&[money(Window::Minute, 100), money(Window::Hour, 1000)]);
    let id = reserve(&mut accounts, 80, 0);
    let later = NOW + Duration::from_secs(60);
    accounts.reserve(claim_of("key", 100, 0, later)).unwrap();
    check(&accounts, later, &[(0, 100), (0, 180)]);
    assert_eq!(
        shortfall(accounts.extend(id, worst(21, 0), None).map(drop).map_err(refused)).2,
        Amount::Money(Money(20))
    );
    accounts.extend(id, worst(20, 0), None).unwrap();
    accounts.dispatch(id).unwrap();
    accounts.settle(id, Amounts { money: Money(95), ..Amounts::ZERO }, detail(), later).unwrap();
    check(&accounts, later, &[(0, 100), (95, 100)]);
}

fn refused(error: LedgerError) -> ReserveError {
    match error {
        LedgerError::Refused(refused) => refused,
        other => panic!("not refused but {other:?}"),
    }
}

#[test]
fn a_clock_that_is_set_back_opens_no_window_twice() {
    let mut accounts = accounts(&[money(Window::Minute, 100)]);
    accounts.reserve(claim_of("key", 100, 0, NOW + Duration::from_secs(60))).unwrap();
    shortfall(accounts.reserve(claim(1, 0)));
}

/// LB-05: in whichever order reservations are settled, voided and given up, the first result stands.
#[test]
fn the_second_resolution_does_nothing() {
    type Resolve = fn(&mut LedgerState, RequestId, u64) -> Option<ClosedReservation>;
    let ways: [(Resolve, u64); 3] = [
        (
            |all, id, nanos| all.settle(id, Amounts { money: Money(nanos), ..Amounts::ZERO }, detail(), NOW),
            20,
        ),
        (|all, id, _| all.void(id, NOW), 0),
        (|all, id, _| all.abandon(id, NOW), 60),
    ];
    for (first, spent) in ways {
        for (second, _) in ways {
            let mut accounts = accounts(&[money(Window::Total, 100)]);
            let id = reserve(&mut accounts, 60, 0);
            accounts.dispatch(id).unwrap();
            accounts.confirm_dispatch(id).unwrap();
            assert_eq!(first(&mut accounts, id, 20).unwrap().spent.money, Money(spent));
            assert_eq!(second(&mut accounts, id, 30), None);
            assert_eq!(accounts.extend(id, worst(1, 0), None), Err(ReserveError::Expired(id).into()));
            check(&accounts, NOW, &[(spent, 0)]);
        }
    }
}

#[test]
fn only_what_may_have_been_sent_is_posted_when_it_expires() {
    let mut accounts = accounts(&[money(Window::Total, 100)]);
    let [_reserved, dispatching, dispatched] = [1, 2, 4].map(|nanos| reserve(&mut accounts, nanos, 0));
    accounts.dispatch(dispatching).unwrap();
    accounts.dispatch(dispatched).unwrap();
    accounts.confirm_dispatch(dispatched).unwrap();
    accounts.extend(dispatched, worst(8, 0), None).unwrap();
    assert_eq!(accounts.extend(dispatching, worst(8, 0), None), Err(LedgerError::NotDispatched(dispatching)));
    assert_eq!(accounts.expire(NOW), []);
    let closed = accounts.expire(NOW + Duration::from_secs(60));
    let mut hows: Vec<_> = closed.iter().map(|one| (one.spent.money.0, one.how, one.entries.len())).collect();
    hows.sort_by_key(|how| (how.0, how.2));
    assert_eq!(
        hows,
        [(0, ResolutionKind::Voided, 0), (0, ResolutionKind::Voided, 2), (12, ResolutionKind::Expired, 1)]
    );
    check(&accounts, NOW, &[(12, 0)]);
}

#[test]
fn a_renewed_reservation_expires_later() {
    let mut accounts = accounts(&[]);
    let id = reserve(&mut accounts, 1, 0);
    let (minute, hour) = (NOW + Duration::from_secs(60), NOW + Duration::from_secs(3600));
    accounts.renew(id, hour).unwrap();
    assert_eq!(accounts.expire(minute), []);
    assert_eq!(accounts.expire(hour).len(), 1);
}

#[test]
fn new_limits_hold_at_once_and_know_what_was_spent_before() {
    let mut accounts = accounts(&[]);
    let id = reserve(&mut accounts, 90, 0);
    accounts.declare([&terms("key", &[money(Window::Day, 100)])]);
    shortfall(accounts.reserve(claim(11, 0)));
    accounts.declare([]);
    assert_eq!(accounts.reserve(claim(1, 0)), Err(ReserveError::NoAccount(AccountId::new("key"))));
    assert!(matches!(accounts.dispatch(id), Ok(JournalEntry::Dispatched(_))), "what was begun may finish");
}

#[test]
fn more_than_an_entry_holds_is_refused() {
    let mut accounts = accounts(&[]);
    assert_eq!(accounts.reserve(claim(u64::MAX, 0)), Err(ReserveError::TooLarge));
    assert_eq!(accounts.reserve(claim(0, u64::MAX)), Err(ReserveError::TooLarge));
}

#[test]
fn one_request_has_one_reservation() {
    let mut accounts = accounts(&[]);
    let claim = claim(1, 1);
    accounts.reserve(claim.clone()).unwrap();
    assert_eq!(accounts.reserve(claim.clone()), Err(ReserveError::Duplicate(claim.id)));
}
