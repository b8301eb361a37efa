//! Tests of accounts above keys, and of limits on some of their requests.

use crate::{AccountId, Amounts, LedgerState, RequestScope, ReservationRequest, ReserveError};
use stint_types::tenant::{AccountTerms, LimitSelector, TenantLimit};
use stint_types::units::{Amount, Count, Money, RequestId, Window};

use super::{NOW, claim_of, detail, money, terms, thinking, worst};

fn accounts(all: &[AccountTerms]) -> LedgerState {
    let mut accounts = LedgerState::default();
    accounts.declare(all);
    accounts
}

fn about(model: &str, user: Option<&str>, tag: Option<&str>) -> RequestScope {
    RequestScope {
        model: Some(model.into()),
        user: user.map(Into::into),
        tag: tag.map(Into::into),
        ..RequestScope::default()
    }
}

/// Admits so many nano-dollars; else says which limit refused it and what that has left.
fn try_reserve(
    accounts: &mut LedgerState,
    account: &str,
    about: &RequestScope,
    nanos: u64,
) -> Result<RequestId, String> {
    let claim = ReservationRequest { about: about.clone(), ..claim_of(account, nanos, 1, NOW) };
    let id = claim.id;
    match accounts.reserve(claim) {
        Ok(_) => Ok(id),
        Err(ReserveError::Shortfall(short)) => Err(format!("{}: {}", short.limit, short.left.number())),
        Err(other) => Err(other.to_string()),
    }
}

#[test]
fn what_a_key_spends_all_accounts_above_it_spend() {
    let org = terms("acme", &[money(Window::Day, 100)]);
    let mut accounts =
        accounts(&[org, terms("acme/a/one", &[]), terms("acme/b/two", &[money(Window::Day, 70)])]);
    let plain = RequestScope::default();
    try_reserve(&mut accounts, "acme/a/one", &plain, 60).unwrap();
    let refused = try_reserve(&mut accounts, "acme/b/two", &plain, 41).unwrap_err();
    assert_eq!(refused, "account acme money day: 0.00000004");
    let id = try_reserve(&mut accounts, "acme/b/two", &plain, 40).unwrap();
    assert_eq!(accounts.statement(&AccountId::new("acme/b/two"), &plain, NOW).len(), 2);
    accounts.void(id, NOW);
    let spent: Vec<_> =
        accounts.totals().iter().map(|one| (one.account.to_string(), one.reserved.money.0)).collect();
    let expected = [("acme", 60), ("acme/a", 60), ("acme/a/one", 60), ("acme/b", 0), ("acme/b/two", 0)];
    assert_eq!(spent, expected.map(|(name, nanos)| (name.to_owned(), nanos)));
}

#[test]
fn many_small_keys_do_not_get_round_the_limit_of_their_team() {
    let mut all = vec![terms("team", &[money(Window::Month, 50)])];
    all.extend((0..100).map(|key| terms(&format!("team/key{key}"), &[money(Window::Month, 10)])));
    let mut accounts = accounts(&all);
    let admitted = (0..100).filter(|key| {
        let key = format!("team/key{key}");
        try_reserve(&mut accounts, &key, &RequestScope::default(), 10).is_ok()
    });
    assert_eq!(admitted.count(), 5);
}

#[test]
fn an_account_that_may_not_spend_any_more_and_never_did_makes_room_for_the_next() {
    let mut accounts = accounts(&[terms("org", &[])]);
    let declare = |accounts: &mut LedgerState, name: &str| {
        accounts.declare_one(&terms(name, &[money(Window::Day, 50)]));
        try_reserve(accounts, name, &RequestScope::default(), 10).unwrap()
    };
    let withdraw = |accounts: &mut LedgerState, name: &str| accounts.withdraw(&AccountId::new(name));
    for number in 0..9 {
        let name = format!("org/{number}");
        let id = declare(&mut accounts, &name);
        withdraw(&mut accounts, &name);
        assert_eq!(accounts.places(), 2, "it has something open");
        accounts.void(id, NOW);
        withdraw(&mut accounts, &name);
    }
    assert_eq!(accounts.places(), 2);
    let spent = declare(&mut accounts, "org/spent");
    accounts.settle(spent, crate::conformance::amounts(10, 1), detail(), NOW).unwrap();
    let below = declare(&mut accounts, "org/above/below");
    for name in ["org/spent", "org/above"] {
        withdraw(&mut accounts, name);
    }
    declare(&mut accounts, "org/other");
    accounts.settle(below, crate::conformance::amounts(7, 1), detail(), NOW).unwrap();
    let totals = accounts.totals();
    let totals: Vec<_> = totals.iter().map(|one| (one.account.as_str(), one.spent.money.0)).collect();
    let expected =
        [("org", 17), ("org/above", 7), ("org/above/below", 7), ("org/other", 0), ("org/spent", 10)];
    assert_eq!(totals, expected);
}

