//! HTTP/2 over TLS, by ALPN: the real binary, on both listeners, with a client that chooses by itself.

use axum::http::Version;
use serde_json::json;

use crate::harness::Answer;
use crate::securing::{Secured, TOKEN, question};

#[tokio::test]
async fn both_listeners_speak_http_2_to_who_offers_it() {
    let secured = Secured::new("", "").await;
    let process = secured.serve();
    let version = async |url: String, key: &str| {
        let answer = process.client.get(url).bearer_auth(key).send().await.unwrap();
        (answer.status().as_u16(), answer.version())
    };
    assert_eq!(version(format!("{}/healthz", process.base), "").await, (200, Version::HTTP_2));
    assert_eq!(version(format!("{}/admin/keys", secured.admin), TOKEN).await, (200, Version::HTTP_2));
    let answer = process.ask("sk-test", &question()).await;
    assert!(answer.status == 200 && answer.text.contains("[DONE]"), "{}", answer.text);
    // The page is guarded by its Host, which HTTP/2 has as its authority.
    let page = process.client.get(format!("{}/", secured.admin)).header("accept", "text/html");
    assert_eq!(page.send().await.unwrap().status(), 200);
    let other = process.client.post(format!("{}/admin/keys", secured.admin)).bearer_auth(TOKEN);
    let made =
        Answer::of(other.header("content-type", "application/json").body(json!({ "name": "x" }).to_string()));
    assert_eq!(made.await.status, 201);
}

#[tokio::test]
async fn where_it_is_switched_off_callers_get_http_1_1() {
    let secured = Secured::new("http2_requests_max = 0\n", "").await;
    let process = secured.serve();
    let answer = process.client.get(format!("{}/healthz", process.base)).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, Version::HTTP_11));
}
