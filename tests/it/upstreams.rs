//! Upstreams that fail, as bytes on the wire: what the caller gets, when the upstream is let go, what is booked.
//!
//! Tries again, breakers and other targets (UP-08, UP-10 to UP-17) have tests of their own; so has a reload (UP-21).

mod heads;
mod streams_of_one;

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use socket2::{Domain, Socket, Type};
use tokio::net::TcpStream;

use crate::harness::faultup::rig::{CANARY, Knobs, Rig, over, question, spent};
use crate::harness::faultup::script::{
    Script, Step, answers, chunked, event, good, nothing, says, stream, whole,
};
use crate::harness::faultup::{Faultup, Identity};
use crate::harness::patience::QuietInstant;
use crate::harness::{Answer, Folder, World, free_port};
use stint_types::units::{Money, Tokens};

/// What a failed request may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    /// No model was at work.
    Nothing,
    /// One may have been.
    Something,
}

/// What a caller gets.
#[derive(Debug, Clone, Copy)]
struct Expected {
    status: u16,
    code: &'static str,
    cost: Cost,
    /// The stream has begun, so its status is 200 and the error an event.
    begun: bool,
}

/// How often a request is tried at most.
const ATTEMPTS_MAX: usize = 3;

const FAILED: Expected =
    Expected { status: 502, code: "upstream_failed", cost: Cost::Something, begun: false };
const TIMED_OUT: Expected = Expected { status: 504, code: "upstream_timeout", ..FAILED };

fn patient(knobs: &mut Knobs) {
    knobs.upstream.connect = Duration::from_millis(300);
}

fn impatient(knobs: &mut Knobs) {
    knobs.upstream.first_byte = Duration::from_millis(300);
    knobs.upstream.idle = Duration::from_millis(300);
    knobs.upstream.total = Duration::from_millis(1500);
}

/// The error that a caller reads, in OpenAI's shape and without our insides.
fn shape(answer: &Answer, expected: Expected, streamed: bool) {
    assert!(!answer.text.contains(CANARY) && !answer.text.contains("127.0.0.1"), "{}", answer.text);
    let error = if streamed && expected.begun {
        let chunks = answer.chunks();
        assert!(!chunks.done, "a clean end would look like success");
        chunks.all.last().unwrap()["error"].clone()
    } else {
        assert_eq!(answer.status, expected.status, "{}", answer.text);
        assert_eq!(answer.headers["content-type"], "application/json");
        answer.error()
    };
    assert_eq!(error["code"], expected.code, "{error}");
    let members: Vec<&String> = error.as_object().unwrap().keys().collect();
    assert_eq!(members, ["message", "type", "param", "code"]);
}

fn cost(spent: Money, expected: Cost) {
    let cost = if spent == Money::ZERO { Cost::Nothing } else { Cost::Something };
    assert_eq!(cost, expected, "{spent:?}");
}

/// Asks for a stream and for a whole answer, each of an upstream of its own that answers so, and holds caller, books,
/// metrics and log against what is to be.
async fn check(script: Script, expected: Expected, adjust: impl Fn(&mut Knobs)) {
    for streamed in [true, false] {
        let rig = Rig::with(vec![script.clone()], &adjust).await;
        let begun = QuietInstant::now();
        let answer = rig.ask(streamed).await;
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        let answered = QuietInstant::now();
        shape(&answer, expected, streamed);
        cost(rig.spent().await, expected.cost);
        assert_eq!((rig.ended("failed"), rig.ended("finished")), (1, 0));
        rig.upstream.until(|log| log.iter().all(|exchange| exchange.over)).await;
        let log = rig.upstream.log();
        for place in (0..log.len()).filter(|place| log[*place].left.is_some()) {
            rig.upstream.sees_the_client_leave(place, &answered).await;
        }
        // What nobody has seen anything of may be tried again; what somebody has may not.
        let most = if streamed && expected.begun { 1 } else { ATTEMPTS_MAX };
        assert!((1..=most).contains(&log.len()), "asked {} times", log.len());
    }
}

