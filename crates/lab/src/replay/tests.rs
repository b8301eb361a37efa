use std::sync::Arc;

use stint_sessions::history::conformance::story;
use stint_sessions::history::{DecisionLogLine, RequestRecord, WritableRecord};
use stint_types::catalog::{Decision, Route, Verdict, VerdictSource};
use stint_types::units::{Chance, Money, Preference, RequestId, SeededRng, Timestamp};

use super::*;

/// What an answer of each of the two models is really worth.
const TRUTH: [f64; 2] = [0.8, 0.5];

/// A story whose two candidates are believed to be as good as one another, of which the second one is chosen with a
/// chance of `second`; of what comes of it somebody tells.
fn recorded(dice: &mut SeededRng, second: f64) -> RequestRecord {
    let mut story = story(1_000);
    let chosen = usize::from(dice.next_f64() < second);
    let id = RequestId::new();
    story.decision.id = id;
    story.decision.chosen = chosen;
    story.decision.candidates[0].propensity = 1.0 - second;
    story.decision.candidates[1].propensity = second;
    story.outcome.cost = Money(80);
    let success = if dice.next_f64() < TRUTH[chosen] { 1.0 } else { 0.0 };
    let (at, success) = (Timestamp(2_000), Chance::new(success));
    story.set_verdict(Verdict { id, source: VerdictSource::Feedback, at, success, weight: 1.0 });
    story
}

fn log(count: u32, second: f64, seed: u64) -> Vec<LoggedRequest> {
    let mut dice = SeededRng::new(seed);
    let mut gathered = LogCollector::default();
    for _ in 0..count {
        let story = recorded(&mut dice, second);
        // In any order: what is said may stand before what it is said of.
        story
            .verdicts
            .iter()
            .for_each(|verdict| gathered.push(DecisionLogLine::from_verdict(verdict.clone())));
        let mut line = Vec::new();
        WritableRecord::new(Arc::new(story)).write_log_line(&mut line);
        gathered.push(serde_json::from_slice(&line).unwrap());
    }
    gathered.finish()
}

