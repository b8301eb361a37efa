//! Any order of pauses, partitions, clock jumps, reclaims and requests: no limit is exceeded, and once all is quiet no
//! quota is stranded.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;

use crate::{Ledger, RequestScope, ReservationRequest, SettlementDetail, StepReservation};
use stint_types::chat::{EpisodeLimits, ToolCounts, ToolLimits};
use stint_types::tenant::{AccountTerms, LimitSelector, TenantLimit};
use stint_types::units::{Count, Facet, Money, RequestId, Timestamp, Tokens, Unit, Window};

use super::linked_coordinator::CoordinatorLink;
use super::vault::{VaultState, books, used};
use super::world::{LASTS, ReplicaWorld};
use super::{NOW, detail, money, terms};

const REPLICAS: usize = 3;
const TOTAL: u64 = 1_000;
const MINUTE: u64 = 400;
const OF_MODEL: u64 = 300;
const RUNS: [&str; 2] = ["one", "two"];
const TOOLS: [&str; 2] = ["search", "browse"];
/// What an episode may use: of money, of all tool calls, of searches.
const OF_RUN: (u64, u64, u64) = (450, 6, 4);

#[derive(Debug, Clone)]
enum StormOp {
    Ask {
        on: usize,
        model: usize,
        nanos: u64,
        share: u64,
        millis: u64,
        /// Which episode it is a step of, if any, and how many calls of which tool it reserves.
        step: Option<(usize, usize, u64)>,
    },
    Run {
        millis: u64,
    },
    Pause {
        on: usize,
    },
    Wake {
        on: usize,
        clock_went_on: bool,
    },
    Link {
        on: usize,
        link: usize,
    },
    Wall {
        on: usize,
        days: i64,
    },
    CoordinatorClock {
        seconds: i64,
    },
    Reclaim,
    /// A limit on one of the models, from now on.
    Limit,
}

fn op() -> impl Strategy<Value = StormOp> {
    let on = 0..REPLICAS;
    let step = prop::option::of((0..RUNS.len(), 0..TOOLS.len(), 0..4u64));
    prop_oneof![
        8 => (on.clone(), 0..2usize, 1..250u64, 0..=4u64, 0..12_000u64, step)
            .prop_map(|(on, model, nanos, share, millis, step)| StormOp::Ask { on, model, nanos, share, millis, step }),
        6 => (0..4_000u64).prop_map(|millis| StormOp::Run { millis }),
        2 => on.clone().prop_map(|on| StormOp::Pause { on }),
        2 => (on.clone(), any::<bool>()).prop_map(|(on, clock_went_on)| StormOp::Wake { on, clock_went_on }),
        3 => (on.clone(), 0..4usize).prop_map(|(on, link)| StormOp::Link { on, link }),
        1 => (on, -40..40i64).prop_map(|(on, days)| StormOp::Wall { on, days }),
        1 => (-90_000..90_000i64).prop_map(|seconds| StormOp::CoordinatorClock { seconds }),
        1 => Just(StormOp::Reclaim),
        1 => Just(StormOp::Limit),
    ]
}

/// What really went upstream, and what it cost: as much as is reserved while it runs.
type SentCosts = Arc<Mutex<BTreeMap<RequestId, u64>>>;

struct Storm {
    world: ReplicaWorld,
    sent: SentCosts,
    /// What of the limited model may be used at most, since the limit came when so much was used.
    of_model: Option<u64>,
    /// The latest that the coordinator's clock has been.
    latest: Timestamp,
}

fn limits(has_model: bool) -> Vec<AccountTerms> {
    let mut all: Vec<TenantLimit> = vec![money(Window::Total, TOTAL), money(Window::Minute, MINUTE)];
    all.extend(
        has_model.then(|| money(Window::Total, OF_MODEL).with_selector(LimitSelector::Model("m".into()))),
    );
    vec![terms("key", &all)]
}

fn of_run() -> EpisodeLimits {
    let (cost, all, search) = OF_RUN;
    let each = [("search".into(), Count(search))].into();
    let tools = ToolLimits { all: Some(Count(all)), each };
    EpisodeLimits { cost: Some(Money(cost)), tools, ..EpisodeLimits::default() }
}

/// A request as a step of an episode.
fn as_step(claim: ReservationRequest, run: usize, tool: usize, count: u64) -> ReservationRequest {
    let about = RequestScope { episode: Some(RUNS[run].parse().unwrap()), ..claim.about };
    let mut tools = ToolCounts::default();
    if count > 0 {
        tools.add(&TOOLS[tool].into(), Count(count));
    }
    let step = Some(StepReservation { limits: of_run(), tools, tools_cost: Money::ZERO });
    ReservationRequest { about, step, ..claim }
}

