//! What is only guessed of a model ends no answer, refuses no prompt, and bounds no bill.

use serde_json::{Value, json};

use crate::harness::emulators::chat::{Emulator, Kind, Record, Script};
use crate::harness::{Answer, Folder, Process};

/// More tokens than anybody guesses a context to have.
const LONG: u64 = 76_000;

/// A server of one's own of which no more is said than a name.
fn serve(kind: &str, emulator: &Emulator, name: &str, more: &str) -> Process {
    let path = if kind == "llamacpp" { "" } else { "/v1" };
    Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nkind = \"{kind}\"\nbase_url = \"{}{path}\"\n[[backend.model]]\n\
         name = \"{name}\"\nprice_input = \"0.001\"\nprice_output = \"0.004\"\n{more}",
        emulator.address
    ))
    .serve()
}

async fn ask(process: &Process, model: &str, content: &str, more: &Value) -> Answer {
    let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": content }] });
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    process.ask("", &body).await
}

fn words(answer: &Value) -> u64 {
    answer["choices"][0]["message"]["content"].as_str().unwrap().split_whitespace().count() as u64
}

/// How long an answer is wanted, in the last message.
fn wanted(body: &Value) -> u64 {
    let content = body["messages"].as_array().and_then(|all| all.last()).map(|last| last["content"].clone());
    content.and_then(|content| content.as_str()?.trim().parse().ok()).unwrap_or(20)
}

/// A model that thinks nothing and answers as long as it is asked to.
fn long(bulk: u64) -> Emulator {
    Emulator::start_by(Kind::OpenAi, move |body| Script { bulk, ..Script::new(0, wanted(body)) })
}

fn limit(call: &Record) -> Option<u64> {
    ["max_tokens", "max_completion_tokens"].iter().find_map(|name| call.body[*name].as_u64())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_is_not_known_ends_no_answer_and_bounds_no_bill() {
    let emulator = long(2);
    let process = serve("openai", &emulator, "my-model", "");
    // From the third on each event is known to be a token at least.
    for length in [100, 100, LONG] {
        let before = emulator.bill();
        let answer = ask(&process, "my-model", &length.to_string(), &json!({})).await.good();
        assert_eq!(words(&answer), length);
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
        assert_eq!(answer["budget"]["solution"]["used"], length);
        let cost: stint_types::units::Money = answer["budget"]["cost_usd"].as_str().unwrap().parse().unwrap();
        assert_eq!(cost.0, emulator.bill() - before, "{}", answer["budget"]);
    }
    assert!(emulator.calls().iter().all(|call| limit(call).is_none()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_stated_is_passed_on_whatever_is_guessed() {
    let emulator = long(64);
    let process = serve("openai", &emulator, "my-model", "");
    for (length, ended) in [(100, "stop"), (50_000, "stop"), (LONG, "caller")] {
        let answer =
            ask(&process, "my-model", &length.to_string(), &json!({ "max_tokens": 60_000 })).await.good();
        assert_eq!(limit(emulator.calls().last().unwrap()), Some(60_000));
        assert_eq!(
            (words(&answer), &answer["budget"]["solution"]["ended"]),
            (length.min(60_000), &json!(ended))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_not_refused_for_a_context_that_is_not_known() {
    let emulator = long(64);
    let process = serve("openai", &emulator, "my-model", "");
    let prompt = "a word or two ".repeat(60_000);
    let answer = ask(&process, "my-model", &prompt, &json!({})).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let listed = process.get("", "/v1/models/my-model").await.good();
    assert_eq!(listed["context_length"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_that_the_server_tells_counts_from_then_on() {
    for (kind, emulated, more) in [
        ("vllm", Kind::Vllm, ""),
        ("vllm", Kind::Vllm, "context = 100000\n"),
        ("llamacpp", Kind::LlamaCpp, ""),
    ] {
        let emulator = Emulator::start(emulated, Script { context: 4096, ..Script::new(4, 20) });
        let process = serve(kind, &emulator, "my-model", more);
        ask(&process, "my-model", "What is 12+34?", &json!({})).await.good();
        let before = emulator.calls().len();
        let refused = ask(&process, "my-model", &"a word or two ".repeat(60_000), &json!({})).await;
        assert_eq!(refused.error()["code"], "context_length_exceeded", "{kind}");
        assert!(refused.text.contains("4096"), "{}", refused.text);
        assert_eq!(emulator.calls().len(), before, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_think_is_asked_once_though_nobody_said_so() {
    for (kind, emulated) in [("vllm", Kind::Vllm), ("sglang", Kind::Sglang)] {
        // Two answers beyond any guess at how long a thought may be.
        let script = move |body: &Value| Script { plain: true, bulk: 64, ..Script::new(0, wanted(body)) };
        let emulator = Emulator::start_by(emulated, script);
        let process = serve(kind, &emulator, "my-org/llama-ft", "");
        for length in [11, 11, 9_000, 12_000] {
            let before = emulator.calls().len();
            let answer = ask(&process, "my-org/llama-ft", &length.to_string(), &json!({})).await.good();
            assert_eq!(
                (words(&answer), answer["usage"]["completion_tokens"].as_u64()),
                (length, Some(length)),
                "{kind}"
            );
            assert_eq!(answer["budget"]["solution"]["ended"], "stop", "{kind}");
            let calls = emulator.calls();
            assert_eq!(calls.len(), before + 1, "{kind}");
            let call = calls.last().unwrap();
            assert_eq!((call.path.as_str(), limit(call)), ("/v1/chat/completions", None), "{kind}");
            assert!(!call.body.to_string().contains("Considering"), "{kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_thinks_is_held_though_nobody_said_so() {
    let emulator = Emulator::start(Kind::Vllm, Script::new(40, 3));
    let process = serve("vllm", &emulator, "my-thinker", "");
    for _ in 0..2 {
        let more = json!({ "budget": { "thinking_tokens": 10 } });
        let answer = ask(&process, "my-thinker", "What is 12+34?", &more).await.good();
        assert_eq!((words(&answer), &answer["budget"]["thinking"]["used"]), (3, &json!(10)));
        assert_eq!(answer["budget"]["enforced"], "continue");
    }
}

#[test]
fn check_says_that_a_context_is_not_known() {
    let check = |more: &str| {
        let folder = Folder::new(&format!(
            "[engine]\nembedded = false\n[[backend]]\nbase_url = \"http://127.0.0.1:9/v1\"\n[[backend.model]]\nname = \"m\"\n{more}"
        ));
        let output = folder.stint("check").output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let printed = check("");
    assert!(
        printed.contains("the context of m is not known") && printed.contains("say context"),
        "{printed}"
    );
    assert!(!check("context = 100000\n").contains("the context of m"), "{}", check("context = 100000\n"));
}
