//! Vectors that an agent has made spend its run's money, and are no turns of it.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::endpoints::{Upstream, priced};
use crate::harness::{Answer, Served, Stored, World, auto, tenant};
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_ledger::MemoryJournal;
use stint_sessions::agent;
use stint_types::catalog::{Model, Service};
use stint_types::units::Money;

use super::{Agent, caller, run, searching, verbose};

/// What is set aside for a text of three letters, and what it costs then.
const WORST: u64 = 19;
const COST: u64 = 3;

async fn world(script: &Arc<ScriptedBackend>, upstream: &Upstream) -> World {
    world_by(caller("m"), script, upstream).await
}

async fn world_by(model: Model, script: &Arc<ScriptedBackend>, upstream: &Upstream) -> World {
    let served = vec![
        Served::by(model, vec![script.clone()]),
        Served::by(priced("vectors", Service::Embeddings), vec![upstream.backend("vectors")]),
    ];
    let callers = vec![tenant("acme", 1_000_000_000), tenant("other", 1_000_000_000)];
    let stored =
        Stored { agents: agent::Settings::default(), ..Stored::alone(Arc::new(MemoryJournal::default())) };
    World::agents(served, callers, vec![auto()], stored).await
}

/// Vectors of a text, under more members and headers.
async fn embed(world: &World, more: &Value, headers: &[(&str, &str)]) -> Answer {
    let mut body = json!({ "model": "vectors", "input": "one" });
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    let request = world.client.post(format!("{}/v1/embeddings", world.base));
    let request = request.header("authorization", "Bearer sk-acme");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
}

/// So many nano-dollars for the whole run.
fn of(name: &str, nanos: u64) -> Value {
    json!({ "budget": { "episode": { "id": name, "cost_usd": Money(nanos).to_string() } } })
}

async fn standing(world: &World, name: &str) -> Value {
    world.get("sk-acme", &format!("/v1/episodes/{name}")).await.good()
}

#[tokio::test]
async fn vectors_are_paid_from_the_run_that_is_named_and_are_no_turns() {
    let (script, upstream) = (searching(1), Upstream::start());
    let world = world(&script, &upstream).await;
    let budget =
        json!({ "episode": { "id": "named", "cost_usd": "0.5", "turns": 2, "tool_calls": { "*": 1 } } });
    let mut agent = Agent::new("sk-acme", &budget);
    let before = Money(nanos(&agent.step(&world).await["budget"]["episode"]["cost_usd"]));
    let names: [(Value, &[(&str, &str)]); 4] = [
        (json!({}), &[("x-episode-id", "named")]),
        (json!({}), &[("x-budget-episode", "named")]),
        (json!({ "budget": { "episode": "named" } }), &[("x-episode-id", "another")]),
        (json!({ "metadata": { "episode_id": "named" } }), &[]),
    ];
    for (at, (more, headers)) in (1..).zip(names) {
        let answer = embed(&world, &more, headers).await;
        assert_eq!(answer.headers["x-episode-id"], "named");
        let answer = answer.good();
        assert_eq!(run(&answer), "named");
        let told = &answer["budget"]["episode"];
        assert_eq!(nanos(&told["cost_usd"]), before.0 + at * COST, "{answer}");
        assert_eq!((&told["turns"]["used"], &told["tool_calls"]["used"]), (&json!(1), &json!(1)), "{answer}");
        assert_eq!(nanos(&told["left_usd"]), 500_000_000 - before.0 - at * COST);
    }
    let answer = agent.step(&world).await;
    assert_eq!(answer["budget"]["episode"]["turns"], json!({ "used": 2, "left": 0 }), "{answer}");
    // Turns are used up, and money is not.
    embed(&world, &json!({}), &[("x-episode-id", "named")]).await.good();
    assert_eq!(standing(&world, "named").await["turns"]["used"], 2);
    let alone = embed(&world, &json!({}), &[]).await;
    assert!(!alone.headers.contains_key("x-episode-id") && alone.good()["budget"].get("episode").is_none());
    world.settled().await;
    assert_eq!(world.account("acme").spent.requests.0, 8, "for the account each is a request");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_at_once_none_passes_the_run_s_money() {
    let (script, upstream) = (searching(1), Upstream::start());
    let world = world(&script, &upstream).await;
    let limited = of("crowd", 40 * COST + WORST - COST);
    let answers = join_all((0..60).map(|_| embed(&world, &limited, &[]))).await;
    let made = answers.iter().filter(|answer| answer.status == 200).count();
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        let error = answer.error();
        assert_eq!((answer.status, &error["code"]), (429, &json!("insufficient_quota")), "{error}");
        assert_eq!(
            (&answer.headers["x-episode-id"], &error["episode"]),
            (&"crowd".parse().unwrap(), &json!("crowd"))
        );
        assert!(error["message"].as_str().unwrap().contains("episode"), "{error}");
    }
    world.settled().await;
    assert_eq!(made, 40, "each while its worst case fits, whatever is set aside meanwhile");
    assert_eq!(nanos(&standing(&world, "crowd").await["cost_usd"]), 40 * COST);
    assert_eq!(world.account("acme").reserved.money, Money::ZERO);
    // Another run of the same key goes on.
    embed(&world, &of("other", WORST), &[]).await.good();
    let refused = embed(&world, &of("other", WORST), &[]).await;
    assert_eq!(refused.error()["budget"]["needed"], Money(WORST).to_string(), "{}", refused.text);
}