#[test]
fn both_estimates_find_what_a_policy_would_have_reached_though_the_predictions_are_wrong() {
    let logged = log(4_000, 0.3, 1);
    for (model, truth) in [("one", TRUTH[0]), ("two", TRUTH[1])] {
        let report = evaluate(&logged, &ReplayPolicy::Model(model.into()));
        assert!((report.success.snips - truth).abs() < 0.04, "{model}: {report:?}");
        assert!((report.success.robust.mean - truth).abs() < 0.04, "{model}: {report:?}");
    }
    assert_eq!(evaluate(&logged, &ReplayPolicy::Model("one".into())).conclusion, Conclusion::Better);
    assert_eq!(evaluate(&logged, &ReplayPolicy::Model("two".into())).conclusion, Conclusion::Worse);
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say() {
    let holds = |seed| {
        let report = evaluate(&log(400, 0.2, seed), &ReplayPolicy::Even);
        let truth = (TRUTH[0] + TRUTH[1]) / 2.0;
        report.success.robust.low < truth && truth < report.success.robust.high
    };
    let held = (0..200).filter(|&seed| holds(seed)).count();
    assert!((178..=199).contains(&held), "{held} of 200, where 190 are promised");
}

#[test]
fn nothing_is_concluded_where_nothing_follows() {
    let check = |logged: &[LoggedRequest], policy: ReplayPolicy, expected| {
        let report = evaluate(logged, &policy);
        assert_eq!(report.conclusion, expected, "{policy:?}: {report:?}");
        assert!(!report.conclusion.is_conclusive());
    };
    check(&log(500, 0.0, 2), ReplayPolicy::Model("two".into()), Conclusion::NeverTried);
    check(&log(100, 0.5, 3), ReplayPolicy::Even, Conclusion::TooFewJudged);
    check(&log(500, 0.05, 4), ReplayPolicy::Model("two".into()), Conclusion::TooFewAgree);
    let mut unjudged = log(500, 0.5, 5);
    unjudged.iter_mut().for_each(|one| one.verdicts.clear());
    check(&unjudged, ReplayPolicy::Even, Conclusion::TooFewJudged);
    assert_eq!(evaluate(&[], &ReplayPolicy::Even).conclusion, Conclusion::TooFewJudged);
}

#[test]
fn a_word_that_a_gateway_did_not_learn_from_counts_as_any_other() {
    let mut logged = log(500, 0.5, 7);
    let before = evaluate(&logged, &ReplayPolicy::Even);
    for verdict in logged.iter_mut().skip(200).flat_map(|one| one.verdicts.values_mut()) {
        verdict.weight = 0.0;
    }
    assert_eq!(evaluate(&logged, &ReplayPolicy::Even), before);
}

#[test]
fn the_logged_policy_is_no_better_than_itself() {
    let logged = log(1_000, 0.5, 6);
    let report = evaluate(&logged, &ReplayPolicy::Even);
    assert_eq!(report.conclusion, Conclusion::NoDifference, "{report:?}");
    assert!((report.success.effective - 1_000.0).abs() < 1e-6, "every request counts whole");
}

#[test]
fn a_route_chooses_by_its_own_worth_among_its_own_models_and_explores_as_it_says() {
    let mut decision = story(1).decision;
    decision.candidates[0].success = Chance::new(0.9);
    decision.candidates[0].cost = Money::from_dollars_up(0.03);
    decision.candidates[1].success = Chance::new(0.5);
    decision.candidates[1].cost = Money(1);
    let check = |route: Route, expected: [f64; 2]| {
        let shares = ReplayPolicy::Route(Box::new(route.clone())).shares(&decision);
        assert!(
            shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() < 1e-12),
            "{shares:?}"
        );
    };
    let route = || Route { cost_per_second: Money::ZERO, ..Route::with_defaults("r") };
    check(Route { worth: Money::from_dollars_up(1.0), ..route() }, [1.0, 0.0]);
    check(Route { worth: Money::from_dollars_up(0.01), ..route() }, [0.0, 1.0]);
    let narrow = Route { models: vec!["two".into()], worth: Money::from_dollars_up(1.0), ..route() };
    check(narrow, [0.0, 1.0]);
    let explores = Route { explore: Chance::new(0.1), worth: Money::from_dollars_up(1.0), ..route() };
    check(explores, [0.95, 0.05]);
}

#[test]
fn a_replayed_choice_reaches_the_success_that_was_required() {
    let mut decision = story(1).decision;
    for (candidate, (success, dollars)) in decision.candidates.iter_mut().zip([(0.8, 0.3), (0.4, 0.001)]) {
        (candidate.success, candidate.cost) = (Chance::new(success), Money::from_dollars_up(dollars));
    }
    let policy = ReplayPolicy::Route(Box::new(Route::with_defaults("auto")));
    let chosen = |decision: &Decision| policy.shares(decision).iter().position(|share| *share > 0.5);
    assert_eq!(chosen(&decision), Some(1), "the better value");
    decision.stakes.success_min = Some(Chance::new(0.7));
    assert_eq!(chosen(&decision), Some(0));
}

#[test]
fn a_replayed_choice_pays_for_no_success_that_is_hardly_higher() {
    let mut decision = story(1).decision;
    for (candidate, (success, dollars)) in
        decision.candidates.iter_mut().zip([(0.996, 0.000_01), (0.9975, 0.000_1)])
    {
        (candidate.success, candidate.cost) = (Chance::new(success), Money::from_dollars_up(dollars));
    }
    (decision.stakes.success_min, decision.stakes.preference) = (None, None);
    let route = Route { cost_per_second: Money::ZERO, ..Route::with_defaults("auto") };
    let policy = ReplayPolicy::Route(Box::new(route));
    let chosen = |decision: &Decision| policy.shares(decision).iter().position(|share| *share > 0.5);
    assert_eq!(chosen(&decision), Some(0));
    decision.stakes.preference = Preference::try_from(0.5).ok();
    assert_eq!(chosen(&decision), Some(1));
}
