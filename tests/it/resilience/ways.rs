//! The ways in which an upstream fails, and what becomes of the request.

use std::time::{Duration, Instant};

use crate::harness::deployment::{backend, nobody};
use crate::harness::patience::QuietInstant;
use crate::harness::tenant;
use stint_backend::fleet;
use stint_types::catalog::Service;

use super::*;

/// UP-01
#[tokio::test]
async fn an_upstream_that_cannot_be_connected_to_is_passed_over_and_its_address_told_to_nobody() {
    let good = Deployment::always(Says::tokens(3)).await;
    let plain_http = good.base.replace("http:", "https:");
    for bad in [nobody().await, "http://nowhere.invalid/v1".to_owned(), plain_http] {
        let world = over(vec![backend(&bad), good.backend()], for_good()).await;
        let began = QuietInstant::now();
        for number in 0..12 {
            let answer = world.ask("", &question(number)).await.good();
            assert_eq!(answer["choices"][0]["message"]["content"], "xxx");
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
        let retries = world.metrics.backends.retries.with_label_values(&["m", "1"]).get();
        assert!((1..=5).contains(&retries), "{retries} until it was left alone");
        let alone = over(vec![backend(&bad)], quick()).await;
        let answer = alone.ask("", &question(0)).await;
        assert!(matches!(answer.status, 502 | 504), "{}", answer.text);
        let address = bad.trim_end_matches("/v1").rsplit('/').next().unwrap();
        assert!(!answer.text.contains(address), "{}", answer.text);
    }
}

/// UP-02
#[tokio::test]
async fn one_that_never_answers_is_given_up_and_what_it_may_bill_is_paid() {
    let (silent, good) = (Deployment::always(Says::Nothing).await, Deployment::always(Says::tokens(3)).await);
    let world = on(&[&silent, &good], quick()).await;
    let mut number = 0;
    let answer = loop {
        let answer = world.ask("", &question(number)).await.good();
        if silent.asked() > 0 {
            break answer;
        }
        number += 1;
    };
    assert_eq!(answer["budget"]["other"]["attempts"], 1);
    // 5 read and 3 written here; there the whole prompt may have been read.
    let cost =
        |budget: &Value| budget["cost_usd"].as_str().unwrap().parse::<stint_types::units::Money>().unwrap().0;
    assert!(cost(&answer["budget"]) > 5 + 3 * 4, "{}", answer["budget"]);
    assert!(answer["budget"]["why"].as_str().unwrap().contains("1 failed before"), "{}", answer["budget"]);
    world.settled().await;
    assert_eq!(world.account("anonymous").reserved.money.0, 0);
}

/// UP-02, and a connection that is gone before the first byte.
#[tokio::test]
async fn one_target_is_tried_again_where_there_is_no_other() {
    for first in [Says::Nothing, Says::HangsUp] {
        let once =
            Deployment::each(move |turn, _| if turn == 0 { first.clone() } else { Says::tokens(3) }).await;
        let world = on(&[&once], quick()).await;
        let answer = world.ask("", &question(0)).await.good();
        assert_eq!((once.asked(), &answer["budget"]["other"]["attempts"]), (2, &json!(1)));
    }
}

/// Who does not stream has read nothing of half an answer: another target writes it from the beginning, and both are paid. Who
/// streams is told.
#[tokio::test]
async fn half_an_answer_is_begun_again_elsewhere_for_who_has_read_none_of_it() {
    let (broken, good) =
        (Deployment::always(Says::Breaks(3)).await, Deployment::always(Says::tokens(5)).await);
    let world = on(&[&broken, &good], without_breaker()).await;
    let cost = |budget: &Value| {
        let cost = budget["cost_usd"].as_str().unwrap();
        cost.parse::<stint_types::units::Money>().unwrap().0
    };
    let mut is_retried = false;
    for number in 0..12 {
        let before = broken.asked();
        let answer = world.ask("", &question(number)).await.good();
        let choice = &answer["choices"][0];
        assert_eq!(
            (&choice["message"]["content"], &choice["finish_reason"]),
            (&json!("xxxxx"), &json!("stop"))
        );
        if broken.asked() > before {
            is_retried = true;
            assert_eq!(answer["budget"]["other"]["attempts"], 1, "{answer}");
            assert!(cost(&answer["budget"]) > 5 + 5 * 4, "what was thrown away is paid: {answer}");
        }
    }
    assert!(is_retried);
    let (mut number, mut told) = (0, String::new());
    while !told.contains("upstream_failed") {
        let mut question = question(number);
        question["stream"] = true.into();
        told = world.ask("", &question).await.text;
        number += 1;
        assert!(number < 100, "{told}");
    }
    assert!(!told.contains("[DONE]") && told.matches(r#""content":"x""#).count() == 3, "{told}");
    world.settled().await;
    assert_eq!(world.account("anonymous").reserved.money.0, 0);
}

/// UP-08
#[tokio::test]
async fn one_that_wants_to_be_left_alone_is_and_where_all_do_the_smallest_wait_is_told() {
    let busy = |headers| Deployment::always(Says::Status(429, headers));
    let (one, other) = (busy("retry-after: 30\r\n").await, busy("retry-after-ms: 20000\r\n").await);
    let world = on(&[&one, &other], quick()).await;
    let answer = world.ask("", &question(0)).await;
    refused(&answer, 429, "rate_limit_exceeded");
    assert_eq!((one.asked(), other.asked()), (1, 1));
    for number in 0..5 {
        let answer = world.ask("", &question(number)).await;
        refused(&answer, 429, "rate_limit_exceeded");
        // A machine that stands still for a while may have used some of it up.
        assert!((10..=22).contains(&wait(&answer)), "{}", wait(&answer));
    }
    assert_eq!((one.asked(), other.asked()), (1, 1), "neither is asked meanwhile");
    let good = Deployment::always(Says::tokens(3)).await;
    let world = on(&[&one, &good], quick()).await;
    for number in 0..12 {
        world.ask("", &question(number)).await.good();
    }
    assert_eq!((one.asked(), good.asked()), (2, 12), "the other serves");
}

/// UP-08: a short wait is waited for.
#[tokio::test]
async fn a_short_wait_is_obeyed_and_then_the_request_is_served() {
    let says = |turn, _: &Value| match turn {
        0 => Says::Status(429, "retry-after: 1\r\n"),
        _ => Says::tokens(3),
    };
    let once = Deployment::each(says).await;
    let world = on(&[&once], quick()).await;
    let began = Instant::now();
    world.ask("", &question(0)).await.good();
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(once.asked(), 2);
}

/// UP-08: those who come meanwhile wait for it too, and are not told that the model failed.
#[tokio::test]
async fn others_wait_for_a_short_pause_and_all_are_served() {
    let says = |turn, _: &Value| match turn {
        0 => Says::Status(429, "retry-after: 1\r\n"),
        _ => Says::tokens(3),
    };
    let once = Deployment::each(says).await;
    let world = on(&[&once], quick()).await;
    let began = Instant::now();
    let first = async { world.ask("", &question(0)).await };
    let others = async {
        until("it is asked", async || once.asked() > 0).await;
        futures_util::future::join_all((1..9).map(async |number| world.ask("", &question(number)).await))
            .await
    };
    let (first, others) = tokio::join!(async { first.await.good() }, others);
    drop(first);
    others.into_iter().for_each(|answer| drop(answer.good()));
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(once.asked(), 10, "nobody asks meanwhile");
}

/// UP-09
#[tokio::test]
async fn our_empty_account_is_not_reported_as_the_callers() {
    let empty = Deployment::always(Says::NoQuota).await;
    let world = on(&[&empty], quick()).await;
    refused(&world.ask("", &question(0)).await, 502, "upstream_failed");
    let asked = json!({ "model": "m", "max_tokens": 50, "messages": [{ "role": "user", "content": "Hi" }] });
    for (path, body) in [
        ("/v1/chat/completions", &question(1)),
        ("/v1/messages", &asked),
        ("/v1/responses", &json!({ "model": "m", "input": "Hi" })),
    ] {
        let resting = world.post(path, "", body).await;
        assert_eq!((resting.status, resting.headers.get("retry-after")), (502, None), "{}", resting.text);
        assert_eq!(resting.headers["x-should-retry"], "false", "{path}: nobody comes back for ten minutes");
        assert!(resting.text.contains("this gateway's own key"), "{}", resting.text);
    }
    assert_eq!(empty.asked(), 1, "it is left alone");
    assert_eq!(world.metrics.backends.trips.with_label_values(&["m", "0", "credential"]).get(), 1);
}

/// UP-10, UP-11
#[tokio::test]
async fn what_may_pass_by_itself_is_tried_again_and_nothing_else() {
    for (status, attempts) in [
        (408, 2),
        (409, 2),
        (429, 2),
        (500, 2),
        (502, 2),
        (503, 2),
        (529, 2),
        (400, 1),
        (401, 1),
        (403, 1),
        (404, 1),
        (422, 1),
    ] {
        let says = move |turn, _: &Value| if turn == 0 { Says::Status(status, "") } else { Says::tokens(3) };
        let once = Deployment::each(says).await;
        let world = on(&[&once], quick()).await;
        let answer = world.ask("", &question(0)).await;
        assert_eq!(once.asked(), attempts, "{status}");
        assert_eq!(answer.status == 200, attempts == 2, "{status}: {}", answer.text);
    }
}

/// UP-10: another deployment may have what this one refuses, but the caller's own mistake is one everywhere.
#[tokio::test]
async fn another_target_is_asked_for_what_one_does_not_have() {
    for status in [401, 403, 404] {
        let says = move |_, _: &Value| Says::Status(status, "");
        let (bad, good) = (Deployment::each(says).await, Deployment::always(Says::tokens(3)).await);
        let world = on(&[&bad, &good], quick()).await;
        for number in 0..8 {
            world.ask("", &question(number)).await.good();
        }
        assert!(bad.asked() > 0, "{status}");
    }
}

/// UP-11
#[tokio::test]
async fn where_the_operator_says_so_nothing_is_asked_twice_that_may_be_billed_twice() {
    let retry = RetrySettings { sent_too: false, ..quick().retry };
    for (says, attempts) in [(Says::Status(408, ""), 1), (Says::Nothing, 1), (Says::Status(500, ""), 2)] {
        let once =
            Deployment::each(move |turn, _| if turn == 0 { says.clone() } else { Says::tokens(3) }).await;
        let world = on(&[&once], fleet::Settings { retry, ..quick() }).await;
        world.ask("", &question(0)).await;
        assert_eq!(once.asked(), attempts);
    }
}

/// UP-10, for vectors.
#[tokio::test]
async fn vectors_are_asked_for_again_too_and_paid_once() {
    let says = |turn, _: &Value| if turn == 0 { Says::Status(503, "") } else { Says::tokens(0) };
    let once = Deployment::each(says).await;
    let model = Model { services: vec![Service::Embeddings], ..plain() };
    let served = vec![Served { resilience: quick(), ..Served::by(model, vec![once.backend()]) }];
    let world = World::fleets(served, vec![tenant("key", 1_000)]).await;
    let answer =
        world.post("/v1/embeddings", "sk-key", &json!({ "model": "m", "input": "hello" })).await.good();
    assert_eq!((once.asked(), &answer["data"][0]["embedding"]), (2, &json!([0.5])));
    world.settled().await;
    let account = world.account("key");
    assert_eq!((account.spent.money.0, account.reserved.money.0), (5, 0));
    assert_eq!(world.metrics.backends.retries.with_label_values(&["m", "0"]).get(), 1);
}

/// What embeddings of `hello` come to where the first answer cannot be read: their status, how often the upstream was asked,
/// and what is spent.
async fn after_a_broken_one(resilience: fleet::Settings, money: u64) -> (u16, usize, u64) {
    let says = |turn, _: &Value| if turn == 0 { Says::Breaks(1) } else { Says::tokens(0) };
    let once = Deployment::each(says).await;
    let model = Model { services: vec![Service::Embeddings], ..plain() };
    let served = vec![Served { resilience, ..Served::by(model, vec![once.backend()]) }];
    let world = World::fleets(served, vec![tenant("key", money)]).await;
    let answer = world.post("/v1/embeddings", "sk-key", &json!({ "model": "m", "input": "hello" })).await;
    world.settled().await;
    let account = world.account("key");
    assert_eq!(account.reserved.money.0, 0);
    (answer.status, once.asked(), account.spent.money.0)
}

#[tokio::test]
async fn vectors_that_may_have_been_made_are_asked_for_again_if_that_is_wanted_and_both_can_be_paid() {
    const BOUND: u64 = 16 + 5;
    assert_eq!(after_a_broken_one(quick(), 1_000).await, (200, 2, BOUND + 5));
    assert_eq!(after_a_broken_one(quick(), 2 * BOUND - 1).await, (502, 1, BOUND), "too little for both");
    let retry = RetrySettings { sent_too: false, ..quick().retry };
    let once = fleet::Settings { retry, ..quick() };
    assert_eq!(after_a_broken_one(once, 1_000).await, (502, 1, BOUND));
}

/// UP-14
#[tokio::test]
async fn one_that_fails_every_second_time_is_left_alone_while_there_is_another() {
    let says = |turn, _: &Value| if turn % 2 == 0 { Says::tokens(3) } else { Says::Status(500, "") };
    let (half, good) = (Deployment::each(says).await, Deployment::always(Says::tokens(3)).await);
    let world = on(&[&half, &good], for_good()).await;
    for number in 0..60 {
        world.ask("", &question(number)).await.good();
    }
    assert_eq!(world.metrics.backends.trips.with_label_values(&["m", "0", "rate"]).get(), 1);
    assert!(half.asked() <= 12, "{}", half.asked());
}

/// UP-15
#[tokio::test]
async fn the_last_target_is_not_taken_away_for_failing_now_and_then() {
    let says = |turn, _: &Value| if turn % 2 == 0 { Says::tokens(3) } else { Says::Status(500, "") };
    let half = Deployment::each(says).await;
    let world = on(&[&half], quick()).await;
    let mut served = 0;
    for number in 0..60 {
        let answer = world.ask("", &question(number)).await;
        // There may be too many retries, but never nobody to ask.
        assert!(matches!(answer.status, 200 | 502), "{}", answer.text);
        served += u32::from(answer.status == 200);
    }
    assert!(served >= 30 && half.asked() >= 60, "{served} of {}", half.asked());
}

/// UP-15
#[tokio::test]
async fn where_all_targets_are_left_alone_refusals_come_at_once_and_say_for_how_long() {
    let broken = || Deployment::always(Says::Status(500, ""));
    let (one, other) = (broken().await, broken().await);
    let world = on(&[&one, &other], quick()).await;
    for number in 0..8 {
        world.ask("", &question(number)).await;
    }
    let asked = one.asked() + other.asked();
    let began = QuietInstant::now();
    for number in 0..10 {
        let answer = world.ask("", &question(number)).await;
        refused(&answer, 503, "overloaded");
        assert!((1..=3).contains(&wait(&answer)), "{}", wait(&answer));
    }
    assert!(began.elapsed() < Duration::from_millis(500), "50 ms each: {:?}", began.elapsed());
    assert_eq!(one.asked() + other.asked(), asked);
    assert_eq!(asked, 10, "five failures each");
}