/// One request from its admission to its end, as a request's task does it.
async fn request(ledger: Ledger, claim: ReservationRequest, share: u64, long: Duration, sent: SentCosts) {
    let (id, nanos) = (claim.id, claim.worst.money.0);
    let mut tools = claim.step.as_ref().map(|step| step.tools.clone()).unwrap_or_default();
    let Ok(mut reservation) = ledger.obtain(claim).await else { return };
    if reservation.dispatch().await.is_err() {
        return;
    }
    sent.lock().unwrap().insert(id, nanos);
    sleep(long).await;
    match share {
        // Posted whole.
        4 => drop(reservation),
        share => {
            sent.lock().unwrap().insert(id, nanos * share / 4);
            tools.all = Count(tools.all.0 * share / 4);
            tools.each.values_mut().for_each(|count| *count = Count(count.0 * share / 4));
            let detail = SettlementDetail { tools, ..detail() };
            drop(reservation.settle(Money(nanos * share / 4), Tokens(0), detail));
        }
    }
}

impl Storm {
    fn new() -> Storm {
        Storm {
            world: ReplicaWorld::new(REPLICAS, &limits(false)),
            sent: SentCosts::default(),
            of_model: None,
            latest: NOW,
        }
    }

    fn apply(&mut self, op: &StormOp) {
        let world = &mut self.world;
        match *op {
            StormOp::Ask { on, model, nanos, share, millis, step } => {
                let about = RequestScope { model: Some(["m", "n"][model].into()), ..RequestScope::default() };
                let claim = ReservationRequest { about, ..world.claim(on, nanos) };
                let claim = match step {
                    Some((run, tool, count)) => as_step(claim, run, tool, count),
                    None => claim,
                };
                let (ledger, sent) = (world.machines[on].ledger.clone(), self.sent.clone());
                world.machines[on].begin(request(ledger, claim, share, Duration::from_millis(millis), sent));
                world.run(Duration::from_millis(20));
            }
            StormOp::Run { millis } => world.run(Duration::from_millis(millis)),
            StormOp::Pause { on } => world.machines[on].pause(),
            StormOp::Wake { on, clock_went_on } => world.machines[on].wake(clock_went_on),
            StormOp::Link { on, link } => {
                let link = [
                    CoordinatorLink::Whole,
                    CoordinatorLink::Cut,
                    CoordinatorLink::Deaf,
                    CoordinatorLink::Whole,
                ][link];
                world.machines[on].link.send_replace(link);
            }
            StormOp::Wall { on, days } => world.machines[on].wall = days * 24 * 3_600 * 1_000,
            StormOp::CoordinatorClock { seconds } => {
                let mut state = world.vault.state();
                self.latest = self.latest.max(state.now);
                state.now.0 += seconds * 1_000;
            }
            StormOp::Reclaim => drop(world.vault.state().reclaim_expired()),
            StormOp::Limit => self.limit(),
        }
    }

    /// At one moment everywhere: what is used or promised by then may be used, whatever the new limit says.
    fn limit(&mut self) {
        if self.of_model.is_some() {
            return;
        }
        let (machines, state) = (&self.world.machines, self.world.vault.state());
        let of = state.rows.values().filter(|row| row.sent.about.model.as_deref() == Some("m"));
        let written: u64 = of.map(|row| row.used(Unit::Money)).sum();
        drop(state);
        let promised: u64 = machines.iter().map(|one| one.on(Ledger::reserved).money.0).sum();
        self.of_model = Some(OF_MODEL.max(written + promised));
        machines.iter().for_each(|one| one.on(|ledger| ledger.declare(&limits(true))));
    }

    fn check(&self) {
        let state = self.world.vault.state();
        for (window, handed) in &state.windows {
            let held: u64 = handed.leases.values().map(|cut| cut.amount).sum();
            assert!(held <= handed.granted, "{held} of {} {window:?}", handed.granted);
            let max = match (&window.facet, window.window) {
                (Facet::Whole, Window::Total) => TOTAL,
                (Facet::Whole, _) => MINUTE,
                (Facet::Episode(_), _) if window.unit == Unit::Money => OF_RUN.0,
                (Facet::Episode(_), _) => OF_RUN.1,
                (Facet::Tool(..), _) => OF_RUN.2,
                _ => self.of_model.unwrap_or(u64::MAX),
            };
            let used = used(&state, window);
            assert!(used <= max, "{used} of {max} used: {window:?}");
            assert!(used <= handed.granted, "{used} used and {} handed out: {window:?}", handed.granted);
        }
        for (id, cost) in &*self.sent.lock().unwrap() {
            let row = state.rows.get(id).expect("nothing is sent that is not written down");
            let written = row.used(Unit::Money);
            assert!(written >= *cost, "{written} of {cost} is written down");
        }
        drop(state);
        for machine in &self.world.machines {
            let reserved = machine.on(Ledger::reserved).money.0;
            assert!(reserved <= TOTAL, "{reserved} reserved");
        }
    }

