//! OpenAI's Responses, as an upstream.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::World;
use crate::harness::emulators::responses::Responses as Provider;
use crate::harness::emulators::{Emulator, Turn};
use stint_backend::Backend;
use stint_backend::remote::Connections;
use stint_backend::remote::responses::{LIMIT_MIN, OpenAiResponsesBackend, Settings};
use stint_types::catalog::{EffortLevel, EnforcementClass, Model};
use stint_types::units::Tokens;

use super::{
    ask, check_books, check_bound, client, hang_up, large, message, message_of_chunks, next_turn, tool, world,
};

fn reasoner(emulator: &Emulator, name: &str, summaries: bool) -> (Model, Arc<dyn Backend>) {
    let level = |(word, usual): (&str, u64)| EffortLevel { word: word.to_owned(), usual: Tokens(usual) };
    let efforts = [("minimal", 10), ("low", 50), ("high", 100)].map(level).to_vec();
    let settings = Settings {
        client: client(emulator),
        model: format!("gpt-{name}"),
        name: name.into(),
        summaries,
        ..Settings::default()
    };
    (
        Model { efforts, output_min: LIMIT_MIN, ..large(name, &[EnforcementClass::Effort]) },
        Arc::new(OpenAiResponsesBackend::new(&Connections::default(), settings).unwrap()),
    )
}

async fn one(script: Vec<Turn>) -> (World, Emulator) {
    let emulator = Emulator::start(Provider, script);
    let world = world(vec![reasoner(&emulator, "m", false)]).await;
    (world, emulator)
}

fn thinks(tokens: u64) -> Value {
    json!({ "budget": { "thinking_tokens": tokens, "solution_tokens": 64 }, "temperature": 0.5 })
}

/// The provider takes no limit below 16 tokens and bills what it wrote: that is set aside, told and paid, and the caller gets
/// no more of it than was asked for.
#[tokio::test]
async fn a_limit_that_the_provider_does_not_take_is_raised_there_and_held_here() {
    for most in [1, 5, 16] {
        let (world, emulator) =
            one(vec![Turn::answers(0, "one two three four five six seven eight nine")]).await;
        let answer = ask(&world, &json!({ "max_completion_tokens": most, "reasoning_effort": "minimal" }))
            .await
            .good();
        let written = answer["usage"]["completion_tokens"].as_u64().unwrap();
        assert!(written <= most, "{answer}");
        assert_eq!(emulator.asked()[0]["max_output_tokens"], 16, "{answer}");
        check_books(&world, &emulator).await;
    }
}

#[tokio::test]
async fn an_effort_is_chosen_to_fit_the_budget_and_a_summary_is_shown() {
    for stream in [false, true] {
        let emulator = Emulator::start(Provider, vec![Turn::answers(900, "it is 51")]);
        let world = world(vec![reasoner(&emulator, "m", true)]).await;
        let mut asked = thinks(100);
        asked["stream"] = stream.into();
        let answer = ask(&world, &asked).await;
        let (said, budget) = if stream {
            (message_of_chunks(&answer), answer.chunks().budget().clone())
        } else {
            (message(&answer), answer.good()["budget"].clone())
        };
        assert_eq!(
            (&said["content"], &said["reasoning_content"]),
            (&json!("it is 51 "), &json!("Considered."))
        );
        assert_eq!(budget["thinking"]["used"], 50, "{budget}");
        assert_eq!(emulator.asked()[0]["reasoning"], json!({ "effort": "low", "summary": "auto" }));
        check_books(&world, &emulator).await;
    }
}

#[tokio::test]
async fn a_run_with_tools_gets_its_encrypted_reasoning_back() {
    for stream in [false, true] {
        let call = Turn::calls(30, &[("search", json!({ "q": "a pet" }))]);
        let (world, emulator) = one(vec![call.clone(), call, Turn::answers(5, "a cat")]).await;
        let asked = json!({ "reasoning_effort": "high", "stream": stream, "tools": [tool()] });
        let read = if stream { message_of_chunks } else { message };
        let first = read(&ask(&world, &asked).await);
        let second = next_turn(&first, &asked);
        let again = read(&world.ask("sk-acme", &second).await);
        assert_eq!(again["tool_calls"][0]["function"]["arguments"], "{\"q\":\"a pet\"}");
        let last = emulator.asked().pop().unwrap();
        let kinds: Vec<&Value> = last["input"].as_array().unwrap().iter().map(|item| &item["type"]).collect();
        assert_eq!(
            kinds,
            [&Value::Null, &json!("reasoning"), &json!("function_call"), &json!("function_call_output")]
        );
        check_books(&world, &emulator).await;
    }
}