#[tokio::test]
async fn money_that_a_step_has_set_aside_is_waited_for() {
    let gate = PieceGate::shut();
    let held = gate.clone();
    let script =
        Arc::new(ScriptedBackend::each(move |_, _| ScriptedReply::new().answers("nothing").waits_at(&held)));
    let upstream = Upstream::start();
    let world = Arc::new(world_by(verbose("m"), &script, &upstream).await);
    // What the step may use of it leaves too little, what it does use does not.
    let run = json!({ "id": "two", "cost_usd": "0.000014" });
    let agent =
        Agent::new("sk-acme", &json!({ "solution_tokens": 2_900, "thinking_tokens": 0, "episode": run }));
    let step = {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move { agent.step(&world).await })
    };
    while script.records().is_empty() && !step.is_finished() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let asked = {
        let world = world.clone();
        tokio::spawn(async move {
            let texts = json!({ "input": "x".repeat(2_000), "budget": { "episode": "two" } });
            embed(&world, &texts, &[]).await
        })
    };
    while world.metrics.episodes.waits.get() == 0 && !asked.is_finished() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!asked.is_finished(), "{:?}", asked.await.unwrap().text);
    gate.open();
    step.await.unwrap();
    assert_eq!(asked.await.unwrap().good()["usage"]["prompt_tokens"], 2_000);
}

#[tokio::test]
async fn what_is_said_of_a_run_is_checked() {
    let (script, upstream) = (searching(1), Upstream::start());
    let world = world(&script, &upstream).await;
    let check = async |more: Value, headers: &[(&str, &str)], param: &str, says: &str| {
        let answer = embed(&world, &more, headers).await;
        let error = answer.error();
        assert_eq!((answer.status, &error["param"]), (400, &json!(param)), "{error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    };
    check(json!({}), &[("x-budget-turns", "3")], "x-budget-turns", "only x-budget-episode").await;
    check(json!({ "budget": { "effort": 1 } }), &[], "budget.effort", "only budget.episode").await;
    check(json!({ "budget": { "episode": "" } }), &[], "budget.episode", "is empty").await;
    let unnamed = json!({ "budget": { "episode": { "turns": 3 } } });
    check(unnamed, &[], "budget.episode.id", "the name of the run").await;
    check(json!({}), &[("x-episode-id", " ")], "x-episode-id", "is").await;
    world.settled().await;
}

fn nanos(usd: &Value) -> u64 {
    usd.as_str().unwrap().parse::<Money>().unwrap().0
}
