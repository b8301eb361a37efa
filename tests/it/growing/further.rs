//! Answers that money ended go on in another call, where hanging up does not stop the bill and the upstream can go on with a turn.
//! The reader sees no seam, and the books have what the upstream billed, to the token.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::chat::{Emulator as Chat, Kind, Script};
use crate::harness::emulators::{Bill, Emulator, KEY, Turn};
use crate::harness::{Answer, World, model, tenant};
use stint_backend::Backend;
use stint_backend::remote::anthropic::{self, AnthropicBackend};
use stint_backend::remote::openai::{self, Dialect, OpenAiBackend};
use stint_backend::remote::{self, Connections, Secret};
use stint_types::catalog::{EnforcementClass, GoesOn, HandOff, Model};
use stint_types::units::{Money, Tokens};

use super::budget;

/// A hosted model, at a nano-dollar a token read and four a token written.
fn hosted(classes: &[EnforcementClass], goes_on: GoesOn) -> Model {
    Model {
        context: Tokens(100_000),
        classes: classes.to_vec(),
        solution_max: None,
        stops_billing: false,
        goes_on,
        hand_off: HandOff {
            text: String::new(),
            overhead: Tokens(200),
            overhead_without_thought: Tokens(200),
        },
        ..model("m", classes[0])
    }
}

async fn world(model: Model, backend: Arc<dyn Backend>, nanos: u64) -> World {
    World::with(vec![(model, backend)], vec![tenant("key", nanos)], |_| ()).await
}

fn question(stream: bool, thinking: u64) -> Value {
    json!({
        "model": "m", "stream": stream,
        "messages": [{ "role": "user", "content": "Count." }],
        "budget": { "thinking_tokens": thinking },
    })
}

/// The text of the first choice, streamed or not.
fn text(answer: &Answer, stream: bool) -> String {
    match stream {
        true => answer.chunks().joined(0, "content"),
        false => answer.good()["choices"][0]["message"]["content"].as_str().unwrap().to_owned(),
    }
}

/// All is settled, at what the upstream billed.
async fn exact(world: &World, billed: u64) {
    world.settled().await;
    let account = world.account("key");
    assert_eq!((account.reserved.money, account.overrun), (Money::ZERO, Money::ZERO), "{account:?}");
    assert_eq!(account.spent.money, Money(billed));
}

/// A provider whose prefix is the beginning of the answer.
fn resumed(kind: Kind, script: Script) -> (Chat, Arc<dyn Backend>) {
    let emulator = Chat::start(kind, script);
    let (base_url, dialect) = match kind {
        Kind::DeepSeek => (emulator.address.clone(), Dialect::deepseek()),
        _ => (format!("{}/v1", emulator.address), Dialect::mistral()),
    };
    let client = remote::Settings { base_url, ..remote::Settings::default() };
    let settings = openai::Settings {
        client,
        name: "m".into(),
        model: "m".to_owned(),
        dialect,
        ..openai::Settings::default()
    };
    (emulator, Arc::new(OpenAiBackend::new(&Connections::default(), settings).unwrap()))
}

fn script(thinks: u64, answers: u64) -> Script {
    Script { bulk: 100, ..Script::new(thinks, answers) }
}

#[tokio::test]
async fn an_answer_that_money_ended_goes_on_behind_its_prefix() {
    for kind in [Kind::DeepSeek, Kind::Mistral] {
        for (stream, thinks) in [(false, 6), (true, 6), (false, 0), (true, 300)] {
            let (emulator, backend) = resumed(kind, script(thinks, 20_000));
            let world = world(hosted(&[EnforcementClass::Continue], GoesOn::Resumed), backend, 120_000).await;
            let thinking = if thinks == 0 { 0 } else { 20 };
            let answer = world.ask("sk-key", &question(stream, thinking)).await;
            let (what, budget) = (format!("{kind:?} {stream} {thinks}"), budget(&answer));
            assert_eq!(text(&answer, stream).trim_end(), "so ".repeat(20_000).trim_end(), "{what}");
            assert_eq!(budget["solution"]["ended"], "stop", "{what}: {budget}");
            // Mistral does not tell thought from answer, so that the first call's is shared out.
            let apart = 20_000 - budget["solution"]["used"].as_u64().unwrap();
            assert!(apart <= u64::from(kind == Kind::Mistral), "{what}: {budget}");
            assert!(emulator.calls().len() > if thinks == 0 { 1 } else { 2 }, "{what}");
            assert!(emulator.refusals().is_empty(), "{what}: {:?}", emulator.refusals());
            exact(&world, emulator.bill()).await;
        }
    }
}

/// What is kept for a hand-off, and what a thought leaves, goes to the answer: of a model that does not think it is all.
#[tokio::test]
async fn a_stated_total_is_the_answers_where_nothing_is_thought() {
    for (stream, total, thinking) in
        [(false, 300, 50), (true, 300, 50), (false, 1_000, 600), (true, 5_000, 20)]
    {
        let (emulator, backend) = resumed(Kind::DeepSeek, Script::new(0, 3_000));
        let world = world(hosted(&[EnforcementClass::Continue], GoesOn::Resumed), backend, 1_000_000).await;
        let mut body = question(stream, thinking);
        body["max_tokens"] = total.into();
        let answer = world.ask("sk-key", &body).await;
        let (words, budget) = (text(&answer, stream).split_whitespace().count(), budget(&answer));
        assert_eq!(words, total.min(3_000), "{total}: {budget}");
        assert_eq!(budget["solution"]["ended"], if total < 3_000 { "caller" } else { "stop" }, "{budget}");
        exact(&world, emulator.bill()).await;
    }
}

