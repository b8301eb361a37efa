//! A model file in the engine of this process, as the sample of the configuration has it.

use serde_json::{Value, json};

use crate::harness::{Folder, Process};

/// Longer than `reasoner.gguf` has it, which is 512.
const STATED: u64 = 40_000;

/// The model that ships with the binary, as a file of the operator's, with nothing said but its prices and `more`.
fn desk(engine: &str, more: &str) -> Process {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
    let backend = format!("[[backend]]\nname = \"desk\"\nkind = \"local\"\nfile = \"{file}\"\n");
    let model = "[[backend.model]]\nname = \"own\"\nprice_input = \"0.01\"\nprice_output = \"0.04\"\n";
    Folder::new(&format!("[engine]\n{engine}\n{backend}{model}{more}\n")).serve()
}

async fn contexts(process: &Process) -> Value {
    let listed = process.get("", "/v1/models").await.good();
    let all = listed["data"].as_array().unwrap().iter();
    all.filter_map(|model| Some((model["id"].as_str()?.to_owned(), model.get("context_length")?.clone())))
        .collect()
}

/// A question of the README with these members beside, to both models; gives back what the last answer was planned with.
async fn answered(process: &Process, more: &Value) -> Value {
    let mut last = Value::Null;
    for model in ["reasoner", "own"] {
        let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": "17*24+3=" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = process.ask("", &body).await;
        assert_eq!(answer.status, 200, "{model} {more}: {}", answer.text);
        assert!(!answer.good()["choices"][0]["message"]["content"].is_null(), "{}", answer.text);
        last = answer.good();
    }
    last
}

#[tokio::test]
async fn a_model_file_answers_with_nothing_stated_but_its_name() {
    let process = desk("", "");
    assert_eq!(contexts(&process).await, json!({ "own": 512, "reasoner": 512 }));
    for more in [
        json!({}),
        json!({ "budget": { "thinking_tokens": 20 } }),
        json!({ "max_tokens": 4000 }),
        json!({ "max_tokens": 20 }),
        json!({ "reasoning_effort": "none", "max_tokens": 4 }),
    ] {
        answered(&process, &more).await;
    }
    assert!(process.lines("stated context").is_empty());
}

#[tokio::test]
async fn a_model_answers_in_the_context_that_the_engine_was_given() {
    let process = desk("context = 160", &format!("context = {STATED}\n"));
    assert_eq!(contexts(&process).await, json!({ "own": 160, "reasoner": 160 }));
    for more in [json!({}), json!({ "budget": { "thinking_tokens": 300 } }), json!({ "max_tokens": 4000 })] {
        answered(&process, &more).await;
    }
    let warned = process.lines("stated context");
    assert!(warned.len() == 1 && warned[0].contains("own") && warned[0].contains("160"), "{warned:?}");
}

#[tokio::test]
async fn a_model_that_does_not_think_has_all_of_a_small_limit_for_its_answer() {
    let process = desk("", "thinking_max = 0\n");
    for most in [1, 2, 3, 4, 20, 121, 122] {
        let answer = answered(&process, &json!({ "max_tokens": most })).await;
        let usage = &answer["usage"];
        assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 0, "{answer}");
        assert!(usage["completion_tokens"].as_u64().unwrap() <= most, "{answer}");
    }
}

/// Its template says in the prompt that no thought is wanted, and its answer needs no end where it is cut.
#[tokio::test]
async fn a_caller_that_asks_for_one_token_gets_one_token_of_the_answer() {
    let process = desk("", "");
    for most in 1..=3 {
        for thinking in [json!(null), json!(0), json!(50)] {
            let budget = json!({ "thinking_tokens": thinking });
            let more = json!({ "max_tokens": most, "temperature": 0, "budget": budget });
            let answer = answered(&process, &more).await;
            let (choice, written) = (&answer["choices"][0], &answer["usage"]["completion_tokens"]);
            assert!((1..=most).contains(&written.as_u64().unwrap()), "{answer}");
            assert!(most > 1 || choice["finish_reason"] == "length", "{answer}");
            assert_ne!(choice["message"]["content"], "", "{answer}");
        }
    }
}

