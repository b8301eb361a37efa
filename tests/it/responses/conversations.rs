//! Conversations: what callers keep here, and what responses go on from and lengthen.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::cluster::cluster;
use crate::harness::patience::until;
use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, Folder, Process, Served, Stored, World, auto, tenant};
use crate::sdk::keys;
use stint_backend::scripted::{PieceGate, ScriptedBackend, ScriptedReply};
use stint_sessions::agent::stored::{self, MemoryResponses};
use stint_storage::{Database, DatabaseUrl, PostgresSettings, Settings};
use stint_types::chat::Role;

use super::{RICH, able, ask, episodes, events, plays, world};

#[tokio::test(flavor = "multi_thread")]
async fn openais_python_sdk_and_its_agents_work_unchanged_on_conversations() {
    let (world, _) = world().await;
    let arguments = ["tests/python/conversations_sdk.py", &world.base, "sk-acme", "sk-other", "m"];
    let facts: Value = serde_json::from_str(&printed(tool("python").args(arguments), "")).unwrap();
    let gone = json!([404, "conversation_not_found", null]);
    assert_eq!(
        facts["objects"],
        json!({
            "made": ["conversation", { "topic": "demo" }, "conv_", true], "again": true,
            "described": [true, { "topic": "more" }], "deleted": [true, "conversation.deleted", true], "gone": gone,
        })
    );
    assert_eq!(
        facts["items"],
        json!({
            "added": [20, "list", true], "listed": true, "latest": [["Number 39.", "Number 38."], true],
            "one": true, "left": 39, "gone": [404, "item_not_found", null],
            "many": [400, null, "items"], "wrong": [400, null, "items[0].type"],
        })
    );
    let talk = &facts["talk"];
    assert_eq!(talk["texts"], json!(["3 after 2", "3 after 4", "3 after 6"]));
    assert_eq!(talk["named"], json!([true, true, true]));
    let turn = ["message", "reasoning", "message"];
    let kinds: Vec<&str> = std::iter::once("message").chain(turn.into_iter().cycle().take(9)).collect();
    assert_eq!(talk["kinds"], json!(kinds));
    assert_eq!(talk["referred"], "3 after 7", "the last answer, once more, is one turn with it");
    assert_eq!(talk["both"], json!([400, "mutually_exclusive_parameters", null]));
    assert_eq!(talk["within"], json!([400, null, "previous_response_id"]));
    assert_eq!(talk["stranger"], json!([gone, gone, gone, gone]));
    let agent = &facts["agent"];
    assert_eq!((&agent["ran"], &agent["session"][0]), (&json!("it is a cat"), &json!("it is a cat")));
    let run = ["message", "reasoning", "function_call", "function_call_output", "reasoning", "message"];
    let both: Vec<&str> = run.into_iter().chain(turn).collect();
    assert_eq!(agent["kinds"], json!(both));
    assert_eq!((&agent["popped"], &agent["left"]), (&json!("message"), &json!(both[..both.len() - 1])));
}

/// Makes a conversation.
async fn begun(world: &World) -> String {
    let made = world.post("/v1/conversations", "sk-acme", &json!({})).await.good();
    made["id"].as_str().unwrap().to_owned()
}

async fn respond(world: &World, conversation: &str, input: &str, more: Value) -> Answer {
    let mut body = ask(input, more);
    body["conversation"] = conversation.into();
    world.post("/v1/responses", "sk-acme", &body).await
}

/// The texts of its messages and the kinds of its other items, the first first.
async fn told(world: &World, conversation: &str) -> Vec<String> {
    let path = format!("/v1/conversations/{conversation}/items?order=asc&limit=100");
    let list = world.get("sk-acme", &path).await.good();
    let word = |item: &Value| match item["content"][0]["text"].as_str() {
        Some(text) if item["type"] == "message" => text.to_owned(),
        _ => item["type"].as_str().unwrap().to_owned(),
    };
    list["data"].as_array().unwrap().iter().map(word).collect()
}

