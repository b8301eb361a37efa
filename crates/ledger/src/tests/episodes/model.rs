//! Random steps of two episodes, compared with a naive model of them.

use std::time::Duration;

use proptest::prelude::*;

use crate::{
    Amounts, EpisodeBalance, EpisodeUsage, LedgerState, RequestScope, ReservationRequest, SettlementDetail,
    StepReservation,
};
use stint_types::chat::{EpisodeLimits, ToolCounts, ToolLimits};
use stint_types::tenant::AccountTerms;
use stint_types::units::{Count, Money, RequestId, Timestamp, Tokens};

use super::super::{NOW, claim, detail, worst};
use super::{key, run, tools};

const TOOLS: [&str; 2] = ["search", "browse"];

#[derive(Debug, Clone)]
enum EpisodeOp {
    Reserve { run: usize, nanos: u64, calls: [u64; 2], limits: [Option<u64>; 4] },
    Dispatch { at: usize },
    Settle { at: usize, nanos: u64, calls: [u64; 2] },
    Void { at: usize },
    Abandon { at: usize },
    Extend { at: usize, nanos: u64 },
    Declare,
    Forget,
}

fn op() -> impl Strategy<Value = EpisodeOp> {
    let (at, calls) = (0..8usize, [0..3u64, 0..3u64]);
    let limit = || prop::option::weighted(0.3, 0..8u64);
    let limits = [limit(), limit(), limit(), limit()];
    prop_oneof![
        6 => (0..2usize, 0..40u64, calls.clone(), limits)
            .prop_map(|(run, nanos, calls, limits)| EpisodeOp::Reserve { run, nanos, calls, limits }),
        4 => at.clone().prop_map(|at| EpisodeOp::Dispatch { at }),
        4 => (at.clone(), 0..60u64, calls).prop_map(|(at, nanos, calls)| EpisodeOp::Settle { at, nanos, calls }),
        1 => at.clone().prop_map(|at| EpisodeOp::Void { at }),
        2 => at.clone().prop_map(|at| EpisodeOp::Abandon { at }),
        2 => (at, 0..20u64).prop_map(|(at, nanos)| EpisodeOp::Extend { at, nanos }),
        1 => Just(EpisodeOp::Declare),
        1 => Just(EpisodeOp::Forget),
    ]
}

/// A step as a naive book has it.
#[derive(Debug, Clone)]
struct EpisodeModelRow {
    id: RequestId,
    run: usize,
    is_open: bool,
    is_sent: bool,
    /// Reserved while it is open, spent afterwards.
    used: EpisodeUsage,
}

#[derive(Debug, Default)]
struct EpisodeModel {
    rows: Vec<EpisodeModelRow>,
    limits: [EpisodeLimits; 2],
}

impl EpisodeModel {
    fn sum(&self, run: usize, is_open: bool) -> EpisodeUsage {
        let mut sum = EpisodeUsage::default();
        for row in self.rows.iter().filter(|row| row.run == run && row.is_open == is_open) {
            let EpisodeUsage { cost: money, thinking, turns: requests, tools } = row.used.clone();
            sum.add(Amounts { money, thinking, requests, tool_calls: tools.all }, &tools);
        }
        sum.tools.each.retain(|_, count| *count > Count::ZERO);
        sum
    }

    fn fits(&self, run: usize, more: &EpisodeUsage) -> bool {
        let (spent, reserved, limits) = (self.sum(run, false), self.sum(run, true), &self.limits[run]);
        let fits = |spent: u64, reserved: u64, more: u64, most: Option<u64>| {
            more == 0 || most.is_none_or(|most| spent + reserved + more <= most)
        };
        fits(spent.cost.0, reserved.cost.0, more.cost.0, limits.cost.map(|most| most.0))
            && fits(spent.turns.0, reserved.turns.0, more.turns.0, limits.turns.map(|most| most.0))
            && fits(
                spent.tools.all.0,
                reserved.tools.all.0,
                more.tools.all.0,
                limits.tools.all.map(|most| most.0),
            )
            && TOOLS.iter().all(|tool| {
                let most = limits.tools.each.get(*tool).map(|most| most.0);
                fits(spent.tools.of(tool).0, reserved.tools.of(tool).0, more.tools.of(tool).0, most)
            })
    }

    fn open(&mut self, at: usize) -> Option<&mut EpisodeModelRow> {
        let mut open: Vec<&mut EpisodeModelRow> = self.rows.iter_mut().filter(|row| row.is_open).collect();
        if open.is_empty() { None } else { Some(open.swap_remove(at % open.len())) }
    }
}

