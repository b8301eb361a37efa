//! What a caller sends that means harm, or knows no better: heads, bodies and names that are no request's.
//!
//! Framing is tried in `framing`, floods and crowds in `overload` and `http2`, disguised paths in `strangers`, addresses in
//! `forwarding`.

mod bodies;
mod costly;
mod errors;
mod heads;
mod names;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::patience::within;
use crate::harness::{World, model, tenant};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::EnforcementClass;
use stint_types::units::Tokens;

/// A gateway with one key, `sk-key`, and a model of a large context that answers `3`.
async fn world() -> (World, Arc<ScriptedBackend>) {
    let script = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let mut served = model("m", EnforcementClass::Effort);
    (served.context, served.solution_max) = (Tokens(10_000_000), Some(Tokens(20)));
    let world = World::new(vec![(served, script.clone())], vec![tenant("key", 1 << 50)]).await;
    (world, script)
}

async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(world.base.strip_prefix("http://").unwrap()).await.unwrap()
}

/// What the server says until it ends the connection.
async fn rest(mut connection: TcpStream) -> String {
    let mut all = Vec::new();
    let ended = within(Duration::from_secs(8), connection.read_to_end(&mut all)).await;
    // A reset takes nothing away that was said before.
    assert!(ended.is_ok(), "still open after {}", String::from_utf8_lossy(&all));
    String::from_utf8_lossy(&all).into_owned()
}

/// What it says to these bytes.
async fn said(world: &World, bytes: &[u8]) -> String {
    let mut connection = connect(world).await;
    connection.write_all(bytes).await.unwrap();
    rest(connection).await
}

fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("no answer: {answer:?}"))
}
