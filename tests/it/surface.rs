//! The wire as callers see it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::harness::patience::within;
use crate::harness::{Answer, World, model, tenant};
use stint::http;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_backend::{Backend, BackendCall, Failure, Fault, Generation};
use stint_types::catalog::{Capability, EnforcementClass, Model, ModelConditions};
use stint_types::chat::{ContentPart, Request, ToolCallDelta};
use stint_types::units::Tokens;

fn question() -> Value {
    json!({
        "model": "m",
        "messages": [{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 8 },
    })
}

async fn world() -> World {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("it is 3")));
    World::open(model("m", EnforcementClass::Inline), &script).await
}

#[tokio::test]
async fn an_answer_has_the_shape_of_the_openai_api() {
    let answer = world().await.ask("", &question()).await;
    assert!(answer.headers["x-request-id"].to_str().unwrap().starts_with("req_"));
    assert!(answer.headers.contains_key("x-cost-usd"));
    let body = answer.good();
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl-"));
    let again = world().await.ask("", &question()).await.good();
    assert_eq!(again["system_fingerprint"], body["system_fingerprint"], "one configuration has one name");
    assert_eq!((&body["object"], &body["model"]), (&json!("chat.completion"), &json!("m")));
    let message = &body["choices"][0]["message"];
    assert_eq!((&message["role"], &message["content"]), (&json!("assistant"), &json!("it is 3")));
    assert_eq!(message["reasoning_content"], "1 2 3 ");
    assert_eq!(body["budget"]["enforced"], "inline");
    assert!(body["budget"]["why"].as_str().unwrap().contains("stated"));
}

#[tokio::test]
async fn a_stream_ends_with_the_budget_the_usage_and_the_end_mark() {
    let mut body = question();
    body["stream"] = true.into();
    body["stream_options"] = json!({ "include_usage": true });
    let answer = world().await.ask("", &body).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let chunks = answer.chunks();
    assert!(chunks.done);
    assert_eq!(chunks.all[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(
        (chunks.joined(0, "reasoning_content").as_str(), chunks.joined(0, "content").as_str()),
        ("1 2 3 ", "it is 3")
    );
    let [.., finish, usage] = &chunks.all[..] else { panic!("{chunks:?}") };
    assert_eq!(finish["choices"][0]["finish_reason"], "stop");
    assert!(finish["system_fingerprint"].as_str().unwrap().starts_with("fp_"), "{finish}");
    assert_eq!(finish["system_fingerprint"], usage["system_fingerprint"]);
    assert_eq!(finish["budget"]["thinking"]["used"], 3);
    assert_eq!((&usage["choices"], &usage["usage"]["completion_tokens"]), (&json!([]), &json!(3 + 2 + 3)));
}

#[tokio::test]
async fn thoughts_are_left_out_where_they_are_not_wanted() {
    let mut body = question();
    body["reasoning"] = json!({ "exclude": true });
    let answer = world().await.ask("", &body).await.good();
    assert!(answer["choices"][0]["message"].get("reasoning_content").is_none());
    assert_eq!(
        answer["usage"]["completion_tokens_details"]["reasoning_tokens"], 3,
        "they are counted all the same"
    );
}

#[tokio::test]
async fn a_stream_whose_backend_dies_carries_an_error_and_no_end_mark() {
    let failure = Failure::new(Fault::Backend, "gone");
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(9).breaks_after(3, failure)));
    let world = World::open(model("m", EnforcementClass::Inline), &script).await;
    let mut body = question();
    body["stream"] = true.into();
    let chunks = world.ask("", &body).await.chunks();
    assert!(!chunks.done, "a clean end would look like success");
    assert_eq!(chunks.all.last().unwrap()["error"]["code"], "upstream_failed");
    world.settled().await;
}

