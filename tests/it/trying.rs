//! `auto` tries models that look worse, seldom enough that nobody misses it, and never with an agent.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Folder, World, auto, model, tenant};
use stint::gateway::LearnSettings;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_sessions::history::{DecisionLogLine, DecisionLogSettings, MemoryHistoryStore};
use stint_types::catalog::{
    Capability, Decision, DecisionOutcome, EnforcementClass, Model, Prices, Route, Tariff, TrialBounds,
};
use stint_types::units::{Money, Price};

const CALLER: &str = "sk-acme";

/// What was decided of so many requests like one, where there are two models that cost so much.
async fn decided(
    requests: u32,
    prices: [u64; 2],
    body: impl Fn(u32) -> Value,
) -> Vec<(Decision, DecisionOutcome)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    let log = DecisionLogSettings { path: path.clone(), size_max: 64 << 20, files_max: 1 };
    let settings = LearnSettings { log: Some(log), asked_again: Duration::ZERO, ..LearnSettings::default() };
    let script = || Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("4")));
    let price = |nanos: u64| Price { per_million_tokens: Money(nanos * 1_000_000) };
    let tariff = |nanos: u64| Some(Tariff::plain(Prices { input: price(nanos), output: price(4 * nanos) }));
    let able = |name, nanos| {
        let capabilities = vec![Capability::Tools];
        Model { capabilities, tariff: tariff(nanos), ..model(name, EnforcementClass::Inline) }
    };
    let models = vec![(able("m", prices[0]), script()), (able("n", prices[1]), script())];
    let route = Route { trials: Some(TrialBounds::usual()), ..auto() };
    let callers = vec![tenant("acme", 1_000_000_000)];
    let world =
        World::learning(route, models, callers, Arc::new(MemoryHistoryStore::default()), settings).await;
    for number in 0..requests {
        world.ask(CALLER, &body(number)).await.good();
    }
    assert!(world.stop().await);
    let text = std::fs::read_to_string(path).unwrap();
    let line = |line| match serde_json::from_str(line).unwrap() {
        DecisionLogLine::Decision { decision, outcome, .. } => Some((*decision, *outcome)),
        _ => None,
    };
    text.lines().filter_map(line).collect()
}

fn question(number: u32, more: &Value) -> Value {
    let text = format!("What is {number}+2?");
    let mut body = json!({ "model": "auto", "messages": [{ "role": "user", "content": text }] });
    let members = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(members);
    body
}

fn trials(decided: &[(Decision, DecisionOutcome)]) -> impl Iterator<Item = &(Decision, DecisionOutcome)> {
    decided.iter().filter(|(decision, _)| decision.candidates[decision.chosen].propensity < 0.5)
}

#[tokio::test]
async fn at_most_one_request_in_fifty_tries_another_model_and_the_log_has_its_chance() {
    let decided = decided(900, [0, 0], |number| question(number, &json!({}))).await;
    let tried = trials(&decided).count();
    assert!((1..=18).contains(&tried), "{tried} of {}", decided.len());
    for (number, (decision, _)) in decided.iter().enumerate() {
        let chances: Vec<f64> = decision.candidates.iter().map(|candidate| candidate.propensity).collect();
        assert!((chances.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{chances:?}");
        let least = chances.iter().copied().fold(1.0, f64::min);
        assert!(least <= 0.02 && (number > 48 || least == 0.0), "{number}: {chances:?}");
    }
}

#[tokio::test]
async fn trials_of_a_dearer_model_cost_at_most_a_hundredth_of_what_is_spent() {
    let decided = decided(1_500, [1, 2], |number| question(number, &json!({}))).await;
    let cost = |rows: &mut dyn Iterator<Item = &(Decision, DecisionOutcome)>| {
        rows.map(|(_, outcome)| outcome.cost.as_dollars()).sum::<f64>()
    };
    let (tried, all) = (cost(&mut trials(&decided)), cost(&mut decided.iter()));
    assert!(tried <= 0.01 * all, "{tried} of {all}");
}

#[tokio::test]
async fn a_step_of_an_agent_and_a_stated_preference_try_nothing() {
    let tool = json!({ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } });
    let called = json!([
        { "role": "user", "content": "What is 1+2?" },
        { "role": "assistant", "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "a", "content": "3" },
    ]);
    let kinds = [
        json!({ "tools": [tool] }),
        json!({ "messages": called }),
        json!({ "budget": { "episode": "task" } }),
        json!({ "budget": { "preference": 1 } }),
        json!({ "budget": { "preference": 0.3 } }),
    ];
    // Enough of the usual ones come between, so that there is room for trials.
    let is_usual = |number: u32| !number.is_multiple_of(4);
    let decided = decided(600, [0, 0], |number| {
        let kind = &kinds[usize::try_from(number / 4).unwrap() % kinds.len()];
        question(number, &if is_usual(number) { json!({}) } else { kind.clone() })
    })
    .await;
    for (number, (decision, _)) in decided.iter().enumerate() {
        let certain = decision.candidates[decision.chosen].propensity >= 1.0;
        assert!(certain || is_usual(u32::try_from(number).unwrap()), "{number}: {decision:?}");
    }
    assert!(decided.iter().any(|(decision, _)| decision.candidates[decision.chosen].propensity < 1.0));
}

#[tokio::test]
async fn that_auto_tries_is_said_at_the_start_and_by_check_unless_it_is_off() {
    let check = |more: &str, expected: bool| {
        let folder = Folder::new(&format!(
            "[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\nmodels = [\"m\"]\n[plan]\n{more}\n"
        ));
        let output = folder.stint("check").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = "auto tries other models now and then";
        assert_eq!(said.contains(words), expected, "{said}");
        assert_eq!(said.contains("auto_explores = false"), expected, "{said}");
        folder
    };
    check("auto_explores = false", false);
    let process = check("", true).serve();
    process.logged("auto tries other models now and then").await;
    assert_eq!(process.lines("auto tries other models").len(), 1);
}
