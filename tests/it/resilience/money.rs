//! Attempts and money: the upstreams' own logs are the truth.

use futures_util::future::join_all;

use crate::harness::tenant;
use stint_types::catalog::{Prices, Tariff};
use stint_types::units::{Money, Price};

use super::*;

/// UP-16: what an attempt may have cost is kept beside the next one's worst case, or there is no next one.
#[tokio::test]
async fn another_attempt_is_made_only_if_it_can_be_paid_beside_the_first() {
    let limit = async |nanos: u64| {
        let silent = |_, _: &Value| Says::Nothing;
        let (one, other) = (Deployment::each(silent).await, Deployment::each(silent).await);
        let targets = vec![one.backend(), other.backend()];
        let served = vec![Served { resilience: quick(), ..Served::by(plain(), targets) }];
        let world = World::fleets(served, vec![tenant("key", nanos)]).await;
        let answer = world.ask("sk-key", &question(0)).await;
        world.settled().await;
        let spent = world.account("key").spent.money;
        assert!(spent <= Money(nanos), "{spent} of {nanos}");
        (answer.status, one.asked() + other.asked(), spent)
    };
    let (status, attempts, all) = limit(1_000_000).await;
    assert_eq!((status, attempts), (504, 3));
    let worst = {
        // What one attempt that never answered is charged is its prompt; its worst case has 40 tokens more at 4.
        let prompt = all.0 / 3;
        prompt + 4 * 56
    };
    let (_, attempts, _) = limit(worst).await;
    assert_eq!(attempts, 1, "the second does not fit");
    let (_, attempts, spent) = limit(worst + all.0 / 3).await;
    assert_eq!(attempts, 2, "the third does not fit");
    assert_eq!(spent.0, all.0 / 3 * 2);
}

/// All targets of a model come before another model.
#[tokio::test]
async fn another_model_takes_over_when_every_target_of_the_first_has_failed() {
    let broken = || Deployment::always(Says::Status(500, ""));
    let (one, other) = (broken().await, broken().await);
    let up = Arc::new(ScriptedBackend::always(ScriptedReply::new().answers("3")));
    let dear = |tokens: u64| Price { per_million_tokens: Money(tokens * 1_000_000) };
    let dearer = Tariff::plain(Prices { input: dear(10), output: dear(40) });
    let second: Vec<Arc<dyn Backend>> = vec![up.clone()];
    let served = vec![
        Served { resilience: quick(), ..Served::by(plain(), vec![one.backend(), other.backend()]) },
        Served::by(Model { tariff: Some(dearer), name: "z".into(), ..plain() }, second),
    ];
    let world = World::fleets(served, Vec::new()).await;
    let mut body = question(0);
    body["model"] = "auto".into();
    body["budget"] = json!({ "preference": 0 });
    let answer = world.ask("", &body).await.good();
    assert_eq!((&answer["model"], one.asked(), other.asked()), (&json!("z"), 1, 1), "{answer}");
    assert_eq!(answer["budget"]["other"]["attempts"], 2);
    assert!(answer["budget"]["why"].as_str().unwrap().starts_with("m failed and z took over"), "{answer}");
    body["stream"] = true.into();
    let streamed = world.ask("", &body).await.chunks();
    assert_eq!(streamed.joined(0, "content"), "3");
    assert!(streamed.all.iter().all(|chunk| chunk["model"] == "z"), "{:?}", streamed.all);
    let messages = body["messages"].take();
    for (path, asked) in [
        ("/v1/messages", json!({ "messages": [messages[1]], "max_tokens": 40 })),
        ("/v1/responses", json!({ "input": messages, "max_output_tokens": 40 })),
    ] {
        let mut asked = asked;
        asked["model"] = "auto".into();
        asked["budget"] = json!({ "preference": 0 });
        asked["stream"] = true.into();
        let text = world.post(path, "", &asked).await.text;
        assert!(text.contains("\"model\":\"z\"") && !text.contains("\"model\":\"m\""), "{path}: {text}");
    }
}

