//! Plays the scripts on one connection.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::time::timeout;

use crate::harness::patience::QuietInstant;

use super::log::Log;
use super::script::{Script, Step};
use super::socket::Socket;

/// The scripts still to be played. The last stays.
#[derive(Debug, Clone)]
pub(super) struct Scripts(Arc<Mutex<Vec<Script>>>);

impl Scripts {
    pub(super) fn new(mut scripts: Vec<Script>) -> Scripts {
        scripts.reverse();
        Scripts(Arc::new(Mutex::new(scripts)))
    }

    fn next(&self) -> Script {
        let mut left = self.0.lock().unwrap();
        if left.len() > 1 { left.pop().unwrap() } else { left.last().unwrap().clone() }
    }
}

/// A request without its body, and the bytes that came after its head.
struct Head {
    text: String,
    rest: Vec<u8>,
}

/// Whether the connection goes on.
enum Then {
    Ask,
    End,
    Reset,
}

pub(super) async fn serve(mut socket: Socket, connection: usize, scripts: &Scripts, log: &Log) {
    while let Some(head) = read_head(&mut socket).await {
        let script = scripts.next();
        let Some(body) = read_body(&mut socket, &head, script.reads_body).await else { return };
        let place = log.asked(connection, head.text, body);
        let then = play(&mut socket, script.steps, &mut Played { log, place }).await;
        log.note(place, |exchange| exchange.over = true);
        match then {
            Then::Ask => {}
            Then::End => return,
            Then::Reset => return socket.reset(),
        }
    }
}

/// One exchange in the log.
struct Played<'a> {
    log: &'a Log,
    place: usize,
}

impl Played<'_> {
    fn left(&self) -> Then {
        let now = QuietInstant::now();
        self.log.note(self.place, |exchange| {
            exchange.left.get_or_insert(now);
        });
        Then::End
    }

    fn sent(&self, count: usize) {
        self.log.note(self.place, |exchange| exchange.sent += count);
    }
}

async fn play(socket: &mut Socket, steps: Vec<Step>, played: &mut Played<'_>) -> Then {
    for step in steps {
        let goes_on = match step {
            Step::Send(bytes) => send(socket, &bytes, played).await,
            Step::Drip(bytes, each) => drip(socket, &bytes, each, played).await,
            Step::Pause(time) => timeout(time, gone(socket)).await.is_err(),
            Step::Wait(gate) => tokio::select! {
                () = gate.pass() => true,
                () = gone(socket) => false,
            },
            Step::Hold => timeout(Duration::MAX, gone(socket)).await.is_err(),
            Step::HalfClose => {
                let _ = socket.half_close().await;
                gone(socket).await;
                false
            }
            Step::Ignore => {
                socket.has_more().await;
                return Then::End;
            }
            Step::Reset => return Then::Reset,
            Step::Close => return Then::End,
        };
        if !goes_on {
            return played.left();
        }
    }
    Then::Ask
}

async fn send(socket: &mut Socket, bytes: &[u8], played: &Played<'_>) -> bool {
    let sent = socket.write(bytes).await.is_ok();
    if sent {
        played.sent(bytes.len());
    }
    sent
}

async fn drip(socket: &mut Socket, bytes: &[u8], each: Duration, played: &Played<'_>) -> bool {
    for byte in bytes {
        if !send(socket, &[*byte], played).await {
            return false;
        }
        if !each.is_zero() && timeout(each, gone(socket)).await.is_ok() {
            return false;
        }
    }
    true
}

/// Resolves when the client has left; what it says meanwhile is not listened to.
async fn gone(socket: &mut Socket) {
    let mut bytes = [0; 4096];
    while socket.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
}

async fn read_head(socket: &mut Socket) -> Option<Head> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            return Some(Head { text, rest: bytes.split_off(end + 4) });
        }
        let mut more = [0; 4096];
        let count = socket.read(&mut more).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&more[..count]);
    }
}

/// `None` where the client leaves before all of it has come.
async fn read_body(socket: &mut Socket, head: &Head, wanted: bool) -> Option<Value> {
    if !wanted {
        return Some(Value::Null);
    }
    let length = head.text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
    let mut body = head.rest.clone();
    while body.len() < length {
        let mut more = vec![0; 64 << 10];
        let count = socket.read(&mut more).await.ok().filter(|count| *count > 0)?;
        body.extend_from_slice(&more[..count]);
    }
    Some(serde_json::from_slice(&body).unwrap_or_default())
}