/// A gateway whose upstream cannot be reached.
async fn unreachable(world: World, codes: &[(u16, &str)]) {
    for streamed in [true, false] {
        let begun = QuietInstant::now();
        let answer = world.ask("sk-key", &question(streamed)).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "within the connect timeout");
        let code = answer.error()["code"].as_str().unwrap().to_owned();
        assert!(codes.contains(&(answer.status, &code)), "{}", answer.text);
        assert!(!answer.text.contains("localhost") && !answer.text.contains("invalid"), "{}", answer.text);
    }
    cost(spent(&world).await, Cost::Nothing);
}

/// UP-01: nobody listens, nobody accepts, nobody has the name: told within the time for connecting, and free.
#[tokio::test]
async fn an_upstream_that_cannot_be_reached_costs_nothing() {
    let nobody = free_port();
    unreachable(over(&format!("http://127.0.0.1:{nobody}"), patient).await, &[(502, "upstream_failed")])
        .await;
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    // The kernel has room for one that nobody accepts, and does not answer others.
    let mut waiting = Vec::new();
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        waiting.push(connected.unwrap());
    }
    unreachable(over(&format!("http://{address}"), patient).await, &[(504, "upstream_timeout")]).await;
    let either = [(502, "upstream_failed"), (504, "upstream_timeout")];
    unreachable(over("http://nobody.invalid", patient).await, &either).await;
}

/// UP-01: a certificate that nobody vouches for, and one for another host.
#[tokio::test]
async fn an_upstream_whose_certificate_is_wrong_is_sent_nothing() {
    for host in ["localhost", "elsewhere.example"] {
        let upstream = Faultup::secure(vec![answers()], &Identity::of(host)).await;
        unreachable(over(&upstream.address, patient).await, &[(502, "upstream_failed")]).await;
        assert!(upstream.log().is_empty(), "no key left the house");
    }
}

/// A model that answers at once.
fn thoughtless(knobs: &mut Knobs) {
    impatient(knobs);
    (knobs.model.thinking_max, knobs.model.efforts) = (Tokens::ZERO, Vec::new());
}

/// UP-02: it takes the request and says nothing. Where a thought is hidden, that may be how it thinks.
#[tokio::test]
async fn an_upstream_that_never_answers_is_given_up_at_the_first_byte() {
    let begun = QuietInstant::now();
    check(nothing().then(Step::Hold), TIMED_OUT, thoughtless).await;
    // A plain answer is waited for as long as its tokens may take, here until all of the time is over.
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    check(nothing().then(Step::Hold), TIMED_OUT, impatient).await;
}

/// A server of one's own that loads or reads for long goes on with what nobody waits for: the same is not sent there again,
/// neither by the gateway nor by the caller's SDK.
#[tokio::test]
async fn a_server_that_reads_for_long_is_asked_once_and_the_error_says_what_to_raise() {
    for streamed in [true, false] {
        let rig = Rig::with(vec![nothing().then(Step::Hold)], |knobs| {
            thoughtless(knobs);
            knobs.upstream.reads_for_long = true;
        });
        let rig = rig.await;
        let answer = rig.ask(streamed).await;
        shape(&answer, TIMED_OUT, streamed);
        assert_eq!(answer.headers["x-should-retry"], "false");
        // A plain answer is waited for as long as all of it may take.
        let key = if streamed { "first_byte_timeout" } else { "total_timeout" };
        assert!(answer.text.contains(&format!("{key} of its [[backend]]")), "{}", answer.text);
        assert_eq!(rig.upstream.log().len(), 1, "it is still at it");
    }
}

#[tokio::test]
async fn a_stated_deadline_is_waited_for_where_nobody_set_the_time_of_the_first_byte() {
    let late = || {
        let steps = answers();
        vec![steps.steps().iter().fold(nothing().pause(900), |late, step| late.then(step.clone()))]
    };
    let rig = Rig::with(late(), |knobs| {
        thoughtless(knobs);
        knobs.upstream.lengthened.first_byte = true;
    });
    let rig = rig.await;
    let mut body = question(false);
    body["budget"]["deadline_ms"] = json!(20_000);
    assert_eq!(rig.world.ask("sk-key", &body).await.status, 200);
    assert_eq!(rig.upstream.log().len(), 1);
}

