//! Many steps of one run at once.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::harness::Stored;
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_ledger::MemoryJournal;
use stint_sessions::agent;

use super::{Agent, calls, play, searching, verbose, world, world_by};

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_steps_at_once_share_a_budget_to_the_call() {
    let script =
        Arc::new(ScriptedBackend::each(|call, _| play(&call.request, 3).pauses(Duration::from_millis(1))));
    let world = Arc::new(world(&script, agent::Settings::default()).await);
    let agent =
        Agent::new("sk-acme", &json!({ "tool_calls": { "search": 40, "browse": 0 }, "episode": "crowd" }));
    let asking = (0..200).map(|_| {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move { calls(&agent.step(&world).await) })
    });
    let mut passed = 0;
    for asked in asking.collect::<Vec<_>>() {
        passed += asked.await.unwrap();
    }
    assert_eq!(passed, 40);
    let page = world.get("sk-acme", "/v1/episodes/crowd").await.good();
    assert_eq!(page["tool_calls"]["tools"]["search"], json!({ "used": 40, "left": 0 }));
    assert_eq!(page["turns"]["used"], 200);
    world.settled().await;
}

#[tokio::test]
async fn a_step_waits_for_what_a_parallel_one_may_give_back() {
    let gate = PieceGate::shut();
    let held = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |call, turn| match turn {
        0 => ScriptedReply::new().answers("nothing to look for").waits_at(&held),
        _ => play(&call.request, 1),
    }));
    let world = Arc::new(world(&script, agent::Settings::default()).await);
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 }, "episode": "two" }));
    let ask = |mut agent: Agent| {
        let world = world.clone();
        tokio::spawn(async move { calls(&agent.step(&world).await) })
    };
    let first = ask(agent.clone());
    script.until(|records| records.len() == 1).await;
    let second = ask(agent.clone());
    while world.metrics.episodes.waits.get() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(script.records().len(), 1, "it is not made to answer, for the call may come back");
    gate.open();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (0, 1));
    assert_eq!(calls(&agent.clone().step(&world).await), 0, "now it is spent");
}

#[tokio::test]
async fn a_step_waits_for_money_that_a_parallel_one_may_give_back() {
    let gate = PieceGate::shut();
    let held = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |call, turn| match turn {
        0 => ScriptedReply::new().answers("nothing to look for").waits_at(&held),
        _ => play(&call.request, 1),
    }));
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    let world = Arc::new(world_by(verbose("m"), &script, stored).await);
    // Enough for one step and the answer after it, and not for that while another step may still use its thousand tokens.
    let run = json!({ "id": "two", "cost_usd": "0.0000165" });
    let budget = json!({ "solution_tokens": 1_000, "thinking_tokens": 0, "episode": run });
    let agent = Agent::new("sk-acme", &budget);
    let ask = |mut agent: Agent| {
        let world = world.clone();
        tokio::spawn(async move { calls(&agent.step(&world).await) })
    };
    let first = ask(agent.clone());
    script.until(|records| records.len() == 1).await;
    let second = ask(agent.clone());
    while world.metrics.episodes.waits.get() == 0 && !second.is_finished() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(script.records().len(), 1, "it is not made to answer, for the money may come back");
    gate.open();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (0, 1));
}

#[tokio::test]
async fn who_waits_in_vain_may_try_again() {
    let gate = PieceGate::shut();
    let held = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |call, turn| match turn {
        0 => play(&call.request, 1).waits_at(&held),
        _ => play(&call.request, 1),
    }));
    let settings = agent::Settings { wait_max: Duration::from_millis(100), ..agent::Settings::default() };
    let world = Arc::new(world(&script, settings).await);
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 }, "episode": "two" }));
    let first = {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move { calls(&agent.step(&world).await) })
    };
    script.until(|records| records.len() == 1).await;
    let refused = agent.ask(&world).await;
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("episode_busy")), "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after") && !refused.headers.contains_key("x-should-retry"));
    gate.open();
    assert_eq!(first.await.unwrap(), 1);
    assert_eq!(calls(&agent.clone().step(&world).await), 0);
    assert_eq!(world.account("acme").reserved.tool_calls.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_ask_the_same_at_once_are_two_runs() {
    let script = searching(1);
    let world = Arc::new(world(&script, agent::Settings::default()).await);
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 3 } }));
    let runs = (0..2).map(|_| {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move {
            let mut seen = Vec::new();
            loop {
                let answer = agent.step(&world).await;
                seen.push(super::run(&answer).to_owned());
                if calls(&answer) == 0 {
                    return seen;
                }
            }
        })
    });
    let mut all = Vec::new();
    for run in runs.collect::<Vec<_>>() {
        all.push(run.await.unwrap());
    }
    assert_eq!((all[0].len(), all[1].len()), (4, 4), "each has its own three calls: {all:?}");
    let ids: std::collections::BTreeSet<_> = all.iter().flatten().collect();
    assert_eq!(ids.len(), 2, "{all:?}");
}
