//! Which run a request is a step of.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::Stored;
use stint_backend::scripted::{CallState, PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_ledger::MemoryJournal;
use stint_sessions::agent::{self, EpisodeStore, MemoryEpisodes};

use super::{Agent, calls, run, searching, world, world_on};

#[tokio::test]
async fn a_named_run_gains_nothing_by_a_shorter_history() {
    let script = searching(3);
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 4 }, "episode": "named" }));
    agent.step(&world).await;
    let mut stripped = Agent::new("sk-acme", &json!({ "episode": "named" }));
    assert_eq!(calls(&stripped.step(&world).await), 1, "the limits need not be said again");
    let mut compacted = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 100 }, "episode": "named" }));
    let answer = compacted.step(&world).await;
    assert_eq!(
        (calls(&answer), &answer["budget"]["episode"]["final"]),
        (0, &json!(true)),
        "nor are they raised"
    );
}

#[tokio::test]
async fn a_run_belongs_to_its_key() {
    let script = searching(3);
    let world = world(&script, agent::Settings::default()).await;
    let budget = json!({ "tool_calls": { "*": 3 }, "episode": "named" });
    let mut mine = Agent::new("sk-acme", &budget);
    assert_eq!(calls(&mine.step(&world).await), 3);
    let mut theirs = Agent::new("sk-other", &budget);
    assert_eq!(calls(&theirs.step(&world).await), 3, "of the same name, and another one");
    // Not even by its history.
    let mut unnamed = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 3 } })).about("And where?");
    let first = unnamed.step(&world).await;
    let mut stolen = Agent { key: "sk-other", ..unnamed.clone() };
    assert_ne!(run(&stolen.step(&world).await), run(&first));
    assert_eq!(run(&unnamed.step(&world).await), run(&first));
}

#[tokio::test]
async fn a_first_turn_that_is_asked_again_is_a_new_run() {
    let script = searching(2);
    let world = world(&script, agent::Settings::default()).await;
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 2 } }));
    let (one, other) = (agent.clone().step(&world).await, agent.clone().step(&world).await);
    assert_eq!((calls(&one), calls(&other)), (2, 2));
    assert_ne!(run(&one), run(&other));
}

#[tokio::test]
async fn a_request_that_has_nothing_to_do_with_tools_is_no_step() {
    let script = searching(2);
    let world = world(&script, agent::Settings::default()).await;
    let asked = json!({ "model": "m", "messages": [{ "role": "user", "content": "hello" }] });
    let answer = world.ask("sk-acme", &asked).await;
    assert!(answer.good()["budget"].get("episode").is_none());
    assert!(!answer.headers.contains_key("x-episode-id"));
    let metrics = world.metrics_page();
    assert!(metrics.contains("stint_episode_steps_total{found=\"begun\"} 0\n"), "{metrics}");
}

#[tokio::test]
async fn a_run_may_be_named_by_a_header() {
    let script = searching(2);
    let world = world(&script, agent::Settings::default()).await;
    let agent = Agent::new("sk-acme", &json!({}));
    let answer = world.ask_with("sk-acme", &agent.body(), &[("x-episode-id", "by-header")]).await;
    assert_eq!(run(&answer.good()), "by-header");
    assert_eq!(answer.headers["x-episode-id"], "by-header");
}

#[tokio::test]
async fn a_refused_caller_that_asks_again_continues_the_same_run() {
    let script = searching(2);
    let world = world(&script, agent::Settings::default()).await;
    let mut one = Agent::new("sk-acme", &json!({}));
    let mut other = one.clone();
    let runs = [one.step(&world).await, other.step(&world).await].map(|answer| run(&answer).to_owned());
    assert_ne!(runs[0], runs[1]);
    let poor = Agent { budget: json!({ "cost_usd": "0.000000001" }), ..other.clone() };
    for _ in 0..3 {
        assert_eq!(poor.ask(&world).await.error()["code"], "budget_too_small");
    }
    // Of two with the same history the younger is handed out first, no matter which was refused before.
    assert_eq!(run(&other.step(&world).await), runs[1]);
    assert_eq!(run(&one.step(&world).await), runs[0]);
}

#[tokio::test]
async fn a_caller_that_limits_too_many_tools_and_corrects_it_continues_the_same_run() {
    let script = searching(2);
    let world = world(&script, agent::Settings::default()).await;
    let limits = |range: Range<usize>| -> Value {
        let each: BTreeMap<_, _> = range.map(|at| (format!("tool_{at}"), 1)).collect();
        json!({ "episode": { "tool_calls": each } })
    };
    let mut one = Agent::new("sk-acme", &limits(0..64));
    let mut other = one.clone();
    let runs = [one.step(&world).await, other.step(&world).await].map(|answer| run(&answer).to_owned());
    assert_ne!(runs[0], runs[1]);
    let more = Agent { budget: limits(64..65), ..other.clone() };
    for _ in 0..3 {
        let refused = more.ask(&world).await;
        assert_eq!((refused.status, &refused.error()["param"]), (400, &json!("budget.tool_calls")));
    }
    assert_eq!(run(&other.step(&world).await), runs[1]);
    assert_eq!(run(&one.step(&world).await), runs[0]);
}