/// A token may name an account by several claims, such as a company's and a person's.
#[test]
fn what_is_above_such_accounts_alone_makes_room_with_the_last_of_them() {
    let mut accounts = accounts(&[terms("org", &[])]);
    for number in 0..9 {
        let names = ["first", "second"].map(|who| format!("org/company {number}/{who}"));
        names.iter().for_each(|name| accounts.declare_one(&terms(name, &[])));
        for (name, left) in names.iter().zip([3, 1]) {
            accounts.withdraw(&AccountId::new(name.as_str()));
            assert_eq!(accounts.totals().len(), left, "{name}");
        }
    }
    assert_eq!(accounts.places(), 4);
    accounts.declare_one(&terms("org/company 0", &[]));
    accounts.declare_one(&terms("org/company 0/first", &[]));
    accounts.withdraw(&AccountId::new("org/company 0/first"));
    let left: Vec<_> = accounts.totals().iter().map(|one| one.account.to_string()).collect();
    assert_eq!(left, ["org", "org/company 0"]);
}

#[test]
fn a_refusal_by_one_limit_sets_nothing_aside_under_the_others() {
    let mut accounts = accounts(&[
        terms("org", &[money(Window::Day, 100)]),
        terms(
            "org/key",
            &[money(Window::Day, 100), TenantLimit::new(Window::Minute, Amount::Requests(Count(1)))],
        ),
    ]);
    try_reserve(&mut accounts, "org/key", &RequestScope::default(), 10).unwrap();
    let refused = try_reserve(&mut accounts, "org/key", &RequestScope::default(), 10).unwrap_err();
    assert_eq!(refused, "key requests minute: 0");
    assert_eq!(accounts.reserved().money.0, 10);
    let reserved: Vec<u64> = accounts.totals().iter().map(|one| one.reserved.money.0).collect();
    assert_eq!(reserved, [10, 10]);
}

#[test]
fn requests_at_once_are_free_again_when_one_ends() {
    let at_once = TenantLimit::new(Window::Total, Amount::Concurrency(Count(2)));
    let mut accounts = accounts(&[terms("key", &[at_once])]);
    let first = try_reserve(&mut accounts, "key", &RequestScope::default(), 1).unwrap();
    try_reserve(&mut accounts, "key", &RequestScope::default(), 1).unwrap();
    let refused = try_reserve(&mut accounts, "key", &RequestScope::default(), 1).unwrap_err();
    assert_eq!(refused, "key concurrency: 0");
    accounts.settle(first, Default::default(), detail(), NOW);
    try_reserve(&mut accounts, "key", &RequestScope::default(), 1).unwrap();
}

#[test]
fn a_limit_on_each_user_counts_each_alone_and_the_unnamed_together() {
    let mut accounts =
        accounts(&[terms("key", &[money(Window::Day, 10).with_selector(LimitSelector::EachUser)])]);
    let mut check = |user, expected: Result<(), &str>| {
        let reserved = try_reserve(&mut accounts, "key", &about("m", user, None), 10);
        assert_eq!(reserved.map(drop), expected.map_err(str::to_owned), "{user:?}");
    };
    check(Some("ann"), Ok(()));
    check(Some("bob"), Ok(()));
    check(Some("ann"), Err("key money day of user ann: 0"));
    check(None, Ok(()));
    check(None, Err("key money day of unnamed users: 0"));
}

#[test]
fn limits_on_models_and_tags_count_only_those() {
    let limits = [
        money(Window::Day, 10).with_selector(LimitSelector::Model("large".into())),
        money(Window::Day, 5).with_selector(LimitSelector::Tag("t".into())),
    ];
    let mut accounts = accounts(&[terms("key", &limits)]);
    let refused = |accounts: &mut LedgerState, about: &RequestScope, nanos| {
        try_reserve(accounts, "key", about, nanos).unwrap_err()
    };
    try_reserve(&mut accounts, "key", &about("small", None, None), 1000).unwrap();
    try_reserve(&mut accounts, "key", &about("large", None, Some("t")), 5).unwrap();
    assert_eq!(
        refused(&mut accounts, &about("large", None, None), 6),
        "key money day of model large: 0.000000005"
    );
    assert_eq!(refused(&mut accounts, &about("small", None, Some("t")), 1), "key money day of tag t: 0");
}