#[tokio::test]
async fn bad_input_is_named() {
    let world = world().await;
    let table: &[(Value, u16, &str, &str)] = &[
        (json!({ "budget": { "thinking_tokens": -1 } }), 400, "budget.thinking_tokens", "whole number"),
        (json!({ "budget": { "thinking": 1 } }), 400, "budget.thinking", "not known"),
        (json!({ "budget": { "tool_calls": { "*": -3 } } }), 400, "budget.tool_calls.*", "whole number"),
        (json!({ "budget": { "turns": 0 } }), 400, "budget.turns", "at least 1"),
        (json!({ "budget": { "episode": "" } }), 400, "budget.episode", "is empty"),
        (json!({ "budget": { "cost_usd": "1e3" } }), 400, "budget.cost_usd", "decimal"),
        (json!({ "budget": { "deadline_ms": 0 } }), 400, "budget.deadline_ms", "at least 1"),
        (json!({ "budget": { "effort": 11 } }), 400, "budget.effort", "from 0 to 10"),
        (json!({ "temperature": "hot" }), 400, "temperature", "from 0 to 2"),
        (json!({ "reasoning_effort": "extreme" }), 400, "reasoning_effort", "one of"),
        (json!({ "max_tokens": 0 }), 400, "max_tokens", "at least 1"),
        (json!({ "n": 0 }), 400, "n", "at least 1"),
        (json!({ "n": 99 }), 400, "n", "at most"),
        (json!({ "temprature": 1 }), 400, "temprature", "not known"),
        (json!({ "service_tier": "priority" }), 400, "service_tier", "auto"),
        (json!({ "logprobs": true }), 400, "logprobs", "cannot do logprobs"),
        (json!({ "top_logprobs": 2 }), 400, "top_logprobs", "needs logprobs"),
        (
            part(&json!({ "type": "file", "file": { "file_id": "f" } })),
            400,
            "messages[0].content[0].file.file_id",
            "there are no files here",
        ),
        (
            part(&json!({ "type": "video_url", "video_url": { "url": "u" } })),
            400,
            "messages[0].content[0].type",
            "must be",
        ),
        (part(&json!({ "type": "image_url" })), 400, "messages[0].content[0].image_url", "an object"),
        (
            part(&json!({ "type": "image_url", "image_url": { "url": 1 } })),
            400,
            "messages[0].content[0].image_url.url",
            "a string",
        ),
        (
            part(&json!({ "type": "input_audio", "input_audio": { "data": "", "more": "x" } })),
            400,
            "messages[0].content[0].input_audio.format",
            "a string",
        ),
        (json!({ "messages": [] }), 400, "messages", "at least one"),
        (json!({ "messages": [{ "role": "robot", "content": "x" }] }), 400, "messages[0].role", "must be"),
        (json!({ "messages": [{ "role": "user" }] }), 400, "messages[0].content", "missing"),
        (json!({ "model": "nobody" }), 404, "model", "no model"),
    ];
    for (more, status, param, says) in table {
        let mut body = question();
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = world.ask("", &body).await;
        let error = answer.error();
        assert_eq!((answer.status, error["param"].as_str()), (*status, Some(*param)), "{more}: {error}");
        assert!(error["message"].as_str().unwrap().contains(says), "{more}: {error}");
    }
}

#[tokio::test]
async fn what_is_missing_has_a_code_and_names_itself() {
    let world = world().await;
    for (member, says) in [("model", "GET /v1/models"), ("messages", "at least one message")] {
        for value in [None, Some(Value::Null)] {
            let mut body = question();
            match value {
                None => drop(body.as_object_mut().unwrap().shift_remove(member)),
                Some(null) => body[member] = null,
            }
            let answer = world.ask("", &body).await;
            let error = answer.error();
            let expected = (400, &json!("missing_required_parameter"), &json!(member));
            assert_eq!((answer.status, &error["code"], &error["param"]), expected);
            assert!(error["message"].as_str().unwrap().contains(says), "{error}");
        }
    }
    let empty = world.ask("", &json!({ "model": "", "messages": [] })).await;
    assert_eq!(empty.error()["code"], "missing_required_parameter");
}

/// A message of one part.
fn part(part: &Value) -> Value {
    json!({ "messages": [{ "role": "user", "content": [part] }] })
}

#[tokio::test]
async fn images_and_sound_go_to_models_that_understand_them() {
    let image = || json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==", "detail": "low" } });
    let sound = || json!({ "type": "input_audio", "input_audio": { "data": "//uQAA==", "format": "mp3" } });
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("seen")));
    let capabilities = vec![Capability::Images];
    let seeing = Model { capabilities, context: Tokens(100_000), ..model("m", EnforcementClass::Effort) };
    let world = World::open(seeing, &script).await;
    for content in [image(), sound()] {
        let mut body = question();
        body["messages"] = part(&content)["messages"].take();
        world.ask("", &body).await.good();
    }
    let sent = script.records().into_iter().map(|record| record.call.request.messages[0].content.clone());
    assert_eq!(
        sent.collect::<Vec<_>>(),
        [[ContentPart::Other(image())], [ContentPart::Other(sound())]],
        "nothing is lost"
    );
}

