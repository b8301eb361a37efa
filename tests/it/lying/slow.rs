//! Of issue 17, item 2: providers that are slow, stop or never end. Each call to one ends within its limits, in a clear error or
//! in an answer, and what was received is booked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::liar::{Lie, begins, ends, says};
use super::{Way, resident};
use crate::harness::alone::is_alone;
use crate::harness::patience::QuietInstant;
use crate::harness::{Answer, World, model, tenant};
use stint_backend::remote;
use stint_backend::remote::openai::Dialect;
use stint_types::catalog::{EnforcementClass, Model};

/// How long the gateway waits for a piece, and for the whole.
const IDLE: Duration = Duration::from_millis(700);
const TOTAL: Duration = Duration::from_secs(2);
/// A call is tried again after a failure, so that a few of them may follow one another.
const END_MAX: Duration = Duration::from_secs(20);

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stall {
    /// Sends no head.
    Silent,
    /// Sends a byte of its head now and then.
    HeadDrips,
    /// Sends header lines without end.
    HeadForever,
    /// Sends one header of 64 MB.
    HeaderBomb,
    /// Says for ever that it goes on (103).
    Informational,
    /// Sends a byte of its answer now and then.
    BodyDrips,
    /// Sends the first token, and no more.
    AfterFirst,
    /// Sends comments without end after the first token.
    Comments,
    /// The same, one now and then.
    SlowComments,
    /// Sends events that say nothing, without end.
    EmptyDeltas,
    /// One line of 100 MB.
    LongLine,
    /// A usage that is no number.
    NotANumber,
    /// Ends the answer, and goes on thinking for ever.
    AfterDone,
    /// Ends the answer, and never its body.
    BodyOpen,
}

const STALLS: [Stall; 14] = [
    Stall::Silent,
    Stall::HeadDrips,
    Stall::HeadForever,
    Stall::HeaderBomb,
    Stall::Informational,
    Stall::BodyDrips,
    Stall::AfterFirst,
    Stall::Comments,
    Stall::SlowComments,
    Stall::EmptyDeltas,
    Stall::LongLine,
    Stall::NotANumber,
    Stall::AfterDone,
    Stall::BodyOpen,
];

impl Stall {
    /// Whether its answer is whole all the same.
    fn is_whole(self) -> bool {
        matches!(self, Stall::AfterDone | Stall::BodyOpen)
    }

    /// Whether a token came before it went wrong.
    fn has_token(self) -> bool {
        use Stall::{AfterFirst, Comments, EmptyDeltas, LongLine, NotANumber, SlowComments};
        matches!(self, AfterFirst | Comments | SlowComments | EmptyDeltas | LongLine | NotANumber)
            || matches!(self, Stall::AfterDone | Stall::BodyOpen)
    }

    /// Plays it to a client, until that hangs up.
    fn play(self, way: Way, client: &mut TcpStream) -> std::io::Result<()> {
        if self.has_token() {
            client.write_all(HEAD.as_bytes())?;
            chunk(client, &(begins(way.speech(), false) + &text(way, "word ")))?;
        }
        match self {
            Stall::Silent | Stall::AfterFirst => Ok(()),
            Stall::HeadDrips => drip(client, HEAD.replace("\r\n\r\n", "\r\nx-more: y").as_bytes(), b"y"),
            Stall::HeadForever => {
                client.write_all(b"HTTP/1.1 200 OK\r\n")?;
                forever(|| client.write_all(b"x-more: and so it goes on\r\n"))
            }
            Stall::HeaderBomb => {
                client.write_all(b"HTTP/1.1 200 OK\r\nx-more: ")?;
                client.write_all(&vec![b'y'; 64 << 20])
            }
            Stall::Informational => forever(|| client.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n")),
            Stall::BodyDrips => {
                client.write_all(HEAD.as_bytes())?;
                forever(|| {
                    pause();
                    chunk(client, ":")
                })
            }
            Stall::Comments => forever(|| chunk(client, ": so it goes on\n\n")),
            Stall::SlowComments => forever(|| {
                pause();
                chunk(client, ": so it goes on\n\n")
            }),
            Stall::EmptyDeltas => forever(|| chunk(client, &text(way, ""))),
            Stall::LongLine => {
                chunk(client, "data: ")?;
                (0..100).try_for_each(|_| chunk(client, &"y".repeat(1 << 20)))
            }
            Stall::NotANumber => chunk(client, &not_a_number(way)),
            Stall::AfterDone => {
                chunk(client, &ends(way.speech(), Some(&json!(1))))?;
                forever(|| chunk(client, &says(way.speech(), true, "still ", (0, Lie::Repeats))))
            }
            Stall::BodyOpen => chunk(client, &ends(way.speech(), Some(&json!(1)))),
        }
    }
}

/// The chat completions of OpenAI.
const CHAT: Way = Way::Chat(Dialect::openai, EnforcementClass::Effort);
/// The other dialects. What goes wrong before an answer begins is the same for all.
const OTHERS: [Way; 3] = [Way::Anthropic(EnforcementClass::Native), Way::Gemini, Way::Responses];

/// An event with a piece of the answer.
fn text(way: Way, text: &str) -> String {
    says(way.speech(), false, text, (0, Lie::Repeats))
}

/// The event that has the usage, which is no number.
fn not_a_number(way: Way) -> String {
    let all = ends(way.speech(), Some(&json!("@"))).replace("\"@\"", "NaN");
    let usage = all.split_inclusive("\n\n").find(|event| event.contains("NaN"));
    usage.unwrap_or_default().to_owned()
}

fn chunk(client: &mut TcpStream, text: &str) -> std::io::Result<()> {
    client.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

fn forever(mut write: impl FnMut() -> std::io::Result<()>) -> std::io::Result<()> {
    loop {
        write()?;
    }
}

fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}

/// Sends what there is byte by byte, and then the same byte for ever.
fn drip(client: &mut TcpStream, bytes: &[u8], last: &[u8]) -> std::io::Result<()> {
    client.write_all(bytes)?;
    forever(|| {
        pause();
        client.write_all(last)
    })
}

/// The provider, on threads of its own: it blocks while nobody reads. Returns its address.
fn start(way: Way, stall: Stall) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut request = [0; 64 << 10];
                let _ = client.read(&mut request);
                let _ = stall.play(way, &mut client);
                // It keeps the connection open until the client ends it.
                while client.read(&mut request).is_ok_and(|read| read > 0) {}
            });
        }
    });
    address
}

