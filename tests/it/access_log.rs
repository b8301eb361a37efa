//! The log of requests: a line for each, at its end.

mod blocked;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::harness::{Folder, Process};
use crate::operating::silent_upstream;

/// One key, called `research`.
fn keyed(more: &str) -> String {
    let hash = stint_types::tenant::hash_key("sk-test");
    format!("{more}\n[[key]]\nname = \"research\"\nhash = \"{hash}\"\n")
}

fn question(stream: bool) -> Value {
    json!({
        "model": "reasoner",
        "messages": [{ "role": "user", "content": "What is 12+34*2?" }],
        "budget": { "thinking_tokens": 64, "solution_tokens": 12 },
        "stream": stream,
    })
}

/// The lines of requests, once there are so many.
async fn lines(process: &Process, count: usize) -> Vec<Value> {
    let lines = process.logged_times("stint::requests", count).await;
    assert_eq!(lines.len(), count, "{lines:?}");
    lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.as_str().into())).collect()
}

/// AU-19, OB-01: one line for each request, and no word of its prompt.
#[tokio::test]
async fn every_answer_has_its_line_with_whose_it_was_and_what_it_took() {
    let process = Folder::new(&keyed("[log]\nformat = \"json\"")).serve();
    let whole = process.ask("sk-test", &question(false)).await.good();
    let streamed = process.ask("sk-test", &question(true)).await;
    assert_eq!(streamed.status, 200);
    let lines = lines(&process, 2).await;
    for line in &lines {
        for (name, expected) in [
            ("key", json!("research")),
            ("asked", json!("reasoner")),
            ("model", json!("reasoner")),
            ("status", json!(200)),
            ("outcome", json!("answered")),
            ("path", json!("/v1/chat/completions")),
        ] {
            assert_eq!(line[name], expected, "{name} in {line}");
        }
        assert!(line["target"].is_string() && line["first_token_seconds"].is_number(), "{line}");
        assert!(line.get("code").is_none(), "{line}");
    }
    let (line, budget) = (&lines[0], &whole["budget"]);
    assert_eq!(line["request"], budget["id"]);
    assert_eq!(line["cost_usd"], budget["cost_usd"]);
    assert_eq!(line["thinking_tokens"], budget["thinking"]["used"]);
    assert_eq!(line["answer_tokens"], budget["solution"]["used"]);
    let log = process.lines("").join("\n");
    assert!(!log.contains("sk-test") && !log.contains("12+34"), "neither keys nor prompts: {log}");
}

#[tokio::test]
async fn refusals_have_lines_with_their_codes_and_health_checks_none() {
    let process = Folder::new(&keyed("")).serve();
    process.get("", "/readyz").await;
    process.ask("sk-other", &question(false)).await;
    process.logged("code=\"invalid_api_key\"").await;
    let unknown = json!({ "model": "nobody", "messages": [{ "role": "user", "content": "x" }] });
    process.ask("sk-test", &unknown).await;
    let line = process.logged("code=\"model_not_found\"").await;
    for expected in
        ["key=\"research\"", "asked=\"nobody\"", "status=404", "outcome=\"refused\"", "request=\"req_"]
    {
        assert!(line.contains(expected), "{expected} in {line}");
    }
    assert_eq!(lines(&process, 2).await.len(), 2);
}

#[tokio::test]
async fn what_is_refused_before_anybody_reads_it_has_its_line_too() {
    let process = Folder::new(&keyed("")).serve();
    let mut connection = TcpStream::connect(process.base.strip_prefix("http://").unwrap()).await.unwrap();
    let twice = "content-length: 4\r\ncontent-length: 4\r\n\r\n";
    connection.write_all(format!("POST /v1/messages HTTP/1.1\r\n{twice}").as_bytes()).await.unwrap();
    let line = process.logged("code=\"bad_framing\"").await;
    for expected in ["status=400", "outcome=\"refused\"", "path=\"/v1/messages\"", "request=\"req_"] {
        assert!(line.contains(expected), "{expected} in {line}");
    }
}

#[tokio::test]
async fn a_caller_who_hangs_up_has_a_line_with_what_was_booked() {
    let (base, asked) = silent_upstream();
    let folder = Folder::new(&keyed(&format!(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = '{base}'\n\
         [[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '1'\n"
    )));
    let process = folder.serve();
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] });
    let request = tokio::spawn(process.request("sk-test", &body, &[]).send());
    let upstream = tokio::task::spawn_blocking(move || asked.recv().unwrap()).await.unwrap();
    request.abort();
    let line = process.logged("outcome=\"hung_up\"").await;
    assert!(line.contains("key=\"research\"") && line.contains("cost_usd="), "{line}");
    drop(upstream);
}

#[tokio::test]
async fn lines_of_requests_can_be_switched_off() {
    let mut process = Folder::new(&keyed("[log]\nrequests = false")).serve();
    process.ask("sk-test", &question(false)).await.good();
    process.signal("TERM");
    assert!(process.ended().success());
    assert!(!process.lines("stopping").is_empty());
    assert!(process.lines("stint::requests").is_empty());
}