    /// Everybody is awake and reaches everybody; whatever runs ends.
    fn calm(&mut self) {
        for machine in &mut self.world.machines {
            machine.link.send_replace(CoordinatorLink::Whole);
            machine.wake(true);
        }
        self.world.run(LASTS * 6);
        self.check();
        let (spent, open) = books(&self.world.vault.state());
        assert_eq!(open, 0, "nothing stays reserved");
        for machine in &self.world.machines {
            assert_eq!(machine.on(Ledger::open_reservations), 0);
        }
        // Past the last minute that anybody counted in, wherever the coordinator's clock has been.
        {
            let mut state = self.world.vault.state();
            // So that a minute begins shortly before it goes on below.
            let whole = self.latest.max(state.now).0.div_euclid(60_000) + 1;
            state.now = Timestamp(whole * 60_000 + 25_000);
        }
        self.world.run(LASTS * 4);
        (0..RUNS.len()).for_each(|run| self.last_call(run, TOTAL - spent));
        self.whole_rest(TOTAL - spent);
    }

    /// The last call that an episode has left is to be had, wherever its steps were; and no more.
    fn last_call(&mut self, run: usize, money: u64) {
        let used = |state: &VaultState, tool: Option<&str>| {
            let of = state.rows.values().filter(|row| {
                row.sent.about.episode.as_ref().is_some_and(|episode| episode.as_str() == RUNS[run])
            });
            let ended = of.filter_map(|row| row.ended.as_ref());
            let calls = ended.map(|row| match tool {
                Some(tool) => row.detail.tools.of(tool).0,
                None => row.spent.tool_calls.0,
            });
            calls.sum::<u64>()
        };
        let left = {
            let state = self.world.vault.state();
            (OF_RUN.1 - used(&state, None)).min(OF_RUN.2 - used(&state, Some(TOOLS[0])))
        };
        if money == 0 || left == 0 {
            return;
        }
        for on in 0..REPLICAS {
            let (other, claim) = ((on + 1) % REPLICAS, as_step(self.world.claim(on, 0), run, 0, left));
            let beyond = as_step(self.world.claim(other, 0), run, 0, 1);
            let ledger = self.world.machines[on].ledger.clone();
            let rest = self.world.until(on, async move { ledger.obtain(claim).await }).expect("an answer");
            let rest = rest.unwrap_or_else(|refused| panic!("{left} calls: {refused}"));
            let ledger = self.world.machines[other].ledger.clone();
            let beyond = self.world.until(other, async move { ledger.obtain(beyond).await.map(drop) });
            assert!(beyond.expect("an answer").is_err(), "beyond what the run may");
            self.world.give_back(on, rest);
            self.world.run(Duration::from_millis(300));
        }
    }

    /// The last nano-dollar is to be had, wherever it lies; and no more.
    fn whole_rest(&mut self, left: u64) {
        for on in 0..REPLICAS {
            let about = RequestScope { model: Some("n".into()), ..RequestScope::default() };
            let most = left.min(MINUTE);
            let ledger = self.world.machines[on].ledger.clone();
            let claim = ReservationRequest { about: about.clone(), ..self.world.claim(on, most) };
            let rest = self.world.until(on, async move { ledger.obtain(claim).await });
            let rest =
                rest.expect("an answer").unwrap_or_else(|refused| panic!("{most} of {left}: {refused}"));
            let (other, ledger) =
                ((on + 1) % REPLICAS, self.world.machines[(on + 1) % REPLICAS].ledger.clone());
            let claim = ReservationRequest { about, ..self.world.claim(other, 1) };
            let beyond = self.world.until(other, async move { ledger.obtain(claim).await.map(drop) });
            assert!(beyond.expect("an answer").is_err(), "beyond the limit");
            self.world.give_back(on, rest);
            self.world.run(Duration::from_millis(300));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 64, ..ProptestConfig::default() })]
    /// CR-09, CR-11, LB-22: in any order.
    #[test]
    fn in_no_order_of_pauses_partitions_and_jumps_is_a_limit_passed_or_anything_stranded(
        ops in prop::collection::vec(op(), 0..60),
    ) {
        let mut storm = Storm::new();
        for op in &ops {
            storm.apply(op);
            storm.check();
        }
        storm.calm();
    }
}