/// A caller that leaves before the next attempt starts pays for the last one, and there is no next one.
#[tokio::test]
async fn nobody_is_asked_again_for_a_caller_who_left() {
    let silent = Deployment::always(Says::Nothing).await;
    let minute = Duration::from_secs(60);
    let retry = RetrySettings { wait_first: minute, wait_max: minute, ..RetrySettings::default() };
    let served = Served {
        resilience: fleet::Settings { retry, ..quick() },
        ..Served::by(plain(), vec![silent.backend()])
    };
    let world = Arc::new(World::fleets(vec![served], vec![tenant("key", 1_000_000)]).await);
    let asking = tokio::spawn({
        let world = world.clone();
        async move { world.ask("sk-key", &question(0)).await }
    });
    let has_failed = async || silent.asked() > 0 && world.in_flight("m", "0") == 0;
    until("the first attempt fails", has_failed).await;
    asking.abort();
    world.settled().await;
    assert_eq!(silent.asked(), 1);
    assert!(world.account("key").spent.money > Money::ZERO, "it may have been at work");
}

/// OB-01, OB-02: the ledger's requests, attempts and money are those of the upstreams' logs, with errors and retries all over.
#[tokio::test]
async fn the_ledger_is_equal_to_what_the_upstreams_say() {
    let says = |turn: usize, request: &Value| match turn % 5 {
        0 | 3 => Says::Status(503, ""),
        _ => Says::tokens(request.to_string().len() as u64 % 7 + 1),
    };
    let (one, other) = (Deployment::each(says).await, Deployment::each(says).await);
    let targets = vec![one.backend(), other.backend()];
    let served = vec![Served { resilience: without_breaker(), ..Served::by(plain(), targets) }];
    let world = World::fleets(served, vec![tenant("key", 1_000_000_000)]).await;
    let (mut attempts, mut served) = (0, 0);
    for round in 0..8 {
        let bodies: Vec<Value> = (0..10).map(|number| question(round * 10 + number)).collect();
        for answer in join_all(bodies.iter().map(|body| world.ask("sk-key", body))).await {
            if answer.status == 200 {
                served += 1;
                attempts += 1 + answer.good()["budget"]["other"]["attempts"].as_u64().unwrap();
            } else {
                refused(&answer, 502, "upstream_failed");
            }
        }
    }
    world.settled().await;
    let log = || [one.log(), other.log()].concat();
    let billed = || log().iter().filter_map(|served| served.billed).collect::<Vec<u64>>();
    // A deployment notes it when all is written, which the caller may have read by then.
    until("each answer is billed", async || billed().len() >= served).await;
    let (log, billed) = (log(), billed());
    assert_eq!(billed.len(), served, "each answer was given once");
    let money: u64 = billed.iter().map(|tokens| 5 + 4 * tokens).sum();
    let account = world.account("key");
    assert_eq!((account.spent.money, account.reserved.money), (Money(money), Money::ZERO));
    assert!(served >= 70, "{served} of 80");
    if served == 80 {
        assert_eq!(attempts, log.len() as u64, "every attempt is told");
    }
}

/// Retry amplification: an upstream that fails wholly gets no more than 1.2 times the requests and ten a second.
#[tokio::test]
async fn an_upstream_that_fails_wholly_is_asked_little_more_often() {
    let broken = Deployment::always(Says::Status(500, "")).await;
    let world = on(&[&broken], without_breaker()).await;
    let (began, requests) = (std::time::Instant::now(), 300);
    for round in 0..requests / 20 {
        let bodies: Vec<Value> = (0..20).map(|number| question(round * 20 + number)).collect();
        for answer in join_all(bodies.iter().map(|body| world.ask("", body))).await {
            refused(&answer, 502, "upstream_failed");
        }
    }
    let seconds = began.elapsed().as_secs() + 1;
    let most = requests + requests / 5 + 10 * (usize::try_from(seconds).unwrap() + 1);
    let asked = broken.asked();
    eprintln!("{requests} requests in {seconds} s became {asked} attempts; at most {most} were allowed");
    assert!(asked > requests && asked <= most, "{asked} of {most}");
    let guarded = Deployment::always(Says::Status(500, "")).await;
    let world = on(&[&guarded], for_good()).await;
    for number in 0..100 {
        world.ask("", &question(number)).await;
    }
    eprintln!("100 requests became {} attempts with a breaker", guarded.asked());
    assert!(guarded.asked() <= 12, "{}", guarded.asked());
}