/// However it is written, a file comes to the model as one, and takes no more of a prompt than its context.
#[tokio::test]
async fn files_go_to_models_that_read_them() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("read")));
    let context = Model::CONTEXT_UNKNOWN;
    let reading =
        Model { capabilities: vec![Capability::Documents], context, ..model("m", EnforcementClass::Effort) };
    let world = World::open(reading, &script).await;
    let pdf = "JVBERi0x";
    let data = format!("data:application/pdf;base64,{pdf}");
    let chat = part(&json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } }));
    let responses = json!({ "input": [{ "role": "user", "content": [
        { "type": "input_file", "filename": "a.pdf", "file_data": data }] }] });
    let source = json!({ "type": "base64", "media_type": "application/pdf", "data": pdf });
    let messages = part(&json!({ "type": "document", "title": "a.pdf", "source": source,
        "citations": { "enabled": true } }));
    for (path, body) in [("chat/completions", &chat), ("responses", &responses), ("messages", &messages)] {
        let mut body = body.clone();
        (body["model"], body["max_tokens"]) = (json!("m"), json!(50));
        if path == "responses" {
            body.as_object_mut().unwrap().remove("max_tokens");
        }
        let request = world
            .client
            .post(format!("{}/v1/{path}", world.base))
            .header("content-type", "application/json")
            .body(body.to_string());
        Answer::of(request).await.good();
    }
    let file =
        ContentPart::Other(json!({ "type": "file", "file": { "filename": "a.pdf", "file_data": data } }));
    for record in script.records() {
        assert_eq!(record.call.request.messages[0].content, std::slice::from_ref(&file));
    }
    let blind = self::world().await;
    let mut body = question();
    body["messages"] = chat["messages"].clone();
    let refused = blind.ask("", &body).await;
    assert_eq!((refused.status, &refused.error()["param"]), (400, &json!("messages[0].content[0]")));
    body["messages"] = part(&json!({ "type": "file", "file": { "file_data": "AAAA" } }))["messages"].take();
    let refused = blind.ask("", &body).await;
    assert_eq!(refused.error()["param"], "messages[0].content[0].file.file_data", "{}", refused.text);
}

#[tokio::test]
async fn limits_that_leave_no_answer_have_codes_that_clients_know() {
    let world = world().await;
    let long = "x".repeat(5000);
    let table = [
        (json!({ "messages": [{ "role": "user", "content": long }] }), "context_length_exceeded", "messages"),
        (json!({ "response_format": { "type": "json_object" } }), "model_not_capable", "response_format"),
        (json!({ "logit_bias": { "7": 1 } }), "model_not_capable", "logit_bias"),
    ];
    for (more, code, param) in table {
        let mut body = question();
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let answer = world.ask("", &body).await;
        let error = answer.error();
        assert_eq!((answer.status, &error["code"]), (400, &json!(code)), "{}", answer.text);
        assert_eq!(error["param"], param, "{}", answer.text);
        assert!(error["message"].as_str().unwrap().contains(param), "the remedy names it: {}", answer.text);
    }
}

/// IN-06, IN-10: by its type, its form or its size.
#[tokio::test]
async fn a_body_that_is_not_plain_json_is_refused() {
    let world = world().await;
    let send = async |kind: &'static str, body: String| {
        let request = world.client.post(format!("{}/v1/chat/completions", world.base));
        Answer::of(request.header("content-type", kind).body(body)).await
    };
    let twice = r#"{"model":"m","model":"n","messages":[]}"#.to_owned();
    let answer = send("application/json", twice).await;
    assert!(answer.error()["message"].as_str().unwrap().contains("\"model\" is there twice"));
    assert_eq!(send("text/plain", "{}".into()).await.status, 415);
    assert_eq!(send("application/json; charset=utf-16", "{}".into()).await.status, 415);
    assert_eq!(send("application/json", "{".repeat(100_000)).await.status, 400);
    assert_eq!(send("application/json", " ".repeat(33 << 20)).await.status, 413);
}

#[tokio::test]
async fn only_a_known_key_is_served_and_all_wrong_ones_are_answered_alike() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("3")));
    let world =
        World::new(vec![(model("m", EnforcementClass::Inline), script)], vec![tenant("key", 1_000_000)])
            .await;
    world.ask("sk-key", &question()).await.good();
    let mut messages = Vec::new();
    for key in ["sk-other", "sk-key2", &"x".repeat(600)] {
        let answer = world.ask(key, &question()).await;
        assert_eq!(answer.status, 401);
        messages.push(answer.error()["message"].clone());
    }
    messages.dedup();
    assert_eq!(messages.len(), 1);
    let request = world.client.get(format!("{}/v1/models", world.base)).header("x-api-key", "sk-key");
    assert_eq!(Answer::of(request).await.status, 200);
}

