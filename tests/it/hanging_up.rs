//! Callers who leave, and a server that stops.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::cluster::cluster;
use crate::harness::patience::QuietInstant;
use crate::harness::{World, model, tenant};
use stint_backend::scripted::{CallState, PieceGate, ScriptedBackend, ScriptedReply};
use stint_ledger::Journal;
use stint_storage::{
    DatabaseUrl, Postgres, PostgresJournal, PostgresSettings, Sqlite, SqliteJournal, SqliteSettings,
    Synchronous,
};
use stint_types::catalog::EnforcementClass;
use stint_types::units::{Money, Tokens};

/// Sends a request and gives back the connection before anything is answered.
async fn send(world: &World, stream: bool) -> TcpStream {
    let body = json!({
        "model": "m", "stream": stream,
        "messages": [{ "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 50 },
    })
    .to_string();
    let address = world.base.strip_prefix("http://").unwrap();
    let mut connection = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(body.as_bytes()).await.unwrap();
    connection
}

#[tokio::test]
async fn hanging_up_before_the_first_token_stops_the_backend_within_a_second() {
    for stream in [true, false] {
        let gate = PieceGate::shut();
        let script =
            Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(20).answers("3").waits_at(&gate)));
        let world = World::open(model("m", EnforcementClass::Inline), &script).await;
        let connection = send(&world, stream).await;
        script.until(|records| records.len() == 1).await;
        let left = QuietInstant::now();
        drop(connection);
        script.until(|records| records[0].state == CallState::Cancelled).await;
        assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
        world.settled().await;
        assert!(world.account("anonymous").spent.money > Money::ZERO, "the prompt may have been billed");
    }
}

#[tokio::test]
async fn hanging_up_in_the_middle_settles_what_was_used() {
    let gate = PieceGate::shut();
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(20).answers("3").waits_at(&gate)));
    let world = World::open(model("m", EnforcementClass::Inline), &script).await;
    let mut connection = send(&world, true).await;
    gate.let_through(6);
    let mut seen = String::new();
    while !seen.contains("3 ") {
        let mut buffer = [0; 4096];
        let read = connection.read(&mut buffer).await.unwrap();
        seen += &String::from_utf8_lossy(&buffer[..read]);
    }
    drop(connection);
    script.until(|records| records[0].state == CallState::Cancelled).await;
    world.settled().await;
    let spent = world.account("anonymous").spent.thinking.0;
    assert!((3..=6).contains(&spent), "{spent} thinking tokens");
}

#[tokio::test]
async fn stopping_lets_an_answer_that_runs_come_to_its_end() {
    let gate = PieceGate::shut();
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(2).answers("3").waits_at(&gate)));
    let world = World::open(model("m", EnforcementClass::Inline), &script).await;
    let mut connection = send(&world, true).await;
    script.until(|records| records.len() == 1).await;
    let stopped = async {
        let ended = world.stop().await;
        assert!(ended, "nothing is left running");
    };
    let answered = async {
        gate.open();
        let mut text = String::new();
        connection.read_to_string(&mut text).await.unwrap();
        assert!(text.contains("[DONE]"), "{text}");
    };
    tokio::join!(stopped, answered);
}

/// A request by the server's own future, answer and all. Says whether it was answered well before it was dropped, which
/// is when it has been polled that often.
async fn polled(api: &Router, stream: bool, polls_max: usize) -> bool {
    let body = json!({
        "model": "m", "stream": stream,
        "messages": [{ "role": "user", "content": "What is 1+2?" }],
        "budget": { "thinking_tokens": 10, "solution_tokens": 10 },
    });
    let request = Request::post("/v1/chat/completions").header("host", "here");
    let request = request.header("authorization", "Bearer sk-key").header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let answered = TowerToHyperService::new(api.clone()).call(request);
    let mut answered = pin!(async {
        let answer = answered.await.unwrap();
        let status = answer.status();
        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(status, 200, "{text:?}");
    });
    let mut polls = 0;
    poll_fn(|context| {
        polls += 1;
        if polls > polls_max { Poll::Ready(false) } else { answered.as_mut().poll(context).map(|()| true) }
    })
    .await
}

/// Leaves at every poll of a request, streamed or not, and holds the books against what the model was asked.
async fn check_leaving(journal: Arc<dyn Journal>) {
    let play = ScriptedReply::new().thinks(6).answers("3 and 4").pauses(Duration::from_millis(1));
    let script = Arc::new(ScriptedBackend::always(play).reading(Tokens(75)));
    let models = vec![(model("m", EnforcementClass::Inline), script.clone() as _)];
    let world = World::on(journal.clone(), models, vec![tenant("key", 1_000_000)], |_| ()).await;
    for stream in [false, true, false, true] {
        let mut polls_max = 0;
        while !polled(&world.api, stream, polls_max).await {
            polls_max += 1;
            world.settled().await;
        }
        assert!(polls_max > 4, "{polls_max} moments to leave at");
    }
    assert!(polled(&world.api, true, usize::MAX).await, "nothing is broken");
    world.settled().await;
    let account = world.account("key");
    assert!(account.spent.money <= Money(1_000_000) && account.overrun == Money::ZERO, "{account:?}");
    let asked = u64::try_from(script.records().len()).unwrap();
    assert_eq!(account.settled, asked, "whatever reached the model was settled, and nothing else");
    assert!(world.stop().await, "nothing is left running");
    assert_eq!(journal.unresolved().await.unwrap(), []);
    let balances = journal.balances().await.unwrap();
    assert_eq!(balances.iter().map(|one| one.spent.money).sum::<Money>(), account.spent.money);
}

/// CR-13: through admission, dispatch, stream and settlement.
#[tokio::test]
async fn a_caller_may_leave_at_any_moment_with_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let settings = SqliteSettings { path: folder.path().join("stint.db"), synchronous: Synchronous::Full };
    check_leaving(Arc::new(SqliteJournal::new(Arc::new(Sqlite::open(&settings).await.unwrap())))).await;
}

/// CR-13: the same.
#[tokio::test]
async fn a_caller_may_leave_at_any_moment_with_postgres() {
    let url = DatabaseUrl::new(cluster().database());
    let settings = PostgresSettings { url, lease: Duration::from_secs(10) };
    check_leaving(Arc::new(PostgresJournal::new(Arc::new(Postgres::open(&settings).await.unwrap())))).await;
}
