//! The laws, as properties of any world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use stint_types::catalog::{AnswerComparison, ModelConditions, Vote, VoteAssumptions};
use stint_types::units::Preference;

use super::*;

prop_compose! {
    fn any_model()(
        class in prop_oneof![
            Just(EnforcementClass::Inline), Just(EnforcementClass::Continue), Just(EnforcementClass::Native), Just(EnforcementClass::Turn), Just(EnforcementClass::Effort)
        ],
        input in 0..20_000_000_000u64, output in 0..80_000_000_000u64, priced in prop::bool::weighted(0.9),
        context in 50..20_000u64, thinking_max in prop_oneof![Just(0u64), 1..10_000u64],
        (solution_max, output_max) in (prop::option::of(1..2_000u64), prop::option::of(1..9_000u64)),
        overhead in 0..20u64, stops_billing in any::<bool>(), usual in prop::option::of(Just(Tokens(500))),
    ) -> Model {
        Model {
            tariff: priced.then(|| Tariff::plain(Prices { input: price(input), output: price(output) })),
            context: Tokens(context),
            thinking_max: Tokens(thinking_max),
            solution_max: solution_max.map(Tokens),
            output_max: output_max.map(Tokens),
            stops_billing,
            thinking_usual: usual,
            hand_off: HandOff { text: String::new(), overhead: Tokens(overhead), overhead_without_thought: Tokens(overhead / 3) },
            ..model("", class)
        }
    }
}

prop_compose! {
    fn any_demand()(
        mu in 0.0..9.0f64, sigma in 0.05..2.0f64, solution in 1..500u64, prompt in 1..3_000u64,
        done in 0.0..1.0f64, blind in 0.0..1.0f64, bend in 0.1..5.0f64, saturation in 0.2..8.0f64,
        known in any::<bool>(), bytes in prop_oneof![Just(1u64), Just(16u64)],
    ) -> ModelDemand {
        let (solution, prompt) = (Tokens(solution), Tokens(prompt));
        let (done, blind) = (Chance::new(done), Chance::new(blind));
        let (prompt_least, measured) = (Tokens(prompt.0.div_ceil(bytes)), MeasuredLengths { thinking: known, solution: known });
        let thinking = LogNormal { mu, sigma };
        ModelDemand { thinking, solution, prompt, done, blind, bend, saturation, spread: 0.0, prompt_least, prompt_usual: Tokens::ZERO, measured, tails: LengthTails::default() }
    }
}

prop_compose! {
    fn any_conditions()(queue in 0.0..5.0f64, share in 0.0..=1.0f64, prefill in 0.0..0.001f64, token in 0.0..0.05f64) -> ModelConditions {
        ModelConditions { queue, queue_least: queue * share, prefill, token, healthy: true }
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
            reasoning_effort: effort.and_then(|effort| effort_of(effort, None)),
            preference: None,
            ..Budget::default()
        }
    }
}

prop_compose! {
    fn any_world()(
        models in prop::collection::vec((any_model(), any_demand(), any_conditions()), 1..4),
        budget in any_budget(), money in prop::option::of(0..500_000_000u64),
        thinking in prop::option::of(0..10_000u64), worth in 0..1_000_000_000u64, second in 0..10_000_000u64,
        floor in 0.0..1.0f64, shadow_price in 0.0..20.0f64, choices in 1..4u32,
        (samples, alike, cascade) in (prop::option::of(2..8u32), 0.0..=1.0f64, any::<bool>()),
        sticky in prop::option::weighted(0.3, (prop::bool::ANY, 0..5_000u64, any::<bool>())),
    ) -> PlanFixture {
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
        world.market = Market { models: measured, shadow_price, ..Market::default() };
        world.allowance.overall.money = money.and_then(money_left);
        world.allowance.overall.thinking = thinking.and_then(thinking_left);
        (world.route.worth, world.route.cost_per_second) = (Money(worth), Money(second));
        world.route.success_floor = Chance::new(floor);
        let assumptions = VoteAssumptions { distinct_wrong: 4, correlation: Chance::new(alike) };
        world.route.vote = samples.map(|samples| Vote::new(samples, AnswerComparison::Number, assumptions));
        world.route.cascade = cascade;
        let first = |first| if first { "model-0" } else { "model-1" };
        world.sticky = sticky.map(|(at, cached, evidence)| (first(at), cached, evidence));
        PlanFixture { budget, choices, ..world }
    }
}

/// The first offer, if there is one, with a change to the world.
fn offered(world: &PlanFixture, change: impl FnOnce(&mut PlanFixture)) -> Option<Offer> {
    world.clone().with(change).plan().ok().map(|plan| plan.best)
}

proptest! {
    #[test]
    fn no_offer_passes_a_limit(world in any_world()) {
        let Ok(plan) = world.plan() else { return Ok(()) };
        for offer in offers(&plan) {
            let at = world.models.iter().position(|model| model.name == offer.model).unwrap();
            let (model, demand) = (&world.models[at], &world.demands[at]);
            let all = offer.thinking + offer.overhead + offer.solution;
            prop_assert!(offer.solution > Tokens::ZERO);
            prop_assert!(offer.thinking <= model.thinking_max);
            prop_assert!(demand.prompt_least + all <= model.context);
            prop_assert!(offer.opening <= offer.solution);
            prop_assert!(offer.opening == offer.solution || model.stops_billing);
            let is_closed_before = match offer.class {
                EnforcementClass::Inline => model.hand_off.overhead_without_thought < model.hand_off.overhead,
                class => class != EnforcementClass::Effort,
            };
            let is_alone = offer.thinking == Tokens::ZERO && is_closed_before;
            let written = if is_alone { offer.solution } else { all };
            prop_assert!(world.budget.total.is_none_or(|total| written <= total));
            prop_assert!(world.budget.solution.is_none_or(|most| offer.solution <= most));
            prop_assert!(world.budget.thinking.is_none_or(|most| offer.thinking <= most));
            prop_assert!(world.budget.cost.is_none_or(|most| offer.worst.money <= most));
            prop_assert!(world.allowance.overall.money.as_ref().is_none_or(|left| offer.worst.money <= left.amount));
            prop_assert!(world.allowance.overall.thinking.as_ref().is_none_or(|left| offer.worst.thinking <= left.amount));
            prop_assert!(offer.cost <= offer.worst.money + Money(1), "{} of {:?}", offer.cost, offer.worst);
            prop_assert!(offer.seconds.is_finite() && offer.value.is_finite());
            let conditions = world.market.models[&offer.model];
            if let (Some(deadline), true) = (world.budget.deadline, offer.thinking > Tokens::ZERO) {
                let answer = demand.solution_usual().min(offer.solution);
                let tokens = (offer.thinking + answer).as_f64() * conditions.token;
                // Whose thought is stated is not cut short for the thoughts of others.
                let is_stated = world.budget.thinking.is_some();
                let queue = if is_stated { conditions.queue_least } else { conditions.queue };
                let before = queue + conditions.prefill * demand.prompt.as_f64();
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
        let at = |effort: f64| offered(&world, |w| w.budget.reasoning_effort = effort_of(effort, None));
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
            (model.context, model.thinking_max, model.output_max) = (Tokens(20_000), Tokens(3_000), None);
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
        world.budget.reasoning_effort = effort_of(effort, None);
        let at = |millis: u64| offered(&world, |w| w.budget.deadline = Some(Duration::from_millis(millis)));
        if let (Some(less), Some(more)) = (at(a.min(b)), at(a.max(b))) {
            prop_assert!(less.thinking <= more.thinking);
        }
    }
}