#[tokio::test]
async fn a_model_that_comes_into_a_run_of_another_is_not_given_its_reasoning() {
    let script = vec![Turn::calls(30, &[("search", json!({ "q": "a pet" }))]), Turn::answers(5, "a cat")];
    let emulator = Emulator::start(Provider, script);
    let world = world(vec![reasoner(&emulator, "m", true), reasoner(&emulator, "n", true)]).await;
    let asked = json!({ "reasoning_effort": "low", "tools": [tool()] });
    let first = message(&ask(&world, &asked).await);
    let mut second = next_turn(&first, &asked);
    second["model"] = "n".into();
    assert_eq!(message(&world.ask("sk-acme", &second).await)["content"], "a cat ");
    assert!(!emulator.asked()[1].to_string().contains("encrypted_content\":\""), "{:?}", emulator.asked()[1]);
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn an_answer_that_reaches_its_limit_ends_as_length() {
    let (world, emulator) = one(vec![Turn::answers(0, &"word ".repeat(500))]).await;
    let answer =
        ask(&world, &json!({ "budget": { "thinking_tokens": 10, "solution_tokens": 20 } })).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn a_thought_that_left_no_room_is_asked_again_with_the_least_effort() {
    let (world, emulator) = one(vec![Turn::answers(400, "never"), Turn::answers(400, "it is 51")]).await;
    let asked = json!({ "budget": { "thinking_tokens": 200, "solution_tokens": 30 } });
    let answer = ask(&world, &asked).await.good();
    let (asked, budget) = (emulator.asked(), &answer["budget"]);
    assert_eq!(answer["choices"][0]["message"]["content"], "it is 51 ", "{answer} {asked:?}");
    let efforts: Vec<&Value> = asked.iter().map(|body| &body["reasoning"]["effort"]).collect();
    assert_eq!(efforts, ["high", "minimal"], "{budget}");
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn what_an_error_or_a_hang_up_leaves_untold_is_never_reckoned_too_low() {
    let words = "word ".repeat(60);
    // Its caller has read nothing, so the model is asked three times.
    let fails = || Turn { fails_after: Some(9), ..Turn::answers(300, &words) };
    let (failing, emulator) = one(vec![fails(), fails(), fails()]).await;
    let answer = ask(&failing, &json!({ "reasoning_effort": "high" })).await;
    assert_eq!(answer.status, 502, "{}", answer.text);
    check_bound(&failing, &emulator).await;

    let (left, emulator) = one(vec![Turn::answers(300, &words)]).await;
    hang_up(&left, &json!({ "reasoning_effort": "high" })).await;
    check_bound(&left, &emulator).await;
}

/// The provider takes no stop texts: what it still writes is heard out unseen, and booked as it bills it.
#[tokio::test]
async fn a_stop_text_ends_the_answer_and_the_hidden_thought_is_booked_as_it_was() {
    let words = "one two STOP ".to_owned() + &"more ".repeat(30);
    for stream in [false, true] {
        let (world, emulator) = one(vec![Turn::answers(60, &words)]).await;
        let asked = json!({ "reasoning_effort": "high", "stop": ["STOP"], "stream": stream });
        let answer = ask(&world, &asked).await;
        let (said, budget, finish) = if stream {
            let chunks = answer.chunks();
            let finish = chunks.all.iter().find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
            (message_of_chunks(&answer), chunks.budget().clone(), finish.unwrap().to_owned())
        } else {
            let answer = answer.good();
            let finish = answer["choices"][0]["finish_reason"].as_str().unwrap().to_owned();
            (answer["choices"][0]["message"].clone(), answer["budget"].clone(), finish)
        };
        assert_eq!((&said["content"], finish.as_str()), (&json!("one two "), "stop"), "{budget}");
        assert_eq!((&budget["thinking"]["used"], &budget["estimated"]), (&json!(60), &json!(false)));
        assert!(emulator.asked()[0].get("stop").is_none());
        check_books(&world, &emulator).await;
    }
}
