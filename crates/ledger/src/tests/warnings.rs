//! Tests of warnings about limits.

use std::time::Duration;

use crate::conformance::amounts;
use crate::{LedgerState, LimitWarning, ReserveError, WarningCause};
use stint_types::tenant::{AccountTerms, LimitSelector, Percent, TenantLimit};
use stint_types::units::{Amount, Count, RequestId, Timestamp, Window};

use super::{NOW, claim_of, detail, money, terms, thinking};

const MINUTE: Duration = Duration::from_secs(60);

/// Accounts with one key, which warns at half of its limits.
fn accounts(limits: &[TenantLimit]) -> LedgerState {
    let half = Percent::try_from(50).unwrap();
    let mut accounts = LedgerState::default();
    accounts.declare([&AccountTerms { warn_at: half, ..terms("key", limits) }]);
    accounts
}

fn texts<'w>(warnings: impl IntoIterator<Item = &'w LimitWarning>) -> Vec<String> {
    let text =
        |LimitWarning { status: line, .. }: &LimitWarning| format!("{} {}", line.limit, line.spent.size());
    warnings.into_iter().map(text).collect()
}

/// Reserves a request, or tells of the refusal.
fn reserve(accounts: &mut LedgerState, nanos: u64, now: Timestamp) -> (Option<RequestId>, Vec<String>) {
    let claim = claim_of("key", nanos, 1, now);
    let (id, account) = (claim.id, claim.account.clone());
    match accounts.reserve(claim) {
        Ok(warnings) => (Some(id), texts(&warnings)),
        Err(ReserveError::Shortfall(short)) => {
            let warning = accounts.record_refusal(&account, &short.limit);
            assert!(warning.iter().all(|warning| warning.cause == WarningCause::Refused));
            (None, texts(&warning))
        }
        Err(other) => panic!("{other}"),
    }
}

/// A request that reserves so much and spends so much: the warnings about it.
fn request(accounts: &mut LedgerState, nanos: u64, spent: u64, now: Timestamp) -> Vec<String> {
    let (id, mut told) = reserve(accounts, nanos, now);
    let closed = accounts.settle(id.unwrap(), amounts(spent, 1), detail(), now).unwrap();
    told.extend(texts(&closed.warnings));
    told
}

#[test]
fn a_limit_is_announced_once_in_each_window_when_so_much_is_spent() {
    let mut accounts = accounts(&[money(Window::Minute, 100), thinking(Window::Day, 1000)]);
    assert_eq!(request(&mut accounts, 100, 49, NOW), [""; 0], "what is only set aside is no reason");
    assert_eq!(request(&mut accounts, 51, 1, NOW), ["key money minute 50"]);
    assert_eq!(request(&mut accounts, 50, 30, NOW), [""; 0]);
    let later = NOW + MINUTE;
    assert_eq!(request(&mut accounts, 60, 50, later), ["key money minute 50"]);
}

#[test]
fn nobody_is_told_of_a_window_that_is_over() {
    let mut accounts = accounts(&[money(Window::Minute, 100)]);
    let (id, _) = reserve(&mut accounts, 90, NOW);
    reserve(&mut accounts, 1, NOW + MINUTE);
    let closed = accounts.settle(id.unwrap(), amounts(90, 1), detail(), NOW + MINUTE).unwrap();
    assert_eq!(closed.warnings, []);
}

#[test]
fn a_limit_that_refuses_before_it_was_announced_is_announced_then() {
    let mut accounts = accounts(&[
        money(Window::Minute, 100),
        money(Window::Day, 1000).with_selector(LimitSelector::EachUser),
    ]);
    assert_eq!(request(&mut accounts, 100, 10, NOW), [""; 0]);
    assert_eq!(reserve(&mut accounts, 95, NOW), (None, vec!["key money minute 10".to_owned()]));
    assert_eq!(reserve(&mut accounts, 95, NOW), (None, vec![]));
    assert_eq!(request(&mut accounts, 90, 80, NOW), [""; 0], "once in each window");
    let later = NOW + MINUTE;
    assert_eq!(request(&mut accounts, 90, 60, later), ["key money minute 60"]);
    assert_eq!(reserve(&mut accounts, 95, later), (None, vec![]));
}

#[test]
fn requests_at_once_are_announced_whenever_they_rise_but_not_twice_in_a_minute() {
    let most = TenantLimit::new(Window::Total, Amount::Concurrency(Count(4)));
    let mut accounts = accounts(&[most]);
    let told = vec!["key concurrency 0".to_owned()];
    let end = |accounts: &mut LedgerState, id: Option<RequestId>, now| {
        assert_eq!(accounts.void(id.unwrap(), now).unwrap().warnings, []);
    };
    assert_eq!(reserve(&mut accounts, 1, NOW).1, [""; 0]);
    let (second, warned) = reserve(&mut accounts, 1, NOW);
    assert_eq!(warned, told);
    let (third, warned) = reserve(&mut accounts, 1, NOW);
    assert_eq!(warned, [""; 0], "it is above still");
    for id in [second, third] {
        end(&mut accounts, id, NOW);
    }
    let (again, warned) = reserve(&mut accounts, 1, NOW);
    assert_eq!(warned, [""; 0], "it was told of within the minute");
    end(&mut accounts, again, NOW);
    let later = NOW + MINUTE;
    assert_eq!(reserve(&mut accounts, 1, later).1, told, "it fell below in between");
    for expected in [true, true, false] {
        let (id, warned) = reserve(&mut accounts, 1, later + MINUTE);
        assert_eq!((id.is_some(), warned), (expected, vec![]), "a refusal of what was told of is no news");
    }
}
