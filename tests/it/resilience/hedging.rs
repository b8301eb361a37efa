//! A second attempt beside one that is silent: who answers, who is let go, and that both are paid.

use futures_util::future::join;

use crate::agents::{Agent, caller, calls, play};
use crate::harness::faultup::script::{Script, Step, answers, chunked, event, good, nothing, used, whole};
use crate::harness::faultup::{Faultup, rig};
use crate::harness::patience::QuietInstant;
use crate::harness::{Stored, auto, tenant};
use stint_backend::remote::openai::{self, OpenAiBackend};
use stint_backend::remote::{self, Connections};
use stint_backend::scripted::PieceGate;
use stint_ledger::{Journal as _, MemoryJournal};
use stint_types::units::Money;

use super::*;

/// What the upstream bills for `answers`, and for a question that it read and never answered.
const ANSWERED: u64 = 15;
const READ: u64 = 7;

/// Where both targets are one upstream, the first of its scripts is for the target that is asked first.
struct Pair {
    world: World,
    upstream: Faultup,
    journal: Arc<MemoryJournal>,
}

impl Pair {
    async fn new(scripts: Vec<Script>, resilience: fleet::Settings) -> Pair {
        Pair::owning(1_000_000, scripts, resilience).await
    }

    /// The same, where the caller has so many nano-dollars.
    async fn owning(nanos: u64, scripts: Vec<Script>, resilience: fleet::Settings) -> Pair {
        Pair::serving(plain(), nanos, scripts, resilience).await
    }

    async fn serving(model: Model, nanos: u64, scripts: Vec<Script>, resilience: fleet::Settings) -> Pair {
        let upstream = Faultup::start(scripts).await;
        let targets = vec![target(&upstream), target(&upstream)];
        let served = vec![Served { resilience, ..Served::by(model, targets) }];
        let journal = Arc::<MemoryJournal>::default();
        let stored = Stored::alone(journal.clone());
        let world = World::agents(served, vec![tenant("key", nanos)], vec![auto()], stored).await;
        Pair { world, upstream, journal }
    }

    async fn ask(&self) -> Value {
        let answer = self.world.ask("sk-key", &question(0)).await.good();
        assert_eq!(answer["choices"][0]["message"]["content"], "42", "{answer}");
        answer
    }

    /// What became of second attempts: won, lost, refused.
    fn hedges(&self) -> [u64; 3] {
        hedges(&self.world)
    }

    /// Waits until a request that runs is known to have cost so much.
    async fn metered(&self, nanos: u64) {
        let is_so = async || {
            let running = self.journal.unresolved().await.unwrap();
            running.iter().any(|row| row.metered.is_some_and(|spent| spent.money >= Money(nanos)))
        };
        until("it is metered", is_so).await;
    }

    async fn paid(&self, nanos: u64) {
        assert_eq!(rig::spent(&self.world).await, Money(nanos));
    }
}

fn hedges(world: &World) -> [u64; 3] {
    let count = |outcome| world.metrics.backends.hedges.with_label_values(&["m", outcome]).get();
    ["won", "lost", "refused"].map(count)
}

fn target(upstream: &Faultup) -> Arc<dyn Backend> {
    let client =
        remote::Settings { base_url: format!("{}/v1", upstream.address), ..remote::Settings::default() };
    Arc::new(
        OpenAiBackend::new(
            &Connections::default(),
            openai::Settings { client, model: "m".to_owned(), ..Default::default() },
        )
        .unwrap(),
    )
}

/// A second target is asked after so long.
fn after(millis: u64) -> fleet::Settings {
    fleet::Settings { hedge_after: Some(Duration::from_millis(millis)), ..quick() }
}

/// Says what it read, and nothing more.
fn silent() -> Script {
    chunked().chunk(&event(&used(READ, 0))).then(Step::Hold)
}

/// Answers after so long.
fn late(millis: u64) -> Script {
    nothing()
        .pause(millis)
        .send("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n")
        .send(format!("connection: close\r\n\r\n{}", good(&["4", "2"], 7, 2)))
}

#[tokio::test]
async fn up_17_a_quick_target_answers_for_a_silent_one_and_both_are_paid() {
    for streamed in [true, false] {
        let pair = Pair::new(vec![silent(), answers()], after(100)).await;
        let mut body = question(0);
        body["stream"] = streamed.into();
        let began = QuietInstant::now();
        let answer = pair.world.ask("sk-key", &body).await;
        let answered = QuietInstant::now();
        let took = began.until(&answered);
        assert!(took < Duration::from_secs(3), "{took:?}");
        let budget = match streamed {
            true => {
                let chunks = answer.chunks();
                assert!(chunks.done && chunks.joined(0, "content") == "42", "{}", answer.text);
                chunks.budget().clone()
            }
            false => answer.good()["budget"].clone(),
        };
        assert_eq!(budget["other"], json!({ "attempts": 1, "tokens": READ }), "{budget}");
        assert!(budget["why"].as_str().unwrap().contains("beside the first"), "{budget}");
        pair.upstream.sees_the_client_leave(0, &answered).await;
        pair.paid(ANSWERED + READ).await;
        assert_eq!((pair.upstream.log().len(), pair.hedges()), (2, [1, 0, 0]));
        let in_flight = ["0", "1"].map(|target| pair.world.in_flight("m", target));
        assert_eq!(in_flight, [0, 0], "both places are free");
    }
}

