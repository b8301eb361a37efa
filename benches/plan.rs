//! How long deciding takes, and what it allocates: `cargo bench --bench plan`.
//!
//! Figure 6 of the decisions: for a prompt of 2 KB, a named model within 10 µs, `auto` over twenty models and twelve budgets
//! within 40 µs, estimate and plan together; and nothing is allocated for an offer, which is seen by doubling the models:
//! what a plan allocates does not grow with the offers it prices. "Decided" is both together, the figure that is promised,
//! and once more where every text is another one: a processor that has seen a text twenty thousand times knows its words by heart.

#![allow(missing_docs)]
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for its makers")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use stint_decide::learn::{BeliefStore, OutcomeSample, Settings};
use stint_decide::plan::{DrawRule, Exploration, PlanRequest, plan, quote};
use stint_types::catalog::{
    Allowance, AnswerComparison, Calibration, Demand, EnforcementClass, GoesOn, HandOff, Market, Model,
    ModelConditions, ModelDemand, Needs, Prices, RemainingQuota, Route, Service, SolutionStopReason, Tariff,
    ThinkingStopReason, TightestLimits, Vote,
};
use stint_types::chat::{Budget, Message, Request, Role};
use stint_types::units::{Amount, Chance, Limit, Money, Preference, Price, Tokens, Unit, Window};

/// Counts what is asked of the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(u64::try_from(layout.size()).unwrap_or(0), Ordering::Relaxed);
        // SAFETY: the caller's promises are those that the system asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct World {
    models: Vec<Model>,
    calibration: Calibration,
    prompts: BTreeMap<Arc<str>, Tokens>,
    market: Market,
    allowance: Allowance,
    route: Route,
    request: Request,
    /// The same with other texts.
    others: Vec<Request>,
}

fn main() {
    println!("{:<67} {:>9} {:>9} {:>8} {:>8} {:>7}", "", "median", "p99", "allocs", "bytes", "offers");
    line("named model", world(1), |_| ());
    line("auto, 10 models", world(10), |_| ());
    line("auto, 20 models", world(20), |_| ());
    line("auto, 40 models", world(40), |_| ());
    line("auto, 20 models, preference stated", world(20), |w| {
        w.request.budget.preference = Some(Preference::try_from(0.7).unwrap());
    });
    line("auto, 20 models, key with limits", world(20), limits);
    line("auto, 20 models, exploring", world(20), |w| w.route.explore = Chance::new(0.05));
    line("auto, 20 models, votes of up to 5", world(20), |w| {
        w.route.vote = Some(Vote::with_default_assumptions(5, AnswerComparison::Number));
    });
    line("auto, 20 models, votes and cascades", world(20), |w| {
        (w.route.vote, w.route.cascade) =
            (Some(Vote::with_default_assumptions(5, AnswerComparison::Number)), true);
    });
    learning(&world(20));
}

/// What it takes to correct the predictions of twenty models, of which all have outcomes, and to learn one more.
fn learning(world: &World) {
    let mut store = BeliefStore::new(Settings::default());
    let demand = world.demand(&world.request);
    for (at, request) in world.others.iter().cycle().take(400).enumerate() {
        let other = world.demand(request);
        let (name, predicted) = other.models.iter().nth(at % other.models.len()).unwrap();
        store.observe(&outcome(name, predicted, &other));
    }
    let adjusted = RefCell::new(demand.clone());
    row("auto, 20 models: what was learned", &measured(|| store.adjust(&mut adjusted.borrow_mut())), 0);
    let (name, predicted) = demand.models.iter().next().unwrap();
    let sample = outcome(name, predicted, &demand);
    let store = RefCell::new(store);
    let unjudged = OutcomeSample { success: None, thinking: Tokens(300), ..sample.clone() };
    let published = RefCell::new(Arc::new(store.borrow().snapshot()));
    let learn = |sample: &OutcomeSample| {
        store.borrow_mut().observe(sample);
        published.replace(Arc::new(store.borrow().snapshot()));
    };
    row("20 models: an outcome learned and made known", &measured(|| learn(&unjudged)), 0);
    row("20 models: a judged outcome learned and made known", &measured(|| learn(&sample)), 0);
}

fn outcome(name: &Arc<str>, predicted: &ModelDemand, demand: &Demand) -> OutcomeSample {
    OutcomeSample {
        model: name.clone(),
        class: demand.class,
        predicted: predicted.clone(),
        request: demand.request.clone(),
        budget: Tokens::ZERO,
        effort: 1.0,
        thinking: Tokens::ZERO,
        ended: ThinkingStopReason::Closed,
        solution: Tokens(100),
        solution_ended: SolutionStopReason::Stop,
        success: Some(Chance::new(0.7)),
        weight: 1.0,
        alarm: 0.0,
    }
}

fn line(name: &str, mut world: World, change: impl FnOnce(&mut World)) {
    change(&mut world);
    let models: Vec<&Model> = world.models.iter().collect();
    let demand = world.demand(&world.request);
    let plans = || drop(black_box(world.ask(&demand, &models, |ask| plan(ask).unwrap())));
    let decided = |request: &Request| {
        let demand = world.demand(request);
        drop(black_box(world.ask(&demand, &models, |ask| plan(ask).unwrap())));
    };
    let turn = Cell::new(0);
    let another = || decided(&world.others[turn.replace(turn.get() + 1) % world.others.len()]);
    let offers = world.ask(&demand, &models, |ask| quote(ask).unwrap()).offers.len();
    row(&format!("{name}: plan"), &measured(plans), offers);
    row(&format!("{name}: decided"), &measured(|| decided(&world.request)), offers);
    row(&format!("{name}: decided, another text each time"), &measured(another), offers);
}

