//! Callers who speak HTTP/2: many requests on one connection, each of them within the bounds of a connection of its own.

mod caller;
mod floods;
mod secured;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use h2::Reason;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::patience::{QuietInstant, within};
use crate::harness::{World, model, tenant};
use caller::{Caller, PREFACE, question};
use stint::http;
use stint_backend::scripted::{CallRecord, CallState, PieceGate, ScriptedBackend, ScriptedReply};
use stint_types::catalog::EnforcementClass;
use stint_types::units::Tokens;

/// A gateway over a script, with settings of the wire as `adjust` leaves them.
async fn world(script: &Arc<ScriptedBackend>, adjust: impl FnOnce(&mut http::Settings)) -> World {
    let mut long = model("m", EnforcementClass::Inline);
    (long.context, long.solution_max) = (Tokens(1 << 20), Some(Tokens(200_000)));
    let models = vec![(long, script.clone() as _)];
    World::with(models, vec![tenant("key", 1 << 50)], adjust).await
}

fn says(reply: ScriptedReply) -> Arc<ScriptedBackend> {
    Arc::new(ScriptedBackend::always(reply))
}

/// A reply that goes on for as long as anybody reads it.
fn endless() -> ScriptedReply {
    ScriptedReply::new().thinks(1).answers(&"word ".repeat(100_000))
}

#[tokio::test]
async fn many_requests_share_one_connection() {
    let gate = PieceGate::shut();
    let script = says(ScriptedReply::new().thinks(3).answers("3 and 4").waits_at(&gate));
    let world = world(&script, |_| ()).await;
    let caller = Caller::connect(&world, 1 << 20).await;
    let all_at_once = async {
        let running =
            |records: &[CallRecord]| records.iter().filter(|one| one.state == CallState::Running).count();
        script.until(|records| running(records) == 20).await;
        gate.open();
    };
    let asked = join_all((0..20).map(|number| caller.ask(number % 2 == 0)));
    let (answers, ()) = tokio::join!(asked, all_at_once);
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.status(), 200);
        assert!(
            answer.headers().contains_key("x-request-id") && !answer.headers().contains_key("connection")
        );
        let text = caller::text(answer).await.unwrap();
        let expected = if number % 2 == 0 { "[DONE]" } else { "3 and 4" };
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(script.records().len(), 20);
    let models = caller.get("/v1/models", &[]).await;
    assert_eq!(models.status(), 200);
    assert!(caller::text(models).await.unwrap().contains("\"m\""));
}

#[tokio::test]
async fn a_request_that_is_taken_back_stops_its_upstream_and_no_other() {
    let gate = PieceGate::shut();
    let script = says(ScriptedReply::new().thinks(20).answers("3").waits_at(&gate));
    let world = world(&script, |_| ()).await;
    let caller = Caller::connect(&world, 1 << 20).await;
    // One has not been answered yet, one is in the middle of its answer.
    let unanswered = caller.begin(false).await;
    script.until(|records| records.len() == 1).await;
    let mut streamed = caller.begin(true).await;
    script.until(|records| records.len() == 2).await;
    let other = caller.begin(true).await;
    script.until(|records| records.len() == 3).await;
    gate.let_through(12);
    let began = QuietInstant::now();
    drop(unanswered);
    script.until(|records| records[0].state == CallState::Cancelled).await;
    streamed.reset();
    script.until(|records| records[1].state == CallState::Cancelled).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    gate.open();
    let text = caller::text(other.answer().await).await.unwrap();
    assert!(text.contains("[DONE]"), "{text}");
    world.settled().await;
}

#[tokio::test]
async fn a_caller_who_does_not_read_one_answer_costs_little_and_loses_that_answer_alone() {
    let script = Arc::new(ScriptedBackend::in_turn(vec![endless(), ScriptedReply::new().answers("3")]));
    let world = world(&script, |http| http.write_timeout = Duration::from_millis(600)).await;
    let caller = Caller::connect(&world, 16 << 10).await;
    let unread = caller.ask(true).await;
    // Nobody gives the connection's window back, so that the others have what is left of it.
    let began = Instant::now();
    let records = script.until(|records| records[0].state == CallState::Cancelled).await;
    assert!(began.elapsed() >= Duration::from_millis(500), "it has its time: {:?}", began.elapsed());
    // A window, a buffer and a piece of events, and as many bytes of text as a slow caller may lag behind.
    let bytes = records[0].delivered * "word ".len();
    assert!(bytes < 72 << 10, "{bytes} of 500 KB");
    let other = caller::text(caller.ask(true).await).await.unwrap();
    assert!(other.contains("[DONE]"), "{other}");
    assert_eq!(caller::text(unread).await.unwrap_err().reason(), Some(Reason::CANCEL));
    world.settled().await;
}