fn counted(calls: [u64; 2]) -> ToolCounts {
    let each: Vec<_> = TOOLS.into_iter().zip(calls).filter(|(_, count)| *count > 0).collect();
    tools(&each)
}

fn used(nanos: u64, turns: u64, calls: [u64; 2]) -> EpisodeUsage {
    EpisodeUsage { cost: Money(nanos), thinking: Tokens(0), turns: Count(turns), tools: counted(calls) }
}

fn stated([cost, turns, all, search]: [Option<u64>; 4]) -> EpisodeLimits {
    let each = search.map(|most| ("search".into(), Count(most))).into_iter().collect();
    let tools = ToolLimits { all: all.map(Count), each };
    EpisodeLimits {
        cost: cost.map(|most| Money(most * 10)),
        thinking: None,
        turns: turns.map(Count),
        tools,
        raises: 0,
    }
}

fn apply(accounts: &mut LedgerState, model: &mut EpisodeModel, op: &EpisodeOp, now: &mut Timestamp) {
    match *op {
        EpisodeOp::Reserve { run: number, nanos, calls, limits } => {
            let (id, limits, more) = (RequestId::new(), stated(limits), used(nanos, 1, calls));
            model.limits[number].lower(&limits);
            let fits = model.fits(number, &more);
            let about =
                RequestScope { episode: Some(run(["one", "two"][number])), ..RequestScope::default() };
            let step = Some(StepReservation { limits, tools: counted(calls), tools_cost: Money::ZERO });
            let reserved =
                accounts.reserve(ReservationRequest { id, about, step, now: *now, ..claim(nanos, 0) });
            assert_eq!(reserved.is_ok(), fits, "{reserved:?}");
            if fits {
                let (is_open, is_sent, used) = (true, false, more);
                model.rows.push(EpisodeModelRow { id, run: number, is_open, is_sent, used });
            }
        }
        EpisodeOp::Dispatch { at } => {
            let Some(row) = model.open(at) else { return };
            row.is_sent = true;
            accounts.dispatch(row.id).unwrap();
            accounts.confirm_dispatch(row.id).unwrap();
        }
        EpisodeOp::Settle { at, nanos, calls } => {
            let Some(row) = model.open(at) else { return };
            let detail = SettlementDetail { tools: counted(calls), ..detail() };
            accounts.settle(row.id, Amounts { money: Money(nanos), ..Amounts::ZERO }, detail, *now).unwrap();
            (row.is_open, row.used) = (false, used(nanos, 1, calls));
        }
        EpisodeOp::Void { at } => {
            let Some(row) = model.open(at) else { return };
            accounts.void(row.id, *now).unwrap();
            (row.is_open, row.used) = (false, EpisodeUsage::default());
        }
        EpisodeOp::Abandon { at } => {
            let Some(row) = model.open(at) else { return };
            accounts.abandon(row.id, *now).unwrap();
            row.is_open = false;
            if !row.is_sent {
                row.used = EpisodeUsage::default();
            }
        }
        EpisodeOp::Extend { at, nanos } => {
            let Some((id, number)) = model.open(at).map(|row| (row.id, row.run)) else { return };
            let more = used(nanos, 0, [0, 0]);
            let fits = model.fits(number, &more);
            assert_eq!(accounts.extend(id, worst(nanos, 0), Some(&"large".into())).is_ok(), fits);
            if let Some(row) = model.rows.iter_mut().find(|row| row.id == id && fits) {
                row.used.cost += Money(nanos);
            }
        }
        EpisodeOp::Declare => accounts.declare(&[AccountTerms::unlimited(key())]),
        EpisodeOp::Forget => {
            *now = *now + Duration::from_secs(70);
            // Longer ago than anything here was asked for.
            accounts.evict_episodes(Duration::from_secs(100_000), *now);
        }
    }
}

proptest! {
    #[test]
    fn whatever_becomes_of_its_steps_a_run_has_used_what_they_used(ops in prop::collection::vec(op(), 0..60)) {
        let (mut accounts, mut model, mut now) = (LedgerState::default(), EpisodeModel::default(), NOW);
        accounts.declare(&[AccountTerms::unlimited(key())]);
        for op in &ops {
            apply(&mut accounts, &mut model, op, &mut now);
            for (number, name) in ["one", "two"].into_iter().enumerate() {
                let EpisodeBalance { mut spent, mut reserved } = accounts.episode(&key(), &run(name));
                spent.tools.each.retain(|_, count| *count > Count::ZERO);
                reserved.tools.each.retain(|_, count| *count > Count::ZERO);
                prop_assert_eq!(spent, model.sum(number, false));
                prop_assert_eq!(reserved, model.sum(number, true));
            }
        }
    }
}