#[tokio::test]
async fn up_17_where_both_are_slow_the_first_to_speak_answers_and_the_other_is_dropped() {
    let pair = Pair::new(vec![late(1_000), silent()], after(100)).await;
    let answer = pair.ask().await;
    let answered = QuietInstant::now();
    assert_eq!(answer["budget"]["other"], json!({ "attempts": 1, "tokens": READ }), "{answer}");
    pair.upstream.sees_the_client_leave(1, &answered).await;
    pair.paid(ANSWERED + READ).await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (2, [0, 1, 0]));
}

#[tokio::test]
async fn up_17_a_second_that_fails_leaves_the_answer_to_the_first() {
    let pair = Pair::new(vec![late(1_000), whole("500 Oops", "", "{}")], after(100)).await;
    let answer = pair.ask().await;
    assert_eq!(answer["budget"]["other"], json!({ "attempts": 1, "tokens": 0 }), "{answer}");
    pair.paid(ANSWERED).await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (2, [0, 1, 0]));
}

#[tokio::test]
async fn up_17_a_first_that_fails_leaves_the_answer_to_the_second() {
    let fails = nothing().pause(800).send("HTTP/1.1 503 Oops\r\ncontent-length: 0\r\n\r\n");
    let pair = Pair::new(vec![fails, late(1_000)], after(100)).await;
    let answer = pair.ask().await;
    assert_eq!(answer["budget"]["other"]["attempts"], 1, "{answer}");
    pair.paid(ANSWERED).await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (2, [1, 0, 0]));
}

#[tokio::test]
async fn up_17_where_both_fail_it_is_tried_again_as_often_as_any_request() {
    let fails = || nothing().pause(800).send("HTTP/1.1 503 Oops\r\ncontent-length: 0\r\n\r\n");
    let pair = Pair::new(vec![fails(), fails(), answers()], after(100)).await;
    let answer = pair.ask().await;
    assert_eq!(answer["budget"]["other"]["attempts"], 2, "{answer}");
    pair.paid(ANSWERED).await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (3, [0, 1, 0]));
    // Both attempts together are as many as there may be.
    let retry = RetrySettings { attempts_max: 2, ..quick().retry };
    let pair = Pair::new(vec![fails(), fails(), answers()], fleet::Settings { retry, ..after(100) }).await;
    refused(&pair.world.ask("sk-key", &question(0)).await, 502, "upstream_failed");
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (2, [0, 1, 0]));
}

#[tokio::test]
async fn up_17_two_attempts_are_made_only_if_both_can_be_paid() {
    let pair = Pair::new(vec![answers()], after(5_000)).await;
    let reserved = pair.ask().await["budget"]["reserved_usd"].as_str().unwrap().parse::<Money>().unwrap();
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (1, [0, 0, 0]), "it is quick enough");
    for (nanos, refused) in [(reserved.0 * 2 - 1, 1), (reserved.0 * 2, 0)] {
        let pair = Pair::owning(nanos, vec![late(1_000), silent()], after(100)).await;
        pair.ask().await;
        assert_eq!(pair.hedges(), [0, 1 - refused, refused], "of {nanos}");
        assert_eq!(pair.upstream.log().len() as u64, 2 - refused);
        pair.paid(ANSWERED + (1 - refused) * READ).await;
    }
    // The caller's own limit holds for both together too.
    let pair = Pair::new(vec![late(1_000), silent()], after(100)).await;
    let mut body = question(0);
    body["budget"] = json!({ "cost_usd": Money(reserved.0 * 2 - 1).to_string() });
    pair.world.ask("sk-key", &body).await.good();
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (1, [0, 0, 1]));
}

#[tokio::test]
async fn up_17_second_attempts_are_paid_by_the_retries_of_their_target() {
    let retry = RetrySettings { share: 0.0, per_second: 1, ..quick().retry };
    let settings = fleet::Settings { retry, ..after(100) };
    let pair = Pair::new(vec![late(1_000), late(1_000), late(1_000), late(1_000)], settings).await;
    let (one, other) = join(pair.ask(), pair.ask()).await;
    let attempts = [one, other].map(|answer| answer["budget"]["other"]["attempts"].as_u64().unwrap());
    assert_eq!(attempts.iter().sum::<u64>() + 2, pair.upstream.log().len() as u64);
    let [won, lost, refused] = pair.hedges();
    assert_eq!(won + lost + refused, 2);
    assert!(refused <= 1, "each target has one");
    let none = RetrySettings { share: 0.0, per_second: 0, ..quick().retry };
    let pair = Pair::new(vec![late(1_000)], fleet::Settings { retry: none, ..after(100) }).await;
    pair.ask().await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (1, [0, 0, 1]));
}