/// A request of more tokens than the provider takes in a minute never passes. Smaller ones do meanwhile.
#[tokio::test]
async fn what_is_larger_than_the_limit_of_a_minute_is_sent_once_and_told_with_its_figures() {
    let body = json!({ "error": {
        "message": "Request too large for m in organization org-x on tokens per min (TPM): Limit 30000, Requested 45213. The input \
                    or output tokens must be reduced in order to run successfully.",
        "type": "tokens", "param": null, "code": "rate_limit_exceeded",
    }});
    let head = "content-type: application/json\r\nretry-after: 1\r\n";
    let large = whole("429 Too Many Requests", head, &body.to_string());
    let rig = Rig::new(vec![large, answers()]).await;
    let answer = rig.ask(false).await;
    let told = Expected { status: 413, code: "request_too_large", ..FAILED };
    shape(&answer, told, false);
    assert_eq!(answer.headers["x-should-retry"], "false");
    assert!(answer.text.contains("45213 tokens, and 30000 a minute"), "{}", answer.text);
    assert_eq!(rig.upstream.log().len(), 1);
    assert_eq!(rig.ask(false).await.status, 200, "smaller ones pass");
}

/// UP-03, UP-04: a hidden thought is silent for as long as it takes, before the head and after it; an answer is not, and
/// neither is a model that hides none.
#[tokio::test]
async fn a_hidden_thought_may_be_silent_for_longer_than_an_answer() {
    let long = |knobs: &mut Knobs| {
        impatient(knobs);
        knobs.upstream.total = Duration::from_secs(20);
    };
    let thinks = || nothing().pause(700).then(chunked().steps()[0].clone()).pause(700);
    let rig = Rig::with(vec![thinks().chunk(&good(&["4", "2"], 7, 2)).send("0\r\n\r\n")], long).await;
    assert_eq!(rig.ask(true).await.chunks().joined(0, "content"), "42");
    assert_eq!((rig.upstream.log().len(), rig.spent().await), (1, Money(15)));
    let stalls = thinks().chunk(&event(&says("4"))).then(Step::Hold);
    check(stalls, Expected { begun: true, ..TIMED_OUT }, long).await;
    check(thinks().then(Step::Hold), TIMED_OUT, thoughtless).await;
}

/// UP-03, UP-04: it falls silent after its head, and in the middle.
#[tokio::test]
async fn an_upstream_that_falls_silent_is_given_up() {
    check(stream().then(Step::Hold), TIMED_OUT, impatient).await;
    let middle = chunked().chunk(&event(&says("4"))).then(Step::Hold);
    check(middle, Expected { begun: true, ..TIMED_OUT }, impatient).await;
}

/// UP-05: a byte now and then, never long enough apart to be silent.
#[tokio::test]
async fn an_upstream_that_dribbles_is_ended_by_the_time_for_the_whole() {
    let dribble = Step::Drip(vec![b':'; 400], Duration::from_millis(50));
    check(stream().then(dribble.clone()), TIMED_OUT, impatient).await;
    let words = event(&says("4")).repeat(40);
    let words = Step::Drip(words.into_bytes(), Duration::from_millis(2));
    check(stream().then(words), Expected { begun: true, ..TIMED_OUT }, impatient).await;
    // Its head alone takes too long.
    check(
        nothing().then(Step::Drip(b"HTTP/1.1 200 OK\r\nx: y".to_vec(), Duration::from_millis(50))),
        TIMED_OUT,
        impatient,
    )
    .await;
}

/// UP-06: however a stream breaks off, it is never taken for its end.
#[tokio::test]
async fn a_stream_that_breaks_off_is_an_error_for_the_caller() {
    let begun = Expected { begun: true, ..FAILED };
    let said = event(&says("4"));
    check(chunked().pause(50).then(Step::Reset), FAILED, patient).await;
    check(chunked().chunk(&said).pause(50).then(Step::Reset), begun, patient).await;
    check(chunked().chunk(&said).send("ff\r\ndata: {").then(Step::Close), begun, patient).await;
    check(chunked().chunk(&said).send("xyz\r\n").then(Step::Hold), begun, patient).await;
    check(chunked().chunk(&said).send("0\r\n\r\n"), begun, patient).await;
    check(stream().send(&said).then(Step::Close), begun, patient).await;
    check(stream().send(&said).then(Step::HalfClose), begun, patient).await;
    let short = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n";
    check(nothing().send(short).send(&said).then(Step::Close), begun, patient).await;
}

