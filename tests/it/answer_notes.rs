//! What an upstream says of an answer besides its text, as callers of each API are told it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::faultup::Faultup;
use crate::harness::faultup::rig::Rig;
use crate::harness::faultup::script::{DONE, Script, Step, ends, event, says, stream, used, whole};
use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, World, model, tenant};
use stint_backend::remote::anthropic::{self, AnthropicBackend};
use stint_backend::remote::responses::{OpenAiResponsesBackend, Settings};
use stint_backend::remote::{self, Connections};
use stint_types::catalog::{EnforcementClass, Model};
use stint_types::units::Tokens;

/// Each API's path, and the member that has its question.
const APIS: [(&str, &str); 3] =
    [("/v1/chat/completions", "messages"), ("/v1/responses", "input"), ("/v1/messages", "messages")];

/// A question to the model `m` in an API's form.
fn question(member: &str, stream: bool) -> Value {
    json!({
        "model": "m", "stream": stream, "max_tokens": 20,
        member: [{ "role": "user", "content": "What is 1+2?" }],
    })
}

async fn ask(world: &World, (path, member): (&str, &str), stream: bool) -> Answer {
    let mut asked = question(member, stream);
    if path.ends_with("responses") {
        let limit = asked.as_object_mut().unwrap().shift_remove("max_tokens");
        asked["max_output_tokens"] = limit.into();
    }
    world.post(path, "sk-key", &asked).await
}

/// What an upstream of chat completions sends: these deltas, and a good end.
fn deltas(deltas: &[Value]) -> Script {
    let chunk =
        |delta: &Value| event(&json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] }));
    let said: String = deltas.iter().map(chunk).collect();
    stream().send(said + &event(&ends("stop")) + &event(&used(9, 5)) + DONE).then(Step::Close)
}

fn events<'a>(answer: &'a [Value], kind: &str) -> Vec<&'a Value> {
    answer.iter().filter(|event| event["type"] == kind).collect()
}

/// A gateway whose model `m` is behind an upstream of Responses that sends these events.
async fn behind_responses(said: &[Value]) -> (World, Faultup) {
    let usage = json!({ "input_tokens": 9, "output_tokens": 5 });
    let end = json!({ "type": "response.completed", "response": { "status": "completed", "usage": usage } });
    let said: String = said.iter().chain([&end]).map(event).collect();
    let upstream = Faultup::start(vec![stream().send(said).then(Step::Close)]).await;
    let client =
        remote::Settings { base_url: format!("{}/v1", upstream.address), ..remote::Settings::default() };
    let settings = Settings { client, model: "gpt-m".to_owned(), name: "m".into(), ..Settings::default() };
    let backend = Arc::new(OpenAiResponsesBackend::new(&Connections::default(), settings).unwrap());
    let model = Model { solution_max: Some(Tokens(20)), ..model("m", EnforcementClass::Effort) };
    (World::with(vec![(model, backend)], vec![tenant("key", 1 << 50)], |_| ()).await, upstream)
}

/// A refusal has each API's own form, whole and streamed.
async fn check_refusal(world: &World) {
    let chat = ask(world, APIS[0], false).await.good();
    let message = &chat["choices"][0]["message"];
    assert_eq!((&message["refusal"], &message["content"]), (&json!("I cannot help."), &Value::Null));
    let streamed = ask(world, APIS[0], true).await.chunks();
    assert_eq!(streamed.joined(0, "refusal"), "I cannot help.");
    assert_eq!(streamed.joined(0, "content"), "");

    let part = json!({ "type": "refusal", "refusal": "I cannot help." });
    let response = ask(world, APIS[1], false).await.good();
    let message = response["output"].as_array().unwrap().last().unwrap();
    assert_eq!(message["content"], json!([part]), "{response}");
    let streamed = ask(world, APIS[1], true).await.chunks().all;
    let told: String = events(&streamed, "response.refusal.delta")
        .iter()
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert_eq!(told, "I cannot help.");
    assert_eq!(events(&streamed, "response.refusal.done")[0]["refusal"], "I cannot help.");
    assert_eq!(events(&streamed, "response.content_part.done").last().unwrap()["part"], part);
    assert!(events(&streamed, "response.output_text.delta").is_empty());

    let message = ask(world, APIS[2], false).await.good();
    assert_eq!(
        (&message["stop_reason"], &message["stop_details"]["type"]),
        (&json!("refusal"), &json!("refusal"))
    );
    assert_eq!(message["content"], json!([{ "type": "text", "text": "I cannot help." }]));
    let streamed = ask(world, APIS[2], true).await.chunks().all;
    assert_eq!(events(&streamed, "message_delta")[0]["delta"]["stop_reason"], "refusal");
}

