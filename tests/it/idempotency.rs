//! Requests with an `Idempotency-Key`: charged once, however often they are asked.

mod crowd;
mod outside;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::{Answer, World, model, tenant};
use stint_backend::scripted::{CallState, PieceGate, ScriptedBackend, ScriptedReply};
use stint_backend::{Backend, Failure, Fault};
use stint_ledger::{AccountId, MemoryJournal};
use stint_sessions::idempotency::{
    Fingerprint, IdempotencyChange, IdempotencyKey, IdempotencyRecord, IdempotencyStore, Settings,
};
use stint_types::catalog::{EnforcementClass, Model};
use stint_types::tenant::KeyId;
use stint_types::units::{Money, RequestId, Timestamp};

const PLENTY: u64 = 1_000_000;

fn question(text: &str) -> Value {
    json!({
        "model": "m",
        "messages": [{ "role": "user", "content": text }],
        "budget": { "thinking_tokens": 8, "solution_tokens": 8 },
    })
}

fn streamed(text: &str) -> Value {
    let mut body = question(text);
    body["stream"] = true.into();
    body
}

fn thinker() -> ScriptedReply {
    ScriptedReply::new().thinks(3).answers("it is 3")
}

async fn world(play: ScriptedReply) -> (World, Arc<ScriptedBackend>) {
    let script = Arc::new(ScriptedBackend::always(play));
    let callers = vec![tenant("a", PLENTY), tenant("b", PLENTY)];
    (World::new(vec![(model("m", EnforcementClass::Inline), script.clone())], callers).await, script)
}

async fn remembering(settings: Settings) -> (World, Arc<ScriptedBackend>) {
    let script = Arc::new(ScriptedBackend::always(thinker()));
    let models: Vec<(Model, Arc<dyn Backend>)> = vec![(model("m", EnforcementClass::Inline), script.clone())];
    let journal = Arc::new(MemoryJournal::default());
    (World::remembering(journal, models, vec![tenant("a", PLENTY)], settings, |_| ()).await, script)
}

/// Asks for the tenant `a`.
async fn ask(world: &World, key: &str, body: &Value) -> Answer {
    world.ask_with("sk-a", body, &[("idempotency-key", key)]).await
}

