//! Streams cut, mixed up, broken and hidden by their upstream, as callers and books see them.
//!
//! Signed thoughts (ST-15) are in `providers`, calls beyond a budget (ST-16) elsewhere; ST-22 is a question of load, ST-26
//! one for the SDKs, in `recorded`.

use std::time::Duration;

use serde_json::{Value, json};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::faultup::contains;
use crate::harness::faultup::rig::{Caller, Rig, question};
use crate::harness::faultup::script::{
    DONE, Gate, Step, answers, chunked, ends, event, good, nothing, says, stream, used, whole,
};
use crate::harness::patience::{PATIENCE, QuietInstant, until};
use stint_backend::remote::openai::Dialect;
use stint_types::catalog::EnforcementClass;
use stint_types::units::{Money, Tokens};

/// ST-02 to ST-06: every line end, cut anywhere, comments, a byte order mark, data in several lines.
#[tokio::test]
async fn a_stream_is_the_same_however_its_lines_end_and_its_bytes_are_cut() {
    let text = good(&["4", "2 grüße 🦀"], 7, 2).replace("data: {\"", "data: {\ndata:\"");
    let forms = [
        text.clone(),
        text.replace('\n', "\r\n"),
        text.replace('\n', "\r"),
        format!("\u{feff}: hello\r\r{}", text.replace("\n\n", "\r\n\n")),
        format!(":\n\nevent: ping\nid: 7\nretry: 5\n\n{}", text.replace("\n\n", "\n: between\n\n:\n")),
    ];
    for form in forms {
        let scripts = vec![
            stream().send(&form).then(Step::Close),
            stream().then(Step::Drip(form.clone().into_bytes(), Duration::ZERO)).then(Step::Close),
        ];
        let rig = Rig::new(scripts).await;
        for _ in 0..2 {
            let chunks = rig.ask(true).await.chunks();
            assert!(chunks.done, "{form:?}");
            assert_eq!(chunks.joined(0, "content"), "42 grüße 🦀", "{form:?}");
        }
        assert_eq!(rig.spent().await, Money(30));
    }
}

/// ST-06: silence before the first token and between tokens is kept alive by comments, and by nothing else.
#[tokio::test]
async fn long_silence_is_kept_alive_by_comments() {
    let (first, second) = (Gate::shut(), Gate::shut());
    let script = chunked().wait(&first).chunk(&event(&says("4"))).wait(&second).chunk(&good(&["2"], 7, 2));
    let rig = Rig::with(vec![script.send("0\r\n\r\n")], |knobs| {
        knobs.http.heartbeat = Duration::from_millis(100);
    })
    .await;
    let mut caller = Caller::ask(&rig.world, &question(true), "1.1").await;
    let before = caller.hears("\n\n").await + &caller.hears(": thinking").await;
    assert!(before.starts_with("HTTP/1.1 200 OK") && !before.contains("data:"), "{before}");
    first.open();
    let mut after = caller.hears("\"4\"").await + &caller.hears(": thinking").await;
    second.open();
    after += &caller.hears("[DONE]").await;
    let between = &after[after.find("\"4\"").unwrap()..after.find("\"2\"").unwrap()];
    assert!(between.contains(": thinking\n\n"), "{after}");
    assert!(!after.contains("data: \n") && !after.contains("event:"), "{after}");
    assert_eq!(rig.spent().await, Money(15));
}

/// ST-07, ST-08: a line or an event without measure is refused, and the upstream let go, long before it is at its end.
#[tokio::test]
async fn an_event_without_measure_is_cut_off() {
    let kibi = "x".repeat(1024);
    let line = (0..8192).fold(stream().send("data: "), |script, _| script.send(&kibi));
    let lines = format!("data: {}\n", "x".repeat(64 << 10));
    let event = (0..128).fold(stream(), |script, _| script.send(&lines));
    for (script, most) in [(line, 2 << 20), (event, 6 << 20)] {
        let rig = Rig::new(vec![script.then(Step::Hold)]).await;
        let begun = QuietInstant::now();
        let answer = rig.ask(true).await;
        assert_eq!((answer.status, &answer.error()["code"]), (502, &json!("upstream_failed")));
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        rig.upstream.sees_the_client_leave(0, &QuietInstant::now()).await;
        let sent = rig.upstream.log()[0].sent;
        // What the kernel holds between the two comes on top.
        assert!(sent < most + (6 << 20), "{sent} bytes were taken");
        assert!(rig.spent().await > Money::ZERO);
    }
}

