//! Why an upstream refused: the operator reads it in the log, and no caller sees it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::harness::Folder;

/// What each model is refused with: its status, what is said, and the code.
const REFUSALS: [(&str, u16, &str, &str); 3] = [
    ("lost", 404, "The model `gpt-9` does not exist", "model_not_found"),
    ("locked", 401, "this key was revoked", "invalid_api_key"),
    ("picky", 400, "cannot read 'my diary'", "invalid_value"),
];

/// An upstream that refuses every model as the table says, until the test ends.
fn refusing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().flatten().for_each(refuse));
    base
}

fn refuse(mut stream: TcpStream) {
    let (mut asked, mut part) = (String::new(), [0; 4096]);
    while !asked.contains("\r\n\r\n") || !asked.ends_with('}') {
        let Ok(length @ 1..) = stream.read(&mut part) else { return };
        asked.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    let named = |(name, ..): &&(&str, _, _, _)| asked.contains(&format!("\"{name}\""));
    let (_, status, message, code) = REFUSALS.iter().find(named).unwrap();
    let body = json!({ "error": { "message": message, "code": code } }).to_string();
    let head = "content-type: application/json\r\nconnection: close";
    let _ = write!(stream, "HTTP/1.1 {status} No\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
}

fn folder(more: &str) -> Folder {
    let names = REFUSALS.map(|(name, ..)| format!("{name:?}")).join(", ");
    Folder::new(&format!("[[backend]]\nbase_url = \"{}\"\n{more}\nmodels = [{names}]\n", refusing()))
}

fn question(model: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": "Read my diary." }] })
}

#[tokio::test]
async fn the_log_has_why_an_upstream_refused_and_no_word_of_a_prompt() {
    let process = folder("log_messages = true").serve();
    for (model, status, reason) in [
        ("lost", 502, r#"the upstream answered 404: "The model `gpt-9` does not exist" (model_not_found)"#),
        ("locked", 502, r#": "this key was revoked" (invalid_api_key)"#),
        ("picky", 400, "the upstream answered 400: it refuses the request: invalid_value"),
    ] {
        let answer = process.ask("", &question(model)).await;
        assert_eq!(answer.status, status, "{}", answer.text);
        assert!(!answer.text.contains("gpt-9") && !answer.text.contains("revoked"), "{}", answer.text);
        process.logged(reason).await;
    }
    process.logged("it is left alone for 10m (credential_rest)").await;
    let resting = process.ask("", &question("locked")).await;
    assert_eq!((resting.status, resting.headers.get("retry-after")), (502, None), "{}", resting.text);
    assert_eq!(resting.headers["x-should-retry"], "false");
    assert_eq!(process.lines("diary"), Vec::<String>::new());
}

/// AU-19: an upstream may quote a prompt, so its words are off unless asked for.
#[tokio::test]
async fn unless_the_operator_asks_for_an_upstreams_words_the_log_has_its_codes_alone() {
    let process = folder("").serve();
    for (model, _, message, code) in REFUSALS {
        process.ask("", &question(model)).await;
        process.logged(code).await;
        assert_eq!(process.lines(message), Vec::<String>::new());
    }
    process.logged("the upstream answered 404: model_not_found").await;
    process.logged("invalid_api_key").await;
}

#[test]
fn a_probe_tells_why_an_upstream_answers_nothing() {
    let folder = folder("");
    for (model, status, message, _) in REFUSALS {
        let output = folder.stint("probe").arg(model).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert!(told.contains(&status.to_string()) && told.contains(message), "{told}");
    }
}
