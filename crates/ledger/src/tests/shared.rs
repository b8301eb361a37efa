//! Three machines that share their accounts through leases admit what one machine would. The coordinator is a plain table
//! here. The result is compared with the same plain list that a single machine is compared with.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use crate::accounts::LeaseReturn;
use crate::conformance::amounts;
use crate::conformance::model::{LedgerModel, LedgerModelRow, about, key, terms};
use crate::quota::{LeaseDecision, LeaseVerdict, LocalWindow, QuotaDemand, decide};
use crate::{
    AbandonPolicy, Amounts, LedgerState, QuotaBalance, QuotaNeed, QuotaWindow, ReservationRequest,
    ReserveError,
};
use stint_types::units::{Count, RequestId, Timestamp};

use super::{NOW, detail, worst};

const MACHINES: usize = 3;

#[derive(Debug, Clone)]
enum SharedOp {
    Reserve { on: usize, key: usize, about: usize, nanos: u64, tokens: u64 },
    Settle { which: usize, share: u64 },
    Void { which: usize },
    HandBack { on: usize },
    Kill { on: usize },
    Wait { seconds: u64 },
}

fn op() -> impl Strategy<Value = SharedOp> {
    let (on, which) = (0..MACHINES, 0..12usize);
    prop_oneof![
        8 => (on.clone(), 0..30usize, 0..12usize, 0..30u64, 0..60u64)
            .prop_map(|(on, key, about, nanos, tokens)| SharedOp::Reserve { on, key, about, nanos, tokens }),
        3 => (which.clone(), 0..=4u64).prop_map(|(which, share)| SharedOp::Settle { which, share }),
        1 => which.prop_map(|which| SharedOp::Void { which }),
        1 => on.clone().prop_map(|on| SharedOp::HandBack { on }),
        1 => on.prop_map(|on| SharedOp::Kill { on }),
        1 => (0..2000u64).prop_map(|seconds| SharedOp::Wait { seconds }),
    ]
}

/// One window of the coordinator.
#[derive(Debug, Clone, Default)]
struct ModelWindow {
    max: u64,
    leases: [u64; MACHINES],
    used_by_the_dead: u64,
}

struct SharedWorld {
    machines: Vec<LedgerState>,
    coordinator: BTreeMap<QuotaWindow, ModelWindow>,
    model: LedgerModel,
    /// On which machine each row of the model is.
    homes: Vec<usize>,
    now: Timestamp,
}

fn machine() -> LedgerState {
    let mut machine = LedgerState::default();
    machine.share();
    machine.declare(&terms());
    machine
}

impl SharedWorld {
    fn new() -> SharedWorld {
        let machines = (0..MACHINES).map(|_| machine()).collect();
        SharedWorld {
            machines,
            coordinator: BTreeMap::new(),
            model: LedgerModel::default(),
            homes: Vec::new(),
            now: NOW,
        }
    }

    fn balance(&self, window: &QuotaWindow, on: usize) -> QuotaBalance {
        let handed = &self.coordinator[window];
        let all: u64 = handed.leases.iter().sum();
        let lease = handed.leases[on];
        let (granted, others) = (all + handed.used_by_the_dead, all - lease);
        QuotaBalance { granted, own: lease, others, replicas: MACHINES as u64, ..QuotaBalance::default() }
    }

    /// One exchange of one machine.
    fn exchange(
        &mut self,
        on: usize,
        windows: &[(QuotaWindow, u64)],
        keeps: Option<u64>,
        want: &[QuotaDemand],
    ) -> bool {
        let machine = &mut self.machines[on];
        let items: Vec<LocalWindow> = windows
            .iter()
            .map(|(window, max)| {
                let (used, is_quiet) = machine.freeze(window, keeps.unwrap_or(0)).unwrap_or_default();
                LocalWindow { used, max: *max, retain: keeps, is_idle: is_quiet }
            })
            .collect();
        for (window, max) in windows {
            self.coordinator.entry(window.clone()).or_default().max = *max;
        }
        let balances: Vec<QuotaBalance> =
            windows.iter().map(|(window, _)| self.balance(window, on)).collect();
        let LeaseDecision { adjustments: orders, verdicts, .. } = decide(&items, want, &balances);
        for ((window, _), order) in windows.iter().zip(orders) {
            self.coordinator.get_mut(window).unwrap().leases[on] = order.amount;
            let balance = self.balance(window, on);
            self.machines[on].apply_balance(window, &balance, true);
        }
        verdicts.iter().all(|verdict| *verdict == LeaseVerdict::Granted)
    }

