//! Random operations against a model that keeps a plain list and adds it up anew each time.

use std::time::Duration;

use futures_util::FutureExt;
use proptest::prelude::*;

use crate::ledger::account::WINDOWS;
use crate::ledger::{AccountId, Accounts, Amounts, Entry, Journal, MemoryJournal};
use crate::tenant::{Tenant, TenantLimit};
use crate::units::{Amount, Money, RequestId, Timestamp, Tokens, Unit, Window};

use super::{NOW, claim_of, detail, money, tenant, thinking, worst};

#[derive(Debug, Clone)]
enum Op {
    Reserve { account: usize, nanos: u64, tokens: u64 },
    Extend { which: usize, nanos: u64, tokens: u64 },
    Dispatch { which: usize },
    Settle { which: usize, nanos: u64, tokens: u64 },
    Void { which: usize },
    Wait { seconds: u64 },
}

const NAMES: [&str; 2] = ["one", "other"];

fn limits() -> [Vec<TenantLimit>; 2] {
    [
        vec![money(Window::Minute, 60), thinking(Window::Hour, 300), money(Window::Total, 500)],
        vec![thinking(Window::Minute, 80)],
    ]
}

#[derive(Debug, Clone)]
struct Row {
    account: usize,
    id: RequestId,
    admitted: Timestamp,
    held: (u64, u64),
    spent: Option<(u64, u64)>,
    is_dispatched: bool,
}

#[derive(Debug, Default)]
struct Model(Vec<Row>);

impl Model {
    fn used(&self, account: usize, limit: TenantLimit, now: Timestamp) -> u64 {
        let start = limit.window.start(now);
        let rows =
            self.0.iter().filter(|row| row.account == account && limit.window.start(row.admitted) == start);
        let used = rows.map(|row| row.spent.unwrap_or(row.held));
        used.map(|used| if limit.max.unit() == Unit::Money { used.0 } else { used.1 }).sum()
    }

    fn fits(&self, account: usize, more: (u64, u64), admitted: Timestamp) -> bool {
        limits()[account].iter().all(|limit| {
            let used = self.used(account, *limit, admitted);
            match limit.max {
                Amount::Money(max) => more.0 == 0 || used + more.0 <= max.0,
                Amount::Thinking(max) => more.1 == 0 || used + more.1 <= max.0,
            }
        })
    }
}

fn op() -> impl Strategy<Value = Op> {
    let (which, nanos, tokens) = (0..8usize, 0..40u64, 0..60u64);
    prop_oneof![
        4 => (0..2usize, nanos.clone(), tokens.clone())
            .prop_map(|(account, nanos, tokens)| Op::Reserve { account, nanos, tokens }),
        2 => (which.clone(), nanos.clone(), tokens.clone())
            .prop_map(|(which, nanos, tokens)| Op::Extend { which, nanos, tokens }),
        2 => which.clone().prop_map(|which| Op::Dispatch { which }),
        3 => (which.clone(), nanos, tokens).prop_map(|(which, nanos, tokens)| Op::Settle { which, nanos, tokens }),
        1 => which.prop_map(|which| Op::Void { which }),
        1 => (0..90u64).prop_map(|seconds| Op::Wait { seconds }),
    ]
}

