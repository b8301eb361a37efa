//! The emulators themselves, asked by the providers' own SDKs: what those accept and understand is what is emulated.

use serde_json::{Value, json};

use crate::harness::emulators::{Api, Emulator, KEY, Turn, anthropic, responses};
use crate::harness::tools::{printed, tool};

/// A thought and an answer; a call and, with its result, an answer; and one that is refused.
fn script() -> Vec<Turn> {
    let call = Turn::calls(20, &[("search", json!({ "q": "a pet" }))]);
    vec![Turn::answers(20, "it is 51"), call, Turn::answers(3, "a cat")]
}

fn facts(api: impl Api, script_file: &str) -> (Value, Emulator) {
    let emulator = Emulator::start(api, script());
    let facts = printed(tool("python").args([script_file, &emulator.base, KEY]), "");
    (serde_json::from_str(&facts).unwrap(), emulator)
}

fn check(facts: &Value, emulator: &Emulator) {
    assert_eq!(facts["answer"], "it is 51 ", "{facts}");
    assert_eq!(facts["tool"], json!(["search", { "q": "a pet" }]), "{facts}");
    assert_eq!(facts["last"], "a cat ", "{facts}");
    let bills = emulator.bills();
    let told = facts["usage"].as_array().unwrap();
    for (bill, told) in bills.iter().zip(told) {
        assert_eq!(*told, json!([bill.prompt, bill.written]), "{facts} {bills:?}");
    }
    assert_eq!(told.len(), bills.len());
    assert_eq!(facts["refused"], json!(["BadRequestError", "AuthenticationError"]), "{facts}");
    assert_eq!(emulator.refused().len(), 2, "{:?}", emulator.refused());
}

#[tokio::test(flavor = "multi_thread")]
async fn anthropics_own_sdk_understands_the_emulated_messages() {
    let (facts, emulator) = facts(anthropic::Anthropic::default(), "tests/python/anthropic_client.py");
    check(&facts, &emulator);
    assert!(facts["thought"].as_str().unwrap().starts_with("w0 w1 "), "{facts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn openais_own_sdk_understands_the_emulated_responses() {
    let (facts, emulator) = facts(responses::Responses, "tests/python/responses_client.py");
    check(&facts, &emulator);
    assert_eq!(facts["thought"], "Considered.");
}