    /// Gets what is needed, from the others too.
    fn get(&mut self, on: usize, needs: &[QuotaNeed]) -> bool {
        let windows: Vec<(QuotaWindow, u64)> =
            needs.iter().map(|need| (need.window.clone(), need.max)).collect();
        let wanted = needs.iter().enumerate().map(|(at, need)| (at, need.shortfall.needed.size()));
        let want = |has_recalled| QuotaDemand {
            needs: wanted.clone().collect(),
            has_recalled,
            can_wait: true,
            is_refresh: false,
        };
        if self.exchange(on, &windows, None, &[want(false)]) {
            return true;
        }
        for other in (0..MACHINES).filter(|other| *other != on) {
            self.exchange(other, &windows, Some(0), &[]);
        }
        self.exchange(on, &windows, None, &[want(true)])
    }

    fn reserve(&mut self, on: usize, claim: &ReservationRequest) -> bool {
        for _ in 0..4 {
            match self.machines[on].reserve(claim.clone()) {
                Ok(_) => return true,
                Err(ReserveError::NeedsQuota(needs)) => {
                    if !self.get(on, &needs) {
                        return false;
                    }
                }
                Err(_) => return false,
            }
        }
        panic!("it was granted and does not fit");
    }

    fn apply(&mut self, op: &SharedOp) {
        match *op {
            SharedOp::Wait { seconds } => self.now = self.now + Duration::from_secs(seconds),
            SharedOp::Reserve { on, key: number, about: other, nanos, tokens } => {
                let (account, about, id, now) = (key(number), about(other), RequestId::new(), self.now);
                let held = Amounts { requests: Count::ONE, ..amounts(nanos, tokens) };
                let fits = self.model.fits(&account, &about, held, None, now);
                let (prices, if_abandoned) = (None, AbandonPolicy::PostWhole);
                let (expires, worst) = (now + Duration::from_secs(3600), worst(nanos, tokens));
                let row = LedgerModelRow::new(account.clone(), about.clone(), id, now, held);
                let claim = ReservationRequest {
                    account,
                    id,
                    about,
                    worst,
                    step: None,
                    prices,
                    if_abandoned,
                    rate: None,
                    now,
                    expires,
                };
                assert_eq!(self.reserve(on, &claim), fits);
                if fits {
                    self.model.0.push(row);
                    self.homes.push(on);
                }
            }
            SharedOp::Settle { which, share } => {
                if let Some(at) = self.open(which) {
                    let row = &mut self.model.0[at];
                    let spent = amounts(row.held.money.0 * share / 4, row.held.thinking.0 * share / 4);
                    row.spent = Some(Amounts { requests: Count::ONE, ..spent });
                    self.machines[self.homes[at]].settle(row.id, spent, detail(), self.now).unwrap();
                }
            }
            SharedOp::Void { which } => {
                if let Some(at) = self.open(which) {
                    self.model.0[at].spent = Some(Amounts::ZERO);
                    self.machines[self.homes[at]].void(self.model.0[at].id, self.now).unwrap();
                }
            }
            SharedOp::HandBack { on } => {
                for LeaseReturn { window, max, retain: keeps } in
                    self.machines[on].idle_leases(MACHINES as u64)
                {
                    self.exchange(on, &[(window, max)], Some(keeps), &[]);
                }
            }
            SharedOp::Kill { on } => self.kill(on),
        }
    }

    fn open(&self, which: usize) -> Option<usize> {
        let open: Vec<usize> =
            (0..self.model.0.len()).filter(|at| self.model.0[*at].spent.is_none()).collect();
        open.get(which % open.len().max(1)).copied()
    }

    /// What it left open was never sent; what it used stays handed out, the rest goes back.
    fn kill(&mut self, on: usize) {
        for (row, _) in self.model.0.iter_mut().zip(&self.homes).filter(|(_, home)| **home == on) {
            if row.spent.is_none() {
                row.spent = Some(Amounts::ZERO);
                self.machines[on].abandon(row.id, self.now).unwrap();
            }
        }
        for (window, handed) in &mut self.coordinator {
            let (used, _) = self.machines[on].freeze(window, 0).unwrap_or_default();
            handed.used_by_the_dead += used.min(handed.leases[on]);
            handed.leases[on] = 0;
        }
        self.machines[on] = machine();
    }

    fn check(&self) {
        for (window, handed) in &self.coordinator {
            let granted = handed.leases.iter().sum::<u64>() + handed.used_by_the_dead;
            assert!(granted <= handed.max, "{granted} of {window:?} {}", handed.max);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]
    /// LB-25, shared: the same requests are admitted as if there was one machine, and no more is ever handed out than
    /// there is.
    #[test]
    fn machines_that_share_agree_with_a_plain_list(ops in prop::collection::vec(op(), 0..160)) {
        let mut world = SharedWorld::new();
        for op in &ops {
            world.apply(op);
            world.check();
        }
    }
}
