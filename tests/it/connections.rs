//! Connections that wait for nothing, or for too much, cost others nothing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::harness::faultup::rig::{Caller, Rig, question};
use crate::harness::faultup::script::{Step, answers, chunked, event, says};
use crate::harness::patience::{PATIENCE, QuietInstant};

async fn connect(base: &str) -> TcpStream {
    TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// What is answered to a request for a path, with these header lines.
async fn asked(base: &str, path: &str, headers: &str) -> String {
    let mut connection = connect(base).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, connection.read_to_end(&mut answer)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// 17.6: half heads, from one address or from many, hold up neither the health nor anybody's request.
#[tokio::test]
async fn half_heads_give_their_places_to_whoever_has_something_to_say() {
    for limits in [(20, 20), (200, 20)] {
        let rig = Rig::with(vec![answers()], |knobs| {
            (knobs.http.connections_max, knobs.http.address_connections_max) = limits;
        })
        .await;
        let kept = asked(&rig.world.base, "/v1/models", "authorization: Bearer sk-key\r\n").await;
        assert!(kept.starts_with("HTTP/1.1 200"), "{kept}");
        let mut half = Vec::new();
        for number in 0..100 {
            let mut connection = connect(&rig.world.base).await;
            let head = ["P", "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n", "GET / HTTP/1.1\r\n\r"]
                [number % 3];
            // Some are closed by now.
            let _ = connection.write_all(head.as_bytes()).await;
            half.push(connection);
        }
        let began = QuietInstant::now();
        for path in ["/healthz", "/readyz"] {
            let answer = asked(&rig.world.base, path, "").await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        rig.ask(true).await.chunks();
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        let page = rig.world.metrics_page();
        let evicted = page
            .lines()
            .find_map(|line| line.strip_prefix("stint_connections_turned_away_total{why=\"idle\"} "));
        assert!(evicted.unwrap().parse::<u64>().unwrap() >= 80, "{evicted:?}");
    }
}

/// 17.6: where all are busy, the health is still told, and everybody else is told that there is no place.
#[tokio::test]
async fn a_gateway_whose_connections_are_all_busy_still_tells_its_health() {
    let held = chunked().chunk(&event(&says("4"))).then(Step::Hold);
    let rig = Rig::with(vec![held; 3], |knobs| {
        (knobs.http.connections_max, knobs.http.address_connections_max) = (3, 100);
    })
    .await;
    let mut callers = Vec::new();
    for _ in 0..3 {
        let mut caller = Caller::ask(&rig.world, &question(true), "1.1").await;
        caller.hears("\"4\"").await;
        callers.push(caller);
    }
    for _ in 0..40 {
        let half = connect(&rig.world.base).await;
        std::mem::forget(half);
    }
    for _ in 0..3 {
        assert!(asked(&rig.world.base, "/healthz", "").await.starts_with("HTTP/1.1 200"));
        let refused = asked(&rig.world.base, "/v1/models", "authorization: Bearer sk-key\r\n").await;
        assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("connections_max"), "{refused}");
        assert!(refused.contains("retry-after: 1"), "{refused}");
    }
    let page = rig.world.metrics_page();
    let counted = "stint_http_responses_total{class=\"5xx\",endpoint=\"other\"} 3";
    assert!(page.contains(counted), "what is refused before its path is looked at is counted: {page}");
    drop(callers);
}

/// 17.6: behind a proxy that is trusted, the addresses that it brings are told apart; nobody else's word is taken.
#[tokio::test]
async fn behind_a_trusted_proxy_each_address_has_so_many_requests_at_once() {
    for (proxy, expected) in [("127.0.0.0/8", 503), ("10.0.0.0/8", 200)] {
        let held = chunked().chunk(&event(&says("4"))).then(Step::Hold);
        let rig = Rig::with(vec![held], |knobs| {
            knobs.http.address_connections_max = 2;
            knobs.http.trusted_proxies = vec![proxy.parse().unwrap()];
        })
        .await;
        let mut busy = Vec::new();
        for _ in 0..2 {
            let body = question(true).to_string();
            let mut connection = connect(&rig.world.base).await;
            let request = format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nauthorization: Bearer sk-key\r\nx-forwarded-for: 192.0.2.7\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            if proxy.starts_with("127") {
                connection.write_all(request.as_bytes()).await.unwrap();
                let mut head = [0; 12];
                connection.read_exact(&mut head).await.unwrap();
                busy.push(connection);
            }
        }
        let key = "authorization: Bearer sk-key\r\nx-forwarded-for: ";
        let refused = asked(&rig.world.base, "/v1/models", &format!("{key}203.0.113.1, 192.0.2.7\r\n")).await;
        assert!(refused.starts_with(&format!("HTTP/1.1 {expected}")), "{proxy}: {refused}");
        let other = asked(&rig.world.base, "/v1/models", &format!("{key}192.0.2.7, 203.0.113.1\r\n")).await;
        assert!(other.starts_with("HTTP/1.1 200"), "{proxy}: {other}");
        drop(busy);
    }
}

/// 17.6: an address has so many connections, and is told why it gets no more.
#[tokio::test]
async fn an_address_that_keeps_all_its_connections_busy_gets_no_more() {
    let held = chunked().chunk(&event(&says("4"))).then(Step::Hold);
    let rig = Rig::with(vec![held; 2], |knobs| knobs.http.address_connections_max = 2).await;
    let mut callers = Vec::new();
    for _ in 0..2 {
        let mut caller = Caller::ask(&rig.world, &question(true), "1.1").await;
        caller.hears("\"4\"").await;
        callers.push(caller);
    }
    assert!(
        asked(&rig.world.base, "/healthz", "").await.starts_with("HTTP/1.1 200"),
        "a load balancer is told"
    );
    let refused = asked(&rig.world.base, "/v1/models", "authorization: Bearer sk-key\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("address_connections_max"), "{refused}");
    drop(callers);
}
