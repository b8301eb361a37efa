//! Errors as every client of OpenAI's API reads them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{Answer, World, model, tenant};
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Failure, Fault};
use stint_types::catalog::EnforcementClass;

fn question(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "x" }] })
}

/// One shape, whatever is wrong.
fn is_an_error(answer: &Answer) {
    let body = answer.json();
    let error = body["error"].as_object().unwrap();
    for member in ["message", "type", "param", "code"] {
        assert!(error.contains_key(member), "{member} in {}", answer.text);
    }
    assert_eq!(body.as_object().unwrap().len(), 1, "{}", answer.text);
    for member in ["message", "type"] {
        assert!(body["error"][member].as_str().is_some_and(|text| !text.is_empty()), "{}", answer.text);
    }
    assert_eq!(answer.headers["content-type"], "application/json", "{}", answer.text);
    assert!(answer.headers.contains_key("x-request-id"), "{}: {:?}", answer.text, answer.headers);
}

/// IN-22: every status of an error has the four members, its type, and the request's id.
#[tokio::test]
async fn every_error_has_the_members_that_clients_read() {
    let gate = PieceGate::shut();
    let held = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3").waits_at(&gate)));
    let broken = Arc::new(ScriptedBackend::always(
        ScriptedReply::new().refuses(Failure::new(Fault::Backend, "no answer")),
    ));
    let served = vec![
        (model("m", EnforcementClass::Effort), held.clone()),
        (model("n", EnforcementClass::Effort), broken),
    ];
    let world = Arc::new(World::new(served, vec![tenant("key", 1 << 50), tenant("poor", 1)]).await);
    let keyed = [("idempotency-key", "one")];
    let running = tokio::spawn({
        let world = world.clone();
        async move { world.ask_with("sk-key", &question("m"), &keyed).await }
    });
    held.until(|records| records.len() == 1).await;
    let post = |path: &str| world.client.post(format!("{}{path}", world.base)).bearer_auth("sk-key");
    let long = "x".repeat(33 << 20);
    let json = "application/json";
    let answers = [
        world.ask("sk-key", &json!({ "model": "m" })).await,
        world.ask("sk-nobody", &question("m")).await,
        world.get("sk-key", "/metrics").await,
        world.ask("sk-key", &question("nobody")).await,
        world.get("sk-key", "/v1/chat/completions").await,
        world.ask_with("sk-key", &question("m"), &keyed).await,
        world.ask_with("sk-key", &question("n"), &keyed).await,
        Answer::of(post("/v1/chat/completions").header("content-type", json).body(long)).await,
        Answer::of(post("/v1/chat/completions").body("{}")).await,
        world.ask("sk-poor", &question("m")).await,
        Answer::of(post("/v1/chat/completions").header("x", "y".repeat(40 << 10)).body("{}")).await,
        world.ask("sk-key", &question("n")).await,
    ];
    answers.iter().for_each(is_an_error);
    let statuses: BTreeSet<u16> = answers.iter().map(|answer| answer.status).collect();
    assert_eq!(statuses, BTreeSet::from([400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 431, 502]));
    gate.open();
    running.await.unwrap().good();
}