#[tokio::test]
async fn a_conversation_is_a_run_of_its_own_and_shares_its_budget() {
    let (world, script) = world().await;
    let search = json!([{ "type": "function", "name": "search", "parameters": { "type": "object" } }]);
    let (one, other) = (begun(&world).await, begun(&world).await);
    respond(&world, &one, "hi", json!({})).await.good();
    assert_eq!(episodes(&script), [None], "without tools it is no run");
    let limited = json!({ "tools": search, "budget": { "tool_calls": { "search": 1 } } });
    let called = respond(&world, &one, "Find it.", limited.clone()).await;
    assert_eq!(called.headers["x-episode-id"], one);
    let call = called.good()["output"][1]["call_id"].clone();
    let result = json!({ "type": "function_call_output", "call_id": call, "output": "a cat" });
    let mut body = ask("", limited.clone());
    body["conversation"] = one.as_str().into();
    body["input"] = json!([result]);
    let last = world.post("/v1/responses", "sk-acme", &body).await.good();
    assert_eq!(last["budget"]["episode"]["tool_calls"]["tools"]["search"], json!({ "used": 1, "left": 0 }));
    // Nothing is sent of the history, and the budget holds.
    let spent = respond(&world, &one, "Find it.", json!({ "tools": search })).await.good();
    assert_eq!(spent["budget"]["tool_calls"]["withheld"], json!(["search"]), "{spent}");
    let fresh = respond(&world, &other, "Find it.", limited).await.good();
    let left = &fresh["budget"]["episode"]["tool_calls"]["tools"]["search"];
    assert_eq!(left, &json!({ "used": 0, "left": 1 }), "another conversation has its own");
    // A name that is said goes along.
    let third = begun(&world).await;
    respond(&world, &third, "hi", json!({ "budget": { "episode": "task-42" } })).await.good();
    respond(&world, &third, "hi", json!({})).await.good();
    let last = episodes(&script).split_off(script.records().len() - 2);
    assert_eq!(last, [Some("task-42".to_owned()), Some("task-42".to_owned())]);
    let shown = world.get("sk-acme", &format!("/v1/conversations/{third}")).await.good();
    assert_eq!(shown["episode"], "task-42");
}