/// ST-10: an end that is told but not marked is marked for the caller.
#[tokio::test]
async fn an_end_mark_that_is_missing_is_added() {
    let text = event(&says("42")) + &event(&ends("stop")) + &event(&used(7, 2));
    let rig = Rig::new(vec![stream().send(text).then(Step::Close)]).await;
    let chunks = rig.ask(true).await.chunks();
    assert!(chunks.done);
    assert_eq!(rig.spent().await, Money(15));
}

/// ST-11: an error inside the stream is told in the API's form, and nothing is tried again.
#[tokio::test]
async fn an_error_inside_a_stream_ends_it() {
    let error = event(&json!({ "error": { "message": "canary", "type": "server_error" } }));
    let text = event(&says("x")).repeat(5) + &error;
    let rig = Rig::new(vec![stream().send(text).then(Step::Close)]).await;
    let answer = rig.ask(true).await;
    let chunks = answer.chunks();
    assert_eq!((chunks.joined(0, "content").as_str(), chunks.done), ("xxxxx", false));
    let last = &chunks.all.last().unwrap()["error"];
    assert_eq!((&last["code"], &last["type"]), (&json!("upstream_failed"), &json!("server_error")));
    assert!(!answer.text.contains("canary"), "its words may quote others");
    assert!(rig.spent().await > Money::ZERO);
    assert_eq!((rig.upstream.log().len(), rig.ended("failed")), (1, 1));
}

/// ST-12: a thought that reaches its budget in the middle stops within an event of it, the answer follows, and the books
/// have no more of it than that.
#[tokio::test]
async fn a_thought_that_reaches_its_budget_stops_within_an_event_and_is_answered() {
    const EVENT: &str = "so it is. ";
    const T: usize = 20;
    let thinks = |text: &str| event(&json!({ "choices": [{ "index": 0, "delta": { "reasoning": text } }] }));
    let endless = (0..400).fold(chunked(), |script, _| script.chunk(&thinks(EVENT)).pause(2));
    for streamed in [true, false] {
        let rig = Rig::with(vec![endless.clone(), answers()], |knobs| {
            knobs.model.classes = vec![EnforcementClass::Turn];
            knobs.model.efforts = Vec::new();
            knobs.model.hand_off.overhead = Tokens(300);
            *knobs.dialect = Dialect::ollama();
        })
        .await;
        let mut body = question(streamed);
        body["budget"] = json!({ "thinking_tokens": T, "solution_tokens": 20 });
        let answer = rig.world.ask("sk-key", &body).await;
        let (thought, said, budget) = if streamed {
            let chunks = answer.chunks();
            assert!(chunks.done);
            let budget = chunks.budget().clone();
            (chunks.joined(0, "reasoning_content"), chunks.joined(0, "content"), budget)
        } else {
            let answer = answer.good();
            let text = |name: &str| answer["choices"][0]["message"][name].as_str().unwrap().to_owned();
            (text("reasoning_content"), text("content"), answer["budget"].clone())
        };
        // Three characters are a token at least, where nobody counts them.
        assert!((2 * T..=3 * T).contains(&thought.len()), "{thought}");
        assert_eq!((said.as_str(), &budget["thinking"]["ended"]), ("42", &json!("cut")), "{budget}");
        rig.upstream.until(|log| log[0].left.is_some()).await;
        let sent = rig.upstream.log()[0].sent / thinks(EVENT).len();
        assert!(sent < 100, "{sent} events of 400 were waited for");
        rig.spent().await;
        let booked = rig.world.account("key").spent.thinking;
        assert!(booked <= Tokens((T + EVENT.len()) as u64), "{booked} of {T}");
    }
}