#[tokio::test]
async fn choices_go_on_each_by_its_own() {
    let (emulator, backend) = resumed(Kind::DeepSeek, script(6, 20_000));
    let world = world(hosted(&[EnforcementClass::Continue], GoesOn::Resumed), backend, 300_000).await;
    let mut body = question(false, 20);
    body["n"] = 2.into();
    let answer = world.ask("sk-key", &body).await.good();
    for choice in answer["budget"]["choices"].as_array().unwrap() {
        assert_eq!(
            (&choice["solution"]["ended"], &choice["solution"]["used"]),
            (&json!("stop"), &json!(20_000))
        );
    }
    assert!(emulator.calls().len() > 4, "{} calls", emulator.calls().len());
    exact(&world, emulator.bill()).await;
}

#[tokio::test]
async fn where_no_more_money_is_there_the_answer_ends_by_money() {
    for stream in [false, true] {
        let (emulator, backend) = resumed(Kind::DeepSeek, script(6, 60_000));
        let world = world(hosted(&[EnforcementClass::Continue], GoesOn::Resumed), backend, 120_000).await;
        let answer = world.ask("sk-key", &question(stream, 20)).await;
        assert_eq!(budget(&answer)["solution"]["ended"], "money", "{}", budget(&answer));
        assert!(emulator.calls().len() > 2, "{} calls", emulator.calls().len());
        exact(&world, emulator.bill()).await;
        assert!(emulator.bill() <= 120_000, "{} of 120,000", emulator.bill());
    }
}

/// The words from the one on that was asked for the last.
fn rest(body: &Value, all: usize) -> Turn {
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let begun = if last["role"] == "assistant" { last["content"].to_string() } else { String::new() };
    let from = begun.matches('w').count() + 1;
    let words: Vec<String> = (from..=all).map(|number| format!("w{number}")).collect();
    Turn::answers(0, &words.join(" "))
}

fn messages(emulator: &Emulator, adjust: impl FnOnce(&mut anthropic::Settings)) -> Arc<dyn Backend> {
    let client = remote::Settings {
        base_url: emulator.base.clone(),
        api_key: Some(Secret::new(KEY)),
        ..remote::Settings::default()
    };
    let mut settings =
        anthropic::Settings { client, model: "claude-m".to_owned(), name: "m".into(), ..Default::default() };
    adjust(&mut settings);
    Arc::new(AnthropicBackend::new(&Connections::default(), settings).unwrap())
}

fn billed(bills: &[Bill]) -> u64 {
    bills.iter().map(|bill| bill.prompt + 4 * bill.written).sum()
}

#[tokio::test]
async fn an_answer_without_a_thought_goes_on_from_its_beginning_as_the_assistants_turn() {
    for (stream, class) in
        [(false, EnforcementClass::Native), (true, EnforcementClass::Native), (true, EnforcementClass::Turn)]
    {
        let emulator = Emulator::start_by(Provider::default(), |body| rest(body, 20_000));
        let hosted = Model {
            thinking_min: Tokens(1024),
            thinking_max: Tokens(4096),
            ..hosted(&[class], GoesOn::Unthought)
        };
        let world = world(hosted, messages(&emulator, |_| ()), 120_000).await;
        let answer = world.ask("sk-key", &question(stream, 0)).await;
        let expected: String = (1..=20_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(text(&answer, stream), expected, "{class:?}");
        assert_eq!(budget(&answer)["solution"]["ended"], "stop", "{}", budget(&answer));
        assert!(emulator.asked().len() > 1, "{class:?}");
        assert_eq!(emulator.refused(), []);
        exact(&world, billed(&emulator.bills())).await;
    }
}

#[tokio::test]
async fn where_another_call_is_refused_what_is_there_is_the_answer() {
    // Its provider has changed its mind: models of this name take no beginnings.
    let emulator = Emulator::start_by(Provider::default(), |body| rest(body, 20_000));
    let hosted =
        Model { thinking_max: Tokens::ZERO, ..hosted(&[EnforcementClass::Effort], GoesOn::Unthought) };
    let hosted = Model { efforts: Vec::new(), ..hosted };
    let backend = messages(&emulator, |settings| {
        settings.model = "claude-adaptive".to_owned();
        settings.thinking = anthropic::AnthropicThinking::Never;
    });
    let world = world(hosted, backend, 120_000).await;
    let answer = world.ask("sk-key", &question(true, 0)).await;
    let said = text(&answer, true);
    assert!(said.starts_with("w1 w2 ") && said.len() > 1_000, "{said}");
    assert_eq!(budget(&answer)["solution"]["ended"], "upstream", "{}", budget(&answer));
    assert_eq!(emulator.refused().len(), 1);
    exact(&world, billed(&emulator.bills())).await;
}