/// UP-06: vectors are no stream; theirs is not cut short either.
#[tokio::test]
async fn vectors_that_break_off_are_an_error_for_the_caller() {
    let body = json!({ "model": "m", "input": "hello" });
    let short = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{\"data\":[";
    for script in [nothing().send(short).then(Step::Close), nothing().then(Step::Reset)] {
        let rig = Rig::new(vec![script]).await;
        let answer = rig.world.post("/v1/embeddings", "sk-key", &body).await;
        shape(&answer, FAILED, false);
        cost(rig.spent().await, Cost::Something);
    }
}

/// UP-06: over TLS, an end that nobody announced is a break.
#[tokio::test]
async fn an_end_without_tls_goodbye_is_a_break() {
    let identity = Identity::of("localhost");
    let said = event(&says("4"));
    let scripts =
        vec![stream().send(&said).then(Step::Close), stream().send(good(&["4"], 7, 1)).then(Step::Close)];
    let upstream = Faultup::secure(scripts, &identity).await;
    let folder = Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = '{}/v1'\n\
         [[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '1'\n",
        upstream.address
    ));
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, &identity.pem).unwrap();
    let mut command = folder.stint("serve");
    command.env("SSL_CERT_FILE", &trusted);
    let process = folder.serve_by(command);
    let broken = process.ask("", &question(true)).await;
    shape(&broken, Expected { begun: true, ..FAILED }, true);
    let ended = process.ask("", &question(true)).await.chunks();
    assert!(ended.done, "what was said to be the end is one, whatever becomes of the connection");
}

/// UP-09: the quota of our account is not the caller's.
#[tokio::test]
async fn our_empty_account_is_not_the_callers_empty_budget() {
    let body =
        json!({ "error": { "message": "You exceeded your current quota", "code": "insufficient_quota" } });
    let script = whole("429 Too Many Requests", "content-type: application/json\r\n", &body.to_string());
    check(script, Expected { cost: Cost::Nothing, ..FAILED }, patient).await;
    let script = whole("429 Too Many Requests", "retry-after: 7\r\n", "{}");
    let busy = Expected { status: 429, code: "rate_limit_exceeded", cost: Cost::Nothing, begun: false };
    check(script, busy, patient).await;
}

