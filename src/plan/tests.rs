//! What a caller can rely on: tables for the rules, properties for the laws of design.md §4.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::catalog::{
    Capability, Conditions, EffortLevel, HandOff, Left, LogNormal, ModelDemand, Prices, TaskClass,
};
use crate::chat::Depth;
use crate::units::{Difficulty, Effort, Limit, Preference, Price, Timestamp, Unit, Window};

/// Everything a plan depends on, owned.
#[derive(Debug, Clone)]
struct World {
    models: Vec<Model>,
    demands: Vec<ModelDemand>,
    market: Market,
    route: Route,
    allowance: Allowance,
    budget: Budget,
    needs: Needs,
    choices: u32,
}

impl World {
    fn plan(&self) -> Result<Plan, Refusal> {
        let named = self.models.iter().zip(&self.demands);
        let demand = Demand {
            class: TaskClass::Math,
            difficulty: Difficulty::new(0.31),
            confidence: Chance::new(0.5),
            models: named.map(|(model, demand)| (model.name.clone(), demand.clone())).collect(),
        };
        plan(&Ask {
            demand: &demand,
            models: &self.models.iter().collect::<Vec<_>>(),
            route: &self.route,
            market: &self.market,
            allowance: &self.allowance,
            budget: &self.budget,
            needs: &self.needs,
            choices: self.choices,
        })
    }

    fn first(&self) -> Offer {
        self.plan().unwrap().best
    }

    fn with(mut self, change: impl FnOnce(&mut World)) -> World {
        change(&mut self);
        self
    }
}

/// All offers of a plan, best first.
fn offers(plan: &Plan) -> impl Iterator<Item = &Offer> {
    std::iter::once(&plan.best).chain(&plan.fallbacks)
}

fn model(name: &str, class: Class) -> Model {
    let level = |word: &str, usual| EffortLevel { word: word.into(), usual: Tokens(usual) };
    Model {
        name: name.into(),
        prices: Some(Prices { input: price(100_000_000), output: price(400_000_000) }),
        context: Tokens(8192),
        class,
        thinking_max: Tokens(4096),
        solution_default: Tokens(256),
        hand_off: HandOff { text: String::new(), overhead: Tokens(4) },
        capabilities: vec![Capability::Tools],
        efforts: vec![level("minimal", 0), level("low", 100), level("high", 1000)],
    }
}

fn price(per_million: u64) -> Price {
    Price { per_million_tokens: Money(per_million) }
}

fn demand(mu: f64, blind: f64, done: f64) -> ModelDemand {
    ModelDemand {
        thinking: LogNormal { mu, sigma: 0.5 },
        solution: Tokens(20),
        prompt: Tokens(100),
        done: Chance::new(done),
        blind: Chance::new(blind),
        bend: 1.5,
    }
}

/// One inline model that usually thinks about 148 tokens.
fn world() -> World {
    World {
        models: vec![model("reasoner", Class::Inline)],
        demands: vec![demand(5.0, 0.1, 0.95)],
        market: Market::default(),
        route: Route {
            name: "auto".into(),
            models: Vec::new(),
            success_floor: Chance::new(0.5),
            worth: Money(10_000_000),
            second: Money(1_000),
        },
        allowance: Allowance::default(),
        budget: Budget::default(),
        needs: Needs::default(),
        choices: 1,
    }
}

fn key(unit: Unit) -> Limit {
    Limit { holder: "key", unit, window: Window::Month }
}

fn money_left(amount: u64) -> Option<Left<Money>> {
    Some(Left { limit: key(Unit::Money), amount: Money(amount), resets_at: Some(Timestamp(7)) })
}

fn thinking_left(amount: u64) -> Option<Left<Tokens>> {
    Some(Left { limit: key(Unit::Thinking), amount: Tokens(amount), resets_at: None })
}

fn effort_of(effort: f64, word: Option<&str>) -> Option<Depth> {
    Some(Depth { effort: Effort::try_from(effort).unwrap(), word: word.map(String::from) })
}

fn check(change: impl FnOnce(&mut World), thinking: u64, solution: u64, why: &str) {
    let plan = world().with(change).plan().unwrap();
    let offer = &plan.best;
    assert_eq!((offer.thinking, offer.solution), (Tokens(thinking), Tokens(solution)), "{}", plan.why);
    assert!(plan.why.contains(why), "{}", plan.why);
}

fn check_refused(change: impl FnOnce(&mut World), expected: &Refusal) {
    assert_eq!(&world().with(change).plan().unwrap_err(), expected);
}