#[tokio::test]
async fn a_refusal_is_told_as_one_and_not_as_the_answer() {
    let said = [json!({ "role": "assistant", "content": null }), json!({ "refusal": "I cannot" })];
    let rig = Rig::new(vec![deltas(&[&said[..], &[json!({ "refusal": " help." })]].concat())]).await;
    check_refusal(&rig.world).await;
    let delta = |text: &str| json!({ "type": "response.refusal.delta", "output_index": 0, "delta": text });
    let (world, _upstream) = behind_responses(&[delta("I cannot"), delta(" help.")]).await;
    check_refusal(&world).await;
}

#[tokio::test]
async fn a_refusal_that_is_sent_back_is_what_the_model_said() {
    let rig = Rig::new(vec![deltas(&[json!({ "content": "Then not." })])]).await;
    let messages = json!([
        { "role": "user", "content": "Help me." },
        { "role": "assistant", "content": null, "refusal": "I cannot help." },
        { "role": "user", "content": "Please." },
    ]);
    rig.world.ask("sk-key", &json!({ "model": "m", "messages": messages })).await.good();
    let sent = rig.upstream.log()[0].body.clone();
    assert_eq!(sent["messages"][1]["content"], "I cannot help.", "{sent}");
}

/// A gateway whose model `m` is behind Claude, which declines after these words and says why.
async fn behind_claude(words: &str, why: Option<&str>) -> (World, Faultup) {
    let usage =
        json!({ "input_tokens": 9, "output_tokens": 1, "service_tier": "standard", "inference_geo": "eu" });
    let end = json!({ "stop_reason": "refusal", "stop_sequence": null, "stop_details": details(why) });
    let usage_at_end = json!({ "output_tokens": 5, "server_tool_use": { "web_search_requests": 1 } });
    let said = [
        json!({ "type": "message_start", "message": { "usage": usage } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": words } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": end, "usage": usage_at_end, "context_management": { "applied_edits": [] } }),
        json!({ "type": "message_stop" }),
    ];
    behind_anthropic(&said).await
}

/// Why Claude declines, in its own form.
fn details(why: Option<&str>) -> Value {
    json!({ "type": "refusal", "category": "bio", "explanation": why })
}

/// A gateway whose model `m` is behind an upstream of Messages that sends these events.
async fn behind_anthropic(said: &[Value]) -> (World, Faultup) {
    let said: String = said.iter().map(event).collect();
    let upstream = Faultup::start(vec![stream().send(said).then(Step::Close)]).await;
    let client =
        remote::Settings { base_url: format!("{}/v1", upstream.address), ..remote::Settings::default() };
    let settings = anthropic::Settings {
        client,
        model: "claude".to_owned(),
        name: "m".into(),
        ..anthropic::Settings::default()
    };
    let backend = Arc::new(AnthropicBackend::new(&Connections::default(), settings).unwrap());
    let model = Model {
        solution_max: Some(Tokens(20)),
        thinking_max: Tokens::ZERO,
        ..model("m", EnforcementClass::Native)
    };
    (World::with(vec![(model, backend)], vec![tenant("key", 1 << 50)], |_| ()).await, upstream)
}

#[tokio::test]
async fn what_claude_says_when_it_declines_is_a_refusal() {
    let (world, _upstream) = behind_claude("I cannot help.", None).await;
    let chat = ask(&world, APIS[0], false).await.good();
    let message = &chat["choices"][0]["message"];
    assert_eq!((&message["refusal"], &message["content"]), (&json!("I cannot help."), &Value::Null));
    assert_eq!(chat["choices"][0]["finish_reason"], "content_filter");
}

