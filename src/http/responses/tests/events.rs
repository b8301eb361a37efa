use std::sync::Arc;

use serde_json::{Value, json};

use crate::http::responses::event_writer::EventWriter;
use crate::http::responses::output::{OutputItem, ResponsesRenderOptions, ResponsesThoughts, visible_items};
use crate::http::responses::tool_set::{ToolCallForm, ToolIdentity};
use crate::http::signed;
use stint_types::chat::{ChoiceEvent, ToolCallDelta};

use super::{conversation, part};

fn call(index: u32, name: Option<&str>, arguments: &str) -> ChoiceEvent {
    let name = name.map(str::to_owned);
    ChoiceEvent::ToolCall(ToolCallDelta { index, id: name.clone(), name, arguments: arguments.to_owned() })
}

fn writer(thoughts: ResponsesThoughts) -> EventWriter {
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
    let tools = Arc::new(kinds.into());
    let look = ResponsesRenderOptions { thoughts, tools, ..ResponsesRenderOptions::default() };
    EventWriter::new("req_0192f0c1a2b34c5d8e6f708192a3b4c5".parse().unwrap(), look)
}

fn told(thoughts: ResponsesThoughts, said: Vec<ChoiceEvent>, status: &str) -> (Vec<Value>, Vec<OutputItem>) {
    let mut writer = writer(thoughts);
    let mut text: String = said.into_iter().map(|event| writer.write(event)).collect();
    text += &writer.end(status);
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    (data.map(|data| serde_json::from_str(data).unwrap()).collect(), writer.items().to_vec())
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
fn what_comes_between_the_pieces_of_a_call_stands_behind_it() {
    let said = |between: ChoiceEvent| {
        vec![
            call(0, Some("f"), "{\"a\":"),
            between.clone(),
            between,
            call(0, None, "1}"),
            call(1, Some("g"), "{}"),
        ]
    };
    let text = || ChoiceEvent::Answer("so ".into());
    let expected = "0+function_call {\"a\": 1} 0- 1+message so  so  1- 2+function_call {} 2-";
    check(ResponsesThoughts::Content, said(text()), expected);
    let thought = || ChoiceEvent::Thought("hm".into());
    let expected = "0+function_call {\"a\": 1} 0- 1+reasoning hm hm 1- 2+function_call {} 2-";
    check(ResponsesThoughts::Content, said(thought()), expected);
    let expected = "0+function_call {\"a\": 1} 0- 1+function_call {} 1-";
    check(ResponsesThoughts::Hidden, said(thought()), expected);
    // One that is never whole.
    let cut = vec![call(0, Some("f"), "{"), text(), text()];
    check(ResponsesThoughts::Content, cut, "0+function_call { 0- 1+message so  so  1-");
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