#[tokio::test]
async fn models_and_routes_are_listed() {
    let world = world().await;
    let list = world.get("", "/v1/models").await.good();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["auto", "m"]);
    assert_eq!((&list["efforts"]["none"], &list["efforts"]["medium"]), (&json!(0.0), &json!(0.5)));
    assert_eq!(world.get("", "/v1/models/m").await.good()["enforced"], "inline");
    assert_eq!(world.get("", "/v1/models/x/y").await.status, 404);
    assert_eq!(world.get("", "/nowhere").await.error()["code"], "not_found");
    assert_eq!(world.get("", "/v1/chat/completions").await.status, 405);
    assert_eq!(world.get("", "/healthz").await.status, 200);
    assert_eq!(world.get("", "/readyz").await.status, 200);
}

#[tokio::test]
async fn the_metrics_need_an_admins_key_once_there_are_keys() {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let models = || vec![(model("m", EnforcementClass::Inline), script.clone() as Arc<dyn Backend>)];
    let mut admin = tenant("admin", 1);
    admin.tenant.access.role = Some(stint_types::tenant::AdminRole::All);
    let keyed = World::with(models(), vec![tenant("key", 1), admin], |_| ()).await;
    assert_eq!(keyed.get("", "/metrics").await.status, 401);
    let refused = keyed.get("sk-key", "/metrics").await;
    assert_eq!((refused.status, &refused.error()["code"]), (403, &json!("not_admin")));
    assert!(keyed.get("sk-admin", "/metrics").await.text.contains("stint_connections "));
    assert_eq!((keyed.get("", "/healthz").await.status, keyed.get("", "/readyz").await.status), (200, 200));
    let open = World::with(models(), Vec::new(), |_| ()).await;
    assert_eq!(open.get("", "/metrics").await.status, 200);
}

/// A backend with a mistake in it, which it makes when it is let.
#[derive(Debug)]
struct Broken(Arc<Notify>);

impl Backend for Broken {
    fn generate(&self, _: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        Box::pin(async {
            self.0.notified().await;
            panic!("a mistake")
        })
    }

    fn prompt_tokens(&self, _: &Request) -> Tokens {
        Tokens(10)
    }

    fn conditions(&self) -> ModelConditions {
        ModelConditions::default()
    }
}

/// A backend whose upstream counts prompts.
#[derive(Debug)]
struct RemoteCounter;

impl Backend for RemoteCounter {
    fn generate(&self, _: BackendCall) -> BoxFuture<'_, Result<Generation, Failure>> {
        Box::pin(async { Err(Failure::new(Fault::Backend, "it only counts")) })
    }

    fn prompt_tokens(&self, _: &Request) -> Tokens {
        Tokens(10)
    }

    fn count_prompt(&self, _: Arc<Request>) -> BoxFuture<'_, Option<Tokens>> {
        Box::pin(std::future::ready(Some(Tokens(4321))))
    }

    fn conditions(&self) -> ModelConditions {
        ModelConditions::default()
    }
}

/// A paused key sends a provider nothing, by this either.
#[tokio::test]
async fn who_has_nothing_left_is_told_a_guess_and_no_upstream_is_asked() {
    let models = vec![(model("m", EnforcementClass::Inline), Arc::new(RemoteCounter) as Arc<dyn Backend>)];
    let world = World::with(models, vec![tenant("rich", 1_000_000_000), tenant("spent", 0)], |_| ()).await;
    let asked = json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 6+7?" }] });
    let counted = world.post("/v1/messages/count_tokens", "sk-rich", &asked).await.good();
    assert_eq!(counted["input_tokens"], 4321);
    let guessed = world.post("/v1/messages/count_tokens", "sk-spent", &asked).await.good();
    assert_eq!(guessed["estimated"], true, "{guessed}");
    assert!(guessed["input_tokens"].as_u64().unwrap() < 1_000, "{guessed}");
}

