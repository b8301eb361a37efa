//! OV-12: floods of frames that cost their sender nothing. They end, and others are served meanwhile.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::caller::{self, Caller, PREFACE};
use super::{says, world};
use crate::harness::World;
use crate::harness::patience::{PATIENCE, QuietInstant, within};
use stint_backend::scripted::{CallState, PieceGate, ScriptedReply};

/// A frame of this type on a stream.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

/// The head of a question, in literals.
fn head() -> Vec<u8> {
    let mut block = vec![0x83, 0x86];
    let lines = [
        (":path", "/v1/chat/completions"),
        (":authority", "a.example"),
        ("authorization", "Bearer sk-key"),
        ("content-type", "application/json"),
    ];
    for (name, value) in lines {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// Sends these bytes after the preface; what comes back until the other side ends it, or for so long.
async fn flood(world: &World, bytes: &[u8], most: Duration) -> (Vec<u8>, bool) {
    let mut connection = TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap();
    let begun = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    connection.write_all(&begun).await.unwrap();
    let (mut read, mut write) = connection.split();
    let mut said = Vec::new();
    // It may be ended before all was sent.
    let sent = async {
        let _ = write.write_all(bytes).await;
        std::future::pending::<()>().await;
    };
    let ended = tokio::select! {
        ended = timeout(most, read.read_to_end(&mut said)) => ended.is_ok(),
        () = sent => false,
    };
    (said, ended)
}

/// Whether a frame of that type is among these bytes.
fn has_frame(mut bytes: &[u8], kind: u8) -> bool {
    while let [a, b, c, found, ..] = *bytes {
        if found == kind {
            return true;
        }
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    false
}

#[tokio::test]
async fn floods_of_frames_are_ended_or_passed_over_while_others_are_served() {
    let script = says(ScriptedReply::new().answers("3"));
    let world = world(&script, |_| ()).await;
    let streams = || (0..20_000).map(|number| 2 * number + 1);
    let resets: Vec<u8> = streams()
        .flat_map(|stream| {
            [frame(HEADERS, 4, stream, &head()), frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())]
        })
        .flatten()
        .collect();
    let continued: Vec<u8> = std::iter::once(frame(HEADERS, 0, 1, &head()))
        .chain((0..20_000).map(|_| frame(CONTINUATION, 0, 1, &[0, 1, b'x', 1, b'y'])))
        .flatten()
        .collect();
    let pings: Vec<u8> = (0..100_000).flat_map(|_| frame(PING, 0, 0, b"pingping")).collect();
    let settings: Vec<u8> = (0..100_000).flat_map(|_| frame(SETTINGS, 0, 0, &[])).collect();
    let opened = frame(HEADERS, 4, 1, &head());
    let empty: Vec<u8> =
        opened.into_iter().chain((0..100_000).flat_map(|_| frame(DATA, 0, 1, &[]))).collect();
    for (name, bytes, must_end) in [
        ("resets", resets, true),
        ("continuations", continued, true),
        ("pings", pings, false),
        ("settings", settings, false),
        ("empty data", empty, false),
    ] {
        let served = async {
            let caller = Caller::connect(&world, 1 << 20).await;
            for _ in 0..20 {
                let began = QuietInstant::now();
                assert!(caller::text(caller.ask(true).await).await.unwrap().contains("[DONE]"));
                assert!(began.elapsed() < Duration::from_secs(1), "during {name}: {:?}", began.elapsed());
            }
        };
        let most = if must_end { PATIENCE } else { Duration::from_secs(2) };
        let ((said, ended), ()) = tokio::join!(flood(&world, &bytes, most), served);
        assert!(ended || !must_end, "{name} goes on");
        // GOAWAY says why.
        assert!(!must_end || has_frame(&said, 7), "{name}: {said:?}");
    }
    assert_eq!(script.records().len(), 5 * 20, "no flood reached a model");
    world.settled().await;
}

#[tokio::test]
async fn who_takes_back_more_requests_than_it_lets_end_loses_its_connection() {
    let script = says(ScriptedReply::new().answers("3").waits_at(&PieceGate::shut()));
    // The modest one has nothing to do for a while, and on a slow machine for long.
    let world = world(&script, |http| http.write_timeout = Duration::from_secs(600)).await;
    let (greedy, modest) = (Caller::connect(&world, 1 << 20).await, Caller::connect(&world, 1 << 20).await);
    for number in 0..100 {
        let sent = greedy.begin(true).await;
        script.until(|records| records.len() > number).await;
        drop(sent);
        script.until(|records| records[number].state == CallState::Cancelled).await;
    }
    within(Duration::from_secs(5), greedy.ended()).await.expect("it is ended");
    assert!(world.metrics_page().contains("stint_connections_turned_away_total{why=\"resets\"} 1"));
    for _ in 0..200 {
        assert_eq!(modest.get("/healthz", &[]).await.status(), 200, "who lets its requests end goes on");
    }
    world.settled().await;
    assert_eq!(script.records().len(), 100);
}
