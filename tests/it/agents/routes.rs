//! What a route says of runs: how many turns, which model, and whether its rules hold.

use std::sync::Arc;

use serde_json::json;

use crate::harness::{Served, Stored, World, auto, tenant};
use stint_ledger::{AccountId, MemoryJournal};
use stint_sessions::agent::{self, AnsweredStep, EpisodeEnding, EpisodeOwner, LastStep};
use stint_types::catalog::{RolloutMode, Route, TaskClass, TurnRule};
use stint_types::tenant::KeyId;
use stint_types::units::{Timestamp, Tokens};

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

/// Half of what was seen took two turns, so the second is the last; what our own cap ended does not shorten it further.
#[tokio::test]
async fn a_route_may_cap_the_turns_at_what_runs_usually_take() {
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    for number in 0..30 {
        for at in 0..2 {
            let ended = if at == 1 { EpisodeEnding::Answered } else { EpisodeEnding::Open };
            let class = TaskClass::Agentic;
            let last = LastStep {
                model: "m".into(),
                class,
                context: Tokens(10),
                reading: None,
                ended,
                route_turns: None,
            };
            let step = AnsweredStep {
                owner: EpisodeOwner {
                    account: AccountId::new("acme"),
                    key: KeyId::of_declared(&AccountId::new("acme")),
                },
                id: format!("before-{number}").parse().unwrap(),
                from: None,
                to: Vec::new(),
                is_first: at == 0,
                last,
                added: Vec::new(),
                begun: None,
                at: Timestamp::now(),
            };
            stored.episodes.record_step(&step).await.unwrap();
        }
    }
    let script = searching(3);
    let route = Route { turns: TurnRule::Learned, ..auto() };
    let served = vec![Served::by(caller("m"), vec![script])];
    let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![route], stored).await;
    let mut capped = 0;
    for number in 0..40 {
        let mut agent = Agent { model: "auto", ..Agent::new("sk-acme", &json!({})) };
        agent = agent.about(&format!("What is {number}?"));
        agent.step(&world).await;
        let second = agent.step(&world).await;
        capped += u32::from(second["budget"]["episode"]["final"] == true);
    }
    assert!(capped >= 30, "only a few are left alone: {capped}");
}

/// Rules that are watched count what they would trim, and change nothing.
#[tokio::test]
async fn what_is_only_watched_is_counted_and_passes() {
    let world = routed(Route { enforce: RolloutMode::Observe, ..auto() }).await;
    let mut agent = Agent { model: "auto", ..Agent::new("sk-acme", &json!({ "tool_calls": { "*": 1 } })) };
    let answer = agent.step(&world).await;
    assert_eq!(calls(&answer), 3, "{answer}");
    assert_eq!(answer["budget"]["episode"]["tool_calls"]["used"], 3);
    let metrics = world.metrics_page();
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