#[test]
fn a_stated_thinking_budget_is_the_thinking_budget() {
    check(|w| w.budget.thinking = Some(Tokens(800)), 800, 256, "stated");
    check(|w| w.budget.thinking = Some(Tokens(0)), 0, 256, "without thinking");
    check(
        |w| (w.budget.thinking, w.budget.depth) = (Some(Tokens(9)), effort_of(1.0, None)),
        9,
        256,
        "stated",
    );
    check(|w| (w.budget.thinking, w.market.shadow_price) = (Some(Tokens(800)), 1e6), 800, 256, "stated");
}

#[test]
fn a_stated_thinking_budget_gives_way_to_other_stated_caps_and_to_what_is_possible() {
    check(|w| w.budget.thinking = Some(Tokens(9999)), 4096, 256, "the most that the model thinks");
    let total = |w: &mut World| (w.budget.thinking, w.budget.total) = (Some(Tokens(300)), Some(Tokens(200)));
    check(total, 140, 56, "max_completion_tokens");
    let both = |w: &mut World| {
        total(w);
        w.budget.solution = Some(Tokens(100));
    };
    check(both, 96, 100, "max_completion_tokens");
    check(
        |w| (w.budget.thinking, w.models[0].context) = (Some(Tokens(300)), Tokens(304)),
        144,
        56,
        "context",
    );
    check(
        |w| (w.budget.thinking, w.budget.cost) = (Some(Tokens(800)), Some(Money(130_000))),
        240,
        56,
        "cost_usd",
    );
}

#[test]
fn the_plan_thinks_as_long_as_it_pays() {
    let thinking = |worth: u64| world().with(|w| w.route.worth = Money(worth)).first().thinking;
    assert_eq!(thinking(0), Tokens::ZERO);
    assert!(thinking(100_000) > Tokens(50));
    assert!(thinking(1_000_000) > thinking(100_000));
    let plan = world().plan().unwrap();
    assert!(plan.why.starts_with("math, difficulty 0.31: reasoner thinks up to"), "{}", plan.why);
    assert!(plan.why.ends_with("chosen by value"), "{}", plan.why);
}

#[test]
fn a_total_that_is_very_small_is_all_for_the_answer() {
    check(|w| w.budget.total = Some(Tokens(20)), 0, 16, "without thinking");
    let too_small = Refusal::BudgetTooSmall { needed: Tokens(5), stated: Tokens(4) };
    check_refused(|w| w.budget.total = Some(Tokens(4)), &too_small);
}

#[test]
fn a_deadline_lowers_thinking_and_refuses_what_cannot_be_done() {
    let slow = |w: &mut World, seconds: u64| {
        let conditions = Conditions { queue: 0.5, prefill: 0.005, token: 0.01, healthy: true };
        w.market.models.insert("reasoner".into(), conditions);
        w.budget.thinking = Some(Tokens(300));
        w.budget.deadline = Some(Duration::from_secs(seconds));
    };
    check(|w| slow(w, 60), 300, 256, "stated");
    check(|w| slow(w, 3), 140, 56, "deadline");
    let stated = |w: &mut World| {
        slow(w, 3);
        w.budget.solution = Some(Tokens(100));
    };
    check(stated, 96, 100, "deadline");
    check_refused(
        |w| slow(w, 1),
        &Refusal::DeadlineUnreachable { needed: Duration::from_millis(1240), left: Duration::from_secs(1) },
    );
}

#[test]
fn what_is_left_lowers_effort_and_choice_but_refuses_a_stated_budget() {
    let worst = world().with(|w| w.budget.thinking = Some(Tokens(200))).first().worst;
    assert_eq!(worst.money, Money(10_000 + 400 * (200 + 4 + 256)));
    let poor = |w: &mut World| w.allowance.money = money_left(10_000 + 400 * 160);
    let poor_effort = |w: &mut World| {
        poor(w);
        w.budget.depth = effort_of(1.0, None);
    };
    check(poor_effort, 100, 56, "key money month");
    let few =
        |w: &mut World| (w.allowance.thinking, w.budget.depth) = (thinking_left(30), effort_of(1.0, None));
    check(few, 30, 256, "key thinking month");
    check_refused(
        |w| {
            poor(w);
            w.budget.thinking = Some(Tokens(800));
        },
        &Refusal::DoesNotFit {
            limit: key(Unit::Money),
            needed: Amount::Money(Money(10_000 + 400 * (800 + 4 + 56))),
            left: Amount::Money(Money(74_000)),
            resets_at: Some(Timestamp(7)),
        },
    );
}

