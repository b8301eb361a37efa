//! Gemini's own API.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::World;
use crate::harness::emulators::gemini::Gemini as Provider;
use crate::harness::emulators::{Emulator, Turn};
use stint_backend::Backend;
use stint_backend::remote::Connections;
use stint_backend::remote::gemini::{GeminiBackend, GeminiThinking, PLACEHOLDER_SIGNATURE, Settings};
use stint_types::catalog::{EffortLevel, EnforcementClass, Model};
use stint_types::units::Tokens;

use super::{
    ask, check_books, client, hang_up, large, message, message_of_chunks, next_turn, price, spent, tool,
    world,
};

fn backend(emulator: &Emulator, name: &str, upstream: &str, thinking: GeminiThinking) -> Arc<dyn Backend> {
    let settings = Settings {
        client: client(emulator),
        model: upstream.to_owned(),
        name: name.into(),
        thinking,
        placeholder_signature: (thinking == GeminiThinking::Level).then(|| PLACEHOLDER_SIGNATURE.to_owned()),
        ..Settings::default()
    };
    Arc::new(GeminiBackend::new(&Connections::default(), settings).unwrap())
}

async fn native(script: Vec<Turn>) -> (World, Emulator) {
    let emulator = Emulator::start(Provider, script);
    let backend = backend(&emulator, "m", "gemini-2.5-flash", GeminiThinking::Budget);
    let world = world(vec![(large("m", &[EnforcementClass::Native]), backend)]).await;
    (world, emulator)
}

/// A model with levels.
fn leveled(emulator: &Emulator, name: &str) -> (Model, Arc<dyn Backend>) {
    let level = |(word, usual): (&str, u64)| EffortLevel { word: word.to_owned(), usual: Tokens(usual) };
    let efforts = [("minimal", 10), ("low", 50), ("high", 2000)].map(level).to_vec();
    let model = Model { efforts, ..large(name, &[EnforcementClass::Effort]) };
    (model, backend(emulator, name, &format!("gemini-3-{name}"), GeminiThinking::Level))
}

fn thinks(tokens: u64) -> Value {
    json!({ "budget": { "thinking_tokens": tokens, "solution_tokens": 64 } })
}

#[tokio::test]
async fn a_budget_that_is_overshot_a_little_still_leaves_room_for_the_answer() {
    for stream in [false, true] {
        let (world, emulator) = native(vec![Turn::answers(5000, "it is 51")]).await;
        let mut asked = thinks(600);
        asked["stream"] = stream.into();
        let answer = ask(&world, &asked).await;
        let (said, budget) = if stream {
            (message_of_chunks(&answer), answer.chunks().budget().clone())
        } else {
            (message(&answer), answer.good()["budget"].clone())
        };
        assert_eq!(
            (&said["content"], &said["reasoning_content"]),
            (&json!("it is 51 "), &json!("**Considering it**"))
        );
        assert_eq!(budget["thinking"]["used"], 630, "{budget}");
        assert_eq!(budget["solution"]["used"], 3, "{budget}");
        assert_eq!(budget["enforced"], "native");
        check_books(&world, &emulator).await;
        let metrics = world.metrics_page();
        assert!(
            metrics.contains("stint_requests_total{")
                && metrics.contains("stint_demotions_total{model=\"m\"} 0"),
            "{metrics}"
        );
    }
}