/// The refusal that a caller sees, whole and streamed, in each of OpenAI's APIs.
async fn check_declined(world: &World, refusal: &str) {
    let chat = ask(world, APIS[0], false).await.good();
    let choice = &chat["choices"][0];
    assert_eq!(
        (&choice["message"]["refusal"], &choice["finish_reason"]),
        (&json!(refusal), &json!("content_filter"))
    );
    let streamed = ask(world, APIS[0], true).await.chunks();
    assert_eq!(streamed.joined(0, "refusal"), refusal);
    assert!(streamed.all.iter().any(|chunk| chunk["choices"][0]["finish_reason"] == "content_filter"));

    let response = ask(world, APIS[1], false).await.good();
    let part = json!({ "type": "refusal", "refusal": refusal });
    assert_eq!(
        response["output"].as_array().unwrap().last().unwrap()["content"],
        json!([part]),
        "{response}"
    );
    assert_eq!(response["incomplete_details"]["reason"], "content_filter", "{response}");
    let streamed = ask(world, APIS[1], true).await.chunks().all;
    assert_eq!(events(&streamed, "response.refusal.done")[0]["refusal"], refusal);
    assert_eq!(events(&streamed, "response.incomplete").len(), 1);
}

#[tokio::test]
async fn why_claude_declines_is_a_refusal_too_whole_and_streamed() {
    let (world, _upstream) = behind_claude("It is", Some("About a toxin.")).await;
    check_declined(&world, "About a toxin.").await;
    let streamed = ask(&world, APIS[0], true).await.chunks();
    assert_eq!(streamed.joined(0, "content"), "It is");
    let (silent, _upstream) = behind_claude("", None).await;
    check_declined(&silent, "The model's provider declined to answer, and does not say why.").await;
}