#[test]
fn too_little_money_for_an_answer_alone_is_refused() {
    let needed = Money(10_000 + 400 * 60);
    let cost = Money(1_000);
    check_refused(|w| w.budget.cost = Some(cost), &Refusal::RequestCost { needed, cost });
    let (limit, left) = (key(Unit::Money), Amount::Money(Money(5)));
    let resets_at = Some(Timestamp(7));
    let refusal = Refusal::DoesNotFit { limit, needed: Amount::Money(needed), left, resets_at };
    check_refused(|w| w.allowance.money = money_left(5), &refusal);
}

#[test]
fn what_cannot_serve_is_told_apart() {
    check_refused(
        |w| w.models[0].context = Tokens(104),
        &Refusal::ContextExceeded { needed: Tokens(105), context: Tokens(104) },
    );
    check_refused(|w| w.needs.capabilities.push(Capability::Images), &Refusal::NotCapable { what: "images" });
    let sick = Conditions { healthy: false, ..Conditions::default() };
    check_refused(|w| w.market.models = [("reasoner".into(), sick)].into(), &Refusal::Unhealthy);
    check_refused(|w| w.models.clear(), &Refusal::Unhealthy);
}

#[test]
fn an_unpriced_model_is_refused_only_where_money_is_limited() {
    let unpriced = |w: &mut World| w.models[0].prices = None;
    assert_eq!(world().with(unpriced).first().worst.money, Money::ZERO);
    check_refused(
        |w| {
            unpriced(w);
            w.allowance.money = money_left(1_000_000_000);
        },
        &Refusal::Unpriced { model: "reasoner".into() },
    );
    let free = Some(Prices { input: Price::FREE, output: Price::FREE });
    check(
        |w| {
            w.models[0].prices = free;
            w.allowance.money = money_left(0);
            w.budget.thinking = Some(Tokens(9));
        },
        9,
        256,
        "stated",
    );
}

#[test]
fn the_worst_case_is_that_of_the_class() {
    let worst = |class, choices| {
        let stated = |w: &mut World| {
            w.models[0].class = class;
            w.choices = choices;
            w.budget.thinking = Some(Tokens(200));
        };
        let worst = world().with(stated).first().worst;
        (worst.money.0, worst.thinking.0)
    };
    assert_eq!(worst(Class::Inline, 1), (100 * 100 + 400 * (200 + 4 + 256), 200));
    let read_twice = 100 * (100 + 100 + 200 + 4) + 400 * (200 + 4 + 256 + 1);
    assert_eq!(worst(Class::Continue, 1), (read_twice, 200));
    let rescued = 100 * (100 + 100) + 400 * (200 + 4 + 256 + 4 + 256);
    assert_eq!(worst(Class::Effort, 1), (rescued, 456));
    assert_eq!(worst(Class::Continue, 3), (3 * read_twice, 600));
}

#[test]
fn an_effort_model_is_sent_its_own_words() {
    let word = |change: fn(&mut World)| {
        let effort = |w: &mut World| w.models[0].class = Class::Effort;
        world().with(effort).with(change).first().effort.unwrap()
    };
    assert_eq!(word(|w| w.budget.thinking = Some(Tokens(0))), "minimal");
    assert_eq!(word(|w| w.budget.thinking = Some(Tokens(500))), "low");
    assert_eq!(word(|w| w.budget.thinking = Some(Tokens(1000))), "high");
    assert_eq!(word(|w| w.budget.depth = effort_of(0.3, Some("high"))), "high");
    assert_eq!(word(|w| w.budget.depth = effort_of(0.3, Some("medium"))), "minimal");
}

#[test]
fn a_model_that_does_not_think_answers_at_once() {
    check(
        |w| (w.models[0].thinking_max, w.budget.thinking) = (Tokens(0), Some(Tokens(50))),
        0,
        256,
        "without",
    );
}

#[test]
fn the_others_stand_by_as_fallbacks() {
    let plan = two().plan().unwrap();
    let names: Vec<&str> = offers(&plan).map(|offer| &*offer.model).collect();
    assert_eq!(names, ["large", "small"]);
    assert!(plan.why.contains("; next: small with "), "{}", plan.why);
}

#[test]
fn preference_turns_from_the_cheapest_good_enough_to_the_best() {
    let at = |preference: f64| {
        let preference = Some(Preference::try_from(preference).unwrap());
        two().with(|w| w.budget.preference = preference).first()
    };
    let (frugal, best) = (at(0.0), at(1.0));
    assert_eq!(&*frugal.model, "small");
    assert!((0.5..0.7).contains(&frugal.success.get()), "{frugal:?}");
    assert_eq!(&*best.model, "large");
    assert!(best.success.get() > 0.98, "{best:?}");
}

