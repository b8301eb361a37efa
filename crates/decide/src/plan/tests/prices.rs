//! What a plan may cost, and models without a price.

use super::rules::{check, check_refused};
use super::*;

#[test]
fn too_little_money_for_an_answer_alone_is_refused() {
    let needed = Money(10_000 + 400 * 60);
    let cost = Money(1_000);
    let refusal = PlanRefusal::CostBudgetTooSmall { needed, cost, member: "budget.cost_usd" };
    check_refused(|w| w.budget.cost = Some(cost), &refusal);
    let (limit, left) = (Box::new(key(Unit::Money)), Amount::Money(Money(5)));
    let resets_at = Some(Timestamp(7));
    let (needed, member) = (Amount::Money(needed), "max_completion_tokens");
    let exceeds_limit = false;
    let refusal = PlanRefusal::InsufficientQuota { limit, needed, left, resets_at, exceeds_limit, member };
    check_refused(|w| w.allowance.overall.money = money_left(5), &refusal);
}

/// CF-07: a key with a limit on money is not served at no price.
#[test]
fn an_unpriced_model_is_refused_only_where_money_is_limited() {
    let unpriced = |w: &mut PlanFixture| w.models[0].tariff = None;
    assert_eq!(world().with(unpriced).first().worst.money, Money::ZERO);
    check_refused(
        |w| {
            unpriced(w);
            w.allowance.overall.money = money_left(1_000_000_000);
        },
        &PlanRefusal::Unpriced { model: "reasoner".into() },
    );
    let free = Some(Tariff::FREE);
    check(
        |w| {
            w.models[0].tariff = free;
            w.allowance.overall.money = money_left(0);
            w.budget.thinking = Some(Tokens(9));
        },
        9,
        256,
        "stated",
    );
}

/// A second model as able as the first, at a tenth of a cent for a call.
fn beside_a_priced_one(w: &mut PlanFixture) {
    let cheap = Tariff::plain(Prices { input: price(10_000_000), output: price(40_000_000) });
    w.models.push(Model { tariff: Some(cheap), ..model("cheap", EnforcementClass::Inline) });
    w.demands.push(w.demands[0].clone());
}

#[test]
fn a_price_that_nobody_wrote_is_not_zero() {
    let dear = Tariff::plain(Prices { input: price(1_000_000_000), output: price(4_000_000_000) });
    let weighed = world().with(|w| {
        beside_a_priced_one(w);
        w.models[0] =
            Model { tariff: None, reference: Some(dear), ..model("reasoner", EnforcementClass::Inline) };
    });
    assert_eq!(&*weighed.first().model, "cheap");
    let alone = weighed.clone().with(|w| {
        w.models.truncate(1);
    });
    let plan = alone.plan().unwrap();
    assert!(
        plan.why.contains("weighed at 1 and 4 dollars for a million tokens, price unknown"),
        "{}",
        plan.why
    );
    assert_eq!(plan.best.worst.money, Money::ZERO, "a reference is never booked");
    assert!(plan.best.cost > Money::ZERO);
    let free = weighed.with(|w| w.models[0].tariff = Some(Tariff::FREE));
    assert_eq!(&*free.first().model, "reasoner", "a price of 0 is a price");
}

#[test]
fn a_model_of_unknown_price_is_left_out_where_there_is_a_choice() {
    let unknown = world().with(|w| {
        beside_a_priced_one(w);
        w.models[0].tariff = None;
    });
    let plan = unknown.plan().unwrap();
    assert!(offers(&plan).all(|offer| &*offer.model == "cheap"));
    let quote = unknown.ask(quote).unwrap();
    assert_eq!(quote.refused, [("reasoner".into(), PlanRefusal::PriceUnknown { model: "reasoner".into() })]);
    let named = unknown.with(|w| w.models.truncate(1));
    assert_eq!(&*named.first().model, "reasoner");
}

