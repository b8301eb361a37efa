//! What a newcomer's mistakes are answered: in words that say what to change.

use serde_json::{Value, json};

use crate::harness::{Answer, Folder, Process};

/// A gateway with one key that has two secrets, `sk-test` and the one that is to replace it.
fn gateway() -> Process {
    let [old, new] = ["sk-test", "sk-next"].map(stint_types::tenant::hash_key);
    Folder::new(&format!("[[key]]\nname = \"test\"\nhash = [\"{old}\", \"{new}\"]\n")).serve()
}

fn with(more: &Value) -> Value {
    let mut body = json!({ "model": "reasoner", "messages": [{ "role": "user", "content": "1+1=" }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn check(answer: &Answer, status: u16, code: &str, param: &Value, words: &[&str]) {
    let error = answer.error();
    assert_eq!((answer.status, &error["code"], &error["param"]), (status, &json!(code), param), "{error}");
    let message = error["message"].as_str().unwrap();
    for words in words {
        assert!(message.contains(words), "{words:?} in {message:?}");
    }
}

#[tokio::test]
async fn a_newcomers_mistakes_are_answered_with_what_to_change() {
    let process = gateway();
    let ask = async |more: Value| process.ask("sk-test", &with(&more)).await;
    let meant = ["no model \"resoner\"", "did you mean \"reasoner\"?"];
    check(&ask(json!({ "model": "resoner" })).await, 404, "model_not_found", &json!("model"), &meant);
    let listed = process.get("sk-test", "/v1/models/resoner").await;
    check(&listed, 404, "model_not_found", &json!("model"), &meant);
    let image =
        json!([{ "type": "text", "text": "x" }, { "type": "image_url", "image_url": { "url": "data:," } }]);
    let messages = json!([{ "role": "user", "content": "x" }, { "role": "user", "content": image }]);
    let named = ["cannot do images, which messages[1].content[1] asks for"];
    let answer = ask(json!({ "messages": messages })).await;
    check(&answer, 400, "model_not_capable", &json!("messages[1].content[1]"), &named);
    let audio = process.get("sk-test", "/v1/audio/speech").await;
    check(
        &audio,
        404,
        "endpoint_not_served",
        &json!(null),
        &["/v1/audio is not served here", "/v1/responses"],
    );
}

#[tokio::test]
async fn limits_on_tool_calls_are_on_tools_that_there_are_and_show_their_form() {
    let process = gateway();
    let tools = json!([{ "type": "function", "function": { "name": "search" } }]);
    let ask = async |limits: Value| {
        process
            .ask("sk-test", &with(&json!({ "tools": tools, "budget": { "tool_calls": limits } })))
            .await
            .error()
    };
    let error = ask(json!(5)).await;
    assert_eq!(error["param"], "budget.tool_calls");
    assert!(error["message"].as_str().unwrap().contains(r#"like {"search": 10, "*": 20}"#), "{error}");
    let error = ask(json!({ "serch": 5 })).await;
    let meant =
        "budget.tool_calls limits \"serch\", which is none of the request's tools; did you mean \"search\"?";
    assert_eq!(error["message"], meant);
    // The embedded model has no tools, and says so only once the limits are right.
    assert_eq!(ask(json!({ "search": 5, "*": 9 })).await["code"], "model_not_capable");
    // A program's headers hold for its sub-agents too, which have other tools.
    let of_program = [("x-budget-tool-calls", r#"{"Agent": 2}"#)];
    let sent = process.request("sk-test", &with(&json!({ "tools": tools })), &of_program);
    assert_eq!(Answer::of(sent).await.error()["code"], "model_not_capable");
}

#[tokio::test]
async fn a_missing_key_is_told_from_a_wrong_one_and_each_of_two_is_right() {
    let process = gateway();
    let path = format!("{}/v1/models", process.base);
    let missing = Answer::of(process.client.get(&path)).await;
    check(&missing, 401, "missing_api_key", &json!(null), &["You didn't provide an API key"]);
    check(
        &process.get("sk-other", "/v1/models").await,
        401,
        "invalid_api_key",
        &json!(null),
        &["Incorrect API key"],
    );
    for key in ["sk-test", "sk-next"] {
        process.get(key, "/v1/models").await.good();
    }
}

/// 18.3: what OpenAI's own API refuses is refused here, by the member's name.
#[tokio::test]
async fn what_contradicts_itself_is_refused_as_openai_does() {
    let gateway = gateway();
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let notes: serde_json::Map<String, Value> =
        (0..17).map(|number| (number.to_string(), json!("x"))).collect();
    let named = json!({ "type": "function", "function": { "name": "other" } });
    for (more, param) in [
        (json!({ "tools": [tool("a")], "tool_choice": named }), "tool_choice"),
        (json!({ "tool_choice": "required" }), "tool_choice"),
        (json!({ "tools": [tool("a")], "tool_choice": "sometimes" }), "tool_choice"),
        (json!({ "tools": [tool("a b")] }), "tools[0].function.name"),
        (json!({ "tools": [tool(&"x".repeat(65))] }), "tools[0].function.name"),
        (json!({ "stop": vec!["x"; 65] }), "stop"),
        (json!({ "stream_options": { "include_usage": true } }), "stream_options"),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "schema": {} } } }),
            "response_format.json_schema.name",
        ),
        (
            json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "x" } } }),
            "response_format.json_schema.schema",
        ),
        (json!({ "metadata": notes }), "metadata"),
        (json!({ "metadata": { "a": "x".repeat(600) } }), "metadata.a"),
    ] {
        let answer = gateway.ask("sk-test", &with(&more)).await;
        assert_eq!(
            (answer.status, &answer.error()["param"]),
            (400, &json!(param)),
            "{more}: {}",
            answer.text
        );
    }
    let custom = json!({ "tools": [{ "type": "custom", "custom": { "name": "look" } }] });
    let refusal = gateway.ask("sk-test", &with(&custom)).await.error();
    assert_eq!(refusal["param"], "tools[0].type");
    assert!(refusal["message"].as_str().unwrap().contains("taken on /v1/responses only"), "{refusal}");
    let responses = json!({ "model": "auto", "input": "x", "metadata": { "a": "x".repeat(600) } });
    let request = gateway
        .client
        .post(format!("{}/v1/responses", gateway.base))
        .body(responses.to_string())
        .bearer_auth("sk-test");
    let answer = Answer::of(request.header("content-type", "application/json")).await;
    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("metadata.a")), "{}", answer.text);
    let nobody = gateway.get("", "/v1/models").await;
    assert_eq!((nobody.status, nobody.headers["www-authenticate"].to_str().unwrap()), (401, "Bearer"));
    assert_eq!(nobody.headers["x-should-retry"], "false");
}
