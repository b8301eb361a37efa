//! Anthropic's Messages.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::emulators::anthropic::Anthropic as Provider;
use crate::harness::emulators::{Bill, Emulator, Turn};
use crate::harness::{Served, World, tenant};
use stint_backend::Backend;
use stint_backend::remote::anthropic::{AnthropicBackend, AnthropicThinking, AnthropicThinkingOff, Settings};
use stint_backend::remote::{self, Caching, CallerHeaderRules, Connections, HARMLESS_BETAS, Secret};
use stint_types::catalog::{EffortLevel, EnforcementClass, Model, Prices, Rates, Tariff};
use stint_types::units::{Money, Price, Tokens};

use super::{
    FUNDS, ask, body, check_books, check_bound, client, hang_up, large, message, message_of_chunks,
    next_turn, spent, tool, world,
};

fn backend(emulator: &Emulator, name: &str, adjust: impl FnOnce(&mut Settings)) -> Arc<dyn Backend> {
    let (client, model) = (client(emulator), format!("claude-{name}"));
    let mut settings = Settings { client, model, name: name.into(), ..Settings::default() };
    adjust(&mut settings);
    Arc::new(AnthropicBackend::new(&Connections::default(), settings).unwrap())
}

/// A model that is given budgets.
fn budgeted(emulator: &Emulator, name: &str, classes: &[EnforcementClass]) -> (Model, Arc<dyn Backend>) {
    let model = Model { thinking_min: Tokens(1024), ..large(name, classes) };
    (model, backend(emulator, name, |_| ()))
}

/// A model that thinks as it sees fit.
fn adaptive(emulator: &Emulator, class: EnforcementClass) -> (Model, Arc<dyn Backend>) {
    let efforts = [("low", 20), ("medium", 100), ("high", 2000)];
    let level = |(word, usual): (&str, u64)| EffortLevel { word: word.to_owned(), usual: Tokens(usual) };
    let model = Model { efforts: efforts.map(level).to_vec(), ..large("m", &[class]) };
    let settings = |settings: &mut Settings| {
        settings.model = "claude-adaptive".to_owned();
        settings.thinking = AnthropicThinking::Adaptive;
        settings.asks_for_thoughts = true;
        settings.sampling = false;
    };
    (model, backend(emulator, "m", settings))
}

/// A model of an upstream that is sent these features, where a caller asks for them.
async fn passing(betas: &[&str], script: Vec<Turn>) -> (World, Emulator) {
    let emulator = Emulator::start(Provider::default(), script);
    let betas = betas.iter().map(|beta| (*beta).to_owned()).collect();
    let rules = CallerHeaderRules { version: true, betas };
    let backend = backend(&emulator, "m", |settings| settings.client.caller_headers = rules);
    let model = Model { thinking_min: Tokens(1024), ..large("m", &[EnforcementClass::Native]) };
    (world(vec![(model, backend)]).await, emulator)
}

/// A request in Anthropic's own words.
fn own_words() -> Value {
    json!({ "model": "m", "max_tokens": 60, "temperature": 0.5, "messages": [{ "role": "user", "content": "hi" }] })
}

async fn native(script: Vec<Turn>) -> (World, Emulator) {
    let emulator = Emulator::start(Provider::default(), script);
    let world = world(vec![budgeted(&emulator, "m", &[EnforcementClass::Native])]).await;
    (world, emulator)
}

fn thinks(tokens: u64) -> Value {
    json!({ "budget": { "thinking_tokens": tokens, "solution_tokens": 64 } })
}