#[tokio::test]
async fn one_request_at_a_time_goes_on_from_a_conversation() {
    let gate = PieceGate::shut();
    let door = gate.clone();
    let script = Arc::new(ScriptedBackend::each(move |call, _| {
        match call.request.messages.last().unwrap().plain_text().as_str() {
            "Slow." => ScriptedReply::new().answers("slow answer").waits_at(&door),
            _ => ScriptedReply::new().answers("at once"),
        }
    }));
    let world = World::new(vec![(able("m"), script.clone())], vec![tenant("acme", RICH)]).await;
    let id = begun(&world).await;
    let slow = async {
        let answer = respond(&world, &id, "Slow.", json!({})).await.good();
        assert_eq!(answer["conversation"]["id"], id.as_str());
    };
    let meanwhile = async {
        script.until(|records| !records.is_empty()).await;
        let busy = respond(&world, &id, "Fast.", json!({})).await;
        assert_eq!((busy.status, &busy.error()["code"]), (400, &json!("conversation_locked")));
        assert_eq!(busy.headers["retry-after"], "1");
        let path = format!("/v1/conversations/{id}/items");
        let item = json!({ "items": [{ "role": "user", "content": "x" }] });
        assert_eq!(world.post(&path, "sk-acme", &item).await.error()["code"], "conversation_locked");
        gate.open();
    };
    tokio::join!(slow, meanwhile);
    respond(&world, &id, "Fast.", json!({})).await.good();
    assert_eq!(told(&world, &id).await, ["Slow.", "slow answer", "Fast.", "at once"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_on_one_database_let_one_request_at_a_time_go_on_from_it() {
    let url = cluster().database();
    let script = Arc::new(ScriptedBackend::each(plays));
    let mut worlds = Vec::new();
    for _ in 0..3 {
        let lease = Duration::from_secs(10);
        let settings = Settings::Postgres(PostgresSettings { url: DatabaseUrl::new(&url), lease });
        let stored = Stored::of(&Database::open(&settings).await.unwrap());
        let served = vec![Served::by(able("m"), vec![script.clone()])];
        worlds.push(World::agents(served, vec![tenant("acme", RICH)], vec![auto()], stored).await);
    }
    let id = begun(&worlds[0]).await;
    let asked = (0..12).map(|at| {
        let (world, id) = (&worlds[at % 3], &id);
        async move {
            let answer = respond(world, id, &format!("turn {at}"), json!({})).await;
            assert!(
                answer.status == 200 || answer.error()["code"] == "conversation_locked",
                "{}",
                answer.text
            );
            answer.status == 200
        }
    });
    let answered =
        futures_util::future::join_all(asked).await.into_iter().filter(|&answered| answered).count();
    assert!(answered > 0);
    let items = told(&worlds[1], &id).await;
    assert_eq!(items.len(), 3 * answered, "each answer stands behind its question: {items:?}");
    for (at, turn) in items.chunks(3).enumerate() {
        assert!(turn[0].starts_with("turn "), "{items:?}");
        assert_eq!(turn[2], format!("3 after {}", 2 * at + 1), "and knew all before it: {items:?}");
    }
}

#[tokio::test]
async fn the_real_binary_keeps_conversations_over_a_restart() {
    let folder = Folder::new(&keys());
    let mut process = folder.serve();
    let post = async |process: &Process, path: &str, body: Value| {
        let request = process.client.post(format!("{}{path}", process.base)).bearer_auth("sk-test");
        let request = request.header("content-type", "application/json").body(body.to_string());
        Answer::of(request).await.good()
    };
    let made = post(&process, "/v1/conversations", json!({ "metadata": { "topic": "sums" } })).await;
    let id = made["id"].as_str().unwrap().to_owned();
    let asked = |input: &str| {
        let budget = json!({ "thinking_tokens": 8 });
        let mut asked = ask(input, json!({ "conversation": id, "temperature": 0, "budget": budget }));
        asked["model"] = "reasoner".into();
        asked
    };
    let first = post(&process, "/v1/responses", asked("What is 17+25?")).await;
    assert_eq!(first["output"][1]["content"][0]["text"], "42");
    process.signal("TERM");
    assert!(process.ended().success());
    let process = folder.serve();
    assert_eq!(process.get("sk-test", &format!("/v1/conversations/{id}")).await.good(), made);
    let second = post(&process, "/v1/responses", asked("What is 1+2?")).await;
    let prompt = |response: &Value| response["usage"]["input_tokens"].as_u64().unwrap();
    assert!(prompt(&second) > 2 * prompt(&first), "{second}");
    let list = process.get("sk-test", &format!("/v1/conversations/{id}/items?order=asc")).await.good();
    assert_eq!(list["data"][3]["content"][0]["text"], "What is 1+2?", "{list}");
    assert_eq!(process.get("sk-poor", &format!("/v1/conversations/{id}")).await.status, 404);
    let metrics = process.get("sk-test", "/metrics").await.text;
    assert!(metrics.contains("stint_conversations_lengthened_total{outcome=\"done\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn what_fails_or_is_hung_up_on_or_refused_adds_nothing_and_is_over_at_once() {
    let (world, _) = world().await;
    let id = begun(&world).await;
    let failed = events(&respond(&world, &id, "Break.", json!({ "stream": true })).await);
    assert_eq!(failed.last().unwrap().0, "response.failed");
    freed(&world, &id, "one").await;
    assert_eq!(respond(&world, &id, "Break.", json!({})).await.status, 502);
    respond(&world, &id, "two", json!({})).await.good();
    let poor = respond(&world, &id, "x", json!({ "budget": { "cost_usd": "0.000000001" } })).await;
    assert_eq!(poor.status, 400, "{}", poor.text);
    respond(&world, &id, "three", json!({})).await.good();
    let orphan = json!([{ "type": "function_call_output", "call_id": "c", "output": "x" }]);
    let mut body = ask("", json!({ "conversation": id }));
    body["input"] = orphan;
    assert_eq!(world.post("/v1/responses", "sk-acme", &body).await.status, 400);
    respond(&world, &id, "four", json!({})).await.good();
    let body = ask("Long.", json!({ "stream": true, "conversation": id })).to_string();
    let sent = world.client.post(format!("{}/v1/responses", world.base)).bearer_auth("sk-acme");
    let sent = sent.header("content-type", "application/json").body(body).send().await.unwrap();
    drop(sent);
    freed(&world, &id, "five").await;
    let said: Vec<String> = told(&world, &id).await.into_iter().filter(|item| !item.contains(' ')).collect();
    assert!(!said.iter().any(|item| item == "Break." || item == "x"), "{said:?}");
}

/// Goes on from it as soon as it is free again: soon.
async fn freed(world: &World, id: &str, input: &str) {
    until("it is free again", async || {
        let answer = respond(world, id, input, json!({})).await;
        assert!(answer.status == 200 || answer.error()["code"] == "conversation_locked", "{}", answer.text);
        answer.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_conversation_that_is_full_takes_no_more_and_says_so() {
    let kept = stored::Settings { history_max: 5_368, ..stored::Settings::default() };
    let models = vec![(able("m"), Arc::new(ScriptedBackend::each(plays)))];
    let responses = Arc::new(MemoryResponses::default());
    let world = World::keeping(models, vec![tenant("acme", RICH)], responses, kept).await;
    let id = begun(&world).await;
    let unkept = respond(&world, &id, "Long.", json!({})).await.good();
    assert_eq!(unkept["conversation"], Value::Null, "{unkept}");
    assert_eq!(told(&world, &id).await, [""; 0], "all or nothing");
    let large = respond(&world, &id, &"x".repeat(5_368), json!({})).await;
    assert_eq!((large.status, &large.error()["code"]), (400, &json!("context_length_exceeded")));
    respond(&world, &id, "hi", json!({})).await.good();
    let path = format!("/v1/conversations/{id}/items");
    let items = json!({ "items": [{ "role": "user", "content": "x".repeat(5_368) }] });
    assert_eq!(world.post(&path, "sk-acme", &items).await.error()["param"], "items");
}

#[tokio::test]
async fn a_caller_that_asks_again_under_the_same_key_gets_the_answer_that_was_added() {
    let (world, script) = world().await;
    let id = begun(&world).await;
    let search = json!([{ "type": "function", "name": "search", "parameters": { "type": "object" } }]);
    let mut body = ask("Find it.", json!({ "conversation": id, "tools": search }));
    body["budget"] = json!({ "thinking_tokens": 8 });
    let post = || {
        let request = world.client.post(format!("{}/v1/responses", world.base)).bearer_auth("sk-acme");
        let request = request.header("content-type", "application/json").header("idempotency-key", "k-1");
        Answer::of(request.body(body.to_string()))
    };
    let first = post().await.good();
    // What was added has a call without an output by now.
    assert_eq!(post().await.good(), first);
    assert_eq!(
        (script.records().len(), told(&world, &id).await.len()),
        (1, first["output"].as_array().unwrap().len() + 1)
    );
    world
        .client
        .delete(format!("{}/v1/conversations/{id}", world.base))
        .bearer_auth("sk-acme")
        .send()
        .await
        .unwrap();
    assert_eq!(post().await.good(), first);
}

#[tokio::test]
async fn what_is_referred_to_is_bounded_however_often_that_is() {
    let kept = stored::Settings { history_max: 10_000, ..stored::Settings::default() };
    let models = vec![(able("m"), Arc::new(ScriptedBackend::each(plays)))];
    let responses = Arc::new(MemoryResponses::default());
    let world = World::keeping(models, vec![tenant("acme", RICH)], responses, kept).await;
    let first = world.post("/v1/responses", "sk-acme", &ask("hi", json!({}))).await.good();
    let id = begun(&world).await;
    let within = respond(&world, &id, "hi", json!({})).await.good();
    for (item, conversation) in
        [(&first["output"][1]["id"], Value::Null), (&within["output"][1]["id"], json!(id))]
    {
        let many = vec![json!({ "type": "item_reference", "id": item }); 100];
        let mut body = ask("", json!({ "conversation": conversation }));
        body["input"] = many[..2].into();
        world.post("/v1/responses", "sk-acme", &body).await.good();
        body["input"] = many.into();
        assert_eq!(
            world.post("/v1/responses", "sk-acme", &body).await.error()["code"],
            "context_length_exceeded"
        );
    }
}

#[tokio::test]
async fn hidden_thoughts_are_shown_to_the_model_alone() {
    let (world, script) = world().await;
    let id = begun(&world).await;
    let hidden = json!({ "reasoning": { "exclude": true } });
    let first = respond(&world, &id, "hi", hidden.clone()).await.good();
    assert_eq!(first["output"][0]["type"], "message", "{first}");
    respond(&world, &id, "hi", hidden).await.good();
    let list = world.get("sk-acme", &format!("/v1/conversations/{id}/items?order=asc")).await.good();
    assert_eq!(list["data"][1]["type"], "reasoning");
    assert_eq!((&list["data"][1]["content"], &list["data"][1]["summary"]), (&json!([]), &json!([])));
    let records = script.records();
    let before = &records[1].call.request.messages[1];
    assert_eq!((before.role, before.thought.as_deref()), (Role::Assistant, Some("1 2 3 ")));
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let (world, _) = world().await;
    let id = begun(&world).await;
    let refused = async |path: &str, body: Value, param: &str, says: &str| {
        let error = world.post(path, "sk-acme", &body).await.error();
        assert_eq!(error["param"], param, "{error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{error}");
    };
    let made = "/v1/conversations";
    refused(made, json!({ "items": 7 }), "items", "must be a list").await;
    refused(made, json!({ "items": [{ "role": "robot" }] }), "items[0].role", "must be user").await;
    let call = json!({ "type": "function_call", "call_id": "", "name": "f", "arguments": "{}" });
    refused(made, json!({ "items": [call] }), "items[0].call_id", "not empty").await;
    refused(made, json!({ "metadata": [] }), "metadata", "must be an object").await;
    refused(made, json!({ "metadata": { "a": 1 } }), "metadata.a", "must be a string").await;
    refused(made, json!({ "metadata": { "a".repeat(65): "" } }), "metadata", "more than 64 characters").await;
    refused(made, json!({ "name": "x" }), "name", "is not known here").await;
    let one = format!("{made}/{id}");
    refused(&one, json!({}), "metadata", "is missing").await;
    refused(&format!("{one}/items"), json!({}), "items", "is missing").await;
    for (query, param) in
        [("limit=0", "limit"), ("limit=101", "limit"), ("order=up", "order"), ("after=msg_1", "after")]
    {
        let answer = world.get("sk-acme", &format!("{one}/items?{query}")).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(param)), "{query}");
    }
}

/// 17.7: what an account writes beside its requests has a rate, which others' writes do not touch.
#[tokio::test]
async fn an_account_that_writes_too_much_is_told_when_to_go_on_and_others_are_not() {
    let (world, _) = world().await;
    let text = "x".repeat(3 << 20);
    let item = json!({ "type": "message", "role": "user", "content": text });
    let write = async |key: &str| world.post("/v1/conversations", key, &json!({ "items": [item] })).await;
    let mut refused = None;
    for _ in 0..8 {
        let answer = write("sk-acme").await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("sixteen seconds' worth fit at once");
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("rate_limit_exceeded")));
    let wait: u64 = refused.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=6).contains(&wait), "{wait}");
    let feedback = world.post("/v1/feedback", "sk-acme", &json!({ "id": "req_1", "correct": true })).await;
    assert_eq!(feedback.status, 429, "everything that writes: {}", feedback.text);
    assert_eq!(write("sk-other").await.status, 200, "another account has its own");
}

/// 17.7: what is stated is taken before it is read, so that many at once have no more than one after the other.
#[tokio::test]
async fn writes_that_come_at_once_share_the_rate_too() {
    let (world, _) = world().await;
    let item = json!({ "type": "message", "role": "user", "content": "x".repeat(3 << 20) });
    let body = json!({ "items": [item] });
    let writes = (0..14).map(|_| world.post("/v1/conversations", "sk-acme", &body));
    let answers = futures_util::future::join_all(writes).await;
    let written = answers.iter().filter(|answer| answer.status == 200).count();
    assert!((1..=7).contains(&written), "sixteen seconds' worth of 1 MiB, and what is owed: {written}");
    assert!(answers.iter().all(|answer| matches!(answer.status, 200 | 429)));
}
