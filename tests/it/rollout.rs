//! Deciding switched on step by step: watched first, then for a share of the traffic; and budgets that last.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{World, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::{EnforcementClass, RolloutMode, Route, TrafficSplit};
use stint_types::units::{Chance, Money, Timestamp, Zone};

/// Two models: `a`, which is listed first and thinks for long, and `b`.
async fn world(routes: Vec<Route>) -> World {
    let models = vec![
        (
            model("a", EnforcementClass::Inline),
            Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(40).answers("of a"))),
        ),
        (
            model("b", EnforcementClass::Inline),
            Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(40).answers("of b"))),
        ),
    ];
    World::routed(models, vec![tenant("acme", 10_000_000_000)], routes).await
}

fn asked(question: &str) -> Value {
    json!({ "model": "auto", "messages": [{ "role": "user", "content": question }] })
}

/// Nothing is worth a token to it.
fn stingy(name: &str) -> Route {
    Route { worth: Money(1), cost_per_second: Money::ZERO, ..Route::with_defaults(name) }
}

#[tokio::test]
async fn what_is_only_watched_changes_nothing_and_tells_what_it_would_have_saved() {
    let observed =
        Route { enforce: RolloutMode::Observe, models: vec!["a".into(), "b".into()], ..stingy("auto") };
    let world = world(vec![observed]).await;
    let answer = world.ask("sk-acme", &asked("What is 6*7?")).await.good();
    assert_eq!(answer["model"], "a", "the first that is listed");
    assert_eq!(answer["budget"]["thinking"]["used"], 40, "it thinks as long as it likes: {answer}");
    world.settled().await;
    let metrics = world.metrics_page();
    let has = |series: &str| assert!(metrics.contains(series), "no {series} in {metrics}");
    has("stint_observed_total{route=\"auto\",would=");
    has("stint_observed_saved_usd{route=\"auto\"} ");
    // What a caller states and limits leave holds all the same.
    let mut stated = asked("What is 6*7?");
    stated["budget"] = json!({ "thinking_tokens": 8 });
    let answer = world.ask("sk-acme", &stated).await.good();
    assert_eq!(answer["budget"]["thinking"]["used"], 8, "{answer}");
}

#[tokio::test]
async fn what_is_switched_off_is_not_decided() {
    let off = Route { enforce: RolloutMode::Off, models: vec!["b".into(), "a".into()], ..stingy("auto") };
    let world = world(vec![off]).await;
    let answer = world.ask("sk-acme", &asked("What is 6*7?")).await.good();
    assert_eq!(
        (&answer["model"], &answer["budget"]["thinking"]["used"]),
        (&json!("b"), &json!(40)),
        "{answer}"
    );
    let on = self::world(vec![stingy("auto")]).await;
    let answer = on.ask("sk-acme", &asked("What is 6*7?")).await.good();
    assert_eq!(answer["budget"]["thinking"]["used"], 0, "and this is what was not decided: {answer}");
}

#[tokio::test]
async fn a_share_of_the_conversations_goes_by_another_routes_rules_and_stays_there() {
    let share = TrafficSplit { route: "bold".into(), fraction: Chance::new(0.3) };
    let auto = Route { traffic_splits: vec![share], models: vec!["a".into()], ..stingy("auto") };
    let bold = Route { enforce: RolloutMode::Off, ..Route::with_defaults("bold") };
    let world = world(vec![auto, bold]).await;
    let mut thought = BTreeSet::new();
    for number in 0..60 {
        let question = asked(&format!("What is {number}*7?"));
        let first = world.ask("sk-acme", &question).await.good();
        let used = first["budget"]["thinking"]["used"].as_u64().unwrap();
        assert_eq!(first["model"], "a", "whose traffic it is says which models may serve it");
        let mut next = question.clone();
        let turns = next["messages"].as_array_mut().unwrap();
        turns.push(json!({ "role": "assistant", "content": "42" }));
        turns.push(json!({ "role": "user", "content": "Sure?" }));
        let again = world.ask("sk-acme", &next).await.good();
        assert_eq!(again["budget"]["thinking"]["used"], used, "a conversation stays by its rules");
        if used > 0 {
            thought.insert(number);
        }
    }
    assert!((8..=30).contains(&thought.len()), "about 18 of 60, not {}", thought.len());
}

/// Where the day lasts for ten hours yet: right before midnight the whole budget may be spent at once.
fn zone_with_a_long_day() -> Zone {
    const HALF_DAY_MILLIS: i64 = 12 * 3_600 * 1_000;
    let is_morning = Timestamp::now().0.rem_euclid(2 * HALF_DAY_MILLIS) < HALF_DAY_MILLIS;
    if is_morning { Zone::UTC } else { "Pacific/Auckland".parse().unwrap() }
}

#[tokio::test]
async fn a_dollar_counts_more_for_who_spends_faster_than_the_budget_lasts() {
    let mut acme = tenant("acme", 10_000_000_000).per_day(3_000);
    acme.terms.zone = zone_with_a_long_day();
    let world = World::routed(
        vec![(
            model("a", EnforcementClass::Inline),
            Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(40).answers("of a"))),
        )],
        vec![acme],
        vec![Route {
            worth: Money::from_dollars_up(1.0),
            cost_per_second: Money::ZERO,
            ..Route::with_defaults("auto")
        }],
    )
    .await;
    for number in 0..8 {
        world.ask("sk-acme", &asked(&format!("What is {number}*7?"))).await;
    }
    world.settled().await;
    let allowance = world.get("sk-acme", "/v1/allowance").await.good();
    let paced: Vec<&Value> =
        allowance["limits"].as_array().unwrap().iter().filter(|line| line["pace"].is_object()).collect();
    let [line] = paced[..] else { panic!("one budget lasts a day: {allowance}") };
    let number = |name: &str| line["pace"][name].as_f64().unwrap();
    assert!(number("usd_per_hour") > number("target_usd_per_hour"), "{line}");
    assert!(number("shadow_price") > 1.0, "{line}");
}