/// Asks until it is not in flight any more.
async fn ask_until(world: &World, key: &str, body: &Value) -> Answer {
    loop {
        let answer = ask(world, key, body).await;
        if answer.status != 409 || answer.error()["code"] != "idempotency_in_flight" {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn refused(answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status, answer.error()["code"].as_str()), (status, Some(code)), "{}", answer.text);
}

fn outcomes(world: &World, outcome: &str) -> u64 {
    world.metrics.storage.idempotency.with_label_values(&[outcome]).get()
}

#[tokio::test]
async fn a_repeat_is_answered_byte_for_byte_and_charged_once() {
    let (world, script) = world(thinker()).await;
    let first = ask(&world, "k-1", &question("1+2?")).await;
    let spent = world.account("a").spent.money;
    let again = ask(&world, "k-1", &question("1+2?")).await;
    first.good();
    assert_eq!((again.status, &again.text), (200, &first.text));
    for name in ["content-type", "x-request-id", "x-cost-usd"] {
        assert_eq!(again.headers[name], first.headers[name], "{name}");
    }
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert!(!first.headers.contains_key("idempotent-replayed"));
    assert!(again.headers.contains_key("x-ratelimit-remaining-usd"), "as things stand now");
    let account = world.account("a");
    assert_eq!((account.spent.money, account.settled), (spent, 1));
    assert!(spent > Money::ZERO);
    assert_eq!(script.records().len(), 1);
    assert_eq!((outcomes(&world, "began"), outcomes(&world, "replayed")), (1, 1));
}

#[tokio::test]
async fn of_64_at_once_one_runs_and_the_others_wait_or_repeat_it() {
    let gate = PieceGate::shut();
    let (world, script) = world(thinker().waits_at(&gate)).await;
    let world = Arc::new(world);
    let asking: Vec<_> = (0..64)
        .map(|_| {
            let world = world.clone();
            tokio::spawn(async move { ask(&world, "k", &question("1+2?")).await })
        })
        .collect();
    script.until(|records| records.len() == 1).await;
    until("the others are refused meanwhile", async || outcomes(&world, "in_flight") >= 10).await;
    gate.open();
    let mut said = Vec::new();
    for answer in asking {
        let answer = answer.await.unwrap();
        if answer.status == 409 {
            refused(&answer, 409, "idempotency_in_flight");
            assert_eq!(answer.headers["retry-after"], "1");
            continue;
        }
        answer.good();
        said.push(answer.text);
    }
    said.dedup();
    assert_eq!(said.len(), 1, "one answer, and its repeats");
    world.settled().await;
    assert_eq!((script.records().len(), world.account("a").settled), (1, 1));
    assert_eq!(ask(&world, "k", &question("1+2?")).await.text, said[0]);
}

/// AU-04: another tenant's is not there.
#[tokio::test]
async fn a_key_stands_for_one_request_of_one_tenant() {
    let (world, script) = world(thinker()).await;
    ask(&world, "k", &question("1+2?")).await.good();
    refused(&ask(&world, "k", &question("1+3?")).await, 422, "idempotency_key_reused");
    let budget = [("idempotency-key", "k"), ("x-budget-effort", "0.5")];
    let other = world.ask_with("sk-a", &question("1+2?"), &budget).await;
    refused(&other, 422, "idempotency_key_reused");
    assert_eq!(script.records().len(), 1);
    let theirs = world.ask_with("sk-b", &question("1+3?"), &[("idempotency-key", "k")]).await;
    assert!(!theirs.headers.contains_key("idempotent-replayed"), "another tenant's key is another key");
    theirs.good();
    assert_eq!((world.account("a").settled, world.account("b").settled), (1, 1));
}

#[tokio::test]
async fn while_it_runs_another_request_under_its_key_is_refused_as_such() {
    let gate = PieceGate::shut();
    let (world, script) = world(thinker().waits_at(&gate)).await;
    let body = question("1+2?");
    let first = ask(&world, "k", &body);
    let others = async {
        script.until(|records| records.len() == 1).await;
        refused(&ask(&world, "k", &question("1+3?")).await, 422, "idempotency_key_reused");
        refused(&ask(&world, "k", &body).await, 409, "idempotency_in_flight");
        gate.open();
    };
    let (first, ()) = tokio::join!(first, others);
    first.good();
}

#[tokio::test]
async fn malformed_keys_are_named() {
    let (world, script) = world(thinker()).await;
    let long = "x".repeat(256);
    let table: [&[&str]; 6] = [&[""], &["two words"], &["tab\there"], &["ümlaut"], &[&long], &["a", "a"]];
    for keys in table {
        let headers: Vec<_> = keys.iter().map(|key| ("idempotency-key", *key)).collect();
        let answer = world.ask_with("sk-a", &question("1+2?"), &headers).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("idempotency-key")), "{keys:?}");
    }
    assert!(script.records().is_empty());
    for key in ["x", &long[1..], "\"quoted\"", "~!@#$%^&*(),;:"] {
        ask(&world, key, &question("1+2?")).await.good();
    }
    assert_eq!(script.records().len(), 4);
}

#[tokio::test]
async fn what_was_refused_before_it_cost_anything_may_be_asked_again() {
    let overload = Failure::new(Fault::Overload, "full").unsent().retry_elsewhere();
    let script = Arc::new(ScriptedBackend::in_turn(vec![ScriptedReply::new().refuses(overload), thinker()]));
    let world =
        World::new(vec![(model("m", EnforcementClass::Inline), script.clone())], vec![tenant("a", PLENTY)])
            .await;
    let mut unknown = question("1+2?");
    unknown["model"] = "nobody".into();
    assert_eq!(ask(&world, "k", &unknown).await.status, 404);
    assert_eq!(ask(&world, "k", &json!({ "model": "m" })).await.status, 400);
    refused(&ask(&world, "k", &question("1+2?")).await, 503, "overloaded");
    ask_until(&world, "k", &question("1+2?")).await.good();
    assert_eq!((script.records().len(), outcomes(&world, "reused")), (2, 0));
}

#[tokio::test]
async fn an_error_that_cost_something_is_repeated_and_says_not_to_try_again() {
    let failure = Failure::new(Fault::Backend, "gone");
    let (world, script) = world(thinker().breaks_after(2, failure)).await;
    let first = ask(&world, "k", &question("1+2?")).await;
    refused(&first, 502, "upstream_failed");
    let spent = world.account("a").spent.money;
    let again = ask(&world, "k", &question("1+2?")).await;
    assert_eq!((again.status, &again.text), (502, &first.text));
    assert_eq!(
        (&again.headers["idempotent-replayed"], &again.headers["x-should-retry"]),
        (&"true".parse().unwrap(), &"false".parse().unwrap())
    );
    // Its caller read nothing of it, so the model was asked three times; the repeat asks nothing.
    assert_eq!((script.records().len(), world.account("a").spent.money), (3, spent));
    assert!(spent > Money::ZERO);
}