/// UP-18: our key goes to no host that an upstream names.
#[tokio::test]
async fn a_redirect_leads_nowhere() {
    let elsewhere = Faultup::start(vec![answers()]).await;
    for status in
        ["301 Moved", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
    {
        let location = format!("location: {}/v1/chat/completions\r\n", elsewhere.address);
        check(whole(status, &location, ""), Expected { cost: Cost::Nothing, ..FAILED }, patient).await;
    }
    assert_eq!(elsewhere.connections(), 0);
}

/// UP-22: a connection that the upstream has closed meanwhile is not used, and nothing is asked twice.
#[tokio::test]
async fn a_connection_that_went_stale_is_replaced_in_silence() {
    let closes = answers().pause(30).then(Step::Close);
    let rig =
        Rig::new(vec![answers(), closes.clone(), answers().pause(30).then(Step::Reset), answers()]).await;
    for _ in 0..4 {
        rig.ask(false).await.good();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let connections: Vec<usize> = rig.upstream.log().iter().map(|exchange| exchange.connection).collect();
    assert_eq!(connections, [0, 0, 1, 2], "each asked once");
    assert_eq!((rig.spent().await, rig.ended("finished")), (Money(60), 4));
}

/// UP-22: the same where the connection ends just as the next question may be on its way.
#[tokio::test]
async fn a_connection_that_ends_as_it_is_used_asks_nothing_twice() {
    let rig = Rig::new(vec![answers().then(Step::Close)]).await;
    for round in 0..50 {
        let answer = rig.ask(round % 2 == 0).await;
        assert_eq!(answer.status, 200, "{round}: {}", answer.text);
    }
    assert_eq!((rig.upstream.log().len(), rig.ended("finished")), (50, 50));
    assert_eq!(rig.spent().await, Money(50 * 15), "as the upstream's log says");
}

/// UP-22: the same where the upstream leaves a question unread that has reached it already. It is sent once more, on a new
/// connection. Neither the caller nor the ledger notices; only the target's statistics show it.
#[tokio::test]
async fn a_question_that_nobody_read_is_sent_once_more_and_counted() {
    for streamed in [true, false] {
        let ignores = answers().then(Step::Ignore);
        let rig = Rig::new(vec![ignores.clone(), ignores, answers()]).await;
        for _ in 0..3 {
            let answer = rig.ask(streamed).await;
            let budget =
                if streamed { answer.chunks().budget().clone() } else { answer.good()["budget"].clone() };
            assert_eq!(budget["other"]["attempts"].as_u64().unwrap_or(0), 0, "{budget}");
        }
        assert_eq!((rig.upstream.log().len(), rig.ended("finished")), (3, 3), "each was read once");
        assert_eq!((rig.spent().await, rig.upstream.connections()), (Money(45), 3));
        assert_eq!(rig.world.metrics.backends.retries.with_label_values(&["m", "0"]).get(), 1);
    }
}

/// UP-22: nothing proves that nobody read it, so where the operator wants nothing billed twice it counts as sent.
#[tokio::test]
async fn a_question_whose_connection_is_reset_is_not_resent_where_it_might_be_billed_twice() {
    let ignores = answers().then(Step::Ignore);
    let rig = Rig::with(vec![ignores, answers()], |knobs| knobs.upstream.sent_too = false).await;
    rig.ask(false).await.good();
    // The gateway may try again here, and it books what the first attempt may have cost.
    let budget = rig.ask(false).await.good()["budget"].clone();
    assert_eq!(budget["other"]["attempts"], 1, "{budget}");
    assert!(rig.spent().await > Money(30), "what may have been billed is booked");
}

/// UP-22: a question that was read may have been worked on. It is tried again where that is allowed, and not in silence;
/// one that is ignored on a connection of its own is not sent for ever.
#[tokio::test]
async fn a_question_that_was_read_is_never_sent_again_in_silence() {
    let closes = nothing().pause(20).then(Step::Close);
    let rig = Rig::new(vec![answers(), closes, answers()]).await;
    rig.ask(false).await.good();
    let budget = rig.ask(false).await.good()["budget"].clone();
    assert_eq!(budget["other"]["attempts"], 1, "{budget}");
    assert_eq!(rig.upstream.log().len(), 3);
    assert!(rig.spent().await > Money(30), "what may have been billed is booked");

    let resets = nothing().pause(200).then(Step::Reset);
    let rig = Rig::new(vec![answers(), resets, answers()]).await;
    rig.ask(false).await.good();
    let budget = rig.ask(false).await.good()["budget"].clone();
    assert_eq!(budget["other"]["attempts"], 1, "{budget}");
}

/// UP-25: a refusal that comes while a large body is on its way is delivered, the rest is not sent, and the connection is
/// not used again.
#[tokio::test]
async fn an_answer_before_the_question_was_sent_stops_the_question() {
    let too_large = Expected { status: 400, code: "upstream_refused", cost: Cost::Nothing, begun: false };
    let bad_key = Expected { cost: Cost::Nothing, ..FAILED };
    for (status, expected) in [("413 Content Too Large", too_large), ("401 Unauthorized", bad_key)] {
        let refusal = whole(status, "", r#"{"error":{"message":"no"}}"#).early().pause(200).then(Step::Close);
        let rig = Rig::with(vec![refusal, answers()], |knobs| {
            knobs.model.context = Tokens(100_000_000);
        })
        .await;
        let mut long = question(false);
        long["messages"][0]["content"] = json!("x".repeat(15 << 20));
        let begun = QuietInstant::now();
        let answer = rig.world.ask("sk-key", &long).await;
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        shape(&answer, expected, false);
        cost(rig.spent().await, Cost::Nothing);
        // A key that was refused may be left alone for a while.
        if expected.status == 400 {
            rig.ask(false).await.good();
            assert_eq!(rig.upstream.log()[1].connection, 1);
        }
    }
}
