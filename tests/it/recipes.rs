//! Recipes of routes: that one which is of no use is suspended and says so, and what a plan tells of worths and of its reasons.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Caller, World, model, tenant};
use stint::gateway::LearnSettings;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_sessions::history::MemoryHistoryStore;
use stint_types::catalog::{
    AnswerComparison, Canary, Capability, Checker, EnforcementClass, Model, Prices, Recipe, Route, Tariff,
    VerifierSettings, Vote,
};
use stint_types::chat::ToolCallDelta;
use stint_types::tenant::{FeedbackTrust, Tenant};
use stint_types::units::{Chance, Money, Price, Tokens};

/// How many requests decide about a recipe.
const TRIAL: u32 = 50;

fn priced(name: &str, nanos: u64) -> Model {
    let price = Price { per_million_tokens: Money(nanos * 1_000_000) };
    let tariff = Some(Tariff::plain(Prices { input: price, output: price }));
    Model { tariff, ..model(name, EnforcementClass::Inline) }
}

/// Another answer at each turn.
fn scattered() -> Arc<ScriptedBackend> {
    let reply = |turn: usize| ScriptedReply::new().thinks(3).answers(&turn.to_string());
    Arc::new(ScriptedBackend::each(move |_, turn| reply(turn)).reading(Tokens(75)))
}

fn says(answer: &str) -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers(answer)).reading(Tokens(75)))
}

/// A route on which a right answer is worth much.
fn route(recipe: Recipe, models: &[&str]) -> Route {
    Route {
        recipe: Some(recipe),
        models: models.iter().map(|name| (*name).into()).collect(),
        worth: Money(1_000_000_000),
        cost_per_second: Money(0),
        ..Route::with_defaults("r")
    }
}

async fn world(models: Vec<(Model, Arc<ScriptedBackend>)>, route: Route) -> World {
    World::routed(models, vec![tenant("key", 1_000_000_000)], vec![route]).await
}

fn question(number: u32) -> Value {
    json!({ "model": "r", "messages": [{ "role": "user", "content": format!("What is {number}*7?") }] })
}

async fn ask(world: &World, number: u32) -> Answer {
    world.ask("sk-key", &question(number)).await
}

fn why(answer: &Value) -> &str {
    answer["budget"]["why"].as_str().unwrap()
}

#[tokio::test]
async fn a_vote_whose_answers_are_never_alike_is_suspended_and_says_so() {
    let script = scattered();
    let vote = Some(Vote::with_default_assumptions(3, AnswerComparison::Number));
    let world =
        world(vec![(priced("m", 1), script.clone())], Route { vote, ..route(Recipe::Vote, &["m"]) }).await;
    assert!(world.metrics_page().contains("stint_recipe_suspended{route=\"r\"} 0"));
    for number in 0..TRIAL {
        let answer = ask(&world, number).await.good();
        assert!(why(&answer).contains("times with a vote"), "{answer}");
    }
    let before = script.records().len();
    let answer = ask(&world, TRIAL).await.good();
    assert_eq!(script.records().len(), before + 1, "one answer is made");
    assert!(answer["budget"].get("samples").is_none(), "{answer}");
    let expected = "no vote for now, since hardly two answers of the last 50 votes were alike";
    assert!(why(&answer).contains(expected) && !why(&answer).contains("which pays"), "{answer}");
    assert!(world.metrics_page().contains("stint_recipe_suspended{route=\"r\"} 1"));
    let quoted = world.post("/v1/plan", "sk-key", &question(0)).await.good();
    assert!(quoted["why"].as_str().unwrap().contains(expected), "{quoted}");
}

fn verifier(script: &str) -> Option<VerifierSettings> {
    Some(VerifierSettings {
        by: Checker::Command(vec!["sh".into(), "-c".into(), script.into()]),
        floor: Chance::new(0.5),
        timeout: Duration::from_secs(20),
        concurrency: 2,
    })
}

fn cascade(script: &str) -> Route {
    let vote = Some(Vote::with_default_assumptions(2, AnswerComparison::Exact));
    // At more the dear one is asked at once.
    let worth = Money(200_000_000);
    Route { vote, worth, cascade: true, verifier: verifier(script), ..route(Recipe::Cascade, &["m", "n"]) }
}

