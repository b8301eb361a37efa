//! What goes upstream of a caller's request, and what does not go anywhere.

mod image_urls;
mod prompt_caches;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Folder, Process};

/// The upstream's key, which no caller knows.
const OURS: &str = "sk-the-providers-own";

/// An upstream that writes down each request as it comes, and answers in one word.
fn listening() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let log = heard.clone();
    std::thread::spawn(move || {
        for mut connection in listener.incoming().map_while(Result::ok) {
            log.lock().unwrap().push(request(&mut connection));
            let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m",
                "choices": [{ "index": 0, "delta": { "content": "word" }, "finish_reason": "stop" }],
                "usage": { "prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6 } });
            let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let _ = connection.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (base, heard)
}

/// One request, whole.
fn request(connection: &mut impl Read) -> String {
    let (mut text, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let read = connection.read(&mut buffer).unwrap_or(0);
        text += &String::from_utf8_lossy(&buffer[..read]);
        let length = text.split_once("\r\n\r\n").map(|(head, body)| {
            let line = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            (line.map_or(0, |length| length.parse().unwrap()), body.len())
        });
        if read == 0 || length.is_some_and(|(length, there)| there >= length) {
            return text;
        }
    }
}

/// A server whose model sees, in front of that upstream.
fn serve(base: &str, key: &str) -> (Folder, Process) {
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = '{base}'\n{key}\n[[backend.model]]\nname = 'm'\n\
         price_input = '1'\nprice_output = '1'\ncapabilities = ['images', 'tools']\ncontext = 100000\n\
         [[key]]\nname = 'test'\nhash = '{}'\n",
        stint_types::tenant::hash_key("sk-test")
    ));
    std::fs::write(folder.path().join("upstream.key"), OURS).unwrap();
    let process = folder.serve();
    (folder, process)
}

fn question(content: &Value) -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": content }], "stream": true })
}

/// What callers bring with them, and what it says.
const BROUGHT: [(&str, &str); 16] = [
    ("cookie", "session=callers-cookie"),
    ("x-api-key", "sk-test"),
    ("api-key", "callers-key"),
    ("proxy-authorization", "Basic callers-proxy"),
    ("x-forwarded-for", "203.0.113.7"),
    ("x-forwarded-host", "callers-host"),
    ("x-forwarded-proto", "gopher"),
    ("x-real-ip", "203.0.113.8"),
    ("forwarded", "for=203.0.113.9"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("tracestate", "callers=state"),
    ("baggage", "callers=baggage"),
    ("openai-organization", "callers-organisation"),
    ("openai-project", "callers-project"),
    ("x-stainless-lang", "callers-language"),
    ("user-agent", "callers-agent"),
];

/// AU-18: of a caller's headers none goes upstream; the provider's key is ours, whatever the caller's is called.
#[tokio::test]
async fn a_callers_headers_stay_here_and_the_providers_key_is_ours() {
    let (base, heard) = listening();
    for key in ["api_key_file = 'upstream.key'", ""] {
        let (_folder, process) = serve(&base, key);
        let answer =
            crate::harness::Answer::of(process.request("sk-test", &question(&json!("x")), &BROUGHT)).await;
        assert_eq!(answer.chunks().joined(0, "content"), "word");
        let request = heard.lock().unwrap().pop().unwrap();
        let (head, _) = request.split_once("\r\n\r\n").unwrap();
        for (name, value) in BROUGHT {
            assert!(!request.contains(value), "{name} went upstream: {request}");
        }
        assert!(!request.contains("sk-test"), "{request}");
        let authorized: Vec<&str> = head.lines().filter(|line| line.starts_with("authorization")).collect();
        let expected = format!("authorization: Bearer {OURS}");
        assert_eq!(authorized, if key.is_empty() { vec![] } else { vec![&*expected] });
        let mut names: Vec<&str> = head.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
        names.sort_unstable();
        names.retain(|name| *name != "authorization");
        assert_eq!(names, ["accept", "content-length", "content-type", "host"], "{head}");
    }
}

/// AU-10, IN-08, IN-13, IN-17: nobody here fetches an address, opens a path or runs anything because a caller names it: addresses go to the
/// model's upstream as text, and everything else is refused.
#[tokio::test]
async fn nothing_that_a_caller_names_is_fetched_or_opened() {
    let (base, heard) = listening();
    let (trap, caught) = listening();
    let (folder, process) = serve(&base, "");
    let secret = folder.path().join("stint.toml").display().to_string();
    let part = json!([{ "type": "image_url", "image_url": { "url": "https://example.com/cat.png" } }]);
    let answer = process.ask("sk-test", &question(&part)).await;
    assert_eq!(answer.chunks().joined(0, "content"), "word");
    let request = heard.lock().unwrap().pop().unwrap();
    let body: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["messages"][0]["content"], part, "as it was");
    for (member, value) in [
        ("base_url", json!(trap)),
        ("api_base", json!(trap)),
        ("api_key", json!("sk-x")),
        ("webhook", json!(trap)),
        ("callback_url", json!(trap)),
        ("extra_headers", json!({ "authorization": "x" })),
        ("file", json!(secret)),
        ("chat_template", json!("{{ 7*7 }}")),
    ] {
        let mut body = question(&json!("x"));
        body[member] = value;
        let answer = process.ask("sk-test", &body).await;
        assert_eq!((answer.status, &answer.error()["code"]), (400, &json!("unknown_parameter")), "{member}");
    }
    for path in [
        format!("/v1/models/{secret}"),
        "/v1/models/..%2f..%2fetc%2fpasswd".to_owned(),
        format!("/v1/models/{trap}"),
    ] {
        assert_eq!(process.get("sk-test", &path).await.status, 404, "{path}");
    }
    // What any of these had set off would have come before another question's words, and before our own call of the trap.
    process.ask("sk-test", &question(&json!("x"))).await.chunks();
    let mut own = TcpStream::connect(trap.trim_start_matches("http://").trim_end_matches("/v1")).unwrap();
    own.write_all(b"GET /own HTTP/1.1\r\n\r\n").unwrap();
    own.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(*caught.lock().unwrap(), ["GET /own HTTP/1.1\r\n\r\n"]);
    assert_eq!(heard.lock().unwrap().len(), 1);
}