/// ST-14: thoughts that nobody sees are billed as the upstream bills them.
#[tokio::test]
async fn hidden_thoughts_cost_what_the_upstream_says() {
    let mut usage = used(7, 12);
    usage["usage"]["completion_tokens_details"] = json!({ "reasoning_tokens": 10 });
    let thought = json!({ "choices": [{ "index": 0, "delta": { "reasoning_content": "hm" } }] });
    let text = event(&thought) + &event(&says("42")) + &event(&ends("stop")) + &event(&usage) + DONE;
    let rig = Rig::new(vec![stream().send(text).then(Step::Close)]).await;
    let mut body = question(true);
    body["reasoning"] = json!({ "exclude": true });
    body["budget"] = json!({ "thinking_tokens": 20, "solution_tokens": 20 });
    let answer = rig.world.ask("sk-key", &body).await;
    assert!(answer.chunks().done && !answer.text.contains("hm"), "{}", answer.text);
    assert_eq!(rig.spent().await, Money(7 + 12 * 4));
    assert_eq!(rig.world.account("key").spent.thinking, Tokens(10));
}

/// How a caller leaves.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    Fin,
    Reset,
    Half,
}

/// ST-17: a caller may leave in any way, before the first token, in the middle or while nothing streams. The upstream sees
/// it within a second, and the request is settled.
#[tokio::test]
async fn the_upstream_sees_callers_leave_within_a_second() {
    let silent = nothing().then(Step::Hold);
    let headed = chunked().then(Step::Hold);
    let middle = chunked().chunk(&event(&says("4"))).then(Step::Hold);
    for leaving in [Leaving::Fin, Leaving::Reset, Leaving::Half] {
        for (script, streamed, words) in [
            (&silent, true, ""),
            (&silent, false, ""),
            (&headed, true, ""),
            (&middle, true, "\"4\""),
            (&middle, false, ""),
        ] {
            let rig = Rig::new(vec![script.clone()]).await;
            let mut caller = Caller::ask(&rig.world, &question(streamed), "1.1").await;
            rig.upstream.until(|log| log.len() == 1).await;
            caller.hears(words).await;
            let left = QuietInstant::now();
            let kept = leave(caller, leaving).await;
            rig.upstream.sees_the_client_leave(0, &left).await;
            assert!(rig.spent().await > Money::ZERO, "it may have been billed: {leaving:?}");
            // It is counted behind that.
            until("it is counted", async || rig.ended("hung_up") == 1).await;
            drop(kept);
        }
    }
}

/// What is kept of the connection.
async fn leave(mut caller: Caller, leaving: Leaving) -> Option<Caller> {
    match leaving {
        Leaving::Fin => None,
        Leaving::Reset => {
            SockRef::from(&caller.0).set_linger(Some(Duration::ZERO)).unwrap();
            None
        }
        Leaving::Half => {
            caller.0.shutdown().await.unwrap();
            Some(caller)
        }
    }
}

/// ST-19: what is no stream is an error, whatever it says of itself.
#[tokio::test]
async fn what_is_no_stream_is_never_passed_on() {
    let html = "<html><body>please log in</body></html>";
    let stream_of = "content-type: text/event-stream\r\n";
    let cases = [
        ("content-type: text/html\r\n", html.to_owned()),
        ("", html.to_owned()),
        (stream_of, html.to_owned()),
        ("content-type: application/json\r\n", json!({ "choices": [] }).to_string()),
        (stream_of, json!({ "choices": [] }).to_string()),
        (stream_of, String::new()),
        (stream_of, format!("data: {html}\n\n")),
        (stream_of, "data: 5\n\n".to_owned()),
        (stream_of, "data: {\"choices\":5}\n\n".to_owned()),
    ];
    for (headers, body) in cases {
        let rig = Rig::new(vec![whole("200 OK", headers, &body)]).await;
        for streamed in [true, false] {
            let answer = rig.ask(streamed).await;
            assert_eq!(
                (answer.status, &answer.error()["code"]),
                (502, &json!("upstream_failed")),
                "{headers}{body}"
            );
            assert!(!answer.text.contains("log in"), "{}", answer.text);
        }
        // Behind a page for people no model was at work; behind all else one may have been.
        assert_eq!(rig.spent().await == Money::ZERO, headers.contains("text/html"), "{headers}{body}");
    }
}