/// A cheap model that hardly thinks, and a dear one.
async fn two(small: &Arc<ScriptedBackend>, big: &Arc<ScriptedBackend>, route: Route) -> World {
    let cheap = Model { thinking_max: Tokens(16), ..priced("m", 100) };
    world(vec![(cheap, small.clone()), (priced("n", 100_000), big.clone())], route).await
}

#[tokio::test]
async fn the_recipe_of_a_cascade_asks_once_and_goes_on_where_the_verifier_is_not_content() {
    let knows = r#"grep -q '"answer":"42"' && echo '{"score":1}' || echo '{"score":0}'"#;
    for (said, delivered, asked) in [("42", "42", 0), ("41", "43", 1)] {
        let (small, big) = (says(said), says("43"));
        let world = two(&small, &big, cascade(knows)).await;
        let answer = ask(&world, 6).await.good();
        assert_eq!((small.records().len(), big.records().len()), (1, asked), "{answer}");
        assert_eq!(answer["choices"][0]["message"]["content"], delivered, "{answer}");
        assert!(
            why(&answer).contains("once, and n is asked where the verifier scores it below 0.5"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_verifier_without_verdicts_suspends_its_cascade() {
    let world = two(&says("42"), &says("43"), cascade("exit 1")).await;
    for number in 0..TRIAL {
        ask(&world, number).await.good();
    }
    let answer = ask(&world, TRIAL).await.good();
    let expected = "answered once for now, since the verifier came to no verdict on the last 50 requests";
    assert!(why(&answer).contains(expected) && !why(&answer).contains("is asked where"), "{answer}");
}

fn canary(fraction: f64) -> Route {
    let canary = Some(Canary { model: "n".into(), fraction: Chance::new(fraction) });
    Route { canary, ..route(Recipe::Canary, &["m", "n"]) }
}

#[tokio::test]
async fn a_new_model_serves_its_share_of_the_conversations_and_no_other() {
    let (usual, new) = (says("1"), says("2"));
    let models = vec![(priced("m", 1), usual.clone()), (priced("n", 1), new.clone())];
    let world = world(models, canary(0.3)).await;
    let mut tried = 0;
    for number in 0..100 {
        let answer = ask(&world, number).await.good();
        let told = why(&answer).contains("n is new here and tried on a share of the conversations");
        assert_eq!(told, answer["model"] == "n", "{answer}");
        tried += usize::from(told);
        let quoted = world.post("/v1/plan", "sk-key", &question(number)).await.good();
        assert_eq!(quoted["why"], answer["budget"]["why"]);
    }
    assert_eq!((usual.records().len(), new.records().len()), (100 - tried, tried));
    assert!((15..=45).contains(&tried), "{tried}");
}

#[tokio::test]
async fn a_new_model_that_fails_is_stood_in_for_and_not_tried_any_more() {
    let refused = Failure::new(Fault::Backend, "gone").retry_elsewhere();
    let new = Arc::new(ScriptedBackend::always(ScriptedReply::new().refuses(refused)).reading(Tokens(75)));
    let models = vec![(priced("m", 1), says("1")), (priced("n", 1), new.clone())];
    let world = world(models, canary(0.5)).await;
    for number in 0..400 {
        assert_eq!(ask(&world, number).await.good()["model"], "m");
    }
    assert!(world.metrics_page().contains("stint_recipe_suspended{route=\"r\"} 1"));
    let before = new.records().len();
    for number in 400..450 {
        ask(&world, number).await.good();
    }
    assert_eq!(new.records().len(), before);
}

/// What it may not call is trimmed away, and nothing is left.
#[tokio::test]
async fn a_new_model_that_only_calls_forbidden_tools_is_not_tried_any_more() {
    let call = || ToolCallDelta {
        index: 0,
        id: Some("call_1".into()),
        name: Some("search".into()),
        arguments: "{}".into(),
    };
    let new = Arc::new(ScriptedBackend::each(move |_, _| ScriptedReply::new().calls(call())));
    let tools = |name: &str| Model { capabilities: vec![Capability::Tools], ..priced(name, 1) };
    let world = world(vec![(tools("m"), says("1")), (tools("n"), new)], canary(0.5)).await;
    let function = json!({ "name": "search", "parameters": { "type": "object" } });
    for number in 0..400 {
        let mut body = question(number);
        body["tools"] = json!([{ "type": "function", "function": function }]);
        body["tool_choice"] = json!("none");
        world.ask("sk-key", &body).await.good();
    }
    assert!(world.metrics_page().contains("stint_recipe_suspended{route=\"r\"} 1"));
}

#[tokio::test]
async fn a_new_model_whose_answers_are_judged_worse_is_not_tried_any_more() {
    let models = vec![(priced("m", 1), says("1")), (priced("n", 1), says("2"))];
    let Caller { tenant, terms } = tenant("key", 1_000_000_000);
    let callers = vec![Caller { tenant: Tenant { feedback: FeedbackTrust::Trusted, ..tenant }, terms }];
    let stories = Arc::new(MemoryHistoryStore::default());
    let world = World::learning(canary(0.4), models, callers, stories, LearnSettings::default()).await;
    let suspended = || world.metrics_page().contains("stint_recipe_suspended{route=\"r\"} 1");
    let mut judged = 0;
    for number in 0..300 {
        let answer = ask(&world, number).await.good();
        let word = json!({ "id": answer["id"], "correct": answer["model"] == "m" });
        let said = world.post("/v1/feedback", "sk-key", &word).await;
        assert_eq!((said.status, &said.json()["learned"]), (202, &json!(true)), "{}", said.text);
        judged += 1;
        if suspended() {
            break;
        }
    }
    assert!((40..150).contains(&judged), "{judged}");
    for number in 300..350 {
        assert_eq!(ask(&world, number).await.good()["model"], "m");
    }
}

#[tokio::test]
async fn a_plan_tells_what_is_chosen_from_which_worth_to_which() {
    let worth = Money(50_000_000);
    let route = Route { worth, worth_by_task: false, ..route(Recipe::Vote, &["m", "n"]) };
    let world = two(&says("1"), &says("2"), route).await;
    let quoted = world.post("/v1/plan?sweep=worth", "sk-key", &question(1)).await.good();
    let sweep = &quoted["sweep"];
    assert_eq!(sweep["worth_usd"], "0.05");
    let ranges = sweep["ranges"].as_array().unwrap();
    let ends = [&ranges[0]["worth_usd"][0], &ranges[ranges.len() - 1]["worth_usd"][1]];
    assert_eq!(ends, ["0.00001", "100"], "{sweep}");
    let chosen = &quoted["offers"][usize::try_from(quoted["chosen"].as_u64().unwrap()).unwrap()];
    let dollars = |value: &Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let now = ranges
        .iter()
        .find(|range| (dollars(&range["worth_usd"][0])..=dollars(&range["worth_usd"][1])).contains(&0.05));
    assert_eq!(now.unwrap()["model"], chosen["model"], "{sweep}");
    let refused = world.post("/v1/plan?sweep=time", "sk-key", &question(1)).await;
    assert!(refused.status == 400 && refused.text.contains("is none of worth"), "{}", refused.text);
}

#[tokio::test]
async fn a_plan_tells_what_it_rests_on() {
    let models = vec![(priced("m", 1), says("1"))];
    let world = world(models, route(Recipe::Vote, &["m"])).await;
    let plain = world.post("/v1/plan", "sk-key", &question(1)).await.good();
    assert!(plain.get("explanation").is_none());
    let quoted = world.post("/v1/plan?explain=true", "sk-key", &question(1)).await.good();
    let explanation = &quoted["explanation"];
    assert!(explanation["features"]["numbers"].as_f64().unwrap() > 1.0, "{explanation}");
    let own = &explanation["models"]["m"];
    assert_eq!(
        (&own["level"]["source"], &own["level"]["after_thought"]["share"]),
        (&json!("catalog"), &json!(0.35))
    );
    let at = |name: &str| own["thinking_tokens"][name].as_f64().unwrap();
    assert!(at("p50") < at("p90") && at("p90") < at("p99"), "{own}");
    assert_eq!(own["success"]["after_thought"], own["before_learning"]["success"]["after_thought"]);
}