#[test]
fn a_dear_dollar_moves_the_traffic_to_the_cheaper_model() {
    let at = |shadow_price: f64| two().with(|w| w.market.shadow_price = shadow_price).first();
    assert!(at(50.0).cost <= at(1.0).cost);
    assert!(at(1.0).cost <= at(0.01).cost);
    assert_eq!(&*at(0.01).model, "large");
}

/// A small model and one ten times as dear.
fn two() -> World {
    world().with(|w| {
        w.models = vec![model("small", Class::Inline), model("large", Class::Continue)];
        w.models[1].prices = Some(Prices { input: price(1_000_000_000), output: price(4_000_000_000) });
        w.demands = vec![demand(5.0, 0.1, 0.9), demand(5.0, 0.4, 0.99)];
    })
}

prop_compose! {
    fn any_model()(
        class in prop_oneof![Just(Class::Inline), Just(Class::Continue), Just(Class::Effort)],
        input in 0..20_000_000_000u64, output in 0..80_000_000_000u64, priced in prop::bool::weighted(0.9),
        context in 50..20_000u64, thinking_max in prop_oneof![Just(0u64), 1..10_000u64],
        solution_default in 0..2_000u64, overhead in 0..20u64,
    ) -> Model {
        Model {
            prices: priced.then(|| Prices { input: price(input), output: price(output) }),
            context: Tokens(context),
            thinking_max: Tokens(thinking_max),
            solution_default: Tokens(solution_default),
            hand_off: HandOff { text: String::new(), overhead: Tokens(overhead) },
            ..model("", class)
        }
    }
}

prop_compose! {
    fn any_demand()(
        mu in 0.0..9.0f64, sigma in 0.05..2.0f64, solution in 1..500u64, prompt in 1..3_000u64,
        done in 0.0..1.0f64, blind in 0.0..1.0f64, bend in 0.1..5.0f64,
    ) -> ModelDemand {
        let (solution, prompt) = (Tokens(solution), Tokens(prompt));
        let (done, blind) = (Chance::new(done), Chance::new(blind));
        ModelDemand { thinking: LogNormal { mu, sigma }, solution, prompt, done, blind, bend }
    }
}

prop_compose! {
    fn any_conditions()(queue in 0.0..5.0f64, prefill in 0.0..0.001f64, token in 0.0..0.05f64) -> Conditions {
        Conditions { queue, prefill, token, healthy: true }
    }
}

prop_compose! {
    fn any_budget()(
        thinking in prop::option::of(0..5_000u64), solution in prop::option::of(1..2_000u64),
        total in prop::option::of(1..6_000u64), cost in prop::option::weighted(0.3, 0..200_000_000u64),
        deadline in prop::option::of(1..60_000u64), effort in prop::option::of(0.0..2.0f64),
    ) -> Budget {
        Budget {
            thinking: thinking.map(Tokens),
            solution: solution.map(Tokens),
            total: total.map(Tokens),
            cost: cost.map(Money),
            deadline: deadline.map(Duration::from_millis),
            depth: effort.and_then(|effort| effort_of(effort, None)),
            preference: None,
        }
    }
}

prop_compose! {
    fn any_world()(
        models in prop::collection::vec((any_model(), any_demand(), any_conditions()), 1..4),
        budget in any_budget(), money in prop::option::of(0..500_000_000u64),
        thinking in prop::option::of(0..10_000u64), worth in 0..1_000_000_000u64, second in 0..10_000_000u64,
        floor in 0.0..1.0f64, shadow_price in 0.0..20.0f64, choices in 1..4u32,
    ) -> World {
        let mut world = world();
        world.models.clear();
        world.demands.clear();
        let mut measured = BTreeMap::new();
        for (i, (model, demand, conditions)) in models.into_iter().enumerate() {
            let name: Arc<str> = format!("model-{i}").into();
            measured.insert(name.clone(), conditions);
            world.models.push(Model { name, ..model });
            world.demands.push(demand);
        }
        world.market = Market { models: measured, shadow_price };
        world.allowance.money = money.and_then(money_left);
        world.allowance.thinking = thinking.and_then(thinking_left);
        (world.route.worth, world.route.second) = (Money(worth), Money(second));
        world.route.success_floor = Chance::new(floor);
        World { budget, choices, ..world }
    }
}

/// The first offer, if there is one, with a change to the world.
fn offered(world: &World, change: impl FnOnce(&mut World)) -> Option<Offer> {
    world.clone().with(change).plan().ok().map(|plan| plan.best)
}