/// ST-20: the last usage that makes sense is the one that counts.
#[tokio::test]
async fn usage_is_believed_as_far_as_it_makes_sense() {
    let usage = |prompt, completion| event(&used(prompt, completion));
    let strange =
        event(&json!({ "choices": [], "usage": { "prompt_tokens": -1, "completion_tokens": "x" } }));
    let null = event(&json!({ "choices": [], "usage": null }));
    let cases = [
        (usage(7, 2), 15),
        (usage(7, 1) + &usage(7, 2), 15),
        (usage(7, 2) + &usage(7, 2), 15),
        (usage(7, 2) + &usage(7, 0), 15),
        (usage(7, 2) + &strange + &null, 15),
    ];
    for (usages, nanos) in cases {
        let text = event(&says("42")) + &event(&ends("stop")) + &usages + DONE;
        let rig = Rig::new(vec![stream().send(&text).then(Step::Close)]).await;
        assert!(rig.ask(true).await.chunks().done);
        assert_eq!(rig.spent().await, Money(nanos), "{text}");
    }
    for usages in [String::new(), strange, null] {
        let text = event(&says("42")) + &event(&ends("stop")) + &usages + DONE;
        let rig = Rig::new(vec![stream().send(&text).then(Step::Close)]).await;
        assert!(rig.ask(true).await.chunks().done);
        assert!(rig.spent().await > Money::ZERO, "{text}");
        assert_eq!(rig.world.metrics.thinking.estimated.with_label_values(&["m"]).get(), 1, "{text}");
    }
}

/// ST-21: we ask for the usage, and who did not ask for it does not get it.
#[tokio::test]
async fn the_usage_is_asked_for_and_kept() {
    let rig = Rig::new(vec![answers()]).await;
    let plain = rig.ask(true).await.chunks();
    assert!(plain.all.iter().all(|chunk| chunk.get("usage").is_none()), "{plain:?}");
    let mut body = question(true);
    body["stream_options"] = json!({ "include_usage": true });
    let asked = rig.world.ask("sk-key", &body).await.chunks();
    assert_eq!(asked.all.last().unwrap()["usage"]["prompt_tokens"], 7);
    for exchange in rig.upstream.log() {
        assert_eq!(exchange.body["stream_options"], json!({ "include_usage": true }));
    }
}

/// ST-23: two choices are two answers, each by its index, and both are paid.
#[tokio::test]
async fn choices_are_kept_apart_and_paid_each() {
    let rig = Rig::new(vec![answers()]).await;
    let mut body = question(true);
    body["n"] = json!(2);
    let chunks = rig.world.ask("sk-key", &body).await.chunks();
    assert_eq!((chunks.joined(0, "content").as_str(), chunks.joined(1, "content").as_str()), ("42", "42"));
    assert!(chunks.done);
    let asked = rig.upstream.log().len();
    assert_eq!(rig.spent().await, Money(15 * u64::try_from(asked).unwrap()), "as the upstream's log says");
    assert_eq!(asked, 2);
}