/// Median and 99th percentile in microseconds, and what one run allocates, how often and in bytes.
struct Measurement {
    median: f64,
    p99: f64,
    allocations: u64,
    bytes: u64,
}

fn row(name: &str, measurement: &Measurement, offers: usize) {
    let Measurement { median, p99, allocations, bytes } = measurement;
    println!("{name:<67} {median:>6.1} µs {p99:>6.1} µs {allocations:>8} {bytes:>8} {offers:>7}");
}

fn measured(run: impl Fn()) -> Measurement {
    (0..2_000).for_each(|_| run());
    let counted = || [&ALLOCATIONS, &BYTES].map(|count| count.load(Ordering::Relaxed));
    let before = counted();
    run();
    let [allocations, bytes] = std::array::from_fn(|at| counted()[at] - before[at]);
    let mut times: Vec<f64> = (0..20_000)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Measurement { median: times[times.len() / 2], p99: times[times.len() / 100 * 99], allocations, bytes }
}

impl World {
    fn demand(&self, request: &Request) -> Demand {
        stint_decide::estimate::estimate(request, &self.prompts, &self.calibration)
    }

    fn ask<T>(&self, demand: &Demand, models: &[&Model], what: impl FnOnce(&PlanRequest) -> T) -> T {
        let floor = self.route.explore;
        what(&PlanRequest {
            demand,
            models,
            route: &self.route,
            market: &self.market,
            allowance: &self.allowance,
            budget: &self.request.budget,
            needs: &Needs::default(),
            choices: 1,
            streams: false,
            sticky: None,
            explore: (floor > Chance::new(0.0))
                .then_some(Exploration { seed: 7, rule: DrawRule::Beliefs(floor) }),
            opening_quantile: Chance::new(stint_decide::plan::OPENING_QUANTILE),
        })
    }
}

/// So many models, each dearer and slower than the one before it.
fn world(count: u64) -> World {
    let models: Vec<Model> = (1..=count).map(model).collect();
    let mut market = Market::default();
    for (model, dear) in models.iter().zip(1_u32..) {
        let token = 0.002 * f64::from(dear);
        let conditions =
            ModelConditions { queue: 0.1, queue_least: 0.1, prefill: 1e-5, token, healthy: true };
        market.models.insert(model.name.clone(), conditions);
    }
    let calibration = stint_decide::estimate::shipped().unwrap();
    let prompts = models.iter().map(|model| (model.name.clone(), Tokens(600))).collect();
    let text = "A train leaves at 9:40 with 312 people on board; at each of 7 stops 18 leave and 25 join. ";
    let asked = |text: &str| Request {
        budget: Budget::default(),
        ..Request::new("auto", vec![Message::text(Role::User, text)])
    };
    let read = concat!(
        include_str!("../docs/operating.md"),
        include_str!("../docs/deciding.md"),
        include_str!("../docs/upstreams.md")
    );
    let others = (0..1_000).map(|start| asked(window(read, start * 71)));
    World {
        models,
        calibration,
        prompts,
        market,
        allowance: Allowance::default(),
        route: Route::with_defaults("auto"),
        request: asked(&text.repeat(2048 / text.len() + 1)),
        others: others.collect(),
    }
}

/// Two kilobytes from a place on.
fn window(text: &str, from: usize) -> &str {
    &text[text.ceil_char_boundary(from)..text.floor_char_boundary(from + 2048)]
}

fn model(dear: u64) -> Model {
    let price = |micros: u64| Price { per_million_tokens: Money(micros * 1_000) };
    Model {
        name: format!("model-{dear:02}").into(),
        tariff: Some(Tariff::plain(Prices { input: price(40_000 * dear), output: price(160_000 * dear) })),
        context: Tokens(131_072),
        context_limited_by: None,
        classes: vec![EnforcementClass::Continue],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        never_thinks: false,
        thinking_ruled_out: None,
        thinking_max: Tokens(32_768),
        thinking_usual: None,
        solution_max: None,
        output_max: None,
        output_min: Tokens(1),
        hand_off: HandOff { text: String::new(), overhead: Tokens(12), overhead_without_thought: Tokens(12) },
        services: vec![Service::Chat],
        capabilities: Vec::new(),
        efforts: Vec::new(),
        members: stint_types::catalog::MemberRules::default(),
        resumes_tools: false,
        conversation: stint_types::catalog::ConversationRules::default(),
        goes_on: GoesOn::Never,
        stops_billing: false,
        reference: None,
        ability_guess: None,
        specialty: None,
    }
}

fn limits(world: &mut World) {
    let limit = |unit| Limit::of_key(unit, Window::Month);
    world.allowance.overall = TightestLimits {
        money: Some(RemainingQuota {
            limit: limit(Unit::Money),
            max: Amount::Money(Money(1_000_000_000)),
            amount: Money(20_000_000),
            resets_at: None,
        }),
        thinking: Some(RemainingQuota {
            limit: limit(Unit::Thinking),
            max: Amount::Thinking(Tokens(1_000_000)),
            amount: Tokens(50_000),
            resets_at: None,
        }),
    };
}