#[test]
fn a_request_that_moves_to_another_model_moves_under_its_limits() {
    let limits = [
        money(Window::Day, 10).with_selector(LimitSelector::Model("a".into())),
        money(Window::Day, 12).with_selector(LimitSelector::Model("b".into())),
    ];
    let mut accounts = accounts(&[terms("key", &limits)]);
    let id = try_reserve(&mut accounts, "key", &about("a", None, None), 9).unwrap();
    assert!(accounts.extend(id, worst(4, 0), Some(&"b".into())).is_err(), "9 and 4 do not fit under 12");
    accounts.extend(id, worst(3, 0), Some(&"b".into())).unwrap();
    let lines = accounts.statement(&AccountId::new("key"), &RequestScope::default(), NOW);
    assert_eq!(lines.iter().map(|line| line.reserved.size()).collect::<Vec<_>>(), [0, 12]);
    let left = accounts.allowance(&AccountId::new("key"), &RequestScope::default(), NOW);
    let left: Vec<_> =
        left.models.values().map(|remaining| remaining.money.as_ref().unwrap().amount.0).collect();
    assert_eq!((left, accounts.reserved().money.0), (vec![10, 0], 12));
}

#[test]
fn a_lowered_limit_refuses_the_next_and_lets_the_running_finish() {
    let mut accounts = accounts(&[terms("key", &[money(Window::Day, 100)])]);
    let id = try_reserve(&mut accounts, "key", &RequestScope::default(), 80).unwrap();
    accounts.declare(&[terms("key", &[money(Window::Day, 50)])]);
    assert_eq!(
        try_reserve(&mut accounts, "key", &RequestScope::default(), 1).unwrap_err(),
        "key money day: 0"
    );
    accounts.settle(id, crate::conformance::amounts(20, 0), detail(), NOW).unwrap();
    try_reserve(&mut accounts, "key", &RequestScope::default(), 30).unwrap();
}

#[test]
fn a_limit_on_a_model_that_is_new_counts_what_is_open() {
    let mut accounts = accounts(&[terms("key", &[])]);
    let id = try_reserve(&mut accounts, "key", &about("a", None, None), 8).unwrap();
    accounts
        .declare(&[terms("key", &[money(Window::Day, 10).with_selector(LimitSelector::Model("a".into()))])]);
    let refused = try_reserve(&mut accounts, "key", &about("a", None, None), 3).unwrap_err();
    assert_eq!(refused, "key money day of model a: 0.000000002");
    accounts.void(id, NOW).unwrap();
    try_reserve(&mut accounts, "key", &about("a", None, None), 10).unwrap();
}

#[test]
fn two_new_limits_on_each_user_count_what_is_open_once() {
    let mut accounts = accounts(&[terms("key", &[])]);
    let bob = about("m", Some("bob"), None);
    let id = try_reserve(&mut accounts, "key", &bob, 8).unwrap();
    let limits = [
        money(Window::Day, 10).with_selector(LimitSelector::EachUser),
        thinking(Window::Hour, 10).with_selector(LimitSelector::EachUser),
    ];
    accounts.declare(&[terms("key", &limits)]);
    let lines = accounts.statement(&AccountId::new("key"), &bob, NOW);
    assert_eq!(lines.iter().map(|line| line.reserved.size()).collect::<Vec<_>>(), [8, 1]);
    accounts.void(id, NOW).unwrap();
    let lines = accounts.statement(&AccountId::new("key"), &bob, NOW);
    assert_eq!(lines.iter().map(|line| line.reserved.size()).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn users_are_forgotten_when_no_limit_remembers_them() {
    let mut accounts =
        accounts(&[terms("key", &[money(Window::Hour, 10).with_selector(LimitSelector::EachUser)])]);
    let hour = std::time::Duration::from_secs(3600);
    for (number, now) in (0..50).map(|number| (number, NOW + hour * (number / 10))) {
        let about = about("m", Some(&format!("u{number}")), None);
        let claim = ReservationRequest { about: about.clone(), ..claim_of("key", 10, 1, now) };
        let id = claim.id;
        accounts.reserve(claim).unwrap();
        accounts.settle(id, crate::conformance::amounts(10, 1), detail(), now).unwrap();
        let again = ReservationRequest { about, ..claim_of("key", 1, 1, now) };
        assert!(accounts.reserve(again).is_err(), "u{number} is remembered within the hour");
    }
    assert_eq!(accounts.facets(), 10);
}

#[test]
fn what_a_user_spent_is_counted_still_when_the_same_terms_are_declared_again() {
    let all = [terms("key", &[money(Window::Month, 50).with_selector(LimitSelector::EachUser)])];
    let mut accounts = accounts(&all);
    let bob = about("m", Some("bob"), None);
    let id = try_reserve(&mut accounts, "key", &bob, 30).unwrap();
    let spent = Amounts { money: Money(30), ..Amounts::ZERO };
    accounts.settle(id, spent, detail(), NOW).unwrap();
    accounts.declare(&all);
    let refused = try_reserve(&mut accounts, "key", &bob, 21).unwrap_err();
    assert_eq!(refused, "key money month of user bob: 0.00000002");
}
