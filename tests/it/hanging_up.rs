//! Callers who leave, and a server that stops.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use stint::backend::scripted::{Gate, Play, Scripted, State};
use stint::catalog::Class;
use stint::units::Money;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{World, model};

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
        let gate = Gate::shut();
        let script = Arc::new(Scripted::always(Play::new().thinks(20).answers("3").waits_at(&gate)));
        let world = World::open(model("m", Class::Inline), &script).await;
        let connection = send(&world, stream).await;
        script.until(|records| records.len() == 1).await;
        let left = Instant::now();
        drop(connection);
        script.until(|records| records[0].state == State::Cancelled).await;
        assert!(left.elapsed() < Duration::from_secs(1), "{:?}", left.elapsed());
        world.settled().await;
        assert!(world.account("anonymous").spent.money > Money::ZERO, "the prompt may have been billed");
    }
}

#[tokio::test]
async fn hanging_up_in_the_middle_settles_what_was_used() {
    let gate = Gate::shut();
    let script = Arc::new(Scripted::always(Play::new().thinks(20).answers("3").waits_at(&gate)));
    let world = World::open(model("m", Class::Inline), &script).await;
    let mut connection = send(&world, true).await;
    gate.let_through(6);
    let mut seen = String::new();
    while !seen.contains("3 ") {
        let mut buffer = [0; 4096];
        let read = connection.read(&mut buffer).await.unwrap();
        seen += &String::from_utf8_lossy(&buffer[..read]);
    }
    drop(connection);
    script.until(|records| records[0].state == State::Cancelled).await;
    world.settled().await;
    let spent = world.account("anonymous").spent.thinking.0;
    assert!((3..=6).contains(&spent), "{spent} thinking tokens");
}

#[tokio::test]
async fn stopping_lets_an_answer_that_runs_come_to_its_end() {
    let gate = Gate::shut();
    let script = Arc::new(Scripted::always(Play::new().thinks(2).answers("3").waits_at(&gate)));
    let world = World::open(model("m", Class::Inline), &script).await;
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