async fn world(way: Way, stall: Stall) -> World {
    let client = remote::Settings {
        base_url: start(way, stall),
        first_byte: IDLE,
        idle: IDLE,
        total: TOTAL,
        ..remote::Settings::default()
    };
    let model = Model { thinking_max: stint_types::units::Tokens(0), ..model("m", way.class()) };
    World::with(vec![(model, way.backend_at(client))], vec![tenant("t", 20_000)], |_| ()).await
}

async fn ask(world: &World, stream: bool) -> Answer {
    let body = json!({
        "model": "m", "messages": [{ "role": "user", "content": "What is it?" }], "stream": stream,
        "budget": { "solution_tokens": 16 },
    });
    world.ask("sk-t", &body).await
}

async fn check(way: Way, stall: Stall, stream: bool) {
    let world = world(way, stall).await;
    let began = QuietInstant::now();
    let answer = ask(&world, stream).await;
    let (took, shown) = (began.elapsed(), answer.text.chars().take(600).collect::<String>());
    let what = format!("{way:?} {stall:?} stream={stream}: {} after {took:?} {shown}", answer.status);
    assert!(took < END_MAX, "{what}");
    let is_clear = ["upstream_failed", "upstream_timeout", "no_answer", "stream_interrupted"]
        .iter()
        .any(|code| answer.text.contains(code));
    assert_eq!(is_clear, !stall.is_whole(), "{what}");
    if !stream || !stall.has_token() {
        assert_eq!(answer.status < 300, stall.is_whole(), "{what}");
    }
    world.settled().await;
    let account = world.account("t");
    assert_eq!(account.reserved.money.0, 0, "{what}");
    if stall.has_token() {
        // The prompt, and the token that came.
        assert!(account.spent.money.0 > 4, "{what}: {} booked", account.spent.money.0);
    }
    assert!(account.spent.money.0 <= 20_000, "{what}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_ends_within_its_limits_and_what_was_received_is_booked() {
    if !is_alone("lying::slow::every_call_ends_within_its_limits_and_what_was_received_is_booked") {
        return;
    }
    for stream in [false, true] {
        let cases = STALLS.map(|stall| tokio::spawn(check(CHAT, stall, stream)));
        let before = resident();
        let mut failed = Vec::new();
        for case in cases {
            failed.extend(case.await.err().map(|error| error.to_string()));
        }
        let grown = resident().saturating_sub(before);
        assert!(failed.is_empty(), "{failed:#?}");
        // The provider's own lines of a megabyte and its bomb among it.
        assert!(grown < 256 << 20, "{grown} bytes more are held");
    }
}

/// 17.2: once an answer has begun, each dialect has its own way to stop, to say nothing and to go on behind its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_of_any_dialect_that_stops_or_never_ends_is_given_up_within_its_limits() {
    let stalls = STALLS.into_iter().filter(|stall| stall.has_token());
    let cases: Vec<_> =
        stalls.flat_map(|stall| OTHERS.map(|way| tokio::spawn(check(way, stall, true)))).collect();
    let mut failed = Vec::new();
    for case in cases {
        failed.extend(case.await.err().map(|error| error.to_string()));
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
