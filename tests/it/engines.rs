//! An engine in this process that fails while it serves, as callers and operators see it.

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use stint_backend::Backend;
use stint_backend::local::{self, LocalBackend};
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_engine::{InjectedFault, PooledEngine, Settings};
use stint_gguf::Gguf;
use stint_prompt::{PromptFormat, Vocabulary};
use stint_types::catalog::{EnforcementClass, Model, Prices, Tariff};
use stint_types::units::{Money, Price, Tokens};

use crate::harness::patience::{QuietInstant, within};
use crate::harness::{World, model};

/// The engine, and the backend that asks it. Once it has failed, it gets its weights again when something is sent.
fn local_engine() -> (PooledEngine, Arc<dyn Backend>, SyncSender<()>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/reasoner.gguf");
    let file = Gguf::open(&path).unwrap();
    let format = PromptFormat::new(&Vocabulary::from_gguf(&file).unwrap(), "<think>", "</think>").unwrap();
    let settings =
        Settings { allow_cpu: true, step_timeout: Some(Duration::from_secs(2)), ..Settings::default() };
    let (release, released) = sync_channel(1);
    // For the first start.
    release.send(()).unwrap();
    let released = Mutex::new(released);
    let again = Box::new(move || {
        // Nothing comes where the test is over.
        let _ = released.lock().unwrap().recv();
        Ok(Gguf::open(&path)?)
    });
    let engine = PooledEngine::start(&file, again, &settings, Box::new(|_| ())).unwrap();
    let local = LocalBackend::new(engine.clone(), Arc::new(format), local::Settings::default()).unwrap();
    (engine, Arc::new(local), release)
}

fn reasoner() -> Model {
    let known = model("reasoner", EnforcementClass::Inline);
    Model { context: Tokens(512), thinking_max: Tokens(256), ..known }
}

/// The fallback of any other.
fn dear_model() -> Model {
    let price = Price { per_million_tokens: Money(1_000_000_000) };
    let tariff = Some(Tariff::plain(Prices { input: price, output: price }));
    Model { tariff, ..model("other", EnforcementClass::Inline) }
}

fn question(model: &str, stream: bool) -> Value {
    json!({
        "model": model, "stream": stream, "messages": [{ "role": "user", "content": "17*24+3=" }],
        "budget": { "thinking_tokens": 100, "solution_tokens": 20 },
    })
}

/// Asks; whether there was an answer, and no refusal as one that may try again.
async fn is_answered(world: &World) -> bool {
    let answer = world.ask("", &question("reasoner", false)).await;
    if answer.status == 200 {
        return true;
    }
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(answer.headers.contains_key("retry-after"), "{:?}", answer.headers);
    false
}

/// Callers in flight hear of the fault in time. Others are refused at once until the engine is back, soon after.
async fn check(fault: InjectedFault, heard_within: Duration, reason: &str) {
    let (engine, backend, weights) = local_engine();
    let world = World::with(vec![(reasoner(), backend)], Vec::new(), |_| ()).await;
    world.ask("", &question("reasoner", false)).await.good();
    engine.inject(fault);
    let began = QuietInstant::now();
    let (whole, streamed) = (question("reasoner", false), question("reasoner", true));
    let (whole, streamed) = tokio::join!(world.ask("", &whole), world.ask("", &streamed));
    assert!(began.elapsed() < heard_within, "{:?}", began.elapsed());
    for answer in [whole, streamed] {
        let error = answer.error();
        assert_eq!((answer.status, &error["type"]), (503, &json!("server_error")), "{error}");
        assert!(["engine_restarting", "overloaded"].contains(&error["code"].as_str().unwrap()), "{error}");
        assert!(answer.headers.contains_key("retry-after"), "{:?}", answer.headers);
    }
    let listed = world.get("", "/v1/models/reasoner").await.good();
    assert_eq!(listed["unavailable"], reason);
    let ready = world.get("", "/readyz").await;
    assert_eq!(
        (ready.status, &*ready.text),
        (503, &*format!("not ready: no model can be asked: {reason}\n"))
    );
    assert_eq!(world.state("reasoner", "0"), 0);
    assert!(!is_answered(&world).await, "there is no engine");
    weights.send(()).unwrap();
    let back = async {
        while !is_answered(&world).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    within(Duration::from_secs(10), back).await.expect("it answers again");
    assert_eq!(world.get("", "/readyz").await.status, 200);
    assert_eq!((world.state("reasoner", "0"), engine.outage()), (1, None));
    assert!(world.get("", "/v1/models/reasoner").await.good().get("unavailable").is_none());
    engine.stop();
}

#[tokio::test]
async fn an_engine_that_loses_its_device_answers_again_within_ten_seconds() {
    check(InjectedFault::LoseDevice, Duration::from_secs(3), "the GPU was lost; the engine is started again")
        .await;
}

#[tokio::test]
async fn an_engine_whose_thread_panics_answers_again_within_ten_seconds() {
    check(InjectedFault::Panic, Duration::from_secs(3), "the engine failed; it is started again").await;
}

/// A step may take two seconds here.
#[tokio::test]
async fn an_engine_whose_thread_is_frozen_is_given_up_and_another_answers_within_ten_seconds() {
    let frozen = InjectedFault::Hang(Duration::from_mins(10));
    check(frozen, Duration::from_secs(7), "the engine hung; it is started again").await;
}

#[tokio::test]
async fn what_an_engine_was_asked_goes_to_another_model_where_the_caller_lets_it() {
    let (engine, backend, weights) = local_engine();
    let other = ScriptedReply::new().thinks(3).answers("411");
    let other = Arc::new(ScriptedBackend::always(other).reading(Tokens(9)));
    let world =
        World::with(vec![(reasoner(), backend), (dear_model(), other as _)], Vec::new(), |_| ()).await;
    let body = json!({
        "model": "auto", "messages": [{ "role": "user", "content": "17*24+3=" }],
        "budget": { "thinking_tokens": 100, "solution_tokens": 20, "preference": 0 },
    });
    let first = world.ask("", &body).await.good();
    assert_eq!(first["model"], "reasoner", "{first}");
    engine.inject(InjectedFault::LoseDevice);
    for _ in 0..2 {
        // In flight when it failed, and while there is no engine.
        let answer = world.ask("", &body).await.good();
        assert_eq!(answer["choices"][0]["message"]["content"], "411", "{answer}");
    }
    assert_eq!(world.get("", "/readyz").await.status, 200, "there is a model that can be asked");
    drop(weights);
    engine.stop();
}
