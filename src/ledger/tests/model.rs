//! Random operations against a model that keeps a plain list and adds it up anew each time.

use std::time::Duration;

use proptest::prelude::*;

use crate::ledger::{AccountId, Accounts, Amounts, Claim};
use crate::tenant::{Amount, TenantLimit};
use crate::units::{Money, RequestId, Timestamp, Tokens, Unit, Window};

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

fn apply(accounts: &mut Accounts, model: &mut Model, op: &Op, now: &mut Timestamp) {
    let open: Vec<usize> = (0..model.0.len()).filter(|at| model.0[*at].spent.is_none()).collect();
    let pick = |which: usize| open.get(which % open.len().max(1)).copied();
    match *op {
        Op::Wait { seconds } => *now = *now + Duration::from_secs(seconds),
        Op::Reserve { account, nanos, tokens } => {
            let claim = claim_of(NAMES[account], nanos, tokens, *now);
            let fits = model.fits(account, (nanos, tokens), *now);
            assert_eq!(accounts.reserve(Claim { ..claim.clone() }).is_ok(), fits);
            let row = Row {
                account,
                id: claim.id,
                admitted: *now,
                held: (nanos, tokens),
                spent: None,
                is_dispatched: false,
            };
            model.0.extend(fits.then_some(row));
        }
        Op::Extend { which, nanos, tokens } => {
            let Some(at) = pick(which) else { return };
            let row = model.0[at].clone();
            let fits = model.fits(row.account, (nanos, tokens), row.admitted);
            assert_eq!(accounts.extend(row.id, worst(nanos, tokens)).is_ok(), fits);
            if fits {
                model.0[at].held = (row.held.0 + nanos, row.held.1 + tokens);
            }
        }
        Op::Dispatch { which } => {
            let Some(at) = pick(which) else { return };
            accounts.dispatch(model.0[at].id).unwrap();
            accounts.dispatched(model.0[at].id).unwrap();
            model.0[at].is_dispatched = true;
        }
        Op::Settle { which, nanos, tokens } => {
            let Some(at) = pick(which) else { return };
            let spent = Amounts { money: Money(nanos), thinking: Tokens(tokens) };
            let closed = accounts.settle(model.0[at].id, spent, detail(), *now).unwrap();
            assert_eq!(closed.overrun.money.0, nanos.saturating_sub(model.0[at].held.0));
            model.0[at].spent = Some((nanos, tokens));
        }
        Op::Void { which } => {
            let Some(at) = pick(which) else { return };
            let closed = accounts.void(model.0[at].id, *now).unwrap();
            assert_eq!(closed.entries.len(), usize::from(model.0[at].is_dispatched));
            model.0[at].spent = Some((0, 0));
        }
    }
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
        for op in &ops {
            apply(&mut accounts, &mut model, op, &mut now);
            agree(&accounts, &model, now);
        }
        accounts.expire(now + Duration::from_secs(3600));
        prop_assert_eq!(accounts.open(), 0);
        for totals in accounts.totals() {
            prop_assert_eq!(totals.reserved, Amounts::ZERO);
        }
    }
}
