//! What a route says of runs: how many turns, which model, and whether its rules hold.

use std::sync::Arc;

use serde_json::json;
use stint::agent;
use stint::catalog::{Enforce, Route, TurnRule};
use stint::ledger::MemoryJournal;

use crate::harness::{Served, Stored, World, auto, tenant};

use super::{Agent, caller, calls, count, searching};

async fn routed(route: Route) -> World {
    let script = searching(3);
    let served = vec![Served::by(caller("m"), vec![script.clone()]), Served::by(caller("n"), vec![script])];
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![route], stored).await
}

#[tokio::test]
async fn a_route_may_cap_the_turns() {
    let world = routed(Route { turns: TurnRule::Fixed(count(2)), ..auto() }).await;
    let mut agent = Agent { model: "auto", ..Agent::new("sk-acme", &json!({})) };
    assert_eq!(calls(&agent.step(&world).await), 3);
    let last = agent.step(&world).await;
    assert_eq!((calls(&last), &last["budget"]["episode"]["final"]), (0, &json!(true)), "{last}");
    let page = world.get("sk-acme", &format!("/v1/episodes/{}", super::run(&last))).await.good();
    assert_eq!(page["state"], "capped", "{page}");
}

/// Rules that are watched count what they would trim, and change nothing.
#[tokio::test]
async fn what_is_only_watched_is_counted_and_passes() {
    let world = routed(Route { enforce: Enforce::Observe, ..auto() }).await;
    let mut agent = Agent { model: "auto", ..Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 } })) };
    let answer = agent.step(&world).await;
    assert_eq!(calls(&answer), 3, "{answer}");
    assert_eq!(answer["budget"]["episode"]["tool_calls"]["used"], 3);
    let metrics = world.get("", "/metrics").await.text;
    assert!(metrics.contains("stint_tool_calls_total{decision=\"watched\"} 2\n"), "{metrics}");
    assert!(metrics.contains("stint_tool_calls_total{decision=\"trimmed\"} 0\n"), "{metrics}");
}

#[tokio::test]
async fn a_run_stays_with_its_model() {
    let script = searching(1);
    let served = vec![Served::by(caller("m"), vec![script.clone()]), Served::by(caller("n"), vec![script])];
    let stored =
        Stored { agents: agent::Settings::default(), ..Stored::alone(Arc::new(MemoryJournal::default())) };
    let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await;
    let mut agent = Agent { model: "n", ..Agent::new("sk-acme", &json!({ "episode": "stays" })) };
    assert_eq!(agent.step(&world).await["model"], "n");
    agent.model = "auto";
    for _ in 0..3 {
        assert_eq!(
            agent.step(&world).await["model"],
            "n",
            "what its provider has in its cache is worth something"
        );
    }
}
