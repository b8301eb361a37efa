//! What an upstream refuses: to whom it goes then, and what is learned from it.

use serde_json::{Value, json};

use crate::harness::emulators::chat::{Emulator, Kind, Script};
use stint_types::units::Timestamp;

use super::picky::Picky;
use super::{backend, body, serve};

#[tokio::test(flavor = "multi_thread")]
async fn a_callers_refusal_asks_the_next_target_and_takes_nothing_from_others() {
    let poisoned: fn(&Value) -> bool = |body| body["messages"][0]["content"].to_string().contains("poison");
    let (strict, lax) = (Picky::start(poisoned), Picky::start(|_| false));
    let two = format!(
        "[[backend.deployment]]\nname = \"strict\"\nbase_url = \"{}\"\n[[backend.deployment]]\nname = \"lax\"\nbase_url = \"{}\"\n",
        strict.base, lax.base
    );
    let process = serve(&[
        backend("alone", "openai", &strict.base, ""),
        format!("[[backend]]\nname = \"both\"\nmodels = [\"both\"]\n{two}"),
    ]);
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
    let asked = |model: &str, text: &str| {
        body(model, &json!({ "tools": tools, "messages": [{ "role": "user", "content": text }] }))
    };
    let refused = process.ask("", &asked("alone", "poison")).await;
    assert_eq!(
        (refused.status, &refused.error()["code"]),
        (400, &json!("upstream_refused")),
        "{}",
        refused.text
    );
    assert!(refused.text.contains("started without that"), "{}", refused.text);
    for _ in 0..4 {
        process.ask("", &asked("both", "poison")).await.good();
    }
    // Our own request with tools was served, so others' are too.
    process.ask("", &asked("alone", "fine")).await.good();
    assert_eq!(process.lines("withdrawn for a while"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_upstream_refuses_to_us_too_is_not_offered_for_a_while() {
    let upstream = Picky::start(|body| body.get("tools").is_some());
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
    let asked = body("m", &json!({ "tools": tools }));
    let refused = process.ask("", &asked).await;
    assert_eq!((refused.status, &refused.error()["code"]), (400, &json!("upstream_refused")));
    process.logged("withdrawn for a while").await;
    let before = upstream.asked();
    // The caller's, ours with tools, and ours without.
    let ours: Vec<bool> = before.iter().map(|body| body.get("tools").is_some()).collect();
    assert_eq!(ours, [true, true, false]);
    assert!(
        before[1..].iter().all(|body| !body.to_string().contains("12+34")),
        "nothing of the caller's is in ours"
    );
    let refused = process.ask("", &asked).await;
    assert_eq!((refused.status, &refused.error()["code"]), (400, &json!("model_not_capable")));
    assert!(refused.text.contains(r#"capabilities = [\"tools\"]"#), "{}", refused.text);
    assert_eq!(upstream.asked().len(), before.len());
    process.ask("", &body("m", &json!({}))).await.good();
    let metrics = process.get("", "/metrics").await.text;
    let series = "stint_capability_withdrawals_total{capability=\"tools\",model=\"m\"} 1";
    assert!(metrics.contains(series), "{metrics}");
}

/// A request of our own is booked like a caller's: cheaper where its provider's peak is not now.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_of_our_own_costs_goes_by_the_hour_in_which_it_ran() {
    let upstream = Picky::start(|body| body.get("tools").is_some());
    for (hours_from_now, cost) in [(12, "0.0000085"), (0, "0.000017")] {
        let now = Timestamp::now().as_seconds().div_euclid(3600);
        let peak: Vec<i64> = [0, 1].map(|more| (now + hours_from_now + more).rem_euclid(24)).into();
        let hash = stint_types::tenant::hash_key("sk-test");
        let more = format!(
            "off_peak = {{ percent = 50, peak_hours = {peak:?} }}\n[[key]]\nname = \"test\"\nhash = \"{hash}\"\n\
             limits = [{{ money = \"5\", per = \"month\" }}]\n"
        );
        let process = serve(&[backend("m", "openai", &upstream.base, ""), more]);
        let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
        assert_eq!(process.ask("sk-test", &body("m", &json!({ "tools": tools }))).await.status, 400);
        process.logged("withdrawn for a while").await;
        let usage = process.get("sk-test", "/v1/usage").await.good();
        assert_eq!(usage["data"][0]["spent_usd"], cost, "{usage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_refuses_budgets_of_its_own_is_held_otherwise() {
    let emulator = Emulator::start(Kind::Vllm, Script { holds: false, ..Script::new(9, 3) });
    let process = serve(&[backend("vllm", "vllm", &format!("{}/v1", emulator.address), "")]);
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
    let asked = body("vllm", &json!({ "tools": tools, "budget": { "thinking_tokens": 4 } }));
    assert_eq!(process.ask("", &asked).await.status, 400);
    process.logged("refuses a thinking budget of its own").await;
    assert_eq!(process.ask("", &asked).await.good()["budget"]["enforced"], "turn");
}