/// IN-24, IN-25: what is a template, a command, a path or a variable elsewhere is text here, and reaches the model as it is.
#[tokio::test]
async fn what_looks_like_a_template_or_a_path_stays_as_it_is() {
    let (base, heard) = listening();
    let (_folder, process) = serve(&base, "");
    for text in [
        "{{7*7}}",
        "${HOME}",
        "$HOME",
        "<%= 7*7 %>",
        "#{7*7}",
        "{% include '/etc/passwd' %}",
        "%s%n%x {} {0}",
        "$(touch canary)",
        "`id`; rm -rf . | cat && true",
        "../../etc/passwd",
        "file:///etc/passwd",
        "env:OPENAI_API_KEY",
        "os.environ/OPENAI_API_KEY",
        "@/etc/passwd",
    ] {
        let tool = json!({ "type": "function", "function": { "name": "f", "description": text, "parameters": {
            "type": "object", "properties": { text: { "type": "string", "enum": [text] } } } } });
        let mut body = question(&json!(text));
        body["messages"] =
            json!([{ "role": "system", "content": text }, { "role": "user", "content": text }]);
        (body["stop"], body["tools"]) = (json!([text]), json!([tool]));
        (body["user"], body["metadata"]) = (json!(text), json!({ "tag": text }));
        process.ask("sk-test", &body).await.chunks();
        let request = heard.lock().unwrap().pop().unwrap();
        let sent: Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        for message in sent["messages"].as_array().unwrap() {
            assert!(message["content"].as_str().unwrap().starts_with(text), "{message}");
        }
        assert_eq!(sent["messages"].as_array().unwrap().last().unwrap()["content"], text);
        assert_eq!((&sent["tools"], &sent["stop"]), (&body["tools"], &body["stop"]), "{text}");
    }
    let listed = process.get("sk-test", "/v1/models/%7B%7B7*7%7D%7D").await;
    assert!(
        listed.status == 404 && listed.text.contains("{{7*7}}") && !listed.text.contains("49"),
        "{}",
        listed.text
    );
}