#[tokio::test]
async fn a_stream_is_charged_once_and_its_repeat_is_told_what_it_cost() {
    let (world, script) = world(thinker()).await;
    let first = ask(&world, "k", &streamed("1+2?")).await;
    let budget = first.chunks().budget().clone();
    let again = ask(&world, "k", &streamed("1+2?")).await;
    refused(&again, 409, "idempotency_stream_done");
    assert_eq!(again.headers["x-should-retry"], "false");
    let message = again.error()["message"].as_str().unwrap().to_owned();
    for told in ["id", "cost_usd"] {
        assert!(message.contains(budget[told].as_str().unwrap()), "{told} in {message}");
    }
    assert_eq!((script.records().len(), world.account("a").settled), (1, 1));
}

#[tokio::test]
async fn streams_are_repeated_where_the_operator_wants_it() {
    let (world, script) = remembering(Settings { replay_streams: true, ..Settings::default() }).await;
    let first = ask(&world, "k", &streamed("1+2?")).await;
    let again = ask(&world, "k", &streamed("1+2?")).await;
    assert!(first.chunks().done);
    assert_eq!((&again.text, &again.headers["content-type"]), (&first.text, &first.headers["content-type"]));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!((script.records().len(), world.account("a").settled), (1, 1));
}

#[tokio::test]
async fn an_answer_too_large_to_keep_is_not_run_again() {
    for (replay_streams, body) in [(false, question("1+2?")), (true, streamed("1+2?"))] {
        let settings = Settings { answer_max: 100, replay_streams, ..Settings::default() };
        let (world, script) = remembering(settings).await;
        assert_eq!(ask(&world, "k", &body).await.status, 200);
        refused(&ask(&world, "k", &body).await, 409, "idempotency_too_large");
        assert_eq!((script.records().len(), outcomes(&world, "not_kept")), (1, 1));
    }
}

#[tokio::test]
async fn a_caller_who_hung_up_is_told_so_and_not_charged_again() {
    for body in [question("1+2?"), streamed("1+2?")] {
        let gate = PieceGate::shut();
        let (world, script) = world(thinker().waits_at(&gate)).await;
        let world = Arc::new(world);
        let asking = {
            let (world, body) = (world.clone(), body.clone());
            tokio::spawn(async move { ask(&world, "k", &body).await })
        };
        script.until(|records| records.len() == 1).await;
        gate.let_through(2);
        until("it has begun", async || outcomes(&world, "began") > 0).await;
        asking.abort();
        script.until(|records| records[0].state == CallState::Cancelled).await;
        let again = ask_until(&world, "k", &body).await;
        refused(&again, 409, "idempotency_interrupted");
        assert_eq!(again.headers["x-should-retry"], "false");
        world.settled().await;
        let account = world.account("a");
        assert!(account.spent.money > Money::ZERO);
        assert_eq!((account.settled, script.records().len()), (1, 1));
        gate.open();
        ask(&world, "k-2", &body).await;
        assert_eq!(script.records().len(), 2, "with a new key it is a new request");
    }
}

#[tokio::test]
async fn after_its_time_a_key_is_free_again() {
    let (world, script) = world(thinker()).await;
    let begun = Timestamp(Timestamp::now().0 - 25 * 3_600_000);
    let record = IdempotencyRecord {
        fingerprint: Fingerprint([0; 32]),
        request: RequestId::new(),
        begun,
        deadline: begun,
        end: None,
    };
    let account = AccountId::new("a");
    let key = IdempotencyKey { owner: KeyId::of_declared(&account), account, key: "k".into() };
    let change = IdempotencyChange::Begin { key, record, expired_before: Timestamp(0) };
    assert_eq!(world.answers.write(&[change]).await.unwrap(), [true]);
    ask(&world, "k", &question("1+2?")).await.good();
    ask(&world, "k", &question("1+2?")).await.good();
    assert_eq!(script.records().len(), 1);
}

#[tokio::test]
async fn switched_off_the_header_is_refused_and_nothing_is_kept() {
    let (world, script) = remembering(Settings { keep: Duration::ZERO, ..Settings::default() }).await;
    let answer = ask(&world, "k", &question("1+2?")).await;
    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!("idempotency-key")));
    world.ask("sk-a", &question("1+2?")).await.good();
    assert_eq!(script.records().len(), 1);
}
