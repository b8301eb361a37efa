use std::sync::Arc;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::event_writer::EventWriter;
use super::items::ConversationBuilder;
use super::output::{OutputItem, ResponsesRenderOptions, ResponsesThoughts, visible_items};
use super::parse::{self, ResponsesRequest};
use super::tool_set::{ToolCallForm, ToolIdentity, flat_name};
use super::{request_id_of, response_id};
use crate::chat::{
    ChoiceEvent, ContentPart, Message, Role, SignedThought, SigningDomain, ThoughtSigner, ToolCallDelta,
};
use crate::http::budget::EffortTable;
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::signed;
use crate::units::{Count, RequestId, Tokens};

fn read(more: &Value) -> Result<ResponsesRequest, ApiError> {
    let mut body = json!({ "model": "m", "input": "hi" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    parse::read(body.to_string().as_bytes(), &HeaderMap::new(), &EffortTable::new())
}

fn asked(more: &Value) -> ResponsesRequest {
    read(more).unwrap_or_else(|problem| panic!("{}", problem.message()))
}

fn check_refused(more: &Value, says: &str) {
    let problem = read(more).map(|_| ()).expect_err(says);
    assert!(problem.message().starts_with(says), "{}", problem.message());
}

fn conversation(items: &Value) -> Result<Vec<Message>, ApiError> {
    let mut conversation = ConversationBuilder::new(Some("Be brief."));
    for (at, item) in items.as_array().unwrap().iter().enumerate() {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    conversation.into_messages()
}

fn part() -> SignedThought {
    let maker = ThoughtSigner { model: "sonnet".into(), domain: SigningDomain(7) };
    SignedThought { signer: maker, block: r#"{"type":"thinking", "signature":"E=="}"#.into() }
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
    let choice = asked.choice.take().unwrap().resolve(&mut asked.tool_set);
    let choice = choice.unwrap_or_else(|problem| panic!("{}", problem.message()));
    let request = &asked.request;
    assert_eq!((request.budget.total, request.budget.tool_calls_max), (Some(Tokens(100)), Some(Count(2))));
    let tools = asked.tool_set.clone().tools().unwrap_or_else(|problem| panic!("{}", problem.message()));
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!((names, choice), (vec!["f", "p"], json!("required")));
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
    assert_eq!(asked.echo["user"], Value::Null);
}

#[test]
fn what_is_wrong_is_named() {
    check_refused(&json!({ "model": "" }), "model is missing");
    check_refused(&json!({ "input": null }), "input is missing; it must be a string or a list");
    check_refused(&json!({ "input": 7 }), "input must be a string or a list");
    check_refused(&json!({ "max_output_tokens": 0 }), "max_output_tokens must be at least 1");
    check_refused(
        &json!({ "tools": [{ "type": "file_search" }] }),
        "tools[0].type must be function, custom, namespace or tool_search",
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
    check_refused(&json!({ "include": ["message.output_text.logprobs"] }), "include[0] must be one of");
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
        "input[0].content[0].type must be",
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

fn call(index: u32, name: Option<&str>, arguments: &str) -> ChoiceEvent {
    let name = name.map(str::to_owned);
    ChoiceEvent::ToolCall(ToolCallDelta { index, id: name.clone(), name, arguments: arguments.to_owned() })
}

fn teller(thoughts: ResponsesThoughts) -> EventWriter {
    let kind = |form, space: Option<&str>, name: &str| ToolIdentity {
        form,
        namespace: space.map(str::to_owned),
        name: name.to_owned(),
    };
    let kinds = [
        ("patch".to_owned(), kind(ToolCallForm::Custom, None, "patch")),
        ("crm__find".to_owned(), kind(ToolCallForm::Function, Some("crm"), "find")),
        ("tool_search".to_owned(), kind(ToolCallForm::Search, None, "tool_search")),
    ];
    let look = ResponsesRenderOptions { thoughts, tools: Arc::new(kinds.into()) };
    EventWriter::new("req_0192f0c1a2b34c5d8e6f708192a3b4c5".parse().unwrap(), look)
}

fn told(thoughts: ResponsesThoughts, said: Vec<ChoiceEvent>, status: &str) -> (Vec<Value>, Vec<OutputItem>) {
    let mut teller = teller(thoughts);
    let mut text: String = said.into_iter().map(|event| teller.write(event)).collect();
    text += &teller.end(status);
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    (data.map(|data| serde_json::from_str(data).unwrap()).collect(), teller.items().to_vec())
}

/// `0+message` adds item 0, `0-` is its end, everything between is what was added to it.
fn check(thoughts: ResponsesThoughts, said: Vec<ChoiceEvent>, expected: &str) {
    let (events, items) = told(thoughts, said, "completed");
    let mut done = Vec::new();
    let short = |(number, event): (usize, &Value)| {
        assert_eq!(event["sequence_number"], number);
        let at = &event["output_index"];
        let kind = event["type"].as_str().unwrap();
        match kind.strip_prefix("response.").unwrap() {
            "output_item.added" => Some(format!("{at}+{}", event["item"]["type"].as_str().unwrap())),
            "output_item.done" => {
                done.push(event["item"].clone());
                Some(format!("{at}-"))
            }
            delta if delta.ends_with(".delta") => Some(event["delta"].as_str().unwrap().to_owned()),
            _ => None,
        }
    };
    let seen: Vec<String> = events.iter().enumerate().filter_map(short).collect();
    assert_eq!(seen.join(" "), expected);
    assert_eq!(done, visible_items(&items), "what is told last is what there is");
}

#[test]
fn items_open_and_close_one_after_another_and_hidden_ones_are_not_told() {
    let said = || {
        vec![
            ChoiceEvent::Thought("a".into()),
            ChoiceEvent::Thought("b".into()),
            ChoiceEvent::Answer("c".into()),
        ]
    };
    check(ResponsesThoughts::Content, said(), "0+reasoning a b 0- 1+message c 1-");
    check(ResponsesThoughts::Summary, said(), "0+reasoning a b 0- 1+message c 1-");
    check(ResponsesThoughts::Hidden, said(), "0+message c 0-");
    let (_, items) = told(ResponsesThoughts::Hidden, said(), "completed");
    assert_eq!(items[0].value["content"][0]["text"], "ab", "it is remembered all the same");
    assert_eq!(items[1].value["id"], "msg_0192f0c1a2b34c5d8e6f708192a3b4c5_1");
}

#[test]
fn a_signature_closes_its_thought_and_a_hidden_thought_is_an_item_of_its_own() {
    let signed = || ChoiceEvent::Signed(part());
    let said = vec![ChoiceEvent::Thought("a".into()), signed(), signed(), ChoiceEvent::Answer("c".into())];
    check(ResponsesThoughts::Content, said.clone(), "0+reasoning a 0- 1+reasoning 1- 2+message c 2-");
    let (_, items) = told(ResponsesThoughts::Content, said, "completed");
    for (item, thoughts) in items.iter().zip([json!([{ "type": "reasoning_text", "text": "a" }]), json!([])])
    {
        assert_eq!(item.value["content"], thoughts);
        assert_eq!(item.value["encrypted_content"], signed::seal(&part()));
    }
}

#[test]
fn calls_that_overlap_are_told_one_after_another_and_plain_text_is_unwrapped() {
    let said = vec![
        call(0, Some("f"), "{"),
        call(1, Some("patch"), r#"{"input":"a"#),
        call(0, None, "}"),
        call(1, None, r#"b"}"#),
        call(2, Some("h"), "{}"),
    ];
    check(
        ResponsesThoughts::Content,
        said,
        "0+function_call { } 0- 1+custom_tool_call ab 1- 2+function_call {} 2-",
    );
}

#[test]
fn calls_are_told_as_those_of_the_tools_that_were_meant() {
    let said = vec![
        call(0, Some("crm__find"), r#"{"q":1}"#),
        call(1, Some("tool_search"), r#"{"query":"#),
        call(1, None, r#""mail"}"#),
        call(2, Some("nobodys"), "{}"),
    ];
    check(
        ResponsesThoughts::Content,
        said.clone(),
        r#"0+function_call {"q":1} 0- 1+tool_search_call 1- 2+function_call {} 2-"#,
    );
    let (_, items) = told(ResponsesThoughts::Content, said, "completed");
    let id = |kind: &str, at: u32| format!("{kind}_0192f0c1a2b34c5d8e6f708192a3b4c5_{at}");
    let expected = json!([
        { "type": "function_call", "id": id("fc", 0), "status": "completed", "call_id": "crm__find",
          "namespace": "crm", "name": "find", "arguments": "{\"q\":1}" },
        { "type": "tool_search_call", "id": id("tsc", 1), "status": "completed", "call_id": "tool_search",
          "execution": "client", "arguments": { "query": "mail" } },
        { "type": "function_call", "id": id("fc", 2), "status": "completed", "call_id": "nobodys",
          "name": "nobodys", "arguments": "{}" },
    ]);
    assert_eq!(json!(visible_items(&items)), expected);
    // What was told comes back as what the model said.
    let outputs = ["crm__find", "nobodys"]
        .map(|id| json!({ "type": "function_call_output", "call_id": id, "output": "x" }));
    let found = json!({ "type": "tool_search_output", "call_id": "tool_search", "execution": "client", "tools": [
        { "type": "namespace", "name": "mcp__mail__", "description": "", "tools": [
            { "type": "function", "name": "send", "defer_loading": true, "parameters": { "type": "object" } }] }] });
    let items: Vec<Value> = visible_items(&items).into_iter().chain(outputs).chain([found]).collect();
    let messages = conversation(&items.into()).unwrap();
    let calls: Vec<_> =
        messages[1].tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect();
    let said = [("crm__find", r#"{"q":1}"#), ("tool_search", r#"{"query":"mail"}"#), ("nobodys", "{}")];
    assert_eq!(calls, said);
    assert_eq!(messages[3].plain_text(), r#"{"tools":["mcp__mail__send"]}"#);
}

#[test]
fn tools_are_known_to_models_by_one_name_each() {
    for (space, name, known) in [
        (None, "f", "f"),
        (Some("functions"), "exec", "exec"),
        (Some("crm"), "find", "crm__find"),
        (Some("mcp__mail__"), "send", "mcp__mail__send"),
    ] {
        assert_eq!(flat_name(space, name), known);
    }
    let (one, other) = (flat_name(Some(&"s".repeat(60)), "aaaa"), flat_name(Some(&"s".repeat(60)), "bbbb"));
    assert!(one.len() == 64 && other.len() == 64 && one != other, "{one} {other}");
    let limited = format!("{}__aaaa", "s".repeat(60));
    let said = asked(&json!({ "budget": { "tool_calls": { limited: 3, "f": 2 } } }))
        .request
        .budget
        .episode_limits
        .tools;
    assert_eq!((said.each[&*one], said.each["f"], said.each.len()), (Count(3), Count(2), 2));
    let offered = |list: Value| {
        super::tools::read(&mut Fields::from_value("", json!({ "tools": list })).unwrap())?.tools()
    };
    let f = |name: &str, says: &str| json!({ "type": "function", "name": name, "description": says });
    let space = |tools: Value| json!({ "type": "namespace", "name": "crm", "description": "All of it.", "tools": tools });
    let tools =
        offered(json!([space(json!([f("a", "One."), f("b", "")])), f("c", ""), f("c", "Again.")])).unwrap();
    let says = |at: usize| tools[at].declaration["function"]["description"].clone();
    assert_eq!((tools.len(), says(0), says(2)), (3, json!("All of it.\n\nOne."), json!("Again.")));
    let refused = |list: Value| offered(list).expect_err("is refused").message().to_owned();
    let clash = refused(json!([space(json!([f("a", "")])), f("crm__a", "")]));
    assert!(clash.contains("is known to models as crm__a, and so is another tool"), "{clash}");
    let nested = refused(json!([space(json!([space(json!([]))]))]));
    assert!(nested.contains("tools[0].type must be function"), "{nested}");
    let web = || json!({ "type": "web_search", "external_web_access": true });
    assert_eq!(offered(json!([web(), f("c", "")])).unwrap().len(), 1);
    let alone = refused(json!([web()]));
    assert!(alone.contains("tools[0].type runs at a provider"), "{alone}");
    let hosted = offered(json!([{ "type": "tool_search" }, f("c", "")])).unwrap();
    assert_eq!(hosted.len(), 1, "all tools are told, so there is nothing to search for");
    let hosted = |member: &str, value: Value| {
        refused(json!([{ "type": "tool_search", "description": "Finds.", member: value }, f("c", "")]))
    };
    assert_eq!(hosted("execution", json!("clinet")), "tools[0].execution must be client or server");
    assert_eq!(hosted("limit", json!(3)), "tools[0].limit is not known here; leave it out");
    let alone = refused(json!([{ "type": "tool_search", "execution": "server" }]));
    assert!(alone.contains("tools[0].type runs at a provider"), "{alone}");
    let plain = json!({ "type": "namespace", "name": "functions", "tools": [f("c", "In none.")] });
    let tools = offered(json!([f("c", ""), plain])).unwrap();
    assert_eq!((tools.len(), &tools[0].declaration["function"]["description"]), (1, &json!("In none.")));
    let forms = refused(json!([f("c", ""), { "type": "custom", "name": "c" }]));
    assert!(forms.contains("tools[1].name is known to models as c"), "{forms}");
}

/// A request whose items are read, its offer with them; and what the model is told of the choice.
fn chosen(more: &Value) -> Result<(ResponsesRequest, Option<Value>), ApiError> {
    let mut asked = read(more)?;
    let mut conversation = ConversationBuilder::new(None);
    for (at, item) in asked.input.iter().enumerate() {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    asked.tool_set.merge_earlier(conversation.take_tool_set());
    let choice = asked.choice.take().map(|choice| choice.resolve(&mut asked.tool_set)).transpose()?;
    Ok((asked, choice))
}

#[test]
fn of_what_models_know_by_one_name_the_requests_own_wins_and_then_the_later() {
    let brought = |tools: Value| json!({ "type": "additional_tools", "role": "developer", "tools": tools });
    let f = |name: &str, says: &str| json!({ "type": "function", "name": name, "description": says });
    let space =
        json!({ "type": "namespace", "name": "functions", "tools": [f("exec", "v1"), f("look", "v1")] });
    let check = |tools: Value, expected: &[(&str, &str, ToolCallForm)]| {
        let items = json!([
            brought(json!([space])),
            brought(json!([f("find", "v1"), { "type": "custom", "name": "exec", "description": "v2" }])),
            brought(json!([f("find", "v2")])),
        ]);
        let (mut asked, _) = chosen(&json!({ "input": items, "tools": tools })).unwrap();
        let kinds = asked.tool_set.identities.clone();
        let tools = asked.tool_set.tools().unwrap();
        let seen = tools.iter().map(|tool| {
            let says = tool.declaration["function"]["description"].as_str().unwrap();
            (tool.name.as_str(), says, kinds[&tool.name].form)
        });
        assert_eq!(seen.collect::<Vec<_>>(), expected);
    };
    let (function, custom) = (ToolCallForm::Function, ToolCallForm::Custom);
    let brought = [("exec", "v2", custom), ("look", "v1", function), ("find", "v2", function)];
    check(json!([]), &brought);
    let own = [("look", "v3", function), ("exec", "v3", function), ("find", "v2", function)];
    check(json!([f("look", "v3"), f("exec", "v3")]), &own);
}

#[test]
fn a_choice_names_tools_by_their_own_names_where_those_are_enough() {
    let f = |name: &str| json!({ "type": "function", "name": name });
    let space = |name: &str, tools: Value| json!({ "type": "namespace", "name": name, "tools": tools });
    let search = json!({ "type": "tool_search", "execution": "client" });
    let brought = json!({ "type": "additional_tools", "role": "developer", "tools": [f("look")] });
    let choose = |choice: Value| {
        let tools =
            json!([space("crm", json!([f("find"), f("send")])), space("mail", json!([f("send")])), search]);
        chosen(&json!({ "input": [brought], "tools": tools, "tool_choice": choice }))
    };
    let forced = |choice: Value, name: &str| {
        let (_, told) = choose(choice).unwrap();
        assert_eq!(told, Some(json!({ "type": "function", "function": { "name": name } })));
    };
    forced(f("find"), "crm__find");
    forced(json!({ "type": "custom", "name": "send", "namespace": "mail" }), "mail__send");
    forced(json!({ "type": "function", "name": "look", "namespace": "functions" }), "look");
    forced(json!({ "type": "tool_search" }), "tool_search");
    let allow = |tools: Value| json!({ "type": "allowed_tools", "mode": "required", "tools": tools });
    let (mut asked, told) =
        choose(allow(json!([f("find"), f("look"), { "type": "tool_search" }, { "type": "web_search" }])))
            .unwrap();
    let names: Vec<_> = asked.tool_set.tools().unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(
        (names, told),
        (vec!["crm__find".into(), "tool_search".into(), "look".to_owned()], Some(json!("required")))
    );
    let refused = |choice: Value, says: &str| {
        let problem = choose(choice).map(|_| ()).expect_err(says);
        assert!(problem.message().starts_with(says), "{}", problem.message());
    };
    refused(f("send"), "tool_choice.name is the name of tools in several namespaces");
    refused(f("fnid"), "tool_choice.name names no tool that is offered");
    refused(
        json!({ "type": "function", "name": "find", "namespace": "functions" }),
        "tool_choice.name names no tool that is offered",
    );
    refused(allow(json!([f("find"), f("fnid")])), "tool_choice.tools[1].name names no tool");
    refused(allow(json!([{ "type": "function" }])), "tool_choice.tools[0].name is missing");
    refused(allow(json!([{ "type": "mcp" }])), "tool_choice.tools[0].type must be function, custom or");
    refused(allow(json!([])), "tool_choice.tools must name at least one");
    refused(allow(json!([{ "type": "web_search" }])), "tool_choice.tools must name at least one");
}

/// The whole of it, as it goes over the wire.
#[test]
fn events_are_those_of_the_api() {
    let (events, _) = told(ResponsesThoughts::Content, vec![ChoiceEvent::Answer("c".into())], "incomplete");
    let id = "msg_0192f0c1a2b34c5d8e6f708192a3b4c5_0";
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] });
    let item = |status: &str, content: Value| json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": content });
    let of_part = |kind: &str, number: u64, mut more: Value| {
        let all = json!({
            "type": kind, "sequence_number": number, "content_index": 0, "item_id": id, "output_index": 0,
        });
        more.as_object_mut().unwrap().extend(all.as_object().unwrap().clone());
        more
    };
    let expected = json!([
        { "type": "response.output_item.added", "sequence_number": 0, "output_index": 0,
          "item": item("in_progress", json!([])) },
        of_part("response.content_part.added", 1, json!({ "part": part("") })),
        of_part("response.output_text.delta", 2, json!({ "delta": "c", "logprobs": [] })),
        of_part("response.output_text.done", 3, json!({ "text": "c", "logprobs": [] })),
        of_part("response.content_part.done", 4, json!({ "part": part("c") })),
        { "type": "response.output_item.done", "sequence_number": 5, "output_index": 0,
          "item": item("incomplete", json!([part("c")])) },
    ]);
    assert_eq!(json!(events), expected);
}