#[tokio::test]
async fn up_17_a_target_that_is_left_alone_is_no_second() {
    let upstream = Faultup::start(vec![late(1_000)]).await;
    let broken = Faultup::start(vec![whole("401 No", "", "{}")]).await;
    let served = vec![Served {
        resilience: after(50),
        ..Served::by(plain(), vec![target(&upstream), target(&broken)])
    }];
    let world = World::fleets(served, vec![tenant("key", 1_000_000)]).await;
    // The first request to it finds out that its key is refused.
    let mut number = 0;
    while broken.log().is_empty() {
        world.ask("sk-key", &question(number)).await.good();
        number += 1;
    }
    let before = hedges(&world);
    world.ask("sk-key", &question(0)).await.good();
    assert_eq!(broken.log().len(), 1);
    assert_eq!(hedges(&world), [before[0], before[1], before[2] + 1]);
}

#[tokio::test]
async fn up_17_without_a_word_there_is_never_a_second() {
    let pair = Pair::new(vec![late(700)], fleet::Settings::default()).await;
    pair.ask().await;
    pair.paid(ANSWERED).await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (1, [0, 0, 0]));
    let metrics = pair.world.metrics_page();
    for outcome in ["won", "lost", "refused"] {
        let line = format!("stint_hedges_total{{model=\"m\",outcome=\"{outcome}\"}} 0\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn up_17_a_caller_who_leaves_lets_go_of_both_and_pays_both() {
    let pair = Pair::new(vec![silent()], after(100)).await;
    let caller = rig::Caller::ask(&pair.world, &question(0), "1.1").await;
    pair.upstream.until(|log| log.len() == 2 && log.iter().all(|exchange| exchange.sent > 0)).await;
    // What both have sent is read before anybody leaves.
    pair.metered(2 * READ).await;
    drop(caller);
    let left = QuietInstant::now();
    for exchange in [0, 1] {
        pair.upstream.sees_the_client_leave(exchange, &left).await;
    }
    pair.paid(2 * READ).await;
    assert_eq!(pair.hedges(), [0, 1, 0]);
}

#[tokio::test]
async fn up_17_a_long_answer_of_the_second_arrives_whole_and_in_order() {
    let words: Vec<String> = (0..1_000).map(|number| format!("{number} ")).collect();
    let texts: Vec<&str> = words.iter().map(String::as_str).collect();
    let long = chunked().chunk(&good(&texts, 7, 1_000)).send("0\r\n\r\n");
    let model = Model { solution_max: None, ..plain() };
    let scripts = vec![silent(), silent(), long.clone(), long];
    let pair = Pair::serving(model, 1_000_000, scripts, after(100)).await;
    let mut body = question(0);
    (body["n"], body["stream"], body["max_completion_tokens"]) = (json!(2), json!(true), Value::Null);
    body["budget"] = json!({ "solution_tokens": 1_000 });
    let chunks = pair.world.ask("sk-key", &body).await.chunks();
    for index in [0, 1] {
        assert!(chunks.joined(index, "content") == words.concat(), "choice {index}");
    }
    pair.paid(2 * (7 + 4 * 1_000) + 2 * READ).await;
    assert_eq!((pair.upstream.log().len(), pair.hedges()), (4, [1, 0, 0]), "both choices are on one target");
}

#[tokio::test]
async fn up_17_of_a_step_with_tools_only_what_the_answer_calls_counts() {
    let script = Arc::new(ScriptedBackend::each(|call, number| match number {
        0 => ScriptedReply::new().answers("never").waits_at(&PieceGate::shut()),
        _ => play(&call.request, 4),
    }));
    let targets: Vec<Arc<dyn Backend>> = vec![script.clone(), script.clone()];
    let served = vec![Served { resilience: after(100), ..Served::by(caller("m"), targets) }];
    let stored = Stored::alone(Arc::new(MemoryJournal::default()));
    let world = World::agents(served, vec![tenant("acme", 1_000_000_000)], vec![auto()], stored).await;
    let mut agent = Agent::new("sk-acme", &json!({ "tool_calls": { "search": 6 } }));
    let first = agent.step(&world).await;
    assert_eq!((calls(&first), hedges(&world)), (4, [1, 0, 0]), "{first}");
    let second = agent.step(&world).await;
    assert_eq!(second["budget"]["tool_calls"], json!({ "used": 2, "trimmed": 2 }), "{second}");
}
