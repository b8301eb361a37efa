//! Models that call tools although they may not: their readers get an answer, or what is left of it and a word on what happened,
//! and never an empty answer that looks like a success.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Served, Stored, World, auto, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_ledger::MemoryJournal;
use stint_sessions::agent::{self, TrackerMessages};
use stint_types::catalog::{Capability, EnforcementClass, Model, RolloutMode, Route};
use stint_types::chat::Request;
use stint_types::units::Tokens;

use super::{Agent, caller, calls, search, world};

const CLASSES: [EnforcementClass; 5] = [
    EnforcementClass::Inline,
    EnforcementClass::Continue,
    EnforcementClass::Native,
    EnforcementClass::Turn,
    EnforcementClass::Effort,
];

/// True once it is asked again, for an answer without calls.
fn is_asked_again(request: &Request) -> bool {
    let last = request.messages.last().unwrap().plain_text();
    let is_forbidden = request.tool_choice.as_ref().is_some_and(|choice| choice == "none");
    is_forbidden && request.withheld_tools.is_empty() && last.contains(&TrackerMessages::default().last)
}

/// Searches until it is asked again, whatever it is told before.
fn searches(request: &Request) -> ScriptedReply {
    if is_asked_again(request) {
        ScriptedReply::new().answers("the answer")
    } else {
        ScriptedReply::new().calls(search(request, 0, &json!({})))
    }
}

fn stubborn() -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::each(|call, _| searches(&call.request).thinks(6)))
}

/// Searches whatever it is told.
fn deaf() -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::each(|call, _| {
        ScriptedReply::new().calls(search(&call.request, 0, &json!({})))
    }))
}

async fn world_of(class: EnforcementClass, script: Arc<ScriptedBackend>) -> World {
    let served = Model {
        capabilities: vec![Capability::Tools],
        context: Tokens(1_000_000),
        resumes_tools: true,
        ..model("m", class)
    };
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    let served = vec![Served::by(served, vec![script])];
    World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await
}

fn budget() -> Value {
    json!({ "tool_calls": { "search": 1, "browse": 0 }, "thinking_tokens": 3 })
}

#[tokio::test]
async fn a_model_that_calls_forbidden_tools_is_asked_again_with_its_tools_declared_in_every_class() {
    for class in CLASSES {
        let script = stubborn();
        let world = world_of(class, script.clone()).await;
        let mut agent = Agent::new("sk-acme", &budget());
        assert_eq!(calls(&agent.step(&world).await), 1, "{class:?}");
        let answer = agent.step(&world).await;
        let choice = &answer["choices"][0];
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("the answer"), &json!("stop")),
            "{class:?}: {answer}"
        );
        assert_eq!(answer["budget"]["tool_calls"]["trimmed"], 1, "{class:?}: {answer}");
        assert_eq!(answer["budget"]["other"]["attempts"], 1, "{class:?}: {answer}");
        let records = script.records();
        let (first, last) = (&records[0].call.request, &records.last().unwrap().call.request);
        assert_eq!((&last.tools, &last.tool_choice), (&first.tools, &Some(json!("none"))), "{class:?}");
        assert_eq!(agent.messages.len(), 4, "the conversation is over");
    }
}

#[tokio::test]
async fn a_stream_goes_on_with_the_answer_that_was_asked_for_once_more() {
    for class in CLASSES {
        let world = world_of(class, stubborn()).await;
        let mut agent = Agent::new("sk-acme", &budget());
        agent.step(&world).await;
        let mut body = agent.body();
        body["stream"] = json!(true);
        let chunks = world.ask("sk-acme", &body).await.chunks();
        assert!(chunks.done, "{class:?}");
        let contents = chunks.all.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str());
        assert_eq!(contents.collect::<String>(), "the answer", "{class:?}");
        let finishes = chunks.all.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
        assert_eq!(finishes.collect::<Vec<_>>(), ["stop"], "{class:?}");
    }
}

#[tokio::test]
async fn a_callers_list_of_allowed_tools_leaves_the_list_of_tools_alone_and_holds() {
    let script = Arc::new(ScriptedBackend::each(|call, at| match at {
        0 => ScriptedReply::new().calls(search(&call.request, 0, &json!({}))),
        _ => ScriptedReply::new().answers("the answer"),
    }));
    let world = world(&script, agent::Settings::default()).await;
    let mut body = Agent::new("sk-acme", &json!({})).body();
    let listed = json!([{ "type": "function", "function": { "name": "browse" } }]);
    body["tool_choice"] =
        json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": listed } });
    let answer = world.ask("sk-acme", &body).await.good();
    assert_eq!(answer["choices"][0]["message"]["content"], "the answer", "{answer}");
    assert_eq!(
        answer["budget"]["tool_calls"]["trimmed"], 1,
        "what the list leaves out does not pass: {answer}"
    );
    for record in script.records() {
        let request = &record.call.request;
        assert_eq!((request.tools.len(), &*request.withheld_tools), (2, &["search".into()][..]));
        assert_eq!(request.tool_choice, Some(json!("auto")));
    }
}

#[tokio::test]
async fn a_caller_s_own_tool_choice_none_is_held_in_the_same_way() {
    let world = world_of(EnforcementClass::Native, stubborn()).await;
    let mut body = Agent::new("sk-acme", &json!({})).body();
    body["tool_choice"] = json!("none");
    let answer = world.ask("sk-acme", &body).await.good();
    assert_eq!(answer["choices"][0]["message"]["content"], "the answer", "{answer}");
}

