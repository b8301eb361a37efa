use serde_json::{Value, json};

use crate::http::responses::id::{request_id_of, response_id};
use crate::http::responses::output::ResponsesThoughts;
use crate::http::responses::tool_set::ToolCallForm;
use crate::http::signed;
use stint_types::chat::{ContentPart, Role};
use stint_types::units::{Count, RequestId, Tokens};

use super::{asked, conversation, part, read};

fn check_refused(more: &Value, says: &str) {
    let problem = read(more).map(|_| ()).expect_err(says);
    assert!(problem.message().starts_with(says), "{}", problem.message());
}

#[test]
fn items_of_one_turn_become_one_message_and_signed_thoughts_come_back_byte_for_byte() {
    let messages = conversation(&json!([
        { "role": "developer", "content": "Mind the cat." },
        { "type": "message", "role": "user", "content": [
            { "type": "input_text", "text": "look" },
            { "type": "input_image", "image_url": "data:,x", "detail": "low" },
        ]},
        { "type": "reasoning", "id": "rs_1", "summary": [], "content": [{ "type": "reasoning_text", "text": "hm" }],
          "encrypted_content": signed::seal(&part()), "status": "completed" },
        { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
          "content": [{ "type": "output_text", "text": "looking", "annotations": [], "logprobs": [] }] },
        { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}" },
        { "type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "a\nb" },
        { "type": "function_call_output", "call_id": "c1", "output": "cat" },
        { "type": "custom_tool_call_output", "call_id": "c2", "output": [{ "type": "input_text", "text": "done" }] },
        { "type": "reasoning", "summary": [{ "type": "summary_text", "text": "so" }], "encrypted_content": "of others" },
    ]))
    .unwrap();
    let roles: Vec<Role> = messages.iter().map(|message| message.role).collect();
    let expected =
        [Role::System, Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant];
    assert_eq!(roles, expected);
    let image = json!({ "type": "image_url", "image_url": { "detail": "low", "url": "data:,x" } });
    assert_eq!(messages[2].content, [ContentPart::Text("look".into()), ContentPart::Other(image)]);
    let turn = &messages[3];
    assert_eq!((turn.thought.as_deref(), turn.plain_text().as_str()), (Some("hm"), "looking"));
    assert_eq!(turn.signed, [part()]);
    let calls: Vec<_> =
        turn.tool_calls.iter().map(|call| (call.id.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [("c1", "{}"), ("c2", r#"{"input":"a\nb"}"#)]);
    assert_eq!(
        (messages[5].tool_call_id.as_deref(), messages[5].plain_text().as_str()),
        (Some("c2"), "done")
    );
    assert_eq!((messages[6].thought.as_deref(), messages[6].signed.len()), (Some("so"), 0));
}

#[test]
fn settings_become_those_of_the_canonical_request() {
    let mut asked = asked(&json!({
        "instructions": "Be brief.", "max_output_tokens": 100, "max_tool_calls": 2, "temperature": 0.5,
        "reasoning": { "summary": "auto", "context": "auto" }, "store": false, "stream": true,
        "text": { "verbosity": "low", "format": {
            "type": "json_schema", "name": "n", "strict": true, "schema": { "type": "object" } } },
        "tools": [
            { "type": "function", "name": "f", "description": "d", "parameters": null, "strict": null },
            { "type": "custom", "name": "p", "description": "Patches.",
              "format": { "type": "grammar", "syntax": "lark", "definition": "start: X" } },
            { "type": "function", "name": "g", "parameters": { "type": "object" }, "strict": false },
        ],
        "tool_choice": { "type": "allowed_tools", "mode": "required", "tools": [
            { "type": "function", "name": "f" }, { "type": "custom", "name": "p" }] },
        "parallel_tool_calls": false, "prompt_cache_key": "k", "client_metadata": { "x": "y" },
        "include": ["reasoning.encrypted_content"], "truncation": "disabled", "metadata": { "a": "b" },
    }));
    let choice = asked.choice.take().unwrap().resolve(&asked.tool_set);
    let choice = choice.unwrap_or_else(|problem| panic!("{}", problem.message()));
    let request = &asked.request;
    assert_eq!((request.budget.total, request.budget.tool_calls_max), (Some(Tokens(100)), Some(Count(2))));
    let tools = asked.tool_set.clone().tools().unwrap_or_else(|problem| panic!("{}", problem.message()));
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["f", "p", "g"], "the list stays as it is");
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let allowed = ["f", "p"].map(named);
    let list = json!({ "mode": "required", "tools": allowed });
    assert_eq!(choice, json!({ "type": "allowed_tools", "allowed_tools": list }));
    let function = &tools[1].declaration["function"];
    assert_eq!(function["parameters"]["required"], json!(["input"]));
    assert!(function["description"].as_str().unwrap().ends_with("(lark):\nstart: X"));
    let forms = ["f", "p"].map(|name| asked.tool_set.identities[name].form);
    assert_eq!(forms, [ToolCallForm::Function, ToolCallForm::Custom]);
    let schema = json!({ "name": "n", "schema": { "type": "object" }, "strict": true });
    assert_eq!(request.response_format, Some(json!({ "type": "json_schema", "json_schema": schema })));
    let extra = json!({ "metadata": { "a": "b" }, "parallel_tool_calls": false, "prompt_cache_key": "k", "verbosity": "low" });
    assert_eq!(Value::Object(request.extra.clone()), extra);
    assert_eq!(
        (asked.options.thoughts, asked.store, asked.stream),
        (ResponsesThoughts::Summary, false, true)
    );
    assert_eq!(asked.echo["max_tool_calls"], 2);
    assert_eq!(asked.echo["reasoning"], json!({ "effort": null, "summary": "auto" }));
    assert_eq!(asked.echo.get("user"), None, "it is a string, or it is not there");
    let numbers =
        ["temperature", "top_p", "presence_penalty", "frequency_penalty"].map(|name| &asked.echo[name]);
    assert_eq!(numbers, [&json!(0.5), &json!(1.0), &json!(0.0), &json!(0.0)]);
    assert_eq!(asked.echo["tools"][0]["strict"], Value::Null);
}

#[test]
fn a_word_for_no_summary_asks_for_none() {
    for (word, thoughts) in [
        ("detailed", ResponsesThoughts::Summary),
        ("none", ResponsesThoughts::Content),
        ("off", ResponsesThoughts::Content),
    ] {
        let asked = asked(&json!({ "reasoning": { "summary": word } }));
        assert_eq!(asked.options.thoughts, thoughts, "{word}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    check_refused(&json!({ "model": "" }), "model is missing");
    check_refused(&json!({ "input": null }), "input is missing; it must be a string or a list");
    check_refused(&json!({ "input": 7 }), "input must be a string or a list");
    check_refused(&json!({ "max_output_tokens": 0 }), "max_output_tokens must be at least 1");
    check_refused(
        &json!({ "tools": [{ "type": "file_search" }] }),
        "tools[0].type must be function, custom, namespace or tool_search: \"file_search\" is not offered",
    );
    check_refused(
        &json!({ "tools": [{ "type": "function" }] }),
        "tools[0].name is missing; it must be a string",
    );
    check_refused(&json!({ "tool_choice": { "type": "file_search" } }), "tool_choice must be auto, none");
    check_refused(&json!({ "background": true }), "background may only be false");
    check_refused(&json!({ "conversation": "conv_1" }), "this key has no conversation of that id");
    check_refused(&json!({ "conversation": 7 }), "conversation must be an id, or an object with it");
    check_refused(&json!({ "conversation": { "id": "conv_1", "x": 1 } }), "conversation.x is not known");
    check_refused(&json!({ "conversation": {} }), "conversation.id is missing");
    check_refused(
        &json!({ "conversation": "conv_1", "previous_response_id": "resp_1" }),
        "a conversation has all that was said in it",
    );
    check_refused(&json!({ "prompt": { "id": "p" } }), "prompt is not offered");
    check_refused(&json!({ "truncation": "auto" }), "truncation may only be disabled");
    check_refused(&json!({ "service_tier": "priority" }), "service_tier may only be");
    check_refused(&json!({ "reasoning": { "mode": "pro" } }), "reasoning.mode may only be");
    check_refused(&json!({ "reasoning": { "summary": "long" } }), "reasoning.summary must be");
    check_refused(&json!({ "reasoning": { "deep": 1 } }), "reasoning.deep is not known");
    check_refused(&json!({ "include": ["message.thoughts"] }), "include[0] must be one of");
    check_refused(&json!({ "top_logprobs": 21 }), "top_logprobs must be at most 20");
    check_refused(&json!({ "text": { "format": { "type": "xml" } } }), "text.format.type must be");
    check_refused(&json!({ "previous_response_id": "chatcmpl-1" }), "previous_response_id names no response");
    check_refused(&json!({ "messages": [] }), "messages is not known");
    let item = |item: Value, says: &str| {
        let problem = conversation(&json!([item])).expect_err(says);
        assert!(problem.message().starts_with(says), "{}", problem.message());
    };
    item(json!({ "type": "web_search_call" }), "input[0].type must be message, reasoning");
    item(json!({ "role": "robot", "content": "x" }), "input[0].role must be");
    item(json!({ "role": "user" }), "input[0].content must be");
    item(
        json!({ "role": "user", "content": [{ "type": "input_file" }] }),
        "input[0].content[0].file_data is missing",
    );
    item(
        json!({ "type": "function_call", "call_id": "c", "name": "f" }),
        "input[0].arguments is missing; it must be a string",
    );
    item(
        json!({ "type": "function_call_output", "output": "x" }),
        "input[0].call_id is missing; it must be a string",
    );
}

#[test]
fn an_id_is_that_of_its_request() {
    let id = RequestId::new();
    assert_eq!(request_id_of(&response_id(id)), Some(id));
    assert_eq!(request_id_of(&id.to_string()), None);
    assert_eq!(request_id_of("resp_1"), None);
}
