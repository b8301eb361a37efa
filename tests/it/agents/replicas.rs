//! One run over several gateways on one PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::harness::cluster::cluster;
use crate::harness::{Stored, World};
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_storage::{Database, DatabaseUrl, PostgresSettings, Settings};

use super::{Agent, calls, play, run, searching, world_on};

async fn three() -> Vec<Arc<World>> {
    several(3, &searching(2)).await
}

async fn several(count: usize, script: &Arc<ScriptedBackend>) -> Vec<Arc<World>> {
    let url = cluster().database();
    let mut worlds = Vec::new();
    for _ in 0..count {
        let lease = Duration::from_secs(10);
        let settings = Settings::Postgres(PostgresSettings { url: DatabaseUrl::new(&url), lease });
        let database = Database::open(&settings).await.unwrap();
        worlds.push(Arc::new(world_on(script, Stored::of(&database)).await));
    }
    worlds
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_from_gateway_to_gateway_with_its_budget() {
    let worlds = three().await;
    for budget in
        [json!({ "tool_calls": { "*": 5 } }), json!({ "tool_calls": { "*": 5 }, "episode": "named" })]
    {
        let mut agent = Agent::new("sk-acme", &budget);
        let (mut seen, mut ids) = (Vec::new(), std::collections::BTreeSet::new());
        for world in worlds.iter().cycle().take(4) {
            let answer = agent.step(world).await;
            seen.push(calls(&answer));
            ids.insert(run(&answer).to_owned());
        }
        assert_eq!((seen, ids.len()), (vec![2, 2, 1, 0], 1), "{ids:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_waits_for_what_another_gateways_may_give_back() {
    let gate = PieceGate::shut();
    let held = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |call, turn| match turn {
        0 => ScriptedReply::new().answers("nothing to look for").waits_at(&held),
        _ => play(&call.request, 1),
    }));
    let worlds = several(2, &script).await;
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 }, "episode": "two" }));
    let ask = |world: &Arc<World>| {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move { calls(&agent.step(&world).await) })
    };
    let first = ask(&worlds[0]);
    script.until(|records| records.len() == 1).await;
    let second = ask(&worlds[1]);
    while worlds[1].metrics.episodes.waits.get() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(script.records().len(), 1, "it is not made to answer, for the call may come back");
    gate.open();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (0, 1));
}

/// Asks for a stream and reads it as far as these words, and no further.
async fn hear(world: &World, agent: &Agent, words: &str) -> reqwest::Response {
    let mut body = agent.body();
    body["stream"] = json!(true);
    let asked = world.client.post(format!("{}/v1/chat/completions", world.base)).bearer_auth(agent.key);
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let mut streamed = asked.send().await.unwrap();
    while !String::from_utf8_lossy(&streamed.chunk().await.unwrap().unwrap()).contains(words) {}
    streamed
}

/// What was added to a question is there for another gateway before the first word of its answer is, in the first turn and later.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_goes_on_elsewhere_from_what_it_heard_while_the_answer_still_runs() {
    let gates = [PieceGate::shut(), PieceGate::shut()];
    let waiting = gates.clone();
    let script = Arc::new(ScriptedBackend::each(move |_, number| match number % 2 {
        0 => ScriptedReply::new().answers("It was somebody whom nobody knows").waits_at(&waiting[number / 2]),
        _ => ScriptedReply::new().answers("the answer"),
    }));
    let worlds = several(2, &script).await;
    let mut agent = Agent::new("sk-acme", &json!({ "turns": 9 }));
    let (mut streams, mut runs) = (Vec::new(), std::collections::BTreeSet::new());
    for gate in &gates {
        gate.let_through(2);
        let stream = hear(&worlds[0], &agent, "It").await;
        runs.insert(stream.headers()["x-episode-id"].to_str().unwrap().to_owned());
        streams.push(stream);
        agent.messages.extend([
            json!({ "role": "assistant", "content": "It was" }),
            json!({ "role": "user", "content": "Go on." }),
        ]);
        runs.insert(run(&agent.step(&worlds[1]).await).to_owned());
        agent.messages.push(json!({ "role": "user", "content": "And before that?" }));
    }
    // While its first answer runs, a run has no end that is only its own: from there a new one begins.
    assert_eq!(runs.len(), 2, "{runs:?}");
    let sent: Vec<_> = script.records().into_iter().map(|record| record.call.request).collect();
    for (before, after) in sent.iter().zip(&sent[1..]) {
        assert_eq!(after.messages[..before.messages.len()], before.messages, "what was added stays there");
    }
    assert!(sent[0].messages[0].plain_text().len() > "Who was it?".len(), "something was added");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_steps_on_three_gateways_share_a_budget_to_the_call() {
    let worlds = three().await;
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 20 }, "episode": "crowd" }));
    let asking = worlds.iter().cycle().take(60).map(|world| {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move {
            for _ in 0..200 {
                let answer = agent.ask(&world).await;
                if answer.status == 200 {
                    return calls(&agent.hear(&answer));
                }
                assert!(answer.status == 429 || answer.status == 503, "{}", answer.text);
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            0
        })
    });
    let mut passed = 0;
    for asked in asking.collect::<Vec<_>>() {
        passed += asked.await.unwrap();
    }
    assert!(passed <= 20, "{passed}");
    assert!(passed >= 16, "hardly anything is stranded: {passed}");
}
