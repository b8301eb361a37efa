//! Bodies.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{connect, said, status, world};
use crate::harness::patience::QuietInstant;
use crate::harness::{Answer, World};

const HEAD: &str = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer sk-key\r\n";

/// How long an answer may take where the machine is busy and the build is not optimized.
const ANSWER_MAX: Duration = Duration::from_secs(20);

/// What a body of this type is answered, at once.
async fn post(world: &World, kind: &str, body: Vec<u8>) -> Answer {
    let request = world.client.post(format!("{}/v1/chat/completions", world.base)).bearer_auth("sk-key");
    let request = if kind.is_empty() { request } else { request.header("content-type", kind) };
    let began = QuietInstant::now();
    let answer = Answer::of(request.body(body)).await;
    assert!(began.elapsed() < ANSWER_MAX, "{kind}: {:?}", began.elapsed());
    answer
}

/// IN-05: a body that does not end is refused when it is larger than it may be, and nobody reads on.
#[tokio::test]
async fn a_body_that_does_not_end_is_refused_at_its_limit() {
    let (world, script) = world().await;
    let declared = format!("{HEAD}content-type: application/json\r\ncontent-length: 999999999999\r\n\r\n");
    let answer = said(&world, declared.as_bytes()).await;
    assert_eq!(status(&answer), 413, "before a byte of it came: {answer}");
    let mut connection = connect(&world).await;
    let head = format!("{HEAD}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = connection.split();
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x10000)).into_bytes();
    let mut answer = vec![0; 12];
    let (mut sent, mut said) = (0, Box::pin(read.read_exact(&mut answer)));
    loop {
        tokio::select! {
            told = &mut said => {
                told.unwrap();
                break;
            }
            // A refused connection takes no more at some time.
            _ = write.write_all(&piece) => sent += piece.len(),
        }
        assert!(sent < 64 << 20, "{sent} bytes, of which 32 MiB may be there");
    }
    drop(said);
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert!(script.records().is_empty(), "nothing of it reached a model");
}

/// IN-06: what is not one JSON object, or one without measure, is a 400 at once, and the server goes on.
#[tokio::test]
async fn what_is_no_json_is_refused_at_once() {
    let (world, script) = world().await;
    let with = |value: &str| {
        format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],"temperature":{value}}}"#)
    };
    for body in [
        "[".repeat(100_000),
        format!("{{\"a\":{}", "{\"a\":".repeat(100_000)),
        with(&format!("[{}1]", "1,".repeat(1_000_000))),
        with("1e400"),
        with("NaN"),
        with("-Infinity"),
        with("0x1"),
        with("01"),
        with("\"\\ud800\""),
        with("\"\\udc00\\ud800\""),
        with("1") + "}",
        with("1") + "{}",
        with("1").replace("\"x\"", "\"\u{1}\""),
    ] {
        let answer = post(&world, "application/json", body.clone().into_bytes()).await;
        assert_eq!(answer.status, 400, "{}: {}", &body[..body.len().min(90)], answer.text);
        assert_eq!(answer.error()["type"], "invalid_request_error", "{}", answer.text);
    }
    let invalid = [b"{\"model\":\"".to_vec(), vec![0xff, 0xfe], b"\"}".to_vec()].concat();
    assert_eq!(post(&world, "application/json", invalid).await.status, 400, "no UTF-8");
    let long = format!(r#"{{"model":"m","messages":"{}"}}"#, "x".repeat(100 << 20));
    assert_eq!(post(&world, "application/json", long.into_bytes()).await.status, 413);
    assert!(script.records().is_empty());
    post(&world, "application/json", with("1").into_bytes()).await.good();
}

/// IN-09, IN-10: only JSON is read. A form in parts is refused by its type, whatever is in it.
#[tokio::test]
async fn a_body_says_that_it_is_json_or_is_not_read() {
    let (world, script) = world().await;
    let form = |boundary: &str, parts: usize| {
        let part = format!("--{boundary}\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n");
        (format!("multipart/form-data; boundary={boundary}"), part.repeat(parts).into_bytes())
    };
    let inner = "multipart/mixed; boundary=in";
    let nested =
        format!("--out\r\ncontent-type: {inner}\r\n\r\n--in\r\n\r\nm\r\n").repeat(1_000).into_bytes();
    let json = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#.to_vec();
    for (kind, body) in [
        form("b", 10_000),
        form(&"b".repeat(1_000), 1),
        ("multipart/form-data; boundary=out".to_owned(), nested),
        ("multipart/form-data".to_owned(), b"--b".to_vec()),
        (String::new(), json.clone()),
        ("text/plain".to_owned(), json.clone()),
        ("application/x-www-form-urlencoded".to_owned(), json.clone()),
        ("application/json; charset=utf-16".to_owned(), json.clone()),
        ("application/jsonp".to_owned(), json.clone()),
        ("application/json, text/html".to_owned(), json.clone()),
    ] {
        let answer = post(&world, &kind, body).await;
        assert_eq!(
            (answer.status, &answer.error()["code"]),
            (415, &json!("unsupported_media_type")),
            "{kind}"
        );
    }
    let endless =
        format!("{HEAD}content-type: multipart/form-data; boundary={}\r\n\r\n", "b".repeat(100_000));
    assert_eq!(status(&said(&world, endless.as_bytes()).await), 431);
    assert!(script.records().is_empty());
    for kind in ["application/json", "application/json; charset=UTF-8", "Application/JSON;charset=\"utf-8\""]
    {
        post(&world, kind, json.clone()).await.good();
    }
}

/// IN-11: however many messages and tools there are, and whatever their schemas, an answer comes in bounded time.
#[tokio::test]
async fn many_messages_and_tools_and_strange_schemas_take_bounded_time() {
    let (world, _) = world().await;
    let tool = |name: String, parameters: Value| json!({ "type": "function", "function": { "name": name, "parameters": parameters } });
    let plain = json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] });
    let with = |member: &str, value: Value| {
        let mut body = plain.clone();
        body[member] = value;
        body
    };
    let turn = |number: usize| {
        let role = if number.is_multiple_of(2) { "user" } else { "assistant" };
        json!({ "role": role, "content": "x" })
    };
    let deep =
        (0..100).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
    let large = json!({ "type": "object", "description": "x".repeat(1 << 20) });
    let bomb = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$" } } });
    let circle = json!({ "$defs": { "a": { "$ref": "#/$defs/a" } }, "$ref": "#/$defs/a" });
    let mut bodies = vec![
        with("messages", (0..10_000).map(turn).collect()),
        with(
            "tools",
            (0..10_000).map(|number| tool(format!("t{number}"), json!({ "type": "object" }))).collect(),
        ),
    ];
    for schema in [deep, large, bomb, circle] {
        bodies.push(with("tools", json!([tool("t".to_owned(), schema.clone())])));
        let form = json!({ "type": "json_schema", "json_schema": { "name": "n", "strict": true, "schema": schema } });
        bodies.push(with("response_format", form));
    }
    for body in bodies {
        let text = body.to_string();
        let answer = post(&world, "application/json", text.clone().into_bytes()).await;
        assert!(matches!(answer.status, 200 | 400), "{}: {} {}", &text[..90], answer.status, answer.text);
    }
    world.ask("sk-key", &plain).await.good();
}