#[tokio::test]
async fn a_thinking_budget_of_zero_is_said() {
    let (world, emulator) = native(vec![Turn::answers(5000, "it is 51")]).await;
    assert_eq!(ask(&world, &thinks(0)).await.good()["budget"]["thinking"]["used"], 0);
    assert_eq!(emulator.asked()[0]["generationConfig"]["thinkingConfig"], json!({ "thinkingBudget": 0 }));
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn a_run_with_tools_gets_its_signatures_back_on_the_same_calls() {
    for stream in [false, true] {
        let call = Turn::calls(30, &[("search", json!({ "q": "a pet" }))]);
        let script = vec![call.clone(), call, Turn::answers(5, "a cat")];
        let emulator = Emulator::start(Provider, script);
        let world = world(vec![leveled(&emulator, "m")]).await;
        let asked = json!({ "reasoning_effort": "high", "stream": stream, "tools": [tool()] });
        let read = if stream { message_of_chunks } else { message };
        let first = read(&ask(&world, &asked).await);
        let mut second = next_turn(&first, &asked);
        let again = read(&world.ask("sk-acme", &second).await);
        let id = &again["tool_calls"][0]["id"];
        assert_ne!(*id, first["tool_calls"][0]["id"], "each call has an id of its own");
        let result = json!({ "role": "tool", "tool_call_id": id, "content": "a dog" });
        second["messages"].as_array_mut().unwrap().extend([again, result]);
        assert_eq!(read(&world.ask("sk-acme", &second).await)["content"], "a cat ");
        let last = emulator.asked().pop().unwrap();
        for at in [1, 3] {
            let signature = last["contents"][at]["parts"][0]["thoughtSignature"].as_str().unwrap();
            assert!(signature.starts_with("gemini-3-m+/"), "{last}");
        }
        check_books(&world, &emulator).await;
    }
}

#[tokio::test]
async fn a_model_that_comes_into_a_run_of_another_says_that_there_is_no_signature() {
    let script = vec![Turn::calls(30, &[("search", json!({ "q": "a pet" }))]), Turn::answers(5, "a cat")];
    let emulator = Emulator::start(Provider, script);
    let world = world(vec![leveled(&emulator, "m"), leveled(&emulator, "n")]).await;
    let asked = json!({ "reasoning_effort": "low", "tools": [tool()] });
    let first = message(&ask(&world, &asked).await);
    let mut second = next_turn(&first, &asked);
    second["model"] = "n".into();
    assert_eq!(message(&world.ask("sk-acme", &second).await)["content"], "a cat ");
    let last = emulator.asked().pop().unwrap();
    assert_eq!(last["contents"][1]["parts"][0]["thoughtSignature"], PLACEHOLDER_SIGNATURE);
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn a_level_is_chosen_to_fit_the_budget() {
    let emulator = Emulator::start(Provider, vec![Turn::answers(900, "it is 51")]);
    let world = world(vec![leveled(&emulator, "m")]).await;
    let answer = ask(&world, &thinks(60)).await.good();
    assert_eq!(answer["budget"]["thinking"]["used"], 50, "{answer}");
    assert_eq!(emulator.asked()[0]["generationConfig"]["thinkingConfig"]["thinkingLevel"], "low");
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn every_end_is_charged_as_it_was_billed_since_each_event_says_what_it_was() {
    let asked = json!({ "budget": { "thinking_tokens": 0, "solution_tokens": 4 } });
    let (long, emulator) = native(vec![Turn::answers(0, "one two three four five six")]).await;
    let answer = ask(&long, &asked).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    check_books(&long, &emulator).await;

    let words = "word ".repeat(60);
    // Its caller has read nothing, so the model is asked three times.
    let fails = || Turn { fails_after: Some(3), ..Turn::answers(0, &words) };
    let (failing, emulator) = native(vec![fails(), fails(), fails()]).await;
    let answer = ask(&failing, &thinks(0)).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    check_books(&failing, &emulator).await;

    let (left, emulator) = native(vec![Turn::answers(0, &"word ".repeat(4000))]).await;
    hang_up(&left, &json!({ "budget": { "thinking_tokens": 0, "solution_tokens": 5000 } })).await;
    let (spent, billed) = (spent(&left).await, price(&emulator.bills()));
    // What was on its way when the connection was closed was billed and never arrived.
    assert!(spent <= billed && billed < 4 * 2000, "{spent} spent, {billed} billed");
}
