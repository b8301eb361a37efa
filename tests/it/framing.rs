//! Heads that a proxy before us might read otherwise than we do: each is refused with its reason, and its connection ends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::faultup::rig::Rig;
use crate::harness::faultup::script::answers;
use crate::harness::patience::within;

/// What a server says to these bytes until it ends the connection.
async fn said(base: &str, bytes: &[u8]) -> String {
    said_in(base, bytes, bytes.len()).await
}

/// The same, sent in pieces of so many bytes.
async fn said_in(base: &str, bytes: &[u8], piece: usize) -> String {
    let mut connection = TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap();
    connection.set_nodelay(true).unwrap();
    for piece in bytes.chunks(piece) {
        connection.write_all(piece).await.unwrap();
        connection.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut answer = Vec::new();
    let ended = within(Duration::from_secs(5), connection.read_to_end(&mut answer)).await;
    assert!(ended.is_ok(), "still open after {:?}", String::from_utf8_lossy(&answer));
    String::from_utf8_lossy(&answer).into_owned()
}

fn error_of(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}")).1;
    serde_json::from_str::<Value>(body).unwrap_or_else(|_| panic!("{answer:?}"))["error"].take()
}

/// 17.14, IN-04: none of them reaches a handler, also where what is hidden in it is a request of its own.
#[tokio::test]
async fn a_body_whose_end_is_in_doubt_is_refused_and_the_connection_ended() {
    let rig = Rig::new(vec![answers()]).await;
    let hidden = "GET /v1/models HTTP/1.1\r\nhost: a\r\n\r\n";
    for lengths in [
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "content-length: 4\r\ncontent-length: 4\r\n",
        "content-length: 4\r\ncontent-length: 44\r\n",
        "content-length: 4, 4\r\n",
        "content-length: +4\r\n",
        "transfer-encoding : chunked\r\n",
        "x: y\n",
        "x: y\r\n transfer-encoding: chunked\r\n",
    ] {
        let request =
            format!("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n{lengths}\r\n0\r\n\r\n{hidden}");
        let answer = said(&rig.world.base, request.as_bytes()).await;
        assert!(
            answer.starts_with("HTTP/1.1 400 ") && answer.matches("HTTP/1.1").count() == 1,
            "{lengths}: {answer}"
        );
        assert!(answer.contains("connection: close") && answer.contains("x-request-id"), "{answer}");
        assert_eq!(error_of(&answer)["code"], json!("bad_framing"), "{lengths}: {answer}");
    }
}

#[tokio::test]
async fn requests_before_the_one_that_is_refused_are_answered_and_those_behind_it_are_not() {
    let rig = Rig::new(vec![answers()]).await;
    let good = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    let bad = "GET /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n";
    let answer = said(&rig.world.base, [good, good, bad, good].concat().as_bytes()).await;
    let statuses: Vec<&str> = answer.matches("HTTP/1.1 200").chain(answer.matches("HTTP/1.1 400")).collect();
    assert_eq!(statuses.len(), 3, "{answer}");
    assert!(
        answer.trim_end().ends_with('}') && answer.rfind("HTTP/1.1 400") > answer.rfind("HTTP/1.1 200"),
        "{answer}"
    );
    let stand_in = said(&rig.world.base, b"REFUSED / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(stand_in.starts_with("HTTP/1.1 404") || stand_in.starts_with("HTTP/1.1 405"), "{stand_in}");
}

#[tokio::test]
async fn a_refusal_before_the_router_has_the_form_of_its_api() {
    let rig = Rig::new(vec![answers()]).await;
    let twice = "content-length: 4\r\ncontent-length: 4\r\n\r\n";
    for path in ["/v1/messages", "/v1/messages/count_tokens?beta=true"] {
        // Whether its head comes whole or in pieces.
        for pieces in [1, 7] {
            let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\nx: y\r\n{twice}");
            let answer = said_in(&rig.world.base, head.as_bytes(), head.len() / pieces).await;
            let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
            let (kind, code) = (&body["error"]["type"], &body["error"]["details"]["error_code"]);
            assert_eq!(
                json!([body["type"], kind, code]),
                json!(["error", "invalid_request_error", "bad_framing"])
            );
            let id = body["request_id"].as_str().unwrap();
            assert!(id.starts_with("req_") && answer.contains(&format!("request-id: {id}")), "{answer}");
        }
    }
    let other = said(&rig.world.base, format!("POST /v1/messagesx HTTP/1.1\r\n{twice}").as_bytes()).await;
    assert_eq!(error_of(&other)["code"], json!("bad_framing"));
}

/// 17.14, IN-03: a head has as many bytes and lines as the settings say, and not one more, however it is sent.
#[tokio::test]
async fn a_head_that_is_too_large_is_refused_at_the_very_byte() {
    let rig = Rig::with(vec![answers()], |knobs| {
        knobs.http.head_max = 9 << 10;
        knobs.http.headers_max = 10;
    })
    .await;
    let sized = |bytes: usize| {
        let rest = "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx: \r\n\r\n";
        rest.replace("x: ", &format!("x: {}", "x".repeat(bytes - rest.len())))
    };
    let fits = said(&rig.world.base, sized(9 << 10).as_bytes()).await;
    assert!(fits.starts_with("HTTP/1.1 200"), "{fits}");
    for bytes in [(9 << 10) + 1, 40 << 10] {
        let answer = said(&rig.world.base, sized(bytes).as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{bytes}: {answer}");
        assert_eq!(error_of(&answer)["code"], json!("head_too_large"));
    }
    let lines = format!("GET /healthz HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(10));
    let answer = said(&rig.world.base, lines.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 431") && error_of(&answer)["message"].to_string().contains("10"),
        "{answer}"
    );
}

/// The body of a request that is sent in pieces is the same, and chunks that are not well formed end it.
#[tokio::test]
async fn chunks_are_taken_as_they_are_meant_or_not_at_all() {
    let rig = Rig::new(vec![answers()]).await;
    let head = "POST /v1/plan HTTP/1.1\r\nhost: a\r\nauthorization: Bearer sk-key\r\ncontent-type: application/json\r\n\
                connection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let body = r#"{"model":"m","messages":[{"role":"user","content":"2+2?"}]}"#;
    let (first, second) = body.split_at(20);
    let chunks = format!("14 ; a=b\r\n{first}\r\n{:X}\r\n{second}\r\n0\r\nx: y\r\n\r\n", second.len());
    let answer = said(&rig.world.base, format!("{head}{chunks}").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for wrong in [
        chunks.replacen("\r\n", "\n", 1),
        chunks.replacen("14 ", "0x14 ", 1),
        chunks.replace("x: y\r", "x: y"),
    ] {
        let answer = said(&rig.world.base, format!("{head}{wrong}").as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400") || answer.is_empty(), "{wrong:?}: {answer}");
    }
}