#[tokio::test]
async fn a_thought_is_held_by_the_provider_and_the_books_agree_with_its_bill() {
    for stream in [false, true] {
        let (world, emulator) = native(vec![Turn::answers(1500, "it is 51")]).await;
        let mut asked = thinks(1100);
        asked["stream"] = stream.into();
        asked["temperature"] = json!(0.5);
        let answer = ask(&world, &asked).await;
        let (said, budget) = if stream {
            (message_of_chunks(&answer), answer.chunks().budget().clone())
        } else {
            (message(&answer), answer.good()["budget"].clone())
        };
        assert_eq!(said["content"], "it is 51 ");
        assert!(said["reasoning_content"].as_str().unwrap().ends_with("w1099 "));
        assert_eq!(budget["enforced"], "native");
        assert_eq!(budget["thinking"]["used"], 1100, "{budget}");
        assert_eq!(budget["solution"]["used"], 3, "{budget}");
        assert_eq!(emulator.asked()[0]["max_tokens"], 1164);
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
async fn a_budget_below_the_least_is_no_thought_and_temperature_is_passed_then() {
    let (world, emulator) = native(vec![Turn::answers(1500, "it is 51")]).await;
    let answer = ask(&world, &json!({ "budget": { "thinking_tokens": 0 }, "temperature": 0.5 })).await;
    assert_eq!(answer.good()["budget"]["thinking"]["used"], 0);
    let asked = &emulator.asked()[0];
    assert_eq!((&asked["thinking"], &asked["temperature"]), (&Value::Null, &json!(0.5)));
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn a_run_with_tools_gets_its_signed_thoughts_back() {
    for stream in [false, true] {
        let call = Turn::calls(30, &[("search", json!({ "q": "a pet" }))]);
        let (world, emulator) = native(vec![call.clone(), call, Turn::answers(5, "a cat")]).await;
        let mut asked = thinks(1024);
        asked["stream"] = stream.into();
        asked["tools"] = json!([tool()]);
        let read = if stream { message_of_chunks } else { message };
        let first = read(&ask(&world, &asked).await);
        assert_eq!(first["tool_calls"][0]["function"]["arguments"], "{\"q\":\"a pet\"}", "{first}");
        let mut second = next_turn(&first, &asked);
        let again = read(&world.ask("sk-acme", &second).await);
        let result =
            json!({ "role": "tool", "tool_call_id": again["tool_calls"][0]["id"], "content": "a dog" });
        second["messages"].as_array_mut().unwrap().extend([again, result]);
        assert_eq!(read(&world.ask("sk-acme", &second).await)["content"], "a cat ");
        // The provider itself has checked the signatures; it was given both.
        let last = emulator.asked().pop().unwrap();
        assert_eq!(last["messages"][1]["content"][0]["type"], "thinking", "{last}");
        assert_eq!(last["messages"][3]["content"][0]["type"], "thinking", "{last}");
        assert_eq!(last["thinking"]["budget_tokens"], 1024);
        check_books(&world, &emulator).await;
    }
}

#[tokio::test]
async fn a_model_that_comes_into_a_run_of_another_is_not_given_its_signatures() {
    let script = vec![Turn::calls(30, &[("search", json!({ "q": "a pet" }))]), Turn::answers(5, "a cat")];
    let emulator = Emulator::start(Provider::default(), script);
    let of = |name| budgeted(&emulator, name, &[EnforcementClass::Native]);
    let world = world(vec![of("m"), of("n")]).await;
    let mut asked = thinks(1024);
    asked["tools"] = json!([tool()]);
    let first = message(&ask(&world, &asked).await);
    let mut second = next_turn(&first, &asked);
    second["model"] = "n".into();
    assert_eq!(message(&world.ask("sk-acme", &second).await)["content"], "a cat ");
    let last = emulator.asked().pop().unwrap();
    assert_eq!(last["messages"][1]["content"][0]["type"], "tool_use", "{last}");
    assert_eq!((&last["thinking"], &last["max_tokens"]), (&Value::Null, &json!(64)));
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn where_no_thought_can_be_the_answer_has_all_the_room() {
    let call = Turn::calls(0, &[("search", json!({ "q": "a pet" }))]);
    let emulator = Emulator::start(Provider::default(), vec![call, Turn::answers(0, "a cat")]);
    let (model, backend) = budgeted(&emulator, "m", &[EnforcementClass::Native]);
    let world = world(vec![(Model { solution_max: None, ..model }, backend)]).await;
    let mut asked = json!({ "budget": { "thinking_tokens": 1500 }, "max_completion_tokens": 3000 });
    (asked["tools"], asked["tool_choice"]) = (json!([tool()]), json!("required"));
    let first = ask(&world, &asked).await;
    asked["tool_choice"] = json!("auto");
    let second = world.ask("sk-acme", &next_turn(&message(&first), &asked)).await;
    for (answer, reason) in [(first, "a forced tool"), (second, "without its signed thought")] {
        let budget = answer.good()["budget"].take();
        assert_eq!(budget["thinking"]["budget"], 0, "{budget}");
        let why = budget["why"].as_str().unwrap();
        assert!(why.contains("m answers without thinking") && why.contains(reason), "{why}");
    }
    for sent in emulator.asked() {
        assert_eq!((&sent["thinking"], &sent["max_tokens"]), (&Value::Null, &json!(3000)), "{sent}");
    }
    check_books(&world, &emulator).await;
}

/// Two accounts of one provider, which cannot verify each other's signatures.
#[tokio::test]
async fn a_signed_thought_goes_back_to_the_account_that_it_came_from_and_to_no_other() {
    let call = Turn::calls(30, &[("search", json!({ "q": "a pet" }))]);
    let fails = Turn { fails_after: Some(0), ..Turn::answers(5, "never") };
    let all = [0, 1].map(|_| {
        Emulator::start(Provider::default(), vec![call.clone(), fails.clone(), Turn::answers(5, "a cat")])
    });
    let of = |emulator: &Emulator| budgeted(emulator, "m", &[EnforcementClass::Native]);
    let served = Served::by(of(&all[0]).0, all.iter().map(|emulator| of(emulator).1).collect());
    let world = World::fleets(vec![served], vec![tenant("acme", FUNDS)]).await;
    let mut asked = thinks(1024);
    asked["tools"] = json!([tool()]);
    let first = message(&ask(&world, &asked).await);
    let (home, other) = if all[0].asked().is_empty() { (&all[1], &all[0]) } else { (&all[0], &all[1]) };
    assert!(other.asked().is_empty());
    let again = message(&world.ask("sk-acme", &next_turn(&first, &asked)).await);
    assert_eq!(again["tool_calls"][0]["function"]["name"], "search", "the other's first answer: {again}");
    let blocks = |asked: &Value| asked["messages"][1]["content"][0]["type"].clone();
    assert_eq!(blocks(&home.asked()[1]), "thinking", "it was asked first, and failed");
    assert_eq!(blocks(&other.asked()[0]), "tool_use", "nothing that it could not verify");
    assert_eq!((home.refused(), other.refused()), (vec![], vec![]));
}

#[tokio::test]
async fn a_thought_is_cut_in_the_stream_and_the_answer_asked_for_in_a_new_turn() {
    let emulator =
        Emulator::start(Provider::default(), vec![Turn::answers(900, "never"), Turn::answers(900, "51")]);
    let world = world(vec![adaptive(&emulator, EnforcementClass::Turn)]).await;
    let answer = ask(&world, &thinks(100)).await.good();
    let message = &answer["choices"][0]["message"];
    assert_eq!((&message["content"], &answer["budget"]["enforced"]), (&json!("51 "), &json!("turn")));
    assert_eq!(answer["budget"]["thinking"]["ended"], "cut");
    assert_eq!(message["reasoning_details"], Value::Null, "no part of a cut thought is signed");
    let asked = emulator.asked();
    assert_eq!(asked[1]["thinking"], Value::Null);
    let quoted = asked[1]["messages"][0]["content"][1]["text"].as_str().unwrap().to_owned();
    let thought = message["reasoning_content"].as_str().unwrap().trim();
    let sent = quoted.lines().find(|line| line.starts_with('w')).unwrap();
    // No more than was set aside for reading it: a token for each that it was allowed, and what the prompt left.
    assert!(thought.ends_with(sent) && (100..300).contains(&sent.len()), "{quoted}");
    assert!(thought.starts_with("w0 "), "the caller saw it all: {thought}");
    check_bound(&world, &emulator).await;
    let cut = emulator.bills()[0];
    assert!(cut.written < 150, "it stopped soon after the cut: {cut:?}");
}

/// ST-15: a thought that is cut before its provider signed it is never handed out as one that may go back, and the turn
/// after it is a turn like any other.
#[tokio::test]
async fn a_cut_thought_is_withheld_from_the_turns_that_follow() {
    for stream in [false, true] {
        let call = Turn::calls(900, &[("search", json!({ "q": "a pet" }))]);
        let script = vec![Turn::answers(900, "never"), call, Turn::answers(30, "a cat")];
        let emulator = Emulator::start(Provider::default(), script);
        let world = world(vec![adaptive(&emulator, EnforcementClass::Turn)]).await;
        let mut asked = thinks(100);
        (asked["tools"], asked["stream"]) = (json!([tool()]), stream.into());
        let answer = ask(&world, &asked).await;
        let first = if stream { message_of_chunks(&answer) } else { message(&answer) };
        assert!(first["reasoning_content"].as_str().unwrap().starts_with("w0 "), "{first}");
        let signed = first["reasoning_details"].as_array().map_or(0, Vec::len);
        assert_eq!((signed, answer.text.contains("signature")), (0, false), "{}", answer.text);
        let second = next_turn(&first, &asked);
        let answer = world.ask("sk-acme", &second).await;
        let last = if stream { message_of_chunks(&answer) } else { message(&answer) };
        assert_eq!(last["content"], "a cat ", "{last}");
        let sent = emulator.asked().pop().unwrap();
        let kinds = |turn: &Value| -> Vec<Value> {
            turn["content"].as_array().into_iter().flatten().map(|block| block["type"].clone()).collect()
        };
        let turns: Vec<Vec<Value>> = sent["messages"].as_array().unwrap().iter().map(kinds).collect();
        assert!(turns.concat().iter().all(|kind| kind != "thinking"), "{turns:?}");
        check_bound(&world, &emulator).await;
    }
}

/// ST-15: the same where the stream breaks off inside the thought.
#[tokio::test]
async fn a_thought_that_breaks_off_is_not_handed_out_as_signed() {
    let fails = Turn { fails_after: Some(12), ..Turn::answers(1500, "never") };
    let (world, emulator) = native(vec![fails]).await;
    let mut asked = thinks(1024);
    asked["stream"] = true.into();
    let answer = ask(&world, &asked).await;
    let chunks = answer.chunks();
    assert!(chunks.joined(0, "reasoning_content").starts_with("w0 ") && !chunks.done, "{}", answer.text);
    assert!(
        !answer.text.contains("reasoning_details") && !answer.text.contains("signature"),
        "{}",
        answer.text
    );
    check_bound(&world, &emulator).await;
}

#[tokio::test]
async fn an_effort_is_chosen_to_fit_the_budget() {
    let emulator = Emulator::start(Provider::default(), vec![Turn::answers(900, "it is 51")]);
    let world = world(vec![adaptive(&emulator, EnforcementClass::Effort)]).await;
    let mut asked = thinks(150);
    asked["temperature"] = json!(0.5);
    let answer = ask(&world, &asked).await.good();
    assert_eq!(answer["budget"]["thinking"]["used"], 100, "{answer}");
    let asked = &emulator.asked()[0];
    assert_eq!(asked["output_config"]["effort"], "medium");
    assert_eq!(asked["thinking"], json!({ "type": "adaptive", "display": "summarized" }));
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn an_answer_that_reaches_its_limit_ends_as_length() {
    let (world, emulator) = native(vec![Turn::answers(1024, "one two three four five six")]).await;
    let asked = json!({ "budget": { "thinking_tokens": 1024, "solution_tokens": 4 } });
    let answer = ask(&world, &asked).await.good();
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["choices"][0]["message"]["content"], "one two three four ");
    check_books(&world, &emulator).await;
}

#[tokio::test]
async fn what_an_error_or_a_hang_up_leaves_untold_is_never_reckoned_too_low() {
    // Its caller has read nothing, so the model is asked three times.
    let fails = || Turn { fails_after: Some(40), ..Turn::answers(1024, "never") };
    let (failing, emulator) = native(vec![fails(), fails(), fails()]).await;
    let answer = ask(&failing, &thinks(1024)).await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    check_bound(&failing, &emulator).await;

    let (left, emulator) = native(vec![Turn::answers(1024, "never")]).await;
    hang_up(&left, &thinks(1024)).await;
    check_bound(&left, &emulator).await;
}

#[tokio::test]
async fn a_prompt_in_the_cache_costs_what_the_cache_costs() {
    let script = vec![Turn::answers(0, "first"), Turn::answers(0, "second")];
    let emulator = Emulator::start(Provider::default(), script);
    let model = cached();
    let world =
        world(vec![(model, backend(&emulator, "m", |settings| settings.cache.caching = Caching::Always))])
            .await;
    let asked = json!({ "budget": { "thinking_tokens": 0 } });
    let first = ask(&world, &asked).await;
    let first_told = first.json()["usage"]["prompt_tokens_details"]["cached_tokens"].take();
    let first = message(&first);
    let mut second = body(&asked);
    let more = json!({ "role": "user", "content": "and then?" });
    second["messages"].as_array_mut().unwrap().extend([first, more]);
    let second = world.ask("sk-acme", &second).await.good();
    let bills = emulator.bills();
    let written = &second["usage"]["prompt_tokens_details"]["cache_write_tokens"];
    assert_eq!(written, bills[1].cache_write, "{second}");
    let told = &second["usage"]["prompt_tokens_details"]["cached_tokens"];
    assert_eq!((told, &first_told), (&json!(bills[1].cache_read), &json!(0)), "as OpenAI tells it");
    assert!(bills[0].cache_write > 0 && bills[1].cache_read > 0 && bills[1].cache_write > 0, "{bills:?}");
    assert_eq!(spent(&world).await, price_cached(&bills));
}

#[tokio::test]
async fn what_the_caller_marks_is_kept_in_the_cache_and_billed_at_its_prices() {
    let book = "one two three ".repeat(50);
    let mark = || json!({ "type": "ephemeral" });
    let script = vec![Turn::calls(0, &[("search", json!({ "q": "x" }))]), Turn::answers(0, "a cat")];
    let emulator = Emulator::start(Provider::default(), script);
    let world =
        world(vec![(cached(), backend(&emulator, "m", |settings| settings.cache.caching = Caching::Always))])
            .await;
    let asked = json!({ "budget": { "thinking_tokens": 0 } });
    let told = |mut asked: Value| {
        let system = json!({ "role": "system", "content": [
            { "type": "text", "text": book, "cache_control": mark() },
            { "type": "text", "text": "It is Monday." },
        ]});
        asked["messages"].as_array_mut().unwrap().insert(0, system);
        asked["tools"] = json!([tool()]);
        asked
    };
    let first = message(&world.ask("sk-acme", &told(body(&asked))).await);
    let mut second = told(next_turn(&first, &asked));
    let found = json!({ "type": "text", "text": "a cat", "cache_control": mark() });
    let found = json!([found, { "type": "text", "text": "It is noon." }]);
    second["messages"][3]["content"] = found;
    message(&world.ask("sk-acme", &second).await);
    let (bills, seen) = (emulator.bills(), emulator.asked());
    assert_eq!(seen[0]["system"][0], json!({ "type": "text", "text": book, "cache_control": mark() }));
    assert!(seen.iter().all(|body| body["cache_control"].is_null()), "the caller's marks override ours");
    let last = seen[1]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["content"][0]["content"], &last["content"][0]["cache_control"]),
        (&json!("a cat"), &mark())
    );
    assert_eq!(last["content"][1], json!({ "type": "text", "text": "It is noon." }), "behind what is kept");
    assert!(bills[0].cache_write >= 150 && bills[0].cache_read == 0, "{bills:?}");
    assert_eq!(bills[1].cache_read, bills[0].cache_write);
    assert!(bills[1].cache_write > 0, "{bills:?}");
    assert_eq!(emulator.refused(), []);
    assert_eq!(spent(&world).await, price_cached(&bills));
}

#[tokio::test]
async fn what_is_kept_for_an_hour_is_reserved_and_billed_at_the_price_of_an_hour() {
    let emulator = Emulator::start(Provider::default(), vec![Turn::answers(0, "yes"); 2]);
    let world = world(vec![(cached(), backend(&emulator, "m", |_| ()))]).await;
    let book = (0..150).map(|at| format!("page{at}")).collect::<Vec<_>>().join(" ");
    let (minutes, hour) = (json!({ "type": "ephemeral" }), json!({ "type": "ephemeral", "ttl": "1h" }));
    let asked = |said: &str| {
        let system = json!([{ "type": "text", "text": book, "cache_control": hour }]);
        let user = json!([{ "type": "text", "text": said, "cache_control": minutes }]);
        let messages = json!([{ "role": "system", "content": system }, { "role": "user", "content": user }]);
        json!({ "messages": messages, "budget": { "thinking_tokens": 0, "solution_tokens": 20 } })
    };
    let first = ask(&world, &asked("Is it long?")).await.good();
    ask(&world, &asked("Is it good?")).await.good();
    assert_eq!(emulator.asked()[0]["system"][0]["cache_control"], hour);
    let bills = emulator.bills();
    assert_eq!((bills[0].cache_hour, bills[1].cache_hour), (151, 0), "{bills:?}");
    assert!(bills[0].cache_write > 151 && bills[1].cache_read == 151, "{bills:?}");
    assert_eq!(spent(&world).await, price_cached(&bills));
    let reserved: Money = first["budget"]["reserved_usd"].as_str().unwrap().parse().unwrap();
    assert!(reserved.0 >= 20 * bills[0].prompt, "{reserved:?}: at the dearest price that it may have");
    assert_eq!(emulator.refused(), []);
}

#[tokio::test]
async fn what_is_put_into_the_cache_is_told_as_anthropic_tells_it() {
    let emulator = Emulator::start(Provider::default(), vec![Turn::answers(0, "yes"); 2]);
    let world = world(vec![(cached(), backend(&emulator, "m", |_| ()))]).await;
    let book = (0..150).map(|at| format!("page{at}")).collect::<Vec<_>>().join(" ");
    let mark = |ttl: &str| json!({ "type": "ephemeral", "ttl": ttl });
    let mut asked = own_words();
    asked["system"] = json!([{ "type": "text", "text": book, "cache_control": mark("1h") }]);
    asked["messages"][0]["content"] = json!([{ "type": "text", "text": "hi", "cache_control": mark("5m") }]);
    asked["thinking"] = json!({ "type": "disabled" });
    for stream in [false, true] {
        asked["messages"][0]["content"][0]["text"] = format!("hi {stream}").into();
        asked["stream"] = stream.into();
        let answer = world.post("/v1/messages", "sk-acme", &asked).await;
        let usage = if stream {
            let end = answer.chunks().all.into_iter().find(|event| event["type"] == "message_delta");
            end.unwrap()["usage"].clone()
        } else {
            answer.good()["usage"].clone()
        };
        let bill = *emulator.bills().last().unwrap();
        assert!(bill.cache_write > 0, "{bill:?}");
        assert_eq!(usage["input_tokens"], bill.prompt - bill.cache_read - bill.cache_write, "{usage}");
        assert_eq!(usage["cache_read_input_tokens"], bill.cache_read, "{usage}");
        assert_eq!(usage["cache_creation_input_tokens"], bill.cache_write, "{usage}");
        let kept = json!({
            "ephemeral_5m_input_tokens": bill.cache_write - bill.cache_hour,
            "ephemeral_1h_input_tokens": bill.cache_hour,
        });
        assert_eq!(usage["cache_creation"], kept);
    }
}

/// Not every caller knows that the provider refuses an hour behind minutes.
#[tokio::test]
async fn what_is_marked_for_minutes_before_an_hour_is_sent_as_an_hour_and_taken() {
    let emulator = Emulator::start(Provider::default(), vec![Turn::answers(0, "yes"); 2]);
    let world = world(vec![(cached(), backend(&emulator, "m", |_| ()))]).await;
    let (minutes, hour) = (json!({ "type": "ephemeral" }), json!({ "type": "ephemeral", "ttl": "1h" }));
    for (first, last) in [(&minutes, &hour), (&hour, &minutes)] {
        let marked =
            |text: &str, mark: &Value| json!([{ "type": "text", "text": text, "cache_control": mark }]);
        let system = json!({ "role": "system", "content": marked("Be brief.", first) });
        let messages = json!([system, { "role": "user", "content": marked("Is it long?", last) }]);
        let budget = json!({ "thinking_tokens": 0, "solution_tokens": 20 });
        ask(&world, &json!({ "messages": messages, "budget": budget })).await.good();
    }
    let sent = emulator.asked();
    assert!(sent.iter().all(|sent| sent["system"][0]["cache_control"] == hour), "{sent:?}");
    assert_eq!(emulator.refused(), []);
}

/// A model whose cache has prices of its own.
fn cached() -> Model {
    let price = |nanos: u64| Price { per_million_tokens: Money(nanos * 1_000_000) };
    let rates = Rates {
        list: Prices { input: price(10), output: price(40) },
        cache_read: price(1),
        cache_write: price(12),
        cache_hour: price(20),
    };
    let tariff = Some(Tariff { rates, long: None, call: Money::ZERO, off_peak: None });
    Model { tariff, ..large("m", &[EnforcementClass::Native]) }
}

/// What its requests cost.
fn price_cached(bills: &[Bill]) -> u64 {
    let cost = |bill: &Bill| {
        let fresh = bill.prompt - bill.cache_read - bill.cache_write;
        let minutes = bill.cache_write - bill.cache_hour;
        10 * fresh + bill.cache_read + 12 * minutes + 20 * bill.cache_hour + 40 * bill.written
    };
    bills.iter().map(cost).sum()
}

#[tokio::test]
async fn a_key_that_is_refused_is_ours_and_costs_nothing() {
    let emulator = Emulator::start(Provider::default(), Vec::new());
    let client = remote::Settings { api_key: Some(Secret::new("another")), ..client(&emulator) };
    let model = large("m", &[EnforcementClass::Native]);
    let world = world(vec![(model, backend(&emulator, "m", |settings| settings.client = client))]).await;
    let answer = ask(&world, &thinks(0)).await;
    assert!(answer.status >= 500 && !answer.text.contains("x-api-key"), "{}", answer.text);
    assert_eq!(spent(&world).await, 0);
    assert_eq!(emulator.refused()[0].0, 401);
}

#[tokio::test]
async fn only_allowed_features_are_asked_for_and_the_key_stays_the_gateways() {
    let script = || vec![Turn::answers(1, "hello"), Turn::answers(1, "hello")];
    let asked = "never-was-2030-01-01, interleaved-thinking-2025-05-14,oauth-2025-04-20";
    let headers = [("anthropic-beta", asked), ("x-api-key", "sk-acme"), ("anthropic-version", "2023-06-01")];
    let (world, emulator) = passing(&HARMLESS_BETAS, script()).await;
    world.post_with("/v1/messages", "sk-acme", &own_words(), &headers).await.good();
    assert_eq!(emulator.asked().len(), 1);
    check_books(&world, &emulator).await;
    // Where the operator lets it through the provider gets to see it.
    let (world, _emulator) = passing(&["never-was-2030-01-01"], script()).await;
    let refused = world.post_with("/v1/messages", "sk-acme", &own_words(), &headers).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

#[tokio::test]
async fn a_caller_is_passed_on_in_the_version_it_speaks_and_told_of_one_that_there_is_not() {
    let (world, emulator) = passing(&[], vec![Turn::answers(1, "hello"), Turn::answers(1, "hello")]).await;
    for (version, temperature) in [("2023-06-01", json!(0.5)), ("2026-10-21", Value::Null)] {
        let headers = [("anthropic-version", version)];
        world.post_with("/v1/messages", "sk-acme", &own_words(), &headers).await.good();
        // The provider refuses a temperature in the later one.
        assert_eq!(emulator.asked().last().unwrap()["temperature"], temperature, "{version}");
    }
    let headers = [("anthropic-version", "2024-12-31")];
    let refused = world.post_with("/v1/messages", "sk-acme", &own_words(), &headers).await;
    assert_eq!(refused.status, 400);
    let error: Value = serde_json::from_str(&refused.text).unwrap();
    assert_eq!(error["error"]["type"], "invalid_request_error");
    assert!(error["error"]["message"].as_str().unwrap().contains("is not a valid version"), "{error}");
    assert_eq!(emulator.asked().len(), 2);
    check_books(&world, &emulator).await;
}

/// A model that cannot but think between calls, told to think no more than that as the settings say.
async fn between(off: AnthropicThinkingOff) -> (World, Emulator) {
    let emulator = Emulator::start(Provider::default(), vec![Turn::answers(0, "at once")]);
    let level = |(word, usual): (&str, u64)| EffortLevel { word: word.to_owned(), usual: Tokens(usual) };
    let efforts = [("none", 0), ("low", 20), ("high", 2000)].map(level).to_vec();
    let model = Model { efforts, ..large("m", &[EnforcementClass::Effort]) };
    let backend = backend(&emulator, "m", |settings| {
        settings.model = "claude-adaptive-between".to_owned();
        settings.thinking = AnthropicThinking::Adaptive;
        settings.thinking_off = off;
        settings.sampling = false;
        settings.rules.refuses_forced_tools = true;
    });
    (world(vec![(model, backend)]).await, emulator)
}

#[tokio::test]
async fn the_least_thought_of_a_model_is_asked_for_and_no_tool_is_forced_on_it() {
    let (world, emulator) = between(AnthropicThinkingOff::BetweenTools).await;
    let answer = ask(&world, &json!({ "reasoning_effort": "none" })).await;
    assert_eq!(message(&answer)["content"], "at once ");
    assert_eq!(emulator.asked()[0]["thinking"]["type"], "between_tools");
    let forced = json!({ "reasoning_effort": "none", "tools": [tool()], "tool_choice": "required" });
    assert_eq!(ask(&world, &forced).await.status, 400);
    assert_eq!(emulator.asked().len(), 1, "it is refused before anything is sent");
    check_books(&world, &emulator).await;
    let (world, _emulator) = between(AnthropicThinkingOff::Disabled).await;
    assert_eq!(
        ask(&world, &json!({ "reasoning_effort": "none" })).await.status,
        400,
        "the provider refuses that"
    );
}