/// What it heard is no answer that anybody knows, and its limits are those of the run all the same.
#[tokio::test]
async fn a_caller_that_hangs_up_in_the_first_answer_goes_on_with_the_same_run_from_what_it_heard() {
    let gate = PieceGate::shut();
    let waiting = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |_, number| match number {
        0 => ScriptedReply::new().answers("It was somebody whom nobody knows").waits_at(&waiting),
        _ => ScriptedReply::new().answers("the answer"),
    }));
    let world = world(&script, agent::Settings::default()).await;
    let mut agent = Agent::new("sk-acme", &json!({ "turns": 5 }));
    let mut body = agent.body();
    body["stream"] = json!(true);
    gate.let_through(2);
    let asked = world.client.post(format!("{}/v1/chat/completions", world.base)).bearer_auth("sk-acme");
    let asked = asked.header("content-type", "application/json").body(body.to_string());
    let mut streamed = asked.send().await.unwrap();
    let first = streamed.headers()["x-episode-id"].to_str().unwrap().to_owned();
    while !String::from_utf8_lossy(&streamed.chunk().await.unwrap().unwrap()).contains("It") {}
    drop(streamed);
    script.until(|records| records[0].state == CallState::Cancelled).await;
    world.settled().await;
    agent.messages.extend([
        json!({ "role": "assistant", "content": "It was" }),
        json!({ "role": "user", "content": "Go on." }),
    ]);
    let second = agent.step(&world).await;
    assert_eq!(run(&second), first, "{second}");
    let requests: Vec<_> = script.records().into_iter().map(|record| record.call.request).collect();
    assert_eq!(
        requests[1].messages[0], requests[0].messages[0],
        "what was added to the question stays there"
    );
}

/// Both begin with the same words, and what one is told does not come back as it was: it looks like it went on from the other.
#[tokio::test]
async fn a_conversation_that_began_alike_is_not_given_the_run_of_one_whose_step_runs() {
    let gate = PieceGate::shut();
    let waiting = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |_, number| match number {
        1 => ScriptedReply::new().answers("It was somebody whom nobody knows").waits_at(&waiting),
        _ => ScriptedReply::new().answers("the answer"),
    }));
    let world = Arc::new(world(&script, agent::Settings::default()).await);
    let mut agent = Agent::new("sk-acme", &json!({ "turns": 5 }));
    let (mut other, there) = (agent.clone(), world.clone());
    let first = agent.step(&world).await;
    let other = tokio::spawn(async move { run(&other.step(&there).await).to_owned() });
    script.until(|records| records.len() == 2).await;
    agent.messages.truncate(1);
    agent.messages.extend([
        json!({ "role": "assistant", "content": "What I was told, in my own words" }),
        json!({ "role": "user", "content": "Go on." }),
    ]);
    let second = agent.step(&world).await;
    gate.open();
    assert!(![run(&first), &other.await.unwrap()].contains(&run(&second)), "{second}");
    let requests: Vec<_> = script.records().into_iter().map(|record| record.call.request).collect();
    assert_eq!(
        requests[2].messages[0], requests[0].messages[0],
        "what was added to the question is its own too"
    );
}

/// A caller hangs up twice, and goes on each time while the step before still runs. All that its provider saw stays in its place.
#[tokio::test]
async fn who_hangs_up_again_and_again_keeps_what_was_added_to_each_question() {
    let gate = PieceGate::shut();
    let waiting = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |_, number| match number {
        0..2 => ScriptedReply::new().answers("It was").waits_at(&waiting),
        _ => ScriptedReply::new().answers("the answer"),
    }));
    let world = Arc::new(world(&script, agent::Settings::default()).await);
    let mut agent = Agent::new("sk-acme", &json!({ "turns": 5 }));
    let mut running = Vec::new();
    for heard in ["It", "It was"] {
        let (one, there) = (agent.clone(), world.clone());
        running.push(tokio::spawn(async move { one.ask(&there).await }));
        script.until(|records| records.len() == running.len()).await;
        agent.messages.extend([
            json!({ "role": "assistant", "content": heard }),
            json!({ "role": "user", "content": "Go on." }),
        ]);
    }
    agent.step(&world).await;
    gate.open();
    for one in running {
        one.await.unwrap();
    }
    let requests: Vec<_> = script.records().into_iter().map(|record| record.call.request).collect();
    assert_eq!(requests[2].messages[0], requests[0].messages[0], "at the first question");
    assert_eq!(requests[2].messages[2], requests[1].messages[2], "at the second");
    assert_eq!(requests[1].messages[0], requests[0].messages[0]);
}

/// While no model answers, each try is another run: nothing is left of any.
#[tokio::test]
async fn of_a_first_step_that_fails_without_a_word_no_run_stays() {
    let script = Arc::new(ScriptedBackend::each(|_, number| match number {
        0..3 => ScriptedReply::new().refuses(Failure::new(Fault::Backend, "gone")),
        _ => ScriptedReply::new().answers("the answer"),
    }));
    let store = Arc::new(MemoryEpisodes::default());
    let stored = Stored { episodes: store.clone(), ..Stored::alone(Arc::new(MemoryJournal::default())) };
    let world = world_on(&script, stored).await;
    let mut agent = Agent::new("sk-acme", &json!({}));
    let known = async || store.list(None, None, 9).await.unwrap().len();
    let mut failed = 0;
    while script.records().len() < 3 {
        failed += usize::from(agent.ask(&world).await.status != 200);
    }
    assert!(failed > 0);
    world.settled().await;
    assert_eq!(known().await, 0);
    agent.step(&world).await;
    assert_eq!(known().await, 1);
}