/// Where a route decides nothing, what the caller asks of the model is between the two.
#[tokio::test]
async fn a_route_that_decides_nothing_leaves_a_caller_s_own_tool_choice_none_to_the_model() {
    for enforce in [RolloutMode::Off, RolloutMode::Observe] {
        let script = deaf();
        let served = vec![Served::by(caller("m"), vec![script.clone()])];
        let stored = Stored::alone(Arc::new(MemoryJournal::default()));
        let routes = vec![Route { enforce, ..auto() }];
        let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], routes, stored).await;
        let mut body = Agent { model: "auto", ..Agent::new("sk-acme", &json!({})) }.body();
        body["tool_choice"] = json!("none");
        let answer = world.ask("sk-acme", &body).await.good();
        assert_eq!(calls(&answer), 1, "{enforce:?}: {answer}");
        let records = script.records();
        assert_eq!(records.len(), 1, "{enforce:?}: nobody is asked once more");
        assert_eq!(records[0].call.request.tool_choice, Some(json!("none")), "{enforce:?}");
    }
}

#[tokio::test]
async fn calls_that_are_all_trimmed_away_leave_an_answer_too() {
    let script = Arc::new(ScriptedBackend::each(|call, _| {
        let mut delta = search(&call.request, 0, &json!({}));
        delta.name = Some("browse".into());
        if is_asked_again(&call.request) {
            ScriptedReply::new().answers("the answer")
        } else {
            ScriptedReply::new().calls(delta)
        }
    }));
    let world = world(&script, agent::Settings::default()).await;
    let answer = Agent::new("sk-acme", &budget()).step(&world).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "the answer", "{answer}");
    assert_eq!(answer["budget"]["episode"]["final"], Value::Null, "it was not made to answer: {answer}");
}

#[tokio::test]
async fn of_several_choices_only_those_that_say_nothing_are_asked_for_again() {
    let script = Arc::new(ScriptedBackend::each(|call, _| match call.seed % 2 {
        0 => ScriptedReply::new().answers("at once"),
        _ => searches(&call.request),
    }));
    let world = world(&script, agent::Settings::default()).await;
    let mut body = Agent::new("sk-acme", &json!({})).body();
    (body["tool_choice"], body["n"], body["seed"]) = (json!("none"), json!(2), json!(4));
    let answer = world.ask("sk-acme", &body).await.good();
    let said = [0, 1].map(|index| answer["choices"][index]["message"]["content"].clone());
    assert_eq!(said, [json!("at once"), json!("the answer")], "{answer}");
    assert_eq!(script.records().len(), 3);
}

/// Says a word and searches, whatever it is told.
fn talkative() -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::each(|call, _| {
        ScriptedReply::new().answers("perhaps").calls(search(&call.request, 0, &json!({})))
    }))
}

#[tokio::test]
async fn of_a_model_that_still_calls_tools_the_calls_are_trimmed_and_budget_says_so() {
    for (script, said, finish, asked) in [(deaf(), "", "length", 2), (talkative(), "perhaps", "stop", 1)] {
        let world = world(&script, agent::Settings::default()).await;
        let mut body = Agent::new("sk-acme", &json!({})).body();
        body["tool_choice"] = json!("none");
        let answer = world.ask("sk-acme", &body).await.good();
        let (choice, budget) = (&answer["choices"][0], &answer["budget"]);
        assert_eq!(choice["message"]["content"].as_str().unwrap_or_default(), said, "{answer}");
        assert_eq!((calls(&answer), &choice["finish_reason"]), (0, &json!(finish)), "{answer}");
        assert_eq!(budget["tool_calls"]["trimmed"], asked, "{answer}");
        assert_eq!(script.records().len(), asked, "{answer}");
        let is_told = budget["why"].as_str().unwrap().contains("nothing is left of the answer");
        assert_eq!(is_told, said.is_empty(), "{answer}");
        let (ended, outcome) = if said.is_empty() { ("none", "emptied") } else { ("tool_calls", "finished") };
        assert_eq!(budget["solution"]["ended"], ended, "{answer}");
        let outcome = format!("stint_requests_total{{model=\"m\",outcome=\"{outcome}\",route=\"m\"}} 1");
        assert!(world.metrics_page().contains(&outcome), "{}", world.metrics_page());
        body["stream"] = json!(true);
        let chunks = world.ask("sk-acme", &body).await.chunks();
        assert!(chunks.done, "{said}");
        let finishes = chunks.all.iter().filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
        assert_eq!(finishes.collect::<Vec<_>>(), [finish]);
        assert_eq!(chunks.joined(0, "content"), said);
    }
}

#[tokio::test]
async fn where_the_run_has_no_money_left_for_it_nobody_is_asked_again() {
    let script = deaf();
    let served =
        vec![Served::by(Model { solution_max: Some(Tokens(40)), ..caller("m") }, vec![script.clone()])];
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await;
    let mut body = Agent::new("sk-acme", &json!({ "episode": { "id": "quoted", "cost_usd": "1" } })).body();
    body["tool_choice"] = json!("none");
    let quoted = world.post("/v1/plan", "sk-acme", &body).await.good();
    let needed = &quoted["offers"][0]["worst_case_usd"];
    body["budget"]["episode"] = json!({ "id": "short", "cost_usd": needed });
    let failed = world.ask("sk-acme", &body).await;
    assert_eq!((failed.status, &failed.error()["code"]), (502, &json!("no_answer")), "{}", failed.text);
    assert!(failed.text.contains("no money"), "{}", failed.text);
    assert_eq!(script.records().len(), 1);
    let stands = world.get("sk-acme", "/v1/episodes/short").await.good();
    assert!(stands["left_usd"].as_str().is_some_and(|left| !left.starts_with('-')), "{stands}");
}
