//! OpenAI's Responses as an API of ours: its own SDKs, and agents built on it, changed only in the base URL.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Value, json};
use stint::agent::stored::{self, Chain, MemoryResponses, Responses, ResponsesError, StoredResponse};
use stint::backend::remote::anthropic::{Anthropic, Settings};
use stint::backend::remote::{self, Secret};
use stint::backend::scripted::{Play, Record, Scripted};
use stint::backend::{Backend, Call, Failure, Fault};
use stint::catalog::{Capability, Class, Model};
use stint::chat::{Role, ToolCallDelta};
use stint::http;
use stint::units::{AccountId, RequestId, Timestamp, Tokens};

use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::{Emulator, KEY, Turn};
use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, Folder, Process, Served, World, model, tenant};
use crate::sdk::keys;

/// Plenty for any of these tests.
const RICH: u64 = 1_000_000_000;

fn facts(runtime: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&printed(tool(runtime).args(arguments), "")).unwrap()
}

/// A model that calls whatever tool it is given, once, and answers from what that gave back.
fn plays(call: &Call, _: usize) -> Play {
    let request = &call.request;
    let last = request.messages.last().unwrap();
    let thinks = Play::new().thinks(3);
    match (last.role, request.tools.first()) {
        (Role::Tool, _) => thinks.answers(&format!("it is {}", last.plain())),
        (_, Some(tool)) if last.plain() == "Find it." => {
            let arguments = match tool.name.as_str() {
                "apply_patch" => r#"{"input":"*** \"Begin\"\n"}"#,
                _ => r#"{"q":"a pet"}"#,
            };
            let piece = |id: Option<&str>, arguments: &str| ToolCallDelta {
                index: 0,
                id: id.map(str::to_owned),
                name: id.map(|_| tool.name.clone()),
                arguments: arguments.to_owned(),
            };
            thinks.calls(piece(Some("call_1"), &arguments[..4])).calls(piece(None, &arguments[4..]))
        }
        _ => match last.plain().as_str() {
            "Break." => thinks.breaks_after(2, Failure::new(Fault::Backend, "gone")),
            "Sum it." => thinks.answers(r#"{"sum":3}"#),
            "Long." => thinks.answers(&"word ".repeat(400)),
            _ => {
                let turns = request.messages.len();
                thinks.answers(&format!("3 after {turns}"))
            }
        },
    }
}

fn able(name: &str) -> Model {
    Model { capabilities: vec![Capability::Tools, Capability::Schema], ..model(name, Class::Inline) }
}

async fn world() -> (World, Arc<Scripted>) {
    let script = Arc::new(Scripted::each(plays));
    let callers = vec![tenant("acme", RICH), tenant("other", RICH)];
    (World::new(vec![(able("m"), script.clone())], callers).await, script)
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
    let error = |name: &str| facts["errors"][name].clone();
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

fn ask(input: impl Into<Value>, more: Value) -> Value {
    let mut body = json!({ "model": "m", "input": input.into() });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// The events of a stream: what stands after `event:`, and the data.
fn events(answer: &Answer) -> Vec<(String, Value)> {
    assert_eq!(
        (answer.status, &answer.headers["content-type"]),
        (200, &"text/event-stream".parse().unwrap())
    );
    let read = |event: &str| {
        let (name, data) = event.split_once('\n')?;
        let name = name.strip_prefix("event: ")?.to_owned();
        Some((name, serde_json::from_str(data.strip_prefix("data: ")?).unwrap()))
    };
    answer.text.split("\n\n").filter_map(read).collect()
}

#[tokio::test]
async fn the_real_binary_keeps_responses_over_a_restart_and_deletes_them_for_good() {
    let folder = Folder::new(&keys());
    let mut process = folder.serve();
    let post = |process: &Process, body: &Value| {
        let request = process.client.post(format!("{}/v1/responses", process.base));
        let request =
            request.header("authorization", "Bearer sk-test").header("content-type", "application/json");
        Answer::of(request.body(body.to_string()))
    };
    let asked = |more: Value| {
        let mut body = ask("What is 17+25?", more);
        body["model"] = "reasoner".into();
        body["temperature"] = 0.into();
        body
    };
    let first = post(&process, &asked(json!({ "budget": { "thinking_tokens": 8 } }))).await.good();
    assert_eq!(first["budget"]["thinking"], json!({ "budget": 8, "used": 8, "ended": "cut" }));
    assert_eq!(first["output"][1]["content"][0]["text"], "42");
    let id = first["id"].as_str().unwrap().to_owned();
    process.signal("TERM");
    assert!(process.ended(Duration::from_secs(20)).success());
    let process = folder.serve();
    let path = format!("/v1/responses/{id}");
    assert_eq!(process.get("sk-test", &path).await.good(), first);
    assert_eq!(process.get("sk-poor", &path).await.status, 404);
    let story = process.get("sk-test", &format!("/v1/requests/{id}")).await;
    assert_eq!(story.good()["outcome"]["ended"], "finished", "the id is that of the request");
    let more = post(&process, &asked(json!({ "previous_response_id": id, "stream": true }))).await;
    let told = events(&more);
    let (last, end) = told.last().unwrap();
    assert_eq!(last, "response.completed", "{end}");
    let prompt = |usage: &Value| usage["input_tokens"].as_u64().unwrap();
    assert!(prompt(&end["response"]["usage"]) > 2 * prompt(&first["usage"]), "it goes on: {end}");
    let delete =
        process.client.delete(format!("{}{path}", process.base)).header("authorization", "Bearer sk-test");
    assert_eq!(Answer::of(delete).await.good(), json!({ "id": id, "object": "response", "deleted": true }));
    assert_eq!(process.get("sk-test", &path).await.error()["code"], "response_not_found");
    let next = end["response"]["id"].as_str().unwrap();
    let broken = post(&process, &asked(json!({ "previous_response_id": next }))).await;
    assert_eq!((broken.status, &broken.error()["code"]), (400, &json!("previous_response_not_found")));
    let metrics = process.get("", "/metrics").await.text;
    assert!(metrics.contains("stint_responses_stored_total{outcome=\"kept\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn an_operator_may_keep_nothing() {
    let folder = Folder::new("[responses]\nstore = false\n");
    let process = folder.serve();
    let request = process.client.post(format!("{}/v1/responses", process.base));
    let body = json!({ "model": "reasoner", "input": "What is 1+2?" }).to_string();
    let answer = Answer::of(request.header("content-type", "application/json").body(body)).await.good();
    assert_eq!(answer["store"], false);
    let path = format!("/v1/responses/{}", answer["id"].as_str().unwrap());
    assert_eq!(process.get("", &path).await.status, 404);
}

#[tokio::test]
async fn what_is_too_large_to_keep_or_the_store_does_not_take_is_answered_and_says_so() {
    let script = Arc::new(Scripted::each(plays));
    let small = stored::Settings { response_max: 1 << 10, ..stored::Settings::default() };
    let models = || vec![(able("m"), script.clone())];
    let world =
        World::keeping(models(), vec![tenant("acme", RICH)], Arc::new(MemoryResponses::default()), small)
            .await;
    let large = world.post("/v1/responses", "sk-acme", &ask("x".repeat(2000), json!({}))).await.good();
    assert_eq!((&large["store"], &large["status"]), (&json!(false), &json!("completed")));
    assert_eq!(world.metrics.requests.stored.with_label_values(&["too_large"]).get(), 1);
    let slow = stored::Settings { patience: Duration::from_millis(20), ..stored::Settings::default() };
    let world = World::keeping(models(), vec![tenant("acme", RICH)], Arc::new(Broken), slow).await;
    let whole = world.post("/v1/responses", "sk-acme", &ask("hi", json!({}))).await.good();
    assert_eq!(
        (&whole["store"], &whole["output"][1]["content"][0]["text"]),
        (&json!(false), &json!("3 after 1"))
    );
    let streamed =
        events(&world.post("/v1/responses", "sk-acme", &ask("hi", json!({ "stream": true }))).await);
    let (name, end) = streamed.last().unwrap();
    assert_eq!((name.as_str(), &end["response"]["store"]), ("response.completed", &json!(false)));
    assert_eq!(world.metrics.requests.stored.with_label_values(&["failed"]).get(), 2);
    let unknown = world
        .post("/v1/responses", "sk-acme", &ask("hi", json!({ "previous_response_id": whole["id"] })))
        .await;
    assert_eq!(unknown.status, 503, "nobody knows: {}", unknown.text);
}

/// A store that does nothing.
struct Broken;

impl Responses for Broken {
    fn keep<'a>(&'a self, _: &'a StoredResponse, _: u64) -> BoxFuture<'a, Result<(), ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn find<'a>(
        &'a self,
        _: &'a AccountId,
        _: RequestId,
        _: Timestamp,
    ) -> BoxFuture<'a, Result<Option<StoredResponse>, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn chain<'a>(
        &'a self,
        _: &'a AccountId,
        _: RequestId,
        _: Timestamp,
        _: u64,
    ) -> BoxFuture<'a, Result<Option<Chain>, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn delete<'a>(&'a self, _: &'a AccountId, _: RequestId) -> BoxFuture<'a, Result<bool, ResponsesError>> {
        ready(Err(ResponsesError::new("broken"))).boxed()
    }
    fn purge(&self, _: Timestamp, _: u32) -> BoxFuture<'_, Result<u64, ResponsesError>> {
        ready(Ok(0)).boxed()
    }
}

#[tokio::test]
async fn a_stream_whose_backend_dies_fails_and_has_no_clean_end() {
    let (world, _) = world().await;
    let told =
        events(&world.post("/v1/responses", "sk-acme", &ask("Break.", json!({ "stream": true }))).await);
    let [.., (failed, response), (error, said)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((failed.as_str(), error.as_str()), ("response.failed", "error"));
    let response = &response["response"];
    assert_eq!((&response["status"], &response["error"]["code"]), (&json!("failed"), &json!("server_error")));
    assert_eq!((&said["code"], &said["type"]), (&json!("upstream_failed"), &json!("error")));
    for (number, (name, event)) in told.iter().enumerate() {
        assert_eq!((&event["type"], &event["sequence_number"]), (&json!(name), &json!(number)));
    }
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(world.get("sk-acme", &path).await.status, 404, "what failed is not kept");
}

/// A caller cannot make the server remember more than it has room for.
#[tokio::test]
async fn what_is_continued_takes_room_as_a_body_does() {
    let script = Arc::new(Scripted::each(plays)) as Arc<dyn Backend>;
    let adjust =
        |settings: &mut http::Settings| (settings.body_max, settings.bodies_max) = (4 << 10, 8 << 10);
    let world = World::with(vec![(able("m"), script)], vec![tenant("acme", RICH)], adjust).await;
    let mut previous = Value::Null;
    for _ in 0..2 {
        let body = ask("x".repeat(2500), json!({ "previous_response_id": previous }));
        previous = world.post("/v1/responses", "sk-acme", &body).await.good()["id"].clone();
    }
    for stream in [false, true] {
        let body = ask("more", json!({ "previous_response_id": previous, "stream": stream }));
        let refused = world.post("/v1/responses", "sk-acme", &body).await;
        assert_eq!(
            (refused.status, &refused.error()["code"]),
            (503, &json!("overloaded")),
            "{}",
            refused.text
        );
    }
    let small = world.post("/v1/responses", "sk-acme", &ask("hi", json!({ "stream": true }))).await;
    assert_eq!(small.status, 200, "and gives it back");
}

/// The run that a request is said to belong to.
fn episodes(script: &Scripted) -> Vec<Option<String>> {
    let named = |record: &Record| record.call.request.budget.episode.as_ref().map(ToString::to_string);
    script.records().iter().map(named).collect()
}

#[tokio::test]
async fn a_run_keeps_its_name_from_response_to_response() {
    let (world, script) = world().await;
    let search = json!([{ "type": "function", "name": "search", "parameters": { "type": "object" } }]);
    let post = async |body: Value| {
        world.post("/v1/responses", "sk-acme", &body).await.good()["id"].as_str().unwrap().to_owned()
    };
    let talk = post(ask("hi", json!({}))).await;
    let more = post(ask("hi", json!({ "previous_response_id": talk }))).await;
    assert_eq!(episodes(&script), [None, None], "without tools it is no run");
    let acts = post(ask("hi", json!({ "previous_response_id": more, "tools": search }))).await;
    post(ask("hi", json!({ "previous_response_id": acts }))).await;
    assert_eq!(episodes(&script)[2..], [Some(talk.clone()), Some(talk)], "named after the first response");
    let named = post(ask("hi", json!({ "metadata": { "episode_id": "task-42" } }))).await;
    post(ask("hi", json!({ "previous_response_id": named }))).await;
    post(ask("hi", json!({ "previous_response_id": named, "budget": { "episode": "task-43" } }))).await;
    let names = ["task-42", "task-42", "task-43"].map(|name| Some(name.to_owned()));
    assert_eq!(episodes(&script)[4..], names, "a name goes along until another is said");
}

#[tokio::test]
async fn thoughts_that_are_hidden_are_kept_and_go_on_all_the_same() {
    let (world, script) = world().await;
    let hidden = json!({ "reasoning": { "exclude": true } });
    let first = world.post("/v1/responses", "sk-acme", &ask("hi", hidden)).await.good();
    assert_eq!(first["output"].as_array().unwrap().len(), 1);
    let id = first["id"].as_str().unwrap();
    assert_eq!(world.get("sk-acme", &format!("/v1/responses/{id}")).await.good(), first);
    world.post("/v1/responses", "sk-acme", &ask("and?", json!({ "previous_response_id": id }))).await.good();
    let records = script.records();
    assert_eq!(records[1].call.request.messages[1].thought.as_deref(), Some("1 2 3 "));
}

#[tokio::test]
async fn what_was_put_in_is_listed_in_pages() {
    let (world, _) = world().await;
    let items: Vec<Value> = (0..3).map(|at| json!({ "role": "user", "content": format!("{at}") })).collect();
    let id = world.post("/v1/responses", "sk-acme", &ask(items, json!({}))).await.good()["id"].clone();
    let path = format!("/v1/responses/{}/input_items", id.as_str().unwrap());
    let page = async |query: &str| world.get("sk-acme", &format!("{path}?{query}")).await.good();
    let texts = |page: &Value| -> Vec<String> {
        let texts =
            page["data"].as_array().unwrap().iter().map(|item| item["content"][0]["text"].as_str().unwrap());
        texts.map(str::to_owned).collect()
    };
    let first = page("limit=2").await;
    assert_eq!((texts(&first), &first["has_more"]), (vec!["2".into(), "1".into()], &json!(true)));
    let rest = page(&format!("limit=2&after={}", first["last_id"].as_str().unwrap())).await;
    assert_eq!((texts(&rest), &rest["has_more"]), (vec!["0".into()], &json!(false)));
    assert_eq!(texts(&page("order=asc&include[]=message.input_image.image_url").await), ["0", "1", "2"]);
    for (query, param) in [("limit=0", "limit"), ("order=up", "order"), ("after=x", "after"), ("x=1", "x")] {
        let refused = world.get("sk-acme", &format!("{path}?{query}")).await;
        assert_eq!((refused.status, &refused.error()["param"]), (400, &json!(param)));
    }
    assert_eq!(world.get("sk-other", &path).await.status, 404);
}

#[tokio::test]
async fn signed_thoughts_go_back_to_their_provider_byte_for_byte_whoever_keeps_them() {
    let call = || Turn::calls(20, &[("search", json!({ "q": "a pet" }))]);
    let run = || [call(), Turn::answers(3, "a cat")];
    let emulator = Emulator::start(Provider::default(), run().into_iter().chain(run()).collect());
    let client = remote::Settings {
        base_url: emulator.base.clone(),
        api_key: Some(Secret::new(KEY)),
        ..remote::Settings::default()
    };
    let settings =
        Settings { client, model: "claude-budget".into(), name: "m".into(), ..Settings::default() };
    let served = Model {
        thinking_min: Tokens(1024),
        thinking_max: Tokens(8_000),
        context: Tokens(100_000),
        capabilities: vec![Capability::Tools],
        ..model("m", Class::Native)
    };
    let target = Arc::new(Anthropic::new(settings).unwrap());
    let world = World::fleets(vec![Served::by(served, vec![target])], vec![tenant("acme", RICH)]).await;
    let tools = json!([{ "type": "function", "name": "search", "parameters": { "type": "object" } }]);
    let more = json!({ "tools": tools, "max_output_tokens": 2000, "budget": { "thinking_tokens": 1100 } });
    let asked = |input: Value, key: &str, value: Value| {
        let mut body = ask(input, more.clone());
        body[key] = value;
        body
    };
    let post = async |body: Value| world.post("/v1/responses", "sk-acme", &body).await.good();
    let found = |output: &Value| {
        let calls = output.as_array().unwrap().last().unwrap();
        json!({ "type": "function_call_output", "call_id": calls["call_id"], "output": "a cat" })
    };
    let said = |response: &Value| {
        response["output"].as_array().unwrap().last().unwrap()["content"][0]["text"].clone()
    };
    // We keep it.
    let first = post(asked("find".into(), "store", true.into())).await;
    let last =
        post(asked(json!([found(&first["output"])]), "previous_response_id", first["id"].clone())).await;
    assert_eq!(said(&last), "a cat ");
    // The caller does.
    let first = post(asked("find".into(), "store", false.into())).await;
    let mut input = json!([{ "role": "user", "content": "find" }]);
    let turns = input.as_array_mut().unwrap();
    turns.extend(first["output"].as_array().unwrap().iter().cloned());
    turns.push(found(&first["output"]));
    assert_eq!(said(&post(asked(input, "store", false.into())).await), "a cat ");
    assert!(emulator.refused().is_empty(), "{:?}", emulator.refused());
    assert!(first["output"][0]["encrypted_content"].is_string(), "{first}");
}
