//! What this gateway has not: each API's clients are told so in its own form, and what there is in its place.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{World, model};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::EnforcementClass;

/// A gateway with one model.
async fn world() -> World {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    World::open(model("m", EnforcementClass::Effort), &script).await
}

#[tokio::test]
async fn a_path_that_is_not_here_is_refused_in_the_form_of_the_callers_api() {
    let world = world().await;
    for (path, words) in [
        ("/v1/files", "/v1/files is not served here"),
        ("/v1/skills/s_1", "/v1/skills is not served here"),
        ("/v1/message", "did you mean /v1/messages?"),
        ("/v1/nothing", "under /v1"),
    ] {
        let anthropic = world.post_with(path, "", &json!({}), &[("anthropic-version", "2023-06-01")]).await;
        let told = anthropic.json();
        assert_eq!((anthropic.status, &told["type"]), (404, &json!("error")), "{told}");
        assert_eq!(told["error"]["type"], "not_found_error", "{told}");
        assert!(told["request_id"].is_string(), "{told}");
        let openai = world.post(path, "", &json!({})).await;
        assert_eq!((openai.status, openai.json().get("type")), (404, None), "{}", openai.text);
        for answer in [anthropic, openai] {
            assert!(answer.text.contains(words), "{}", answer.text);
        }
    }
    let header = [("anthropic-version", "2023-06-01")];
    let chat = world.post_with("/v1/chat/completions", "", &json!({}), &header).await;
    assert_eq!((chat.status, chat.json().get("type")), (400, None), "it has one form: {}", chat.text);
}

#[tokio::test]
async fn a_method_that_a_path_does_not_take_is_named_and_those_that_it_takes_are_listed() {
    let world = world().await;
    let answer = world.get("", "/v1/chat/completions").await;
    assert_eq!(
        (answer.status, &answer.error()["code"]),
        (405, &json!("method_not_allowed")),
        "{}",
        answer.text
    );
    assert!(answer.text.contains("does not take GET"), "{}", answer.text);
    assert_eq!(answer.headers["allow"], "POST");
}

#[tokio::test]
async fn an_error_about_a_tool_that_runs_at_a_provider_names_it() {
    let world = world().await;
    let said = json!([{ "role": "user", "content": "1+2?" }]);
    for (path, more) in [
        ("/v1/chat/completions", json!({ "messages": said, "tools": [{ "type": "code_interpreter" }] })),
        ("/v1/responses", json!({ "input": said, "tools": [{ "type": "code_interpreter" }] })),
        (
            "/v1/messages",
            json!({ "messages": said, "max_tokens": 20, "tools": [{ "type": "code_interpreter", "name": "c" }] }),
        ),
    ] {
        let mut asked = more;
        asked["model"] = "m".into();
        let error = world.post(path, "", &asked).await.error();
        assert_eq!(error["param"], "tools[0].type", "{path}: {error}");
        let message: &Value = &error["message"];
        assert!(message.as_str().unwrap().contains("\"code_interpreter\" is not offered"), "{path}: {error}");
    }
    let alone = json!({ "model": "m", "input": said, "tools": [{ "type": "web_search" }] });
    let error = world.post("/v1/responses", "", &alone).await.error();
    assert!(
        error["message"].as_str().unwrap().contains("is web_search, which runs at a provider"),
        "{error}"
    );
}