/// A thought is what such a model begins with, so a small limit ends it there.
#[tokio::test]
async fn a_model_that_always_thinks_is_ended_by_a_small_limit_inside_its_thought() {
    let process = desk("", "thinks_always = true\n");
    let question = json!([{ "role": "user", "content": "17*24+3=" }]);
    for most in [1, 5, 16] {
        let body = json!({ "model": "own", "messages": question, "max_tokens": most, "temperature": 0 });
        let answer = process.ask("", &body).await.good();
        let (choice, usage) = (&answer["choices"][0], &answer["usage"]);
        assert_eq!((&choice["finish_reason"], &choice["message"]["content"]), (&json!("length"), &json!("")));
        assert_eq!(
            usage["completion_tokens_details"]["reasoning_tokens"], usage["completion_tokens"],
            "{answer}"
        );
        assert!((1..=most).contains(&usage["completion_tokens"].as_u64().unwrap()), "{answer}");
    }
}

#[tokio::test]
async fn a_prompt_that_was_read_before_is_not_read_again_and_costs_what_the_cache_costs() {
    let process = desk("", "price_cache_read = \"0.001\"\n");
    let mut told = Vec::new();
    for _ in 0..2 {
        let body = json!({ "model": "own", "temperature": 0, "budget": { "thinking_tokens": 20 },
            "messages": [{ "role": "user", "content": "17*24+3=" }] });
        let answer = process.ask("", &body).await.good();
        let cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
        let cost: f64 = answer["budget"]["cost_usd"].as_str().unwrap().parse().unwrap();
        told.push((cached, cost, answer["choices"][0]["message"].clone()));
    }
    let [(none, whole, first), (cached, less, second)] = <[_; 2]>::try_from(told).unwrap();
    assert_eq!((none, cached), (0, 16), "a whole block");
    assert_eq!(first, second);
    // Sixteen tokens at a tenth of their price.
    assert!((whole - less - 16.0 * 0.009e-6).abs() < 3e-9, "{whole} {less}");
}

#[tokio::test]
async fn penalties_and_biases_are_taken_and_refused_by_their_names() {
    let process = desk("", "");
    let taken = json!({ "presence_penalty": 0.5, "frequency_penalty": 0.1, "repetition_penalty": 1.1, "min_p": 0.05,
        "logit_bias": { "20": -1 } });
    answered(&process, &taken).await;
    for (name, value) in [("logit_bias", json!({ "seven": 1 })), ("logit_bias", json!({ "999999": 1 }))] {
        let body =
            json!({ "model": "own", name: value, "messages": [{ "role": "user", "content": "1+1=" }] });
        let answer = process.ask("", &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text);
        assert!(answer.text.contains("bias"), "{}", answer.text);
    }
}

#[tokio::test]
async fn a_member_that_the_engine_cannot_take_is_named() {
    let process = desk("sequences = 2\nqueue = 4", "");
    for (more, param, code) in [
        (json!({ "min_p": 2 }), "min_p", Value::Null),
        (json!({ "presence_penalty": 3 }), "presence_penalty", Value::Null),
        (json!({ "repetition_penalty": "much" }), "repetition_penalty", Value::Null),
        (json!({ "logit_bias": { "99999": 1 } }), "logit_bias", Value::Null),
        // More than can run and wait: no other try finds room.
        (json!({ "n": 7 }), "n", json!("model_not_capable")),
    ] {
        let mut body = json!({ "model": "own", "messages": [{ "role": "user", "content": "17*24+3=" }] });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = process.ask("", &body).await;
        let error = answer.error();
        let found = (answer.status, &error["type"], &error["param"], &error["code"]);
        assert_eq!(found, (400, &json!("invalid_request_error"), &json!(param), &code), "{}", answer.text);
    }
}
