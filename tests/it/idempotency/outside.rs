//! The same over the real binary, and through the official Python SDK.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, Folder, Process, World, model, tenant};
use crate::operating::{promtool, silent_upstream};
use stint_backend::scripted::ScriptedBackend;
use stint_backend::{Failure, Fault};
use stint_types::catalog::EnforcementClass;
use stint_types::units::Money;

use super::{PLENTY, question, refused, thinker};

fn with_upstream(base: &str) -> Folder {
    Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = '{base}'\n\
         [[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '1'\n"
    ))
}

#[tokio::test]
async fn after_kill_9_a_repeat_is_told_that_it_was_cut_off_and_is_not_run() {
    let (base, asked) = silent_upstream();
    let folder = with_upstream(&base);
    let mut process = folder.serve();
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] });
    let keyed = [("idempotency-key", "k")];
    let request = tokio::spawn(process.request("", &body, &keyed).send());
    let upstream = tokio::task::spawn_blocking(move || asked.recv().unwrap()).await.unwrap();
    process.signal("KILL");
    process.ended();
    assert!(request.await.unwrap().is_err());
    drop(upstream);

    let process = folder.serve();
    let again = Answer::of(process.request("", &body, &keyed)).await;
    refused(&again, 409, "idempotency_interrupted");
    let page = process.get("", "/metrics").await.text;
    assert!(page.contains("\nstint_idempotency_total{outcome=\"interrupted\"} 1\n"), "{page}");
    assert!(!page.contains("stint_requests_total{"), "nothing ran");
    promtool(&page);
}

#[tokio::test]
async fn an_answer_survives_a_restart_and_the_file_has_no_prompt() {
    let folder = Folder::new("");
    let mut body = question("What is 12+34*2?");
    body["model"] = "reasoner".into();
    let keyed = [("idempotency-key", "k")];
    let mut process = folder.serve();
    let first = Answer::of(process.request("", &body, &keyed)).await;
    first.good();
    process.signal("KILL");
    process.ended();
    let mut process = folder.serve();
    let again = Answer::of(process.request("", &body, &keyed)).await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    process.signal("TERM");
    assert!(process.ended().success());
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("12+34*2?"));
    }
}

/// Asks under ever new keys until the server is gone; gives back every key, with the answer where there was one.
async fn load(
    process: Arc<Process>,
    caller: u64,
    answered: Arc<AtomicUsize>,
) -> Vec<(String, Value, Option<String>)> {
    let mut asked = Vec::new();
    for number in 0_u64.. {
        let (key, mut body) = (format!("{caller}-{number}"), question(&format!("{caller}+{number}=")));
        body["model"] = "reasoner".into();
        let sent = process.request("", &body, &[("idempotency-key", &key)]).send().await;
        let Ok(response) = sent else {
            asked.push((key, body, None));
            break;
        };
        let text = response.text().await.ok();
        let is_over = text.is_none();
        answered.fetch_add(usize::from(!is_over), Ordering::Relaxed);
        asked.push((key, body, text));
        if is_over {
            break;
        }
    }
    asked
}

#[tokio::test]
async fn after_kill_9_under_load_a_caller_that_was_answered_gets_the_same_answer_again() {
    let folder = Folder::new("");
    let (process, answered) = (Arc::new(folder.serve()), Arc::new(AtomicUsize::new(0)));
    let load = |caller| tokio::spawn(load(process.clone(), caller, answered.clone()));
    let callers: Vec<_> = (0..6).map(load).collect();
    tokio::time::sleep(Duration::from_millis(900)).await;
    until("some are answered", async || answered.load(Ordering::Relaxed) > 0).await;
    process.signal("KILL");
    let mut asked = Vec::new();
    for caller in callers {
        asked.extend(caller.await.unwrap());
    }
    drop(process);
    let process = folder.serve();
    let (mut repeated, mut cut_off) = (0, 0);
    for (key, body, expected) in asked {
        let again = Answer::of(process.request("", &body, &[("idempotency-key", &key)])).await;
        match expected {
            Some(expected) => {
                assert_eq!((again.status, &again.text), (200, &expected), "{key}");
                assert_eq!(again.headers["idempotent-replayed"], "true");
                repeated += 1;
            }
            // It had not begun, was cut off, or was kept and not told.
            None if again.status == 200 => {}
            None => {
                refused(&again, 409, "idempotency_interrupted");
                cut_off += 1;
            }
        }
    }
    assert!(repeated > 0 && cut_off <= 6, "{repeated} repeated, {cut_off} cut off");
}

/// What the official SDK makes of it: `tests/python/idempotency.py` says what it does.
async fn sdk(world: &World) -> Value {
    let base = world.base.clone();
    let run = move || printed(tool("python").args(["tests/python/idempotency.py", &base]), "");
    serde_json::from_str(&tokio::task::spawn_blocking(run).await.unwrap()).unwrap()
}

#[tokio::test]
async fn the_official_python_sdk_repeats_with_a_key_and_is_charged_once() {
    let script = Arc::new(ScriptedBackend::always(thinker()));
    let world =
        World::new(vec![(model("m", EnforcementClass::Inline), script.clone())], vec![tenant("a", PLENTY)])
            .await;
    let said = sdk(&world).await;
    assert_eq!(said["first"], said["again"]);
    assert_eq!(said["replayed"], json!([null, "true"]));
    assert_eq!(
        said["other"],
        json!({ "class": "UnprocessableEntityError", "code": "idempotency_key_reused" })
    );
    assert_eq!(
        said["stream"],
        json!(["it is 3", { "class": "ConflictError", "code": "idempotency_stream_done" }])
    );
    // The plain one, the streamed one, and the one without a key.
    assert_eq!((script.records().len(), world.account("a").settled), (3, 3));
}

#[tokio::test]
async fn without_a_key_each_try_of_the_sdk_is_a_request_of_its_own() {
    let broken = || thinker().breaks_after(2, Failure::new(Fault::Backend, "gone"));
    // The gateway asks three times for one try of the SDK's.
    let plain = vec![thinker(), thinker(), broken(), broken(), broken(), thinker()];
    let script = Arc::new(ScriptedBackend::in_turn(plain));
    let world =
        World::new(vec![(model("m", EnforcementClass::Inline), script.clone())], vec![tenant("a", PLENTY)])
            .await;
    let said = sdk(&world).await;
    assert_eq!(said["without"], "it is 3", "the second try succeeds");
    world.settled().await;
    let (records, account) = (script.records().len() as u64, world.account("a"));
    assert_eq!((records, account.settled), (6, 4), "a row for each request");
    assert_eq!(world.metrics.requests.total.with_label_values(&["m", "m", "failed"]).get(), 1);
    assert!(account.reserved.money == Money::ZERO);
}
