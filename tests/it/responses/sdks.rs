//! OpenAI's own SDKs and its Agents SDK.

use serde_json::{Value, json};

use crate::harness::tools::{printed, tool};
use stint_types::chat::Role;

use super::world;

fn facts(runtime: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(tool(runtime).args(arguments), "")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_python_sdk_works_unchanged_with_all_that_is_kept() {
    let (world, script) = world().await;
    let facts = facts("python", &["tests/python/responses_sdk.py", &world.base, "sk-acme", "sk-other", "m"]);
    let whole = &facts["whole"];
    assert_eq!(whole, &facts["streamed"]);
    assert_eq!((&whole["kinds"], &whole["text"]), (&json!(["reasoning", "message"]), &json!("3 after 1")));
    assert_eq!((&whole["status"], &whole["store"]), (&json!("completed"), &json!(true)));
    assert_eq!(whole["usage"]["output_tokens_details"]["reasoning_tokens"], 3, "{whole}");
    let told =
        |content: Value, summary: Value| json!({ "content": content, "summary": summary, "encrypted": null });
    assert_eq!(facts["thought"], told(json!(["1 2 3 "]), json!([])));
    assert_eq!(facts["summary"], told(json!([]), json!(["1 2 3 "])));
    in_order(&facts);
    assert_eq!((&facts["again"], &facts["again_streamed"]), (&json!(true), &json!(true)), "{facts}");
    assert_eq!(facts["echo"], json!([{ "run": "7" }, 0.0, "auto", true, "text"]));
    assert_eq!(facts["items"], json!([["message", "user", "What is 1+2?"]]));
    assert_eq!(facts["referred"], "3 after 2", "its own answer, and the question");
    assert_eq!(facts["parsed"], 3);
    assert_eq!(
        (&facts["short"]["status"], &facts["short"]["incomplete"]),
        (&json!("incomplete"), &json!("max_output_tokens"))
    );
    let run = json!({ "call": ["function_call", "search", { "q": "a pet" }], "last": "it is a cat" });
    assert_eq!((&facts["loop"], &facts["loop_streamed"]), (&run, &run));
    let stateless = &facts["stateless"];
    assert_eq!(stateless["call"], json!(["custom_tool_call", "apply_patch", "*** \"Begin\"\n"]));
    assert_eq!((&stateless["last"], &stateless["store"]), (&json!("it is a cat"), &json!(false)));
    assert_eq!(
        (&facts["gone"], &facts["strange"]),
        (&json!("response_not_found"), &json!("response_not_found"))
    );
    refusals(&facts["errors"]);
    // What a step of the run was given: the chain before it, and not the instructions of the first.
    let records = script.records();
    let step = records
        .iter()
        .find(|record| record.call.request.messages.last().unwrap().role == Role::Tool)
        .unwrap();
    let messages = &step.call.request.messages;
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(messages[1].thought.as_deref(), Some("1 2 3 "));
    assert_eq!(messages[1].tool_calls[0].arguments, r#"{"q":"a pet"}"#);
}

/// Every event of an answer after a thought, told as text and as a summary.
fn in_order(facts: &Value) {
    let events = |thought: &[&str]| {
        let around = |name: &str| format!("response.{name}");
        let begun = ["created", "in_progress", "output_item.added"];
        let said = ["content_part.added", "output_text.delta", "output_text.done", "content_part.done"];
        let all = begun.iter().chain(thought).chain(&["output_item.done", "output_item.added"]);
        all.chain(&said)
            .chain(&["output_item.done", "completed"])
            .map(|name| around(name))
            .collect::<Vec<_>>()
    };
    let text = ["content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done"];
    assert_eq!(facts["seen"], json!(events(&text)));
    let summary = ["part.added", "text.delta", "text.done", "part.done"]
        .map(|name| format!("reasoning_summary_{name}"));
    assert_eq!(facts["summary_seen"], json!(events(&summary.each_ref().map(String::as_str))));
}

/// Each is the SDK's own class for it, and says what is wrong.
fn refusals(errors: &Value) {
    let error = |name: &str| errors[name].clone();
    let previous = json!({ "class": "BadRequestError", "code": "previous_response_not_found", "param": "previous_response_id" });
    assert_eq!((error("previous"), error("stranger")), (previous.clone(), previous));
    for (name, param) in
        [("built_in", "tools[0].type"), ("background", "background"), ("budget", "budget.thinking_tokens")]
    {
        assert_eq!(
            (&error(name)["class"], &error(name)["param"]),
            (&json!("BadRequestError"), &json!(param))
        );
    }
    assert_eq!(error("key")["class"], "AuthenticationError");
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_node_sdk_works_unchanged() {
    let (world, _) = world().await;
    let facts = facts("node", &["tests/node/responses_sdk.mjs", &world.base, "sk-acme", "m"]);
    assert_eq!(facts["streamed"], json!([facts["kinds"], facts["text"], "completed"]));
    assert_eq!((&facts["text"], &facts["again"]), (&json!("3 after 1"), &json!("3 after 1")));
    let run = json!({ "call": ["function_call", "search", { "q": "a pet" }], "last": "it is a cat" });
    assert_eq!((&facts["loop"], &facts["loop_streamed"]), (&run, &run));
    assert_eq!(facts["gone"], "response_not_found");
    assert_eq!(facts["broken"], json!(["APIError", "upstream_failed"]));
    assert_eq!(facts["seen"][0], "response.created");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_sdk_runs_an_agent_with_a_tool() {
    let (world, _) = world().await;
    let facts = facts("python", &["tests/python/agents_run.py", &world.base, "sk-acme", "m"]);
    let kinds = json!([
        "reasoning_item",
        "tool_call_item",
        "tool_call_output_item",
        "reasoning_item",
        "message_output_item"
    ]);
    for name in ["whole", "chained", "streamed"] {
        assert_eq!(
            (&facts[name]["final"], &facts[name]["kinds"]),
            (&json!("it is a cat"), &kinds),
            "{name}: {facts}"
        );
    }
    assert_eq!(facts["usage"], json!([2, true, 6]));
    // The instructions, the question, the call, its result, the answer and the next question.
    assert_eq!((&facts["more"], &facts["followed"]), (&json!("3 after 6"), &json!("3 after 6")));
    assert_eq!(facts["called"], json!(["a pet", "a pet", "a pet"]));
    for event in
        ["response.reasoning_text.delta", "response.function_call_arguments.done", "response.completed"]
    {
        assert!(facts["streamed"]["seen"].as_array().unwrap().contains(&json!(event)), "no {event}: {facts}");
    }
}