/// CR-12, in a backend.
#[tokio::test]
async fn a_mistake_of_ours_is_an_error_and_never_looks_like_the_end_of_an_answer() {
    let errs = Arc::new(Notify::new());
    let broken = async |heartbeat: Duration| {
        let backend = Arc::new(Broken(errs.clone())) as Arc<dyn Backend>;
        let models = vec![(model("m", EnforcementClass::Inline), backend)];
        World::with(models, Vec::new(), |http| http.heartbeat = heartbeat).await
    };
    let mut body = question();
    for stream in [false, true] {
        body["stream"] = stream.into();
        let world = broken(Duration::from_secs(600)).await;
        errs.notify_one();
        let answer = world.ask("", &body).await;
        assert_eq!((answer.status, &answer.error()["code"]), (500, &json!("internal_error")));
        assert!(answer.headers.contains_key("x-request-id"));
        world.settled().await;
    }
    let world = broken(Duration::from_millis(10)).await;
    let request = world.client.post(format!("{}/v1/chat/completions", world.base)).body(body.to_string());
    let answer = request.header("content-type", "application/json").send().await.unwrap();
    assert_eq!(answer.status(), 200, "the stream has begun");
    errs.notify_one();
    let text = answer.text().await.unwrap();
    let last = text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["error"]["code"], "internal_error", "also when a stream has begun: {text}");
}

#[tokio::test]
async fn tool_calls_pass_through_to_capable_models() {
    let piece = |id: Option<&str>, name: Option<&str>, arguments: &str| ToolCallDelta {
        index: 0,
        id: id.map(Into::into),
        name: name.map(Into::into),
        arguments: arguments.into(),
    };
    let play = ScriptedReply::new().calls(piece(Some("call_1"), Some("add"), "")).calls(piece(
        None,
        None,
        "{\"a\":1}",
    ));
    let script = Arc::new(ScriptedBackend::always(play));
    let world = World::open(model("m", EnforcementClass::Effort), &script).await;
    let mut body = question();
    body["tools"] = json!([{ "type": "function", "function": { "name": "add", "parameters": {} } }]);
    let answer = world.ask("", &body).await.good();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(
        choice["message"]["tool_calls"][0]["function"],
        json!({ "name": "add", "arguments": "{\"a\":1}" })
    );
}

/// What the server says to these bytes.
async fn raw(world: &World, request: &str) -> String {
    let mut connection = TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap();
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

/// IN-02, IN-03: under the limits that hold where nothing is said.
#[tokio::test]
async fn a_request_head_has_limits_and_exactly_one_host() {
    let world = world().await;
    let ask = |headers: &str| format!("GET /v1/models HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    assert!(raw(&world, &ask("host: localhost\r\n")).await.contains("200"));
    assert!(raw(&world, &ask("")).await.contains("400"), "no host");
    assert!(raw(&world, &ask("host: a\r\nhost: b\r\n")).await.contains("400"), "two hosts");
    let many: String = (0..80).map(|number| format!("x-{number}: 1\r\n")).collect();
    assert!(raw(&world, &ask(&format!("host: a\r\n{many}"))).await.contains("431"), "many headers");
    let long = format!("host: a\r\nx: {}\r\n", "y".repeat(64 << 10));
    assert!(raw(&world, &ask(&long)).await.contains("431"), "a long head");
}

/// A server that is impatient with heads and bodies.
async fn impatient() -> World {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let impatient = |http: &mut http::Settings| {
        http.head_timeout = Duration::from_millis(200);
        http.body_total = Duration::from_millis(300);
    };
    World::with(vec![(model("m", EnforcementClass::Inline), script)], Vec::new(), impatient).await
}

#[tokio::test]
async fn a_connection_that_sends_nothing_or_half_a_head_is_closed() {
    let world = impatient().await;
    for sent in ["", "P", "PRI * HTTP/2.0\r\n", "GET /healthz HTTP/1.1\r\nhost: a\r\n"] {
        let answer = within(Duration::from_secs(5), raw(&world, sent)).await;
        let answer = answer.unwrap_or_else(|_| panic!("still open after {sent:?}"));
        assert!(!answer.contains("200"), "{sent:?}: {answer}");
    }
    let idle = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let answer =
        within(Duration::from_secs(5), raw(&world, idle)).await.expect("an idle connection is closed");
    assert!(answer.contains("200"), "{answer}");
}

#[tokio::test]
async fn a_body_that_drips_is_given_up() {
    let world = impatient().await;
    let mut connection = TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap();
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 1000\r\n\r\n";
    connection.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = connection.split();
    let mut answer = [0; 12];
    let drip = async {
        let mut tick = tokio::time::interval(Duration::from_millis(50));
        while write.write_all(b" ").await.is_ok() {
            tick.tick().await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        told = within(Duration::from_secs(5), read.read_exact(&mut answer)) => drop(told.unwrap().unwrap()),
        () = drip => {}
    }
    assert_eq!(&answer, b"HTTP/1.1 408");
}