/// ST-24: nobody asked for compressed answers, so none is unpacked, whatever may be in it.
#[tokio::test]
async fn a_compressed_answer_is_refused_unread() {
    for coding in ["gzip", "br", "zstd", "deflate", "gzip, gzip"] {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: {coding}\r\nconnection: close\r\n\r\n"
        );
        let rig = Rig::new(vec![nothing().send(head).then(Step::Hold)]).await;
        let answer = rig.ask(true).await;
        assert_eq!((answer.status, &answer.error()["code"]), (502, &json!("upstream_failed")));
        rig.upstream.sees_the_client_leave(0, &QuietInstant::now()).await;
        assert!(!rig.upstream.log()[0].head.contains("accept-encoding"));
        assert!(rig.spent().await > Money::ZERO);
    }
    let plain = good(&["42"], 7, 2);
    let rig = Rig::new(vec![whole(
        "200 OK",
        "content-type: text/event-stream\r\ncontent-encoding: identity\r\n",
        &plain,
    )])
    .await;
    assert!(rig.ask(true).await.chunks().done);
}

/// ST-25: a caller of HTTP/1.0 gets the stream as bytes until the end.
#[tokio::test]
async fn an_old_caller_gets_a_stream_that_the_connections_end_ends() {
    let rig = Rig::new(vec![answers()]).await;
    let mut caller = Caller::ask(&rig.world, &question(true), "1.0").await;
    let mut all = Vec::new();
    tokio::time::timeout(PATIENCE, caller.0.read_to_end(&mut all)).await.unwrap().unwrap();
    let text = String::from_utf8(all).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(head.contains(" 200 OK") && !head.to_ascii_lowercase().contains("chunked"), "{head}");
    assert!(body.starts_with("data: {") && body.ends_with(DONE), "{body}");
    assert_eq!(rig.spent().await, Money(15));
}

/// ST-27: an event that is whole needs no blank line at the end; one that is cut is a break, unless the answer was whole before.
#[tokio::test]
async fn the_last_event_needs_no_blank_line_and_what_is_cut_is_a_break() {
    let said = event(&says("42")) + &event(&ends("stop")) + &event(&used(7, 2));
    for mark in ["data: [DONE]", "data: [DONE]\n", "data:[DONE]\r\n", "data: [DONE] \n\n"] {
        let rig = Rig::new(vec![stream().send(format!("{said}{mark}")).then(Step::Close)]).await;
        assert!(rig.ask(true).await.chunks().done, "{mark:?}");
        assert_eq!(rig.spent().await, Money(15));
    }
    let rig = Rig::new(vec![stream().send(said.trim_end()).then(Step::Close)]).await;
    assert!(rig.ask(true).await.chunks().done);
    assert_eq!(rig.spent().await, Money(15), "its usage was read");
    let rig = Rig::new(vec![stream().send(&said[..said.len() - 3]).then(Step::Close)]).await;
    assert!(rig.ask(true).await.chunks().done, "only the usage is missing");
    assert!(rig.spent().await > Money::ZERO);
    let unended: &Value = &ends("stop");
    let text = event(&says("42")) + format!("data: {unended}").trim_end_matches('}');
    let rig = Rig::new(vec![stream().send(text).then(Step::Close)]).await;
    let chunks = rig.ask(true).await.chunks();
    assert!(!chunks.done);
    assert_eq!(chunks.all.last().unwrap()["error"]["code"], "upstream_failed");
    assert!(rig.spent().await > Money::ZERO);
}

/// The log of the upstream, whatever else happens, shows our key in its header and nowhere else.
#[tokio::test]
async fn our_key_is_in_one_header_alone() {
    use crate::harness::faultup::rig::CANARY;
    let rig = Rig::new(vec![answers()]).await;
    let answer = rig.ask(true).await;
    assert!(!contains(answer.text.as_bytes(), CANARY.as_bytes()));
    let exchange = &rig.upstream.log()[0];
    assert_eq!(exchange.head.matches(CANARY).count(), 1, "{}", exchange.head);
    assert!(!exchange.body.to_string().contains(CANARY));
    assert!(!exchange.head.contains("sk-key"), "the caller's key goes no further");
}
