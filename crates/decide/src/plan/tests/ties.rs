//! Models of which nobody can say which is better.

use stint_types::units::Preference;

use super::*;

/// A small model and one ten times as dear, with these chances, which no thought raises.
fn pair(small: f64, large: f64) -> PlanFixture {
    two().with(|w| {
        w.demands = [small, large].map(|chance| demand(3.0, chance, chance)).into();
        w.route.worth = Money(300_000_000);
    })
}

fn check(world: &PlanFixture, expected: &str) {
    let plan = world.plan().unwrap();
    assert_eq!(&*plan.best.model, expected, "{}", plan.why);
}

#[test]
fn a_success_that_is_hardly_higher_is_not_worth_a_dearer_model() {
    check(&pair(0.996, 0.997), "small");
    check(&pair(0.996, 0.998), "small");
    check(&pair(0.996, 0.9985), "large");
    let why = pair(0.996, 0.997).plan().unwrap().why;
    assert!(why.contains("not large (100 %), which costs more and is hardly better"), "{why}");
    assert!(!pair(0.99, 0.999).plan().unwrap().why.contains("hardly better"));
}

#[test]
fn what_is_hard_goes_by_value_alone_however_close_that_is() {
    check(&pair(0.6, 0.63), "large");
    // What the large one is worth more is less than a thousandth of what a right answer is worth.
    let close = |worth| pair(0.6, 0.63).with(|w| w.route.worth = Money(worth));
    check(&close(5_500_000), "large");
    check(&close(5_450_000), "small");
}

#[test]
fn who_pays_much_for_an_answer_gets_what_is_hardly_better() {
    let worth = |dollars: u64| pair(0.996, 0.9975).with(|w| w.route.worth = Money(dollars * 1_000_000_000));
    check(&worth(1), "small");
    check(&worth(2), "large");
    check(&worth(100), "large");
}

#[test]
fn what_costs_as_much_and_is_hardly_better_is_taken() {
    let alike = pair(0.996, 0.997).with(|w| w.models[1] = model("large", EnforcementClass::Inline));
    check(&alike, "large");
}

#[test]
fn who_states_a_preference_gets_what_is_hardly_better_too() {
    let best = Some(Preference::try_from(1.0).unwrap());
    check(&pair(0.996, 0.997).with(|w| w.budget.preference = best), "large");
    let cheapest = Some(Preference::try_from(0.0).unwrap());
    check(&pair(0.996, 0.997).with(|w| w.budget.preference = cheapest), "small");
}

#[test]
fn what_is_tried_is_tried_beside_the_one_that_is_taken() {
    let share = TrialShare { bounds: TrialBounds::usual(), dollars_max: 0.0 };
    let explore = Some(Exploration { seed: 1, rule: DrawRule::Trials(share) });
    let plan = pair(0.996, 0.997).with(|w| w.explore = explore).plan().unwrap();
    assert_eq!((&*plan.best.model, plan.contenders[0].propensity), ("small", 1.0));
}
