//! What stands before an upstream's answer: too much of it, too strange, or nobody's business.

use std::time::Duration;

use crate::harness::faultup::rig::Rig;
use crate::harness::faultup::script::{Step, answers, good, nothing};
use stint_types::units::Money;

use super::{FAILED, TIMED_OUT, check, impatient, patient};

/// UP-19: words before the answer are not the answer, and there is an end to them.
#[tokio::test]
async fn interim_answers_are_passed_over_for_so_long() {
    let hints = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let flood = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
    let rig = Rig::new(vec![answers().after(hints), answers().after(&flood.repeat(10_000))]).await;
    for _ in 0..2 {
        rig.ask(false).await.good();
    }
    assert_eq!(rig.spent().await, Money(30));
    let endless = Step::Drip(flood.repeat(1000).into_bytes(), Duration::from_millis(1));
    check(nothing().then(endless), TIMED_OUT, impatient).await;
}

/// UP-20: heads without measure are refused.
#[tokio::test]
async fn a_head_without_measure_is_refused() {
    let ok = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let long = format!("{ok}x: {}\r\n\r\n", "x".repeat(1 << 20));
    check(nothing().send(long).then(Step::Hold), FAILED, patient).await;
    let many: String = (0..1000).map(|number| format!("x-{number}: y\r\n")).collect();
    check(nothing().send(format!("{ok}{many}\r\n")).then(Step::Hold), FAILED, patient).await;
    let garbage =
        ["\0\x01\x02garbage\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\r\n\r\n\r\n"];
    for garbage in garbage {
        check(nothing().send(garbage).then(Step::Close), FAILED, patient).await;
    }
}

/// UP-20, UP-24: of an upstream's headers the caller gets none; one of the wrong century changes nothing.
#[tokio::test]
async fn an_upstreams_headers_stay_where_they_are() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a=b\r\nserver: theirs\r\n\
                date: Thu, 01 Jan 1970 00:00:00 GMT\r\nx-request-id: theirs\r\nkeep-alive: timeout=1\r\n\
                x-ratelimit-remaining-tokens: 5\r\nconnection: close\r\nopenai-organization: ours\r\n\r\n";
    let rig = Rig::new(vec![nothing().send(head).send(good(&["42"], 7, 2)).then(Step::Close)]).await;
    for streamed in [true, false] {
        let answer = rig.ask(streamed).await;
        assert_eq!(answer.status, 200);
        for name in
            ["set-cookie", "server", "keep-alive", "openai-organization", "x-ratelimit-remaining-tokens"]
        {
            assert!(!answer.headers.contains_key(name), "{name}");
        }
        let said = format!("{:?}", answer.headers);
        assert!(!said.contains("theirs") && !said.contains(" 1970 "), "{said}");
    }
    assert_eq!((rig.spent().await, rig.ended("finished")), (Money(30), 2));
}

/// UP-20: two ways to say how long it is are none.
#[tokio::test]
async fn an_answer_of_two_lengths_does_not_spoil_the_next_one() {
    let text = good(&["42"], 7, 2);
    let both = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 5\r\n\
         transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n0\r\n\r\n",
        text.len()
    );
    let rig = Rig::new(vec![nothing().send(both), answers()]).await;
    let first = rig.ask(false).await;
    assert!(matches!(first.status, 200 | 502), "{}", first.text);
    assert_eq!(rig.ask(false).await.good()["choices"][0]["message"]["content"], "42");
}
