//! Staying with the model of an episode, and leaving it.

use super::*;

/// Two models that cost and reach the same; what is cached costs a tenth.
fn twins() -> PlanFixture {
    world().with(|w| {
        w.models = vec![model("first", EnforcementClass::Inline), model("second", EnforcementClass::Inline)];
        for model in &mut w.models {
            let list = Prices { input: price(1_000_000_000), output: price(4_000_000_000) };
            let rates = Rates { cache_read: price(100_000_000), ..Rates::plain(list) };
            model.tariff = Some(Tariff { rates, long: None, call: Money::ZERO, off_peak: None });
        }
        w.demands = vec![demand(5.0, 0.1, 0.95), demand(5.0, 0.1, 0.95)];
        w.demands.iter_mut().for_each(|demand| demand.prompt = Tokens(2_000));
    })
}

fn chosen(change: impl FnOnce(&mut PlanFixture)) -> String {
    twins().with(change).first().model.to_string()
}

#[test]
fn an_episode_stays_where_its_prompt_is_cached() {
    assert_eq!(chosen(|_| ()), "first");
    assert_eq!(chosen(|w| w.sticky = Some(("second", 1_500, false))), "second");
    let cost = |cached| twins().with(|w| w.sticky = Some(("first", cached, false))).first().cost.0;
    // Nine tenths of a dollar for a million cached tokens.
    assert_eq!(cost(0) - cost(1_000), 900_000);
    // No more than the prompt itself can be cached.
    assert_eq!(cost(2_000), cost(9_000));
    let plan = twins().with(|w| w.sticky = Some(("second", 1_500, false))).plan().unwrap();
    assert!(plan.why.contains("stays where 1500 tokens of the prompt are cached"), "{}", plan.why);
}

#[test]
fn a_switch_pays_only_where_it_gains_more_than_the_cache() {
    let better = |done: f64| {
        move |w: &mut PlanFixture| {
            w.demands[0].done = Chance::new(done);
            w.route.worth = Money(50_000_000);
            w.sticky = Some(("second", 2_000, false));
        }
    };
    assert_eq!(chosen(better(0.955)), "second");
    assert_eq!(chosen(better(0.999)), "first");
    let plan = twins().with(better(0.999)).plan().unwrap();
    assert!(plan.why.contains("switched from second"), "{}", plan.why);
}

#[test]
fn a_dearer_model_is_only_asked_where_something_went_wrong_or_nobody_else_can() {
    let sticky = |evidence| move |w: &mut PlanFixture| w.sticky = Some(("small", 0, evidence));
    assert_eq!(&*two().first().model, "large");
    assert_eq!(&*two().with(sticky(false)).first().model, "small");
    assert_eq!(&*two().with(sticky(true)).first().model, "large");
    let sick = |w: &mut PlanFixture| {
        sticky(false)(w);
        w.models[0].context = Tokens(50);
    };
    assert_eq!(&*two().with(sick).first().model, "large");
    // A cheaper one may always be asked.
    assert_eq!(two().with(|w| w.sticky = Some(("large", 0, false))).plan().unwrap().fallbacks.len(), 1);
}
