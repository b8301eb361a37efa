//! `stint top`: what a running gateway does, in the terminal.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Folder, Managed, World, model};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::EnforcementClass;
use stint_types::units::Tokens;

/// What is printed, for people and of complaints.
fn printed(command: &mut Command) -> (bool, String) {
    let output = command.arg("--once").env_remove("STINT_KEY").output().unwrap();
    let both = [&output.stdout[..], &output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&both).into_owned())
}

#[tokio::test]
async fn a_thought_is_seen_filling_its_budget() {
    let reply = ScriptedReply::new().thinks(400).pauses(Duration::from_millis(2)).answers("it is 3");
    let world =
        World::open(model("m", EnforcementClass::Inline), &Arc::new(ScriptedBackend::always(reply))).await;
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 1+2?" }],
                       "budget": { "thinking_tokens": 500 } });
    let watched = async {
        loop {
            let (live, count) = world.gateway.live_requests(9);
            let attempt = live.first().and_then(|request| request.attempt.clone());
            if let Some(attempt) = attempt.filter(|attempt| attempt.used.0 > Tokens::ZERO) {
                return (attempt, count);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (answer, (seen, count)) = tokio::join!(world.ask("", &body), watched);
    assert_eq!((count, &*seen.model, seen.answers, seen.budgets.0), (1, "m", 1, Tokens(500)));
    assert!(seen.used.0 < Tokens(400) && seen.used.1 == Tokens::ZERO, "{seen:?}");
    answer.good();
    world.settled().await;
    assert_eq!(world.gateway.live_requests(9).1, 0, "what has ended is not shown any more");
}

#[tokio::test]
async fn where_nobody_needs_a_key_it_shows_the_server_of_this_configuration() {
    let folder = Folder::new("");
    let process = folder.serve();
    process
        .ask("", &json!({ "model": "reasoner", "messages": [{ "role": "user", "content": "1+1=" }] }))
        .await
        .good();
    let (is_good, text) = printed(folder.stint("top").arg("--url").arg(&process.base));
    assert!(is_good && text.contains("ready") && text.contains("1 requests"), "{text}");
    assert!(text.contains("reasoner"), "the backends: {text}");
}

#[tokio::test]
async fn with_keys_it_asks_the_admin_api_by_the_token_of_the_configuration() {
    let managed = Managed::new("");
    let _process = managed.serve();
    let (is_good, text) = printed(&mut managed.folder.stint("top"));
    assert!(is_good && text.contains("at work"), "{text}");
}

#[tokio::test]
async fn it_says_what_to_do_where_nobody_answers_or_a_key_is_wanted() {
    let folder = Folder::new("");
    let (is_good, text) = printed(folder.stint("top").args(["--url", "http://127.0.0.1:9"]));
    assert!(!is_good && text.contains("no server answers at http://127.0.0.1:9"), "{text}");
    let managed = Managed::new("");
    let process = managed.serve();
    managed.keys(&["create", "alice"]);
    let (is_good, text) = printed(folder.stint("top").arg("--url").arg(&process.base));
    assert!(!is_good && text.contains("shows nothing here"), "{text}");
}