#[tokio::test]
async fn what_claude_says_besides_reaches_callers_of_messages_as_it_was() {
    for why in [Some("About a toxin."), None] {
        let (world, _upstream) = behind_claude("It is", why).await;
        let message = ask(&world, APIS[2], false).await.good();
        assert_eq!((&message["stop_reason"], &message["stop_details"]), (&json!("refusal"), &details(why)));
        assert_eq!(message["content"], json!([{ "type": "text", "text": "It is" }]), "{message}");
        let events_of = ask(&world, APIS[2], true).await.chunks().all;
        let end = events(&events_of, "message_delta")[0];
        assert_eq!(
            (&end["delta"]["stop_reason"], &end["delta"]["stop_details"]),
            (&json!("refusal"), &details(why))
        );
        for told in [&message, end] {
            let usage = &told["usage"];
            assert_eq!(
                (&usage["service_tier"], &usage["inference_geo"]),
                (&json!("standard"), &json!("eu")),
                "{told}"
            );
            assert_eq!(
                (&usage["server_tool_use"]["web_search_requests"], &usage["output_tokens"]),
                (&json!(1), &json!(5))
            );
            assert_eq!(told["context_management"], json!({ "applied_edits": [] }), "{told}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_sdks_see_a_refusal_as_one() {
    let (world, _upstream) = behind_claude("It is", Some("About a toxin.")).await;
    let read = |kind: &str| -> Value {
        let facts = printed(tool("python").args(["tests/python/answer_members.py", kind, &world.base]), "");
        serde_json::from_str(&facts).unwrap()
    };
    let facts = read("messages");
    let told =
        json!({ "stop": "refusal", "details": ["bio", "About a toxin."], "text": "It is", "output": 5 });
    assert_eq!((&facts["whole"], &facts["streamed"], &facts["tier"]), (&told, &told, &json!("standard")));
}

#[tokio::test]
async fn a_reason_that_only_claude_has_is_told_to_callers_of_messages() {
    for (word, ended) in [("model_context_window_exceeded", "model"), ("pause_turn", "upstream")] {
        let said = [
            json!({ "type": "message_start", "message": { "usage": { "input_tokens": 9, "output_tokens": 1 } } }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "It is" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": word, "stop_sequence": null }, "usage": { "output_tokens": 5 } }),
            json!({ "type": "message_stop" }),
        ];
        let (world, _upstream) = behind_anthropic(&said).await;
        let message = ask(&world, APIS[2], false).await.good();
        assert_eq!(
            (&message["stop_reason"], &message["stop_details"]),
            (&json!(word), &Value::Null),
            "{message}"
        );
        assert_eq!(message["budget"]["solution"]["ended"], ended, "{message}");
        let chat = ask(&world, APIS[0], false).await.good();
        assert_eq!(chat["choices"][0]["finish_reason"], "length", "{chat}");
    }
}

/// The one call of a turn, and a chunk that has it with what Google adds to it.
fn google_call(id: &str) -> Value {
    json!({
        "index": 0, "id": id, "type": "function", "function": { "name": "look", "arguments": "{}" },
        "extra_content": { "google": { "thought_signature": "c2lnbmVk" } },
    })
}

#[tokio::test]
async fn what_a_provider_adds_to_a_call_is_told_and_goes_back_with_it() {
    let rig = Rig::new(vec![deltas(&[json!({ "tool_calls": [google_call("call_1")] })])]).await;
    let asked = |more: &[Value], stream: bool| {
        let mut messages = vec![json!({ "role": "user", "content": "Look." })];
        messages.extend_from_slice(more);
        let function = json!({ "name": "look", "parameters": { "type": "object", "properties": {} } });
        json!({
            "model": "m", "stream": stream, "max_tokens": 20, "messages": messages,
            "tools": [{ "type": "function", "function": function }],
        })
    };
    let whole = rig.world.ask("sk-key", &asked(&[], false)).await.good();
    let message = &whole["choices"][0]["message"];
    let extra = &message["tool_calls"][0]["extra_content"];
    assert_eq!(extra["google"]["thought_signature"], "c2lnbmVk", "{whole}");
    let streamed = rig.world.ask("sk-key", &asked(&[], true)).await.chunks().all;
    let told: Vec<&Value> = streamed
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| call["extra_content"].is_object())
        .collect();
    assert_eq!((told.len(), &told[0]["index"], &told[0]["extra_content"]), (1, &json!(0), extra));

    let result = json!({ "role": "tool", "tool_call_id": "call_1", "content": "Nothing." });
    rig.world.ask("sk-key", &asked(&[message.clone(), result.clone()], false)).await.good();
    let sent = rig.upstream.log().last().unwrap().body.clone();
    let back = &sent["messages"][1]["tool_calls"][0]["extra_content"];
    assert_eq!(*back, google_call("")["extra_content"], "{sent}");

    let mut of_another = message.clone();
    of_another["tool_calls"][0]["extra_content"]["stint"]["origin"] = json!("00000001");
    rig.world.ask("sk-key", &asked(&[of_another, result], false)).await.good();
    let sent = rig.upstream.log().last().unwrap().body.clone();
    assert_eq!(sent["messages"][1]["tool_calls"][0].get("extra_content"), None, "{sent}");
}

#[tokio::test]
async fn an_answer_that_was_broken_off_is_told_as_one_whatever_the_upstreams_word_for_it() {
    for word in ["insufficient_system_resource", "model_length", "abort", "repetition", "so_it_goes"] {
        let said = event(&says("It is")) + &event(&ends(word)) + &event(&used(9, 2)) + DONE;
        let rig = Rig::new(vec![stream().send(said).then(Step::Close)]).await;
        let chat = ask(&rig.world, APIS[0], false).await.good();
        assert_eq!(chat["choices"][0]["finish_reason"], "length", "{word}");
        let response = ask(&rig.world, APIS[1], false).await.good();
        assert_eq!(response["status"], "incomplete", "{word}");
        assert_eq!(ask(&rig.world, APIS[2], false).await.good()["stop_reason"], "max_tokens", "{word}");
        let chunks = ask(&rig.world, APIS[0], true).await.chunks().all;
        assert!(chunks.iter().any(|chunk| chunk["choices"][0]["finish_reason"] == "length"), "{word}");
        let all = ask(&rig.world, APIS[1], true).await.chunks().all;
        assert_eq!(events(&all, "response.incomplete").len(), 1, "{word}");
        let all = ask(&rig.world, APIS[2], true).await.chunks().all;
        assert_eq!(events(&all, "message_delta")[0]["delta"]["stop_reason"], "max_tokens", "{word}");
    }
}

#[tokio::test]
async fn an_upstreams_own_code_and_member_reach_the_caller() {
    let error = json!({ "message": "It was filtered.", "code": "content_filter", "param": "prompt" });
    let body = json!({ "error": error }).to_string();
    let rig = Rig::new(vec![whole("400 Bad Request", "content-type: application/json\r\n", &body)]).await;
    for api in APIS {
        for stream in [false, true] {
            let error = ask(&rig.world, api, stream).await.error();
            assert_eq!(
                (&error["code"], &error["param"]),
                (&json!("content_filter"), &json!("prompt")),
                "{error}"
            );
        }
    }
}

#[tokio::test]
async fn nobody_is_asked_to_try_again_where_that_cannot_help() {
    let quota = json!({ "error": { "message": "no money", "code": "insufficient_quota" } }).to_string();
    for (status, body) in [("401 No", "{}"), ("403 No", "{}"), ("404 No", "{}"), ("429 No", &*quota)] {
        let json = "content-type: application/json\r\n";
        for api in [APIS[0], APIS[2]] {
            // A target that was refused is left alone for a while.
            let rig = Rig::new(vec![whole(status, json, body)]).await;
            let answer = ask(&rig.world, api, false).await;
            assert_eq!(
                (answer.status, &answer.headers["x-should-retry"]),
                (502, &"false".parse().unwrap()),
                "{status}"
            );
        }
    }
}

/// The phases and texts of the messages among some items.
fn phases(items: &Value) -> Vec<(&str, Option<&str>)> {
    let messages = items.as_array().unwrap().iter().filter(|item| item["role"] == "assistant");
    let text = messages.map(|item| {
        let text = item["content"].as_str().or(item["content"][0]["text"].as_str());
        (text.unwrap(), item["phase"].as_str())
    });
    text.collect()
}

#[tokio::test]
async fn what_a_message_is_for_is_told_and_goes_back_with_it() {
    let message = |at: u64, phase: &str| {
        let item = json!({ "type": "message", "role": "assistant", "content": [], "phase": phase });
        json!({ "type": "response.output_item.added", "output_index": at, "item": item })
    };
    let text = |at: u64, text: &str| json!({ "type": "response.output_text.delta", "output_index": at, "delta": text });
    let said =
        [message(0, "commentary"), text(0, "I look."), message(1, "final_answer"), text(1, "It is 3.")];
    let (world, upstream) = behind_responses(&said).await;
    let expected = [("I look.", Some("commentary")), ("It is 3.", Some("final_answer"))];

    let first = ask(&world, APIS[1], false).await.good();
    assert_eq!(phases(&first["output"]), expected);
    let streamed = ask(&world, APIS[1], true).await.chunks().all;
    for kind in ["response.output_item.added", "response.output_item.done"] {
        let told: Vec<&str> =
            events(&streamed, kind).iter().filter_map(|event| event["item"]["phase"].as_str()).collect();
        assert_eq!(told, ["commentary", "final_answer"], "{kind}");
    }

    let goes_on = json!({ "model": "m", "previous_response_id": first["id"], "input": "and then?" });
    world.post("/v1/responses", "sk-key", &goes_on).await.good();
    let mut items = question("input", false)["input"].take();
    items.as_array_mut().unwrap().extend(first["output"].as_array().unwrap().iter().cloned());
    items.as_array_mut().unwrap().push(json!({ "role": "user", "content": "and then?" }));
    world.post("/v1/responses", "sk-key", &json!({ "model": "m", "input": items })).await.good();
    for exchange in &upstream.log()[2..] {
        assert_eq!(phases(&exchange.body["input"]), expected, "{}", exchange.body);
    }
}

/// Two sources, of each of two texts of 5 characters.
async fn check_sources(world: &World, messages: usize) {
    let nested = |start: u64| {
        let cited = json!({ "url": "https://a", "title": "A", "start_index": start, "end_index": start + 4 });
        json!({ "type": "url_citation", "url_citation": cited })
    };
    let chat = ask(world, APIS[0], false).await.good();
    let (text, second) = if messages == 1 { ("Rain.Wind.", 5) } else { ("Rain.\n\nWind.", 7) };
    assert_eq!(chat["choices"][0]["message"]["content"], text);
    assert_eq!(chat["choices"][0]["message"]["annotations"], json!([nested(0), nested(second)]));
    let streamed = ask(world, APIS[0], true).await.chunks().all;
    let told = streamed.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["annotations"].as_array());
    let numbered = |index: u64, mut entry: Value| {
        entry["index"] = index.into();
        entry
    };
    let expected = [numbered(0, nested(0)), numbered(1, nested(second))];
    assert_eq!(told.flatten().cloned().collect::<Vec<Value>>(), expected);

    let flat = |start: u64| json!({ "type": "url_citation", "url": "https://a", "title": "A", "start_index": start, "end_index": start + 4 });
    let expected = if messages == 1 { vec![flat(0), flat(5)] } else { vec![flat(0), flat(0)] };
    let response = ask(world, APIS[1], false).await.good();
    let items = || response["output"].as_array().unwrap().iter().filter(|item| item["type"] == "message");
    let told = items().filter_map(|item| item["content"][0]["annotations"].as_array()).flatten();
    assert_eq!((items().count(), told.cloned().collect::<Vec<Value>>()), (messages, expected.clone()));
    let streamed = ask(world, APIS[1], true).await.chunks().all;
    let told = events(&streamed, "response.output_text.annotation.added");
    let told: Vec<Value> = told.into_iter().map(|event| event["annotation"].clone()).collect();
    assert_eq!(told, expected);
    ask(world, APIS[2], false).await.good();
}

#[tokio::test]
async fn the_sources_of_an_answer_are_told() {
    let source = |start: u64| {
        let cited = json!({ "url": "https://a", "title": "A", "start_index": start, "end_index": start + 4 });
        json!({ "annotations": [{ "type": "url_citation", "url_citation": cited }] })
    };
    let said = [json!({ "content": "Rain." }), source(0), json!({ "content": "Wind." }), source(5)];
    let rig = Rig::new(vec![deltas(&said)]).await;
    check_sources(&rig.world, 1).await;

    let message = |at: u64, phase: &str| {
        let item = json!({ "type": "message", "role": "assistant", "content": [], "phase": phase });
        json!({ "type": "response.output_item.added", "output_index": at, "item": item })
    };
    let text = |at: u64, text: &str| json!({ "type": "response.output_text.delta", "output_index": at, "delta": text });
    let cites = |at: u64| {
        let annotation = json!({
            "type": "url_citation", "url": "https://a", "title": "A", "start_index": 0, "end_index": 4 });
        json!({ "type": "response.output_text.annotation.added", "output_index": at, "annotation": annotation })
    };
    let said = [
        message(0, "commentary"),
        text(0, "Rain."),
        cites(0),
        message(1, "final_answer"),
        text(1, "Wind."),
        cites(1),
    ];
    let (world, _upstream) = behind_responses(&said).await;
    check_sources(&world, 2).await;
}

#[tokio::test]
async fn a_custom_tool_stays_one_where_its_provider_speaks_responses() {
    let input = "*** Begin \"Patch\"\n+ä";
    let item = |input: &str| json!({ "type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": input });
    let said = [
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item("") }),
        json!({ "type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": input }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item(input) }),
    ];
    let (world, upstream) = behind_responses(&said).await;
    let grammar = json!({ "type": "grammar", "syntax": "lark", "definition": "start: /.+/" });
    let tool = json!({ "type": "custom", "name": "apply_patch", "description": "Edits.", "format": grammar });
    let asked = json!({ "model": "m", "input": "Edit.", "tools": [tool], "max_output_tokens": 20 });
    let first = world.post("/v1/responses", "sk-key", &asked).await.good();
    let call = &first["output"][0];
    assert_eq!((&call["type"], &call["input"]), (&json!("custom_tool_call"), &json!(input)), "{first}");
    assert_eq!(upstream.log()[0].body["tools"], json!([tool]));

    let result = json!({ "type": "custom_tool_call_output", "call_id": "call_1", "output": "Done." });
    let more = json!({
        "model": "m", "input": [result], "previous_response_id": first["id"], "tools": [tool],
        "tool_choice": { "type": "custom", "name": "apply_patch" },
    });
    world.post("/v1/responses", "sk-key", &more).await.good();
    let sent = upstream.log()[1].body.clone();
    assert_eq!(sent["input"][1], item(input), "{sent}");
    assert_eq!(sent["input"][2], result, "{sent}");
    assert_eq!(sent["tool_choice"], json!({ "type": "custom", "name": "apply_patch" }), "{sent}");
}