/// Does it in both, and returns what has to be journalled.
fn apply(accounts: &mut Accounts, model: &mut Model, op: &Op, now: &mut Timestamp) -> Vec<Entry> {
    let open: Vec<usize> = (0..model.0.len()).filter(|at| model.0[*at].spent.is_none()).collect();
    let which = match *op {
        Op::Wait { seconds } => {
            *now = *now + Duration::from_secs(seconds);
            return Vec::new();
        }
        Op::Reserve { account, nanos, tokens } => {
            let (claim, held) = (claim_of(NAMES[account], nanos, tokens, *now), (nanos, tokens));
            let row = Row { account, id: claim.id, admitted: *now, held, spent: None, is_dispatched: false };
            let fits = model.fits(account, held, *now);
            assert_eq!(accounts.reserve(claim).is_ok(), fits);
            model.0.extend(fits.then_some(row));
            return Vec::new();
        }
        Op::Extend { which, .. } | Op::Dispatch { which } | Op::Settle { which, .. } | Op::Void { which } => {
            which
        }
    };
    let Some(at) = open.get(which % open.len().max(1)).copied() else { return Vec::new() };
    let row = model.0[at].clone();
    let (row, closed) = match *op {
        Op::Extend { nanos, tokens, .. } => {
            let fits = model.fits(row.account, (nanos, tokens), row.admitted);
            let extended = accounts.extend(row.id, worst(nanos, tokens));
            assert_eq!(extended.is_ok(), fits);
            if fits {
                model.0[at].held = (row.held.0 + nanos, row.held.1 + tokens);
            }
            return extended.ok().flatten().into_iter().collect();
        }
        Op::Dispatch { .. } => {
            let entry = accounts.dispatch(row.id).unwrap();
            accounts.dispatched(row.id).unwrap();
            model.0[at].is_dispatched = true;
            return vec![entry];
        }
        Op::Settle { nanos, tokens, .. } => {
            let spent = Amounts { money: Money(nanos), thinking: Tokens(tokens) };
            let closed = accounts.settle(row.id, spent, detail(), *now).unwrap();
            assert_eq!(closed.overrun.money.0, nanos.saturating_sub(row.held.0));
            (Row { spent: Some((nanos, tokens)), ..row }, closed)
        }
        _ => {
            let closed = accounts.void(row.id, *now).unwrap();
            assert_eq!(closed.entries.len(), usize::from(row.is_dispatched));
            (Row { spent: Some((0, 0)), ..row }, closed)
        }
    };
    model.0[at] = row;
    closed.entries
}

fn agree(accounts: &Accounts, model: &Model, now: Timestamp) {
    for (account, name) in NAMES.iter().enumerate() {
        for line in accounts.statement(&AccountId::new(*name), now) {
            let limit = TenantLimit { window: line.limit.window, max: line.max };
            let used = match (line.spent, line.reserved) {
                (Amount::Money(spent), Amount::Money(reserved)) => (spent + reserved).0,
                (Amount::Thinking(spent), Amount::Thinking(reserved)) => (spent + reserved).0,
                mixed => panic!("two units in one line: {mixed:?}"),
            };
            assert_eq!(used, model.used(account, limit, now), "{name} {}", line.limit);
        }
    }
}

proptest! {
    #[test]
    fn the_accounts_agree_with_a_plain_list(ops in prop::collection::vec(op(), 0..80)) {
        let (mut accounts, mut model, mut now) = (Accounts::default(), Model::default(), NOW);
        let tenants: Vec<_> = limits().iter().zip(NAMES).map(|(limits, name)| tenant(name, limits)).collect();
        accounts.declare(&tenants);
        let mut entries = Vec::new();
        for op in &ops {
            entries.extend(apply(&mut accounts, &mut model, op, &mut now));
            agree(&accounts, &model, now);
        }
        entries.extend(accounts.expire(now + Duration::from_secs(3600)).into_iter().flat_map(|one| one.entries));
        prop_assert_eq!(accounts.open(), 0);
        for totals in accounts.totals() {
            prop_assert_eq!(totals.reserved, Amounts::ZERO);
        }
        same_after_a_restart(&accounts, &tenants, &entries, now);
    }
}

fn same_after_a_restart(accounts: &Accounts, tenants: &[Tenant], entries: &[Entry], now: Timestamp) {
    let (mut restarted, journal) = (Accounts::default(), MemoryJournal::default());
    journal.append(entries).now_or_never().unwrap().unwrap();
    assert_eq!(journal.unresolved().now_or_never().unwrap().unwrap(), []);
    restarted.declare(tenants);
    for window in WINDOWS {
        let spent = journal.spent(window.start(now)).now_or_never().unwrap().unwrap();
        restarted.recover(window, &spent, now);
    }
    assert_eq!(restarted.totals(), accounts.totals());
    for name in NAMES.map(AccountId::new) {
        assert_eq!(restarted.statement(&name, now), accounts.statement(&name, now));
    }
}
