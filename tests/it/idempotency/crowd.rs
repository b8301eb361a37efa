//! Many callers, few keys, and no patience.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use stint_backend::scripted::CallRecord;
use stint_types::units::Money;

use super::{ask, question, streamed, thinker, world};

/// A number below `most`, the next of a fixed sequence.
fn dice(state: &mut u64, most: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % most
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_callers_ask_and_hang_up_each_key_reaches_the_model_once() {
    const KEYS: u64 = 24;
    let (world, script) = world(thinker().pauses(Duration::from_millis(1))).await;
    let (world, mut seed) = (Arc::new(world), 7);
    let asking: Vec<_> = (0..400)
        .map(|_| {
            let (world, number) = (world.clone(), dice(&mut seed, KEYS));
            let (late, patience) = (dice(&mut seed, 150), dice(&mut seed, 12));
            let key = format!("k-{number}");
            let body = match number % 3 {
                0 => streamed(&key),
                _ => question(&key),
            };
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(late)).await;
                // Half of the callers hang up soon, at any moment of the request's life.
                let patience = if patience < 6 { patience } else { 10_000 };
                let asked = ask(&world, &key, &body);
                tokio::time::timeout(Duration::from_millis(patience), asked).await.ok()
            })
        })
        .collect();
    let mut answered = BTreeSet::new();
    for asking in asking {
        let Some(answer) = asking.await.unwrap() else { continue };
        match answer.status {
            200 => drop(answered.insert(answer.headers["x-request-id"].to_str().unwrap().to_owned())),
            _ => assert_eq!(answer.status, 409, "{}", answer.text),
        }
    }
    // One who surely leaves behind a request that has reached the model.
    let leaving = tokio::spawn({
        let world = world.clone();
        async move { ask(&world, "k-left", &question("k-left")).await }
    });
    let asks = |record: &CallRecord| format!("{:?}", record.call.request.messages);
    script.until(|records| records.iter().any(|record| asks(record).contains("k-left"))).await;
    leaving.abort();
    world.settled().await;
    let mut asked: Vec<String> = script.records().iter().map(asks).collect();
    let reached = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), usize::try_from(KEYS).unwrap() + 1, "every key was asked for");
    assert_eq!(asked.len(), reached, "and reached the model once");
    // Who left before anything reached the model was charged nothing; others may be charged less than a whole answer.
    let whole =
        world.ask("sk-a", &question("k-99")).await.headers["x-cost-usd"].to_str().unwrap().parse::<Money>();
    assert!(world.account("a").spent.money.0 <= (KEYS + 2) * whole.unwrap().0, "and was charged once");
    assert!(!answered.is_empty() && answered.len() < reached, "{} of {reached}", answered.len());
}
