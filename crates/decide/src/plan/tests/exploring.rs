//! Draws, and the chances that are recorded with them.

use super::*;

/// Two models that cost alike; the second looks a little worse, and is less sure.
fn unsure() -> PlanFixture {
    world().with(|w| {
        w.models = vec![model("known", EnforcementClass::Inline), model("new", EnforcementClass::Inline)];
        w.demands = vec![demand(4.0, 0.1, 0.9), ModelDemand { spread: 0.1, ..demand(4.0, 0.1, 0.85) }];
    })
}

fn drawn(seed: u64, floor: f64) -> Plan {
    unsure()
        .with(|w| w.explore = Some(Exploration { seed, rule: DrawRule::Beliefs(Chance::new(floor)) }))
        .plan()
        .unwrap()
}

#[test]
fn without_exploration_the_best_is_taken_with_certainty() {
    let plan = unsure().plan().unwrap();
    assert_eq!(&*plan.best.model, "known");
    let chances: Vec<f64> = plan.contenders.iter().map(|one| one.propensity).collect();
    assert_eq!((plan.propensity, chances), (1.0, vec![1.0, 0.0]));
}

#[test]
fn the_recorded_chance_is_how_often_each_model_is_drawn() {
    let plans: Vec<Plan> = (0..4_000).map(|seed| drawn(seed, 0.1)).collect();
    let drawn: Vec<&Plan> = plans.iter().filter(|plan| &*plan.best.model == "new").collect();
    let share = |count: usize| f64::from(u32::try_from(count).unwrap()) / 4_000.0;
    let recorded: f64 = plans.iter().map(|plan| plan.contenders[1].propensity).sum::<f64>() / 4_000.0;
    assert!((share(drawn.len()) - recorded).abs() < 0.03, "{} of {recorded}", share(drawn.len()));
    // Half a standard deviation behind: the unsure one is best in about three draws of ten.
    assert!((0.2..0.45).contains(&recorded), "{recorded}");
    for plan in &plans {
        let sum: f64 = plan.contenders.iter().map(|one| one.propensity).sum();
        assert!((sum - 1.0).abs() < 1e-9 && plan.contenders.iter().all(|one| one.propensity >= 0.05));
        let own = plan.contenders.iter().find(|one| one.model == plan.best.model).unwrap();
        assert!((own.propensity - plan.propensity).abs() < 1e-12);
    }
    assert!(drawn[0].why.contains("drawn to learn which model is best"), "{}", drawn[0].why);
}

#[test]
fn equal_seeds_draw_alike_and_a_draw_never_changes_what_is_predicted() {
    assert_eq!(drawn(7, 0.1), drawn(7, 0.1));

    let plans: Vec<Plan> = (0..50).map(|seed| drawn(seed, 0.5)).collect();
    for plan in &plans {
        let at = plan.contenders.iter().find(|one| one.model == plan.best.model).unwrap();
        assert_eq!((at.success, at.thinking), (plan.best.success, plan.best.thinking));
    }
}

#[test]
fn some_thoughts_are_left_uncapped_but_never_beyond_what_caller_and_allowance_allow() {
    let capped = |seed: u64, share: f64| {
        let world = world().with(|w| {
            w.route.uncapped = Chance::new(share);
            w.explore = Some(Exploration { seed, rule: DrawRule::Beliefs(Chance::new(0.0)) });
            w.allowance.overall.thinking = thinking_left(3_000);
        });
        world.first().thinking < Tokens(3_000)
    };
    assert!((0..50).all(|seed| capped(seed, 0.0)));
    assert!((0..50).all(|seed| !capped(seed, 1.0)));
    let left = (0..2_000).filter(|seed| !capped(*seed, 0.05)).count();
    assert!((60..140).contains(&left), "{left}");
    let stated = world().with(|w| {
        (w.route.uncapped, w.budget.thinking) = (Chance::new(1.0), Some(Tokens(9)));
        w.explore = Some(Exploration { seed: 1, rule: DrawRule::Beliefs(Chance::new(0.0)) });
    });
    assert_eq!(stated.first().thinking, Tokens(9));
}

/// A model that is a little worse and so much dearer, tried sparingly.
fn tried(seed: u64, dearer: u64, dollars_max: f64) -> Plan {
    let share = TrialShare { bounds: TrialBounds::usual(), dollars_max };
    let world = unsure().with(|w| {
        let price =
            |times: u64| Prices { input: price(100_000_000 * times), output: price(400_000_000 * times) };
        w.models[1].tariff = Some(Tariff::plain(price(dearer)));
        w.explore = Some(Exploration { seed, rule: DrawRule::Trials(share) });
    });
    world.plan().unwrap()
}

fn check_trials(dearer: u64, least: f64) {
    const REQUESTS: u32 = 40_000;
    let (mut trials, mut spent, mut spent_on_trials, mut recorded) = (0.0, 0.0, 0.0, 0.0);
    for seed in 0..u64::from(REQUESTS) {
        let plan = tried(seed, dearer, f64::INFINITY);
        let cost = plan.best.cost.as_dollars();
        recorded += plan.contenders.iter().find(|one| &*one.model == "new").unwrap().propensity;
        spent += cost;
        if &*plan.best.model == "new" {
            assert!(plan.is_less_likely() && plan.why.contains("drawn to learn"), "{}", plan.why);
            (trials, spent_on_trials) = (trials + 1.0, spent_on_trials + cost);
        }
    }
    let (share, of_spend) = (trials / f64::from(REQUESTS), spent_on_trials / spent);
    assert!((least..0.0225).contains(&share), "{share} of the requests");
    assert!(of_spend < 0.0125, "{of_spend} of what was spent");
    assert!((share - recorded / f64::from(REQUESTS)).abs() < 0.0025, "{share} of {recorded}");
}

#[test]
fn trials_keep_to_their_share_of_the_requests_and_of_what_is_spent_and_are_recorded_with_their_chance() {
    check_trials(1, 0.008);
    check_trials(4, 0.001);
    check_trials(40, 0.0);
}

#[test]
fn a_trial_that_costs_more_than_is_left_for_trials_is_never_made_and_the_best_is_then_certain() {
    let plans: Vec<Plan> = (0..2_000).map(|seed| tried(seed, 1, 1e-9)).collect();
    assert!(plans.iter().all(|plan| &*plan.best.model == "known" && !plan.why.contains("drawn")));
    assert!(plans.iter().all(|plan| (plan.propensity - 1.0).abs() < 1e-12 && !plan.is_less_likely()));
}

#[test]
fn a_quote_shows_all_offers_and_what_would_be_taken_without_a_draw() {
    let world = unsure()
        .with(|w| w.explore = Some(Exploration { seed: 3, rule: DrawRule::Beliefs(Chance::new(1.0)) }));
    let (quote, plan) = (world.ask(quote).unwrap(), unsure().plan().unwrap());
    assert_eq!((&quote.offers[quote.chosen], &quote.why), (&plan.best, &plan.why));
    assert!(quote.offers.len() > 10 && quote.refused.is_empty());
    let sorted = |name: &str| {
        let own = quote.offers.iter().filter(|offer| &*offer.model == name).map(|offer| offer.thinking);
        own.is_sorted()
    };
    assert!(sorted("known") && sorted("new"));
    let narrow = world.with(|w| w.models[1].context = Tokens(50)).ask(super::super::quote).unwrap();
    assert!(matches!(&narrow.refused[..], [(name, PlanRefusal::ContextExceeded { .. })] if &**name == "new"));
}
