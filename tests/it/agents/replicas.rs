//! One run over several gateways on one PostgreSQL.

use std::sync::Arc;

use serde_json::json;
use stint::storage::{Database, DatabaseUrl, PostgresSettings, Settings};

use crate::harness::cluster::cluster;
use crate::harness::{Stored, World};

use super::{Agent, calls, run, searching, world_on};

async fn three() -> Vec<Arc<World>> {
    let (url, script) = (cluster().database(), searching(2));
    let mut worlds = Vec::new();
    for _ in 0..3 {
        let lease = std::time::Duration::from_secs(10);
        let settings = Settings::Postgres(PostgresSettings { url: DatabaseUrl::new(&url), lease });
        let database = Database::open(&settings).await.unwrap();
        worlds.push(Arc::new(world_on(&script, Stored::of(&database)).await));
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
async fn many_steps_on_three_gateways_share_a_budget_to_the_call() {
    let worlds = three().await;
    let agent = Agent::new("sk-acme", &json!({ "tool_calls": { "*": 20 }, "episode": "crowd" }));
    let asking = worlds.iter().cycle().take(60).map(|world| {
        let (world, mut agent) = (world.clone(), agent.clone());
        tokio::spawn(async move {
            for _ in 0..10 {
                let answer = agent.ask(&world).await;
                if answer.status == 200 {
                    return calls(&agent.hear(&answer));
                }
                assert!(answer.status == 429 || answer.status == 503, "{}", answer.text);
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
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