proptest! {
    #[test]
    fn no_offer_passes_a_limit(world in any_world()) {
        let Ok(plan) = world.plan() else { return Ok(()) };
        for offer in offers(&plan) {
            let at = world.models.iter().position(|model| model.name == offer.model).unwrap();
            let (model, demand) = (&world.models[at], &world.demands[at]);
            let overhead = if model.thinking_max.0 > 0 { model.hand_off.overhead } else { Tokens::ZERO };
            let all = offer.thinking + overhead + offer.solution;
            prop_assert!(offer.solution > Tokens::ZERO);
            prop_assert!(offer.thinking <= model.thinking_max);
            prop_assert!(demand.prompt + all <= model.context);
            prop_assert!(world.budget.total.is_none_or(|total| all <= total));
            prop_assert!(world.budget.solution.is_none_or(|most| offer.solution <= most));
            prop_assert!(world.budget.thinking.is_none_or(|most| offer.thinking <= most));
            prop_assert!(world.budget.cost.is_none_or(|most| offer.worst.money <= most));
            prop_assert!(world.allowance.money.as_ref().is_none_or(|left| offer.worst.money <= left.amount));
            prop_assert!(world.allowance.thinking.as_ref().is_none_or(|left| offer.worst.thinking <= left.amount));
            prop_assert!(offer.cost <= offer.worst.money + Money(1), "{} of {:?}", offer.cost, offer.worst);
            prop_assert!(offer.seconds.is_finite() && offer.value.is_finite());
            let conditions = world.market.models[&offer.model];
            if let (Some(deadline), true) = (world.budget.deadline, offer.thinking > Tokens::ZERO) {
                let tokens = (offer.thinking + offer.solution).as_f64() * conditions.token;
                let before = conditions.queue + conditions.prefill * demand.prompt.as_f64();
                prop_assert!(before + tokens <= deadline.as_secs_f64() + 1e-6);
            }
        }
    }

    #[test]
    fn a_higher_preference_never_yields_a_lower_success(
        world in any_world(), a in 0.0..=1.0f64, b in 0.0..=1.0f64, free in any::<bool>(),
    ) {
        let at = |preference: f64| offered(&world, |w| {
            w.budget.preference = Some(Preference::try_from(preference).unwrap());
            if free {
                w.budget = Budget { preference: w.budget.preference, ..Budget::default() };
            }
        });
        let steps = [Some(0.0), Some(a.min(b)), Some(a.max(b)), Some(1.0)].map(|p| p.and_then(at));
        let reached: Vec<f64> = steps.iter().flatten().map(|offer| offer.success.get()).collect();
        prop_assert!(reached.is_sorted(), "{reached:?}");
        prop_assert!(reached.is_empty() || reached.len() == 4);
    }

    #[test]
    fn for_one_model_more_effort_never_yields_less_thinking(
        mut world in any_world(), a in 0.0..3.0f64, b in 0.0..3.0f64,
    ) {
        world.models.truncate(1);
        let at = |effort: f64| offered(&world, |w| w.budget.depth = effort_of(effort, None));
        if let (Some(less), Some(more)) = (at(a.min(b)), at(a.max(b))) {
            prop_assert!(less.thinking <= more.thinking);
        }
    }

    #[test]
    fn a_stated_budget_is_kept_whatever_money_and_time_are_worth(
        mut world in any_world(), thinking in 0..3_000u64, preference in 0.0..=1.0f64,
    ) {
        world.budget = Budget {
            thinking: Some(Tokens(thinking)),
            preference: Some(Preference::try_from(preference).unwrap()),
            ..Budget::default()
        };
        for model in &mut world.models {
            (model.context, model.thinking_max) = (Tokens(20_000), Tokens(3_000));
        }
        if let Ok(plan) = world.plan() {
            prop_assert!(offers(&plan).all(|offer| offer.thinking == Tokens(thinking)));
        }
    }

    #[test]
    fn for_one_model_more_time_never_means_less_thinking(
        mut world in any_world(), thinking in prop::option::of(0..3_000u64), effort in 0.0..2.0f64,
        a in 1..60_000u64, b in 1..60_000u64,
    ) {
        world.models.truncate(1);
        world.budget.thinking = thinking.map(Tokens);
        world.budget.depth = effort_of(effort, None);
        let at = |millis: u64| offered(&world, |w| w.budget.deadline = Some(Duration::from_millis(millis)));
        if let (Some(less), Some(more)) = (at(a.min(b)), at(a.max(b))) {
            prop_assert!(less.thinking <= more.thinking);
        }
    }
}