#[tokio::test]
async fn each_request_counts_like_a_connection() {
    let gate = PieceGate::shut();
    let script = says(ScriptedReply::new().thinks(3).answers("3").waits_at(&gate));
    let limits: [fn(&mut http::Settings); 2] = [
        |http| http.address_connections_max = 2,
        |http| (http.connections_max, http.address_connections_max) = (2, 100),
    ];
    for (limit, why) in limits.into_iter().zip(["address", "full"]) {
        let world = world(&script, limit).await;
        let caller = Caller::connect(&world, 1 << 20).await;
        let held = [caller.begin(true).await, caller.begin(true).await];
        script
            .until(|records| records.iter().filter(|one| one.state == CallState::Running).count() == 2)
            .await;
        let refused = caller.get("/v1/models", &[]).await;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        let counted = format!("stint_connections_turned_away_total{{why=\"{why}\"}} 1");
        assert!(world.metrics_page().contains(&counted), "{why}");
        drop(held);
        script.until(|records| records.iter().all(|one| one.state == CallState::Cancelled)).await;
        while caller.get("/v1/models", &[]).await.status() != 200 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn what_runs_comes_to_its_end_when_the_gateway_stops_and_nothing_new_begins() {
    let gate = PieceGate::shut();
    let script = says(ScriptedReply::new().thinks(2).answers("3").waits_at(&gate));
    let world = world(&script, |_| ()).await;
    let (caller, idle) = (Caller::connect(&world, 1 << 20).await, Caller::connect(&world, 1 << 20).await);
    idle.get("/healthz", &[]).await;
    let running = caller.begin(true).await;
    script.until(|records| records.len() == 1).await;
    let stopped = async {
        // Those without anything to do go at once, by a word of their own.
        assert_eq!(idle.ended().await, Some(Reason::NO_ERROR));
        gate.open();
    };
    let answered = async { caller::text(running.answer().await).await.unwrap() };
    let (ended, (), text) = tokio::join!(world.stop(), stopped, answered);
    assert!(ended, "nothing is left running");
    assert!(text.contains("[DONE]"), "{text}");
}

/// IN-02, IN-03: the same bounds over HTTP/2.
#[tokio::test]
async fn heads_have_the_limits_that_they_have_over_http_1_1() {
    let world = world(&says(ScriptedReply::new().answers("3")), |http| {
        (http.head_max, http.headers_max) = (9 << 10, 10);
    })
    .await;
    let caller = Caller::connect(&world, 1 << 20).await;
    let status = async |headers: &[(&str, &str)]| caller.get("/healthz", headers).await.status().as_u16();
    let long = "x".repeat(8 << 10);
    assert_eq!(status(&[("x", &long)]).await, 200);
    let refused = caller.get("/healthz", &[("x", &long), ("y", &long[..1_000])]).await;
    assert_eq!(refused.status(), 431);
    assert!(caller::text(refused).await.unwrap().contains("head_too_large"));
    // The key and the host are lines too.
    assert_eq!(status(&[("x", "y"); 8]).await, 200);
    assert_eq!(status(&[("x", "y"); 9]).await, 431);
    assert_eq!(status(&[("x", &long), ("y", &long), ("z", &long)]).await, 431, "h2 answers that itself");
    assert_eq!(status(&[("host", "b.example")]).await, 400, "not the authority");
    let twice = caller.get("/v1/models", &[("content-length", "0"), ("content-length", "0")]).await;
    assert_eq!(twice.status(), 400);
    assert!(caller::text(twice).await.unwrap().contains("bad_framing"));
    assert_eq!(status(&[]).await, 200, "the connection goes on");
}

#[tokio::test]
async fn a_body_that_pauses_is_given_up_and_the_connection_goes_on() {
    let world = world(&says(ScriptedReply::new().answers("3")), |http| {
        http.body_timeout = Duration::from_millis(200);
    })
    .await;
    let caller = Caller::connect(&world, 1 << 20).await;
    let half = caller.begin_with_half_a_body().await;
    let answer = within(Duration::from_secs(5), half.answer()).await.expect("an answer");
    assert_eq!(answer.status(), 408);
    assert!(caller::text(caller.ask(true).await).await.unwrap().contains("[DONE]"));
}

#[tokio::test]
async fn a_connection_that_says_nothing_more_is_closed() {
    let world = world(&says(ScriptedReply::new().answers("3")), |http| {
        (http.head_timeout, http.write_timeout) = (Duration::from_millis(200), Duration::from_millis(200));
    })
    .await;
    for sent in [&PREFACE[..20], PREFACE, &[PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat()] {
        let mut connection = TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap();
        connection.write_all(sent).await.unwrap();
        let mut said = Vec::new();
        let ended = within(Duration::from_secs(5), connection.read_to_end(&mut said)).await;
        assert!(ended.is_ok(), "still open after {} bytes", sent.len());
    }
    let caller = Caller::connect(&world, 1 << 20).await;
    assert_eq!(caller.get("/healthz", &[]).await.status(), 200);
    let ended = within(Duration::from_secs(5), caller.ended()).await;
    assert_eq!(ended.expect("an idle connection is closed"), Some(Reason::NO_ERROR));
}

#[tokio::test]
async fn where_no_requests_are_allowed_at_once_only_http_1_1_is_spoken() {
    let world = world(&says(ScriptedReply::new().answers("3")), |http| http.http2_requests_max = 0).await;
    let mut connection = TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap();
    connection.write_all(PREFACE).await.unwrap();
    let mut said = Vec::new();
    within(Duration::from_secs(5), connection.read_to_end(&mut said)).await.expect("it is closed").unwrap();
    assert!(said.is_empty() || said.starts_with(b"HTTP/1.1 4"), "{:?}", String::from_utf8_lossy(&said));
    world.ask("sk-key", &json!({ "model": "m", "messages": question(false)["messages"] })).await.good();
}
