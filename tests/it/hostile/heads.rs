//! Heads.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{connect, rest, said, status, world};

const KEY: &str = "host: a\r\nconnection: close\r\nauthorization: Bearer sk-key\r\n";

/// IN-03: under the limits that hold where nothing is said, long lines and long addresses are refused with their reason.
#[tokio::test]
async fn a_long_line_a_long_address_and_many_lines_are_refused() {
    let (world, _) = world().await;
    let long = "x".repeat(60 << 10);
    let many: String = (0..101).map(|number| format!("x-{number}: 1\r\n")).collect();
    for head in [
        format!("GET /v1/models?{long} HTTP/1.1\r\n{KEY}\r\n"),
        format!("GET /v1/models HTTP/1.1\r\n{KEY}x: {long}\r\n\r\n"),
        format!("GET /v1/models HTTP/1.1\r\n{KEY}{}\r\n", "y: z\r\n".repeat(50_000)),
        format!("GET /v1/models HTTP/1.1\r\n{KEY}{many}\r\n"),
    ] {
        let answer = said(&world, head.as_bytes()).await;
        assert_eq!(status(&answer), 431, "{}", &head[..40]);
        assert!(answer.contains("head_too_large"), "{answer}");
    }
}

/// IN-04: a header's name with `_` is not that with `-`, and bytes beyond ASCII in a header that nobody reads change nothing.
#[tokio::test]
async fn a_name_with_an_underscore_is_no_other_name() {
    let (world, _) = world().await;
    let ask = async |lines: &str| {
        let head = format!("GET /v1/models HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{lines}\r\n");
        said(&world, head.as_bytes()).await
    };
    let nobody = ask("").await;
    for lines in ["x_api_key: sk-key\r\n", "x-api_key: sk-key\r\n", "authorization_: Bearer sk-key\r\n"] {
        let answer = ask(lines).await;
        assert_eq!(status(&answer), 401, "{lines}");
        assert!(answer.contains("missing_api_key") && nobody.contains("missing_api_key"), "{answer}");
    }
    let own = "authorization: Bearer sk-key\r\n";
    for lines in ["transfer_encoding: chunked\r\n", "content_length: 40\r\n", "x: \u{e9}\u{4e2d}\r\n"] {
        let answer = ask(&format!("{own}{lines}")).await;
        assert_eq!(status(&answer), 200, "{lines}: {answer}");
    }
    let twice = ask(&format!("{own}authorization: Bearer sk-other\r\n")).await;
    assert_eq!(status(&twice), 401, "{twice}");
}

/// IN-19: what a caller writes and gets back in a header cannot end that header, nor can a raw byte in a head.
#[tokio::test]
async fn no_value_that_comes_back_splits_a_header() {
    let (world, _) = world().await;
    for value in ["a\r\nx-evil: 1", "a\nx-evil: 1", "a\rx-evil: 1", "a\0b"] {
        for member in ["model", "user", "metadata", "episode"] {
            let mut body =
                serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] });
            match member {
                "metadata" => body["metadata"] = serde_json::json!({ "tag": value, "episode_id": value }),
                "episode" => body["budget"] = serde_json::json!({ "episode": value }),
                other => body[other] = value.into(),
            }
            let answer = world.ask("sk-key", &body).await;
            assert!(!answer.headers.contains_key("x-evil"), "{member} {value:?}: {:?}", answer.headers);
            assert!(matches!(answer.status, 200 | 400 | 404), "{member} {value:?}: {}", answer.text);
        }
        let head = format!("GET /v1/models HTTP/1.1\r\n{KEY}x-episode-id: {value}\r\n\r\n");
        let answer = said(&world, head.as_bytes()).await;
        assert!(!answer.to_ascii_lowercase().contains("\r\nx-evil"), "{answer}");
        // A whole line is a line of its own, which the sender may write; a part of one is no head.
        assert_eq!(status(&answer), if value.contains("\r\n") { 200 } else { 400 }, "{value:?}: {answer}");
    }
}

/// IN-21: who waits to be told to go on with a body is told first that it is too large, and not to go on.
#[tokio::test]
async fn who_waits_with_a_body_that_is_too_large_is_not_told_to_go_on() {
    let (world, _) = world().await;
    let head = |length: usize| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\n{KEY}content-type: application/json\r\nexpect: 100-continue\r\n\
             content-length: {length}\r\n\r\n"
        )
    };
    let refused = said(&world, head(40 << 20).as_bytes()).await;
    assert_eq!(status(&refused), 413, "{refused}");
    assert!(!refused.contains("100 Continue"), "{refused}");
    let body = r#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    let mut connection = connect(&world).await;
    connection.write_all(head(body.len()).as_bytes()).await.unwrap();
    let mut told = [0; 12];
    connection.read_exact(&mut told).await.unwrap();
    assert_eq!(&told, b"HTTP/1.1 100", "this one may");
    connection.write_all(body.as_bytes()).await.unwrap();
    assert!(rest(connection).await.contains("HTTP/1.1 200"));
}

/// IN-26: no method opens a tunnel, none says what was sent, and a connection stays with HTTP.
#[tokio::test]
async fn no_method_opens_a_tunnel_or_speaks_another_protocol() {
    let (world, _) = world().await;
    for line in [
        "CONNECT example.com:443",
        "CONNECT /v1/models",
        "TRACE /v1/models",
        "TRACK /v1/models",
        "PROPFIND /v1/models",
        "DEBUG /v1/chat/completions",
        "get /v1/models",
        "BREW /healthz",
    ] {
        let answer = said(&world, format!("{line} HTTP/1.1\r\n{KEY}x-told: 7\r\n\r\n").as_bytes()).await;
        assert!(matches!(status(&answer), 400 | 404 | 405), "{line}: {answer}");
        assert!(!answer.contains("x-told") && !answer.contains("sk-key"), "{line}: {answer}");
    }
    let upgrade = "host: a\r\nauthorization: Bearer sk-key\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\
                   sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for path in ["/v1/models", "/v1/responses", "/v1/realtime"] {
        let answer = said(&world, format!("GET {path} HTTP/1.1\r\n{upgrade}\r\n").as_bytes()).await;
        assert!(matches!(status(&answer), 200 | 404 | 405), "{path}: {answer}");
        assert!(!answer.to_ascii_lowercase().contains("\r\nupgrade:"), "{path}: {answer}");
    }
}

/// The error says which of the two hosts to correct.
#[tokio::test]
async fn what_is_wrong_with_the_host_is_told() {
    let (world, _) = world().await;
    for (target, hosts, told) in [
        ("/v1/models", "", "there is none"),
        ("/v1/models", "host: a\r\nhost: a\r\n", "there are several"),
        ("http://b/v1/models", "host: a\r\n", "names another host than the address"),
    ] {
        let mut connection = connect(&world).await;
        let request = format!("GET {target} HTTP/1.1\r\n{hosts}connection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await.unwrap();
        let answer = rest(connection).await;
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains(told), "{answer}");
    }
}
