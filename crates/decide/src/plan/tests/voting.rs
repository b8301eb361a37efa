//! Votes and cascades among the offers.

use std::time::Duration;

use stint_types::catalog::{
    AnswerComparison, Checker, ModelConditions, VerifierSettings, Vote, VoteAssumptions,
};

use super::*;

/// A model that is right two times out of three however long it thinks, on a route that votes.
fn torn() -> PlanFixture {
    world().with(|w| {
        w.demands[0] =
            ModelDemand { done: Chance::new(0.66), blind: Chance::new(0.6), ..demand(3.0, 0.6, 0.66) };
        w.route.vote = Some(Vote::with_default_assumptions(9, AnswerComparison::Number));
    })
}

fn samples(change: impl FnOnce(&mut PlanFixture)) -> u32 {
    torn().with(change).first().samples
}

#[test]
fn a_vote_is_bought_where_it_adds_more_than_it_costs() {
    assert!(samples(|_| ()) > 1);
    assert_eq!(samples(|w| w.route.worth = Money(10_000)), 1);
    assert!(samples(|w| w.market.shadow_price = 1e4) == 1);
    assert!(samples(|w| w.route.worth = Money(300_000)) <= samples(|_| ()));
    // Where thinking longer does all, no vote adds to it.
    assert_eq!(samples(|w| w.demands[0] = demand(3.0, 0.1, 1.0)), 1);
    // Answers that are all alike gain nothing from one another.
    let alike = VoteAssumptions { distinct_wrong: 6, correlation: Chance::new(1.0) };
    assert_eq!(samples(|w| w.route.vote = Some(Vote::new(9, AnswerComparison::Number, alike))), 1);
}

#[test]
fn a_vote_is_reserved_whole_and_expected_to_stop_early() {
    let one = torn().with(|w| w.route.vote = None).first();
    let vote = torn().with(|w| w.budget.thinking = Some(one.thinking)).first();
    let n = u64::from(vote.samples);
    assert!(vote.success > one.success, "{vote:?}");
    assert_eq!((vote.worst.money, vote.worst.thinking), (one.worst.money * n, one.worst.thinking * n));
    assert!(vote.cost > one.cost * u64::from(vote.majority() - 1) && vote.cost < one.cost * n, "{vote:?}");
    let why = torn().plan().unwrap().why;
    assert!(why.contains(" times with a vote, which pays"), "{why}");
}

#[test]
fn there_is_no_vote_where_answers_cannot_wait_or_each_is_wanted_or_tools_may_be_called() {
    assert_eq!(samples(|w| w.streams = true), 1);
    assert!(samples(|w| (w.streams, w.route.buffers_streams) = (true, true)) > 1);
    assert_eq!(samples(|w| w.choices = 2), 1);
    assert_eq!(samples(|w| w.needs.capabilities.push(Capability::Tools)), 1);
}

#[test]
fn a_vote_that_cannot_be_reserved_or_is_late_is_not_offered() {
    let worst = torn().with(|w| w.route.vote = None).first().worst.money;
    assert_eq!(samples(|w| w.budget.cost = Some(worst * 2)), 1);
    let slow = |w: &mut PlanFixture, seconds: u64| {
        let conditions = ModelConditions { token: 0.03, ..ModelConditions::default() };
        w.market.models.insert("reasoner".into(), conditions);
        (w.route.cost_per_second, w.budget.deadline) = (Money::ZERO, Some(Duration::from_secs(seconds)));
    };
    assert!(samples(|w| slow(w, 600)) > 1);
    assert_eq!(samples(|w| slow(w, 1)), 1);
}

/// A small model that is often right and a large one that hardly errs, on a route with cascades.
fn cascading() -> PlanFixture {
    two().with(|w| {
        w.demands = vec![demand(3.0, 0.3, 0.8), demand(5.0, 0.4, 0.99)];
        w.route.vote = Some(Vote::with_default_assumptions(3, AnswerComparison::Number));
        w.route.cascade = true;
        (w.route.worth, w.route.cost_per_second) = (Money(8_000_000), Money::ZERO);
    })
}

#[test]
fn a_cascade_asks_the_large_model_only_where_the_small_one_does_not_agree_with_itself() {
    let quote = cascading().ask(quote).unwrap();
    let chosen = &quote.offers[quote.chosen];
    let second = chosen.escalate.as_ref().expect("a cascade");
    assert_eq!((&*chosen.model, &*second.model), ("small", "large"));
    assert!(chosen.samples > 1 && second.escalate.is_none());
    let alone = |name: &str| {
        let own = quote.offers.iter().filter(|offer| &*offer.model == name && offer.escalate.is_none());
        own.map(|offer| offer.value).fold(f64::MIN, f64::max)
    };
    assert!(chosen.value > alone("small").max(alone("large")));
    assert!(chosen.cost < second.cost && chosen.success < second.success);
    let first = quote
        .offers
        .iter()
        .find(|offer| &*offer.model == "small" && offer.samples == 1 && offer.thinking == chosen.thinking);
    let n = u64::from(chosen.samples);
    assert_eq!(chosen.worst.money, first.unwrap().worst.money * n + second.worst.money);
    assert!(quote.why.contains("large is asked where they do not agree"), "{}", quote.why);
}

#[test]
fn a_cascade_is_only_made_where_the_route_says_so_and_both_steps_can_be_reserved() {
    let escalates = |change: fn(&mut PlanFixture)| cascading().with(change).first().escalate.is_some();
    assert!(escalates(|_| ()));
    assert!(!escalates(|w| w.route.cascade = false));
    assert!(!escalates(|w| w.streams = true));
    assert!(!escalates(|w| w.budget.cost = Some(Money(700_000))));
}

/// That, with somebody who looks at answers.
fn verified() -> PlanFixture {
    cascading().with(|w| {
        w.route.vote = Some(Vote::with_default_assumptions(2, AnswerComparison::Exact));
        w.route.verifier = Some(VerifierSettings {
            by: Checker::Url("http://127.0.0.1:9".to_owned()),
            floor: Chance::new(0.7),
            timeout: Duration::from_secs(1),
            concurrency: 1,
        });
    })
}

#[test]
fn one_answer_that_a_verifier_looks_at_is_the_first_step_of_a_cascade() {
    let plan = verified().plan().unwrap();
    let second = plan.best.escalate.as_ref().expect("a cascade");
    assert_eq!((&*plan.best.model, plan.best.samples, &*second.model), ("small", 1, "large"));
    let told = "once, and large is asked where the verifier scores it below 0.7";
    assert!(plan.why.contains(told), "{}", plan.why);
    assert!(
        verified().with(|w| w.route.verifier = None).first().samples != 1,
        "nobody looks at a single answer"
    );
}

#[test]
fn a_vote_that_a_verifier_ends_is_called_so() {
    let why = torn().with(|w| w.route.verifier = verified().route.verifier).plan().unwrap().why;
    assert!(why.contains("until the verifier accepts one"), "{why}");
}
