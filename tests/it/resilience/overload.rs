//! More requests than there are places.

use tokio::task::JoinHandle;

use stint_backend::fleet::ConcurrencySettings;
use stint_backend::scripted::PieceGate;

use crate::harness::patience::QuietInstant;

use super::*;

/// A model with so many places, and what lets its answers out.
async fn narrow(places: u32, queue_max: usize) -> (Arc<World>, Arc<ScriptedBackend>, PieceGate) {
    let gate = PieceGate::shut();
    let script =
        Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(1).answers("3").waits_at(&gate)));
    let concurrency = Some(ConcurrencySettings {
        min: places,
        start: places,
        max: places,
        ..ConcurrencySettings::default()
    });
    let resilience = fleet::Settings { concurrency, queue_max, ..quick() };
    let targets: Vec<Arc<dyn Backend>> = vec![script.clone()];
    let served = Served { resilience, ..Served::by(model("m", EnforcementClass::Inline), targets) };
    (Arc::new(World::fleets(vec![served], Vec::new()).await), script, gate)
}

fn asks(world: &Arc<World>, name: &str, priority: &'static str) -> JoinHandle<Answer> {
    let (world, name) = (world.clone(), name.to_owned());
    tokio::spawn(async move {
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": name }] });
        world.ask_with("", &body, &[("priority", priority)]).await
    })
}

/// Waits until so many requests wait in line, by the gateway's own series.
async fn in_line(world: &World, count: i64) {
    until("they wait", async || world.waiting("m") == count).await;
}

/// OV-03
#[tokio::test]
async fn a_full_queue_refuses_at_once_and_those_in_it_are_served() {
    let (world, script, gate) = narrow(1, 2).await;
    let flying = asks(&world, "first", "u=3");
    script.until(|records| records.len() == 1).await;
    let waiting = [asks(&world, "second", "u=3"), asks(&world, "third", "u=3")];
    in_line(&world, 2).await;
    let began = QuietInstant::now();
    for number in 0..5 {
        let answer = world.ask("", &question(number)).await;
        refused(&answer, 503, "overloaded");
        assert!((1..=4).contains(&wait(&answer)), "{}", wait(&answer));
    }
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    gate.open();
    for served in [flying].into_iter().chain(waiting) {
        served.await.unwrap().good();
    }
    assert_eq!(script.records().len(), 3, "nothing that was refused reached the model");
    world.settled().await;
    assert_eq!(world.metrics.backends.sheds.with_label_values(&["m", "full"]).get(), 5);
}

#[tokio::test]
async fn interactive_requests_go_before_batch_and_take_their_place_in_a_full_queue() {
    let (world, script, gate) = narrow(1, 2).await;
    let flying = asks(&world, "flying", "u=3");
    script.until(|records| records.len() == 1).await;
    let batch = asks(&world, "batch", "u=6");
    in_line(&world, 1).await;
    let evicted = asks(&world, "evicted", "u=7, i");
    in_line(&world, 2).await;
    let interactive = asks(&world, "interactive", "u=1");
    refused(&evicted.await.unwrap(), 503, "overloaded");
    gate.open();
    for served in [flying, batch, interactive] {
        served.await.unwrap().good();
    }
    let order: Vec<String> =
        script.records().iter().map(|record| record.call.request.messages[0].plain_text()).collect();
    assert_eq!(order, ["flying", "interactive", "batch"]);
}

/// OV-03
#[tokio::test]
async fn who_cannot_be_served_before_its_deadline_is_dropped_before_any_work() {
    let (world, script, gate) = narrow(1, 9).await;
    let flying = asks(&world, "first", "u=3");
    script.until(|records| records.len() == 1).await;
    let mut body = question(1);
    body["budget"] = json!({ "deadline_ms": 200 });
    let began = QuietInstant::now();
    refused(&world.ask("", &body).await, 503, "overloaded");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    gate.open();
    flying.await.unwrap().good();
    assert_eq!(script.records().len(), 1);
    world.settled().await;
    assert_eq!(world.account("anonymous").reserved.money.0, 0);
}

#[tokio::test]
async fn who_hangs_up_in_the_line_leaves_nothing_behind() {
    let (world, script, gate) = narrow(1, 9).await;
    let flying = asks(&world, "first", "u=3");
    script.until(|records| records.len() == 1).await;
    let leaving = asks(&world, "leaves", "u=3");
    in_line(&world, 1).await;
    leaving.abort();
    in_line(&world, 0).await;
    let stays = asks(&world, "stays", "u=3");
    gate.open();
    flying.await.unwrap().good();
    stays.await.unwrap().good();
    assert_eq!(script.records().len(), 2);
    world.settled().await;
}