#[test]
fn the_worst_case_is_that_of_the_class() {
    let worst = |class, choices| {
        let stated = |w: &mut PlanFixture| {
            w.models[0].classes = vec![class];
            w.choices = choices;
            w.budget.thinking = Some(Tokens(200));
        };
        let worst = world().with(stated).first().worst;
        (worst.money.0, worst.thinking.0)
    };
    assert_eq!(worst(EnforcementClass::Inline, 1), (100 * 100 + 400 * (200 + 4 + 256), 200));
    let read_twice = 100 * (100 + 100 + 200 + 4) + 400 * (200 + 4 + 256);
    assert_eq!(worst(EnforcementClass::Continue, 1), (read_twice, 200));
    let rescued = 100 * (100 + 100) + 400 * (200 + 256 + 256);
    assert_eq!(worst(EnforcementClass::Effort, 1), (rescued, 200 + 256 + 256));
    assert_eq!(worst(EnforcementClass::Continue, 3), (3 * read_twice, 600));
    let turned = 100 * (100 + 100 + 200 + 4) + 400 * (200 + 256 + 4 + 256);
    assert_eq!(worst(EnforcementClass::Turn, 1), (turned, 200));
    let beyond = 200 + 20 + 32;
    assert_eq!(worst(EnforcementClass::Native, 1), (100 * 100 + 400 * (beyond + 4 + 256), beyond));
}

#[test]
fn a_native_budget_that_can_be_cut_reserves_the_cut() {
    let worst = |w: &mut PlanFixture| {
        w.models[0].classes = vec![EnforcementClass::Native, EnforcementClass::Turn];
        w.budget.thinking = Some(Tokens(200));
    };
    let beyond = 200 + 20 + 32;
    let money = 100 * (100 + 100 + beyond + 4) + 400 * (beyond + 4 + 256 + 4 + 256);
    assert_eq!(world().with(worst).first().worst.money.0, money);
}

#[test]
fn the_dearest_that_a_prompt_can_be_is_reserved() {
    let dear = |w: &mut PlanFixture| {
        let list = Prices { input: price(100_000_000), output: price(400_000_000) };
        let rates = Rates { cache_write: price(125_000_000), ..Rates::plain(list) };
        w.models[0].tariff = Some(Tariff { rates, long: None, call: Money(7), off_peak: None });
        w.budget.thinking = Some(Tokens(200));
    };
    assert_eq!(world().with(dear).first().worst.money.0, 7 + 125 * 100 + 400 * (200 + 4 + 256));
}

#[test]
fn a_dear_dollar_moves_the_traffic_to_the_cheaper_model() {
    let at = |shadow_price: f64| two().with(|w| w.market.shadow_price = shadow_price).first();
    assert!(at(50.0).cost <= at(1.0).cost);
    // Of one model a smaller cap, of which less is set aside, may be cut a little more often.
    let (face, cheap) = (at(1.0).cost, at(0.01).cost);
    assert!(face.as_dollars() <= cheap.as_dollars() * 1.01, "{face} {cheap}");
    assert_eq!(&*at(0.01).model, "large");
}

#[test]
fn a_choice_goes_by_the_tokens_that_a_prompt_is_expected_to_have_and_money_is_set_aside_for_its_bound() {
    let priced = |name: &str, input: u64| {
        let tariff = Some(Tariff::plain(Prices { input: price(input), output: price(0) }));
        Model { tariff, ..model(name, EnforcementClass::Inline) }
    };
    // The better model is worth a fifth of a cent more, and takes a tenth of a cent for a thousand tokens.
    let pair = world().with(|w| {
        w.models = vec![priced("small", 1_000_000), priced("big", 1_000_000_000)];
        w.models.iter_mut().for_each(|model| model.context = Tokens(32_000));
        w.demands =
            [0.7, 0.9].map(|done| ModelDemand { blind: Chance::new(done), ..demand(3.0, done, done) }).into();
        for demand in &mut w.demands {
            (demand.prompt, demand.prompt_least) = (Tokens(6_000), Tokens(375));
        }
        w.route.cost_per_second = Money::ZERO;
    });
    assert_eq!(&*pair.first().model, "small", "6,000 tokens would be too dear");
    let expected = pair.with(|w| w.demands.iter_mut().for_each(|demand| demand.prompt_usual = Tokens(1_500)));
    let offer = expected.first();
    assert_eq!((&*offer.model, offer.cost), ("big", Money(1_500_000)));
    assert_eq!(offer.worst.money, Money(6_000_000));
}
