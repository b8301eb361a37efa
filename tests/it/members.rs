//! Members that are not ours: what limits, bills, routes or switches thinking is known on every kind of upstream, and all
//! else goes to who takes it.

mod clients;
mod picky;
mod refusals;

use serde_json::{Value, json};

use crate::harness::emulators::chat::{Emulator, Kind, Script};
use crate::harness::{Answer, Folder, Process};
use picky::Picky;

/// What becomes of a member.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// It is a limit on all that is written.
    Limit,
    /// It turns thinking off.
    NoThought,
    /// It is taken and goes nowhere.
    LeftOut,
    /// It is refused by its name.
    Refused,
    /// It goes to one's own servers, and is refused by others unless they document it.
    Passed,
    /// It goes to who documents it, and nowhere else.
    Hint,
}

/// The kinds, whether they are one's own, and where their API begins.
const KINDS: [(&str, Kind, bool, &str); 9] = [
    ("openai", Kind::OpenAi, true, "/v1"),
    ("vllm", Kind::Vllm, true, "/v1"),
    ("sglang", Kind::Sglang, true, "/v1"),
    ("ollama", Kind::Ollama, true, "/v1"),
    ("deepseek", Kind::DeepSeek, false, ""),
    ("dashscope", Kind::DashScope, false, "/v1"),
    ("openrouter", Kind::OpenRouter, false, "/v1"),
    ("mistral", Kind::Mistral, false, "/v1"),
    ("xai", Kind::Xai, false, "/v1"),
];

/// What hosted kinds document.
const DOCUMENTED: [(&str, &str); 3] =
    [("openrouter", "min_p"), ("openrouter", "repetition_penalty"), ("dashscope", "repetition_penalty")];

fn known() -> Vec<(&'static str, Value, Fate)> {
    use Fate::{Hint, LeftOut, Limit, NoThought, Passed, Refused};
    vec![
        ("n_predict", json!(40), Limit),
        ("n_predict", json!(-1), LeftOut),
        ("num_predict", json!(40), Limit),
        ("max_new_tokens", json!(40), Limit),
        ("max_output_tokens", json!(40), Limit),
        ("enable_thinking", json!(false), NoThought),
        ("chat_template_kwargs", json!({ "enable_thinking": false }), NoThought),
        ("chat_template_kwargs", json!({ "thinking": false }), NoThought),
        ("thinking_budget", json!(0), NoThought),
        ("custom_params", json!({ "thinking_budget": 0 }), NoThought),
        ("think", json!(false), NoThought),
        ("reasoning_format", json!("none"), LeftOut),
        ("cache_prompt", json!(false), LeftOut),
        ("id_slot", json!(3), LeftOut),
        ("keep_alive", json!("5m"), LeftOut),
        ("num_ctx", json!(8192), LeftOut),
        ("route", json!("fallback"), LeftOut),
        ("best_of", json!(1), LeftOut),
        ("ignore_eos", json!(false), LeftOut),
        ("service_tier", json!("auto"), LeftOut),
        ("store", json!(false), LeftOut),
        ("cache_salt", json!("pepper"), Hint),
        ("best_of", json!(2), Refused),
        ("use_beam_search", json!(true), Refused),
        ("ignore_eos", json!(true), Refused),
        ("priority", json!(1), Refused),
        ("plugins", json!([{ "id": "web" }]), Refused),
        ("web_search_options", json!({}), Refused),
        ("enable_search", json!(true), Refused),
        ("service_tier", json!("priority"), Refused),
        ("provider", json!({ "order": ["dear"] }), Refused),
        ("models", json!(["dear"]), Refused),
        ("Model", json!("dear"), Refused),
        ("transforms", json!(["middle-out"]), Refused),
        ("store", json!(true), Refused),
        ("background", json!(true), Refused),
        ("extra_body", json!({ "min_p": 0.05 }), Refused),
        ("options", json!({ "num_predict": 3 }), Refused),
        ("min_p", json!(0.05), Passed),
        ("repetition_penalty", json!(1.1), Passed),
        ("grammar", json!("root ::= \"a\""), Passed),
        ("surprise", json!({ "a": [1] }), Passed),
    ]
}

/// A backend with one model of the same name, and more lines for it.
fn backend(name: &str, kind: &str, base: &str, more: &str) -> String {
    format!(
        "[[backend]]\nname = \"{name}\"\nkind = \"{kind}\"\nbase_url = \"{base}\"\n{more}\n[[backend.model]]\n\
         name = \"{name}\"\nprice_input = \"1\"\nprice_output = \"4\"\nthinking_max = 50\ncontext = 100000\n"
    )
}

fn serve(backends: &[String]) -> Process {
    let head = "[engine]\nembedded = false\n[catalog]\nopenrouter_prices = false\n";
    Folder::new(&format!("{head}{}", backends.concat())).serve()
}

fn body(model: &str, more: &Value) -> Value {
    let mut body = json!({ "model": model, "messages": [{ "role": "user", "content": "What is 12+34?" }] });
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn what_limits_bills_routes_or_switches_thinking_is_known_on_every_kind() {
    let emulators: Vec<Emulator> =
        KINDS.iter().map(|(_, kind, ..)| Emulator::start(*kind, Script::new(4, 3))).collect();
    let backends: Vec<String> = KINDS
        .iter()
        .zip(&emulators)
        .map(|((name, _, _, path), emulator)| backend(name, name, &format!("{}{path}", emulator.address), ""))
        .collect();
    let process = serve(&backends);
    for ((kind, _, is_own, _), emulator) in KINDS.iter().zip(&emulators) {
        for (name, value, fate) in known() {
            let before = emulator.calls().len();
            let answer = process.ask("", &body(kind, &json!({ name: value }))).await;
            let calls: Vec<Value> = emulator.calls()[before..].iter().map(|call| call.body.clone()).collect();
            let what = format!("{kind} {name} {value}: {} {calls:?}", answer.text);
            let documented = DOCUMENTED.contains(&(kind, name));
            match fate {
                Fate::Passed if !is_own && !documented => {
                    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(name)), "{what}");
                    assert_eq!(answer.error()["code"], "unknown_parameter", "{what}");
                }
                Fate::Refused => {
                    assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(name)), "{what}");
                    assert!(calls.is_empty(), "{what}");
                }
                _ => went(fate, (name, &value), &calls, (&answer.good(), kind), &what),
            }
        }
        assert_eq!(emulator.refusals(), Vec::<Value>::new(), "{kind}");
    }
}

/// What went upstream of a member of a request that was answered.
fn went(
    fate: Fate,
    (name, value): (&str, &Value),
    calls: &[Value],
    (answer, kind): (&Value, &str),
    what: &str,
) {
    let has = |call: &Value| call.get(name) == Some(value);
    match fate {
        Fate::Limit => {
            let limit = |call: &Value| {
                ["max_tokens", "max_completion_tokens"].iter().find_map(|it| call[*it].as_u64())
            };
            assert!(calls.iter().all(|call| limit(call).is_some_and(|limit| limit <= 40)), "{what}");
        }
        Fate::NoThought => assert_eq!(answer["budget"]["thinking"]["budget"], 0, "{what}"),
        Fate::Passed => assert!(calls.iter().any(has), "{what}"),
        Fate::Hint if ["vllm", "sglang"].contains(&kind) => assert!(calls.iter().all(has), "{what}"),
        _ => assert!(calls.iter().all(|call| call.get(name).is_none()), "{what}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_shapes_an_answer_is_not_said_of_its_thought() {
    let emulator = Emulator::start(Kind::Vllm, Script::new(9, 3));
    let process = serve(&[backend("vllm", "vllm", &format!("{}/v1", emulator.address), "")]);
    let more =
        json!({ "budget": { "thinking_tokens": 4 }, "min_p": 0.1, "guided_json": { "type": "object" } });
    let answer = process.ask("", &body("vllm", &more)).await.good();
    assert_eq!(answer["budget"]["enforced"], "continue");
    let has = |call: &Value| (call.get("min_p").is_some(), call.get("guided_json").is_some());
    let calls: Vec<_> = emulator.calls().iter().map(|call| has(&call.body)).collect();
    assert_eq!(calls, [(true, false), (true, true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_way_without_a_member_gives_way_to_the_next() {
    let emulator = Emulator::start(Kind::Vllm, Script::new(9, 3));
    let base = format!("{}/v1", emulator.address);
    let only = "classes = [\"continue\"]\n";
    let process = serve(&[backend("vllm", "vllm", &base, ""), backend("held", "vllm", &base, "") + only]);
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": {} } }]);
    for more in [json!({ "surprise": 1 }), json!({ "tools": tools }), json!({ "logprobs": true })] {
        let answer = process.ask("", &body("vllm", &more)).await.good();
        assert_eq!(answer["budget"]["enforced"], "native", "{more}");
    }
    let refused = process.ask("", &body("held", &json!({ "surprise": 1 }))).await;
    assert_eq!((refused.status, &refused.error()["param"]), (400, &json!("surprise")));
    assert!(refused.text.contains("endpoint at which thoughts of held are resumed"), "{}", refused.text);
}

/// What stands in a message and has no meaning here goes where members of requests go.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_messages_are_passed_on_in_their_message_or_refused_by_their_path() {
    let (own, hosted) = (
        Emulator::start(Kind::Ollama, Script::new(0, 3)),
        Emulator::start(Kind::DeepSeek, Script::new(0, 3)),
    );
    let process = serve(&[
        backend("own", "ollama", &format!("{}/v1", own.address), ""),
        backend("hosted", "deepseek", &hosted.address, ""),
    ]);
    let message = json!([{ "role": "user", "content": "hi", "mood": ["calm"], "nothing": null }]);
    process.ask("", &body("own", &json!({ "messages": message }))).await.good();
    let sent = own.calls().last().unwrap().body["messages"][0].clone();
    assert_eq!((&sent["mood"], sent.get("nothing")), (&json!(["calm"]), None), "{sent}");
    let refused = process.ask("", &body("hosted", &json!({ "messages": message }))).await.error();
    let told = (&refused["code"], &refused["param"]);
    assert_eq!(told, (&json!("unknown_parameter"), &json!("messages[0].mood")));
    assert!(hosted.calls().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn who_would_take_a_member_and_the_setting_for_it_are_named() {
    let (own, hosted) = (
        Emulator::start(Kind::Ollama, Script::new(0, 3)),
        Emulator::start(Kind::DeepSeek, Script::new(0, 3)),
    );
    let local = backend("own", "ollama", &format!("{}/v1", own.address), "");
    let of = |name: &str, word: &str| {
        let more = if word.is_empty() { String::new() } else { format!("unknown_members = \"{word}\"") };
        backend(name, "deepseek", &hosted.address, &more)
    };
    let process = serve(&[local, of("usual", ""), of("passing", "pass"), of("dropping", "drop")]);
    let refused = process.ask("", &body("usual", &json!({ "min_p": 0.1 }))).await;
    assert_eq!((refused.status, &refused.error()["code"]), (400, &json!("unknown_parameter")));
    for words in ["to usual", "ask own or passing", r#"unknown_members = \"pass\" on its [[backend]]"#] {
        assert!(refused.text.contains(words), "{words}: {}", refused.text);
    }
    for (model, sent) in [("passing", true), ("dropping", false)] {
        let answer = process.ask("", &body(model, &json!({ "min_p": 0.1 }))).await.good();
        let why = answer["budget"]["why"].as_str().unwrap();
        assert_eq!(why.contains("min_p left out: dropping is not sent"), !sent, "{why}");
        assert_eq!(hosted.calls().last().unwrap().body.get("min_p").is_some(), sent, "{model}");
    }
    let answer = process.ask("", &body("auto", &json!({ "min_p": 0.1 }))).await.good();
    assert!(["own", "passing"].contains(&answer["model"].as_str().unwrap()), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slip_in_a_member_of_budgets_is_named_and_keys_are_unique_at_any_depth() {
    let upstream = Picky::start(|_| false);
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    for (slip, meant) in [
        ("thinking_token_budgt", "thinking_token_budget"),
        ("reasoning_efort", "reasoning_effort"),
        ("max_token", "max_tokens"),
    ] {
        let refused = process.ask("", &body("m", &json!({ slip: 1 }))).await;
        assert_eq!((refused.status, &refused.error()["param"]), (400, &json!(slip)));
        assert!(refused.text.contains(&format!("did you mean {meant}?")), "{}", refused.text);
    }
    let twice =
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"surprise":{"a":[{"b":1,"b":2}]}}"#;
    let request = process.client.post(format!("{}/v1/chat/completions", process.base));
    let refused = request.header("content-type", "application/json").body(twice).send().await.unwrap();
    assert_eq!(refused.status(), 400);
    assert!(refused.text().await.unwrap().contains("is there twice"));
    assert_eq!(upstream.asked(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn logprobs_come_back_beside_the_text_that_they_are_of() {
    let upstream = Picky::start(|_| false);
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    let tokens = |choice: &Value| -> String {
        let entries = choice["logprobs"]["content"].as_array();
        entries.into_iter().flatten().map(|entry| entry["token"].as_str().unwrap()).collect()
    };
    for (stop, said, told) in [(json!(null), "It is so", "It is so"), (json!("so"), "It is ", "It is so")] {
        let asked = json!({ "logprobs": true, "top_logprobs": 2, "stop": stop });
        let answer = process.ask("", &body("m", &asked)).await.good();
        assert_eq!(answer["choices"][0]["message"]["content"], said);
        // The token in which the text is cut off is told whole.
        assert_eq!(tokens(&answer["choices"][0]), told, "{answer}");
        let streamed =
            process.ask("", &body("m", &json!({ "logprobs": true, "stop": stop, "stream": true }))).await;
        let chunks = streamed.chunks();
        let all: String = chunks.all.iter().map(|chunk| tokens(&chunk["choices"][0])).collect();
        assert_eq!((chunks.joined(0, "content").as_str(), all.as_str()), (said, told));
    }
    assert_eq!(upstream.asked()[0]["top_logprobs"], 2);
    let plain = process.ask("", &body("m", &json!({}))).await.good();
    assert_eq!(plain["choices"][0]["logprobs"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn logprobs_of_a_response_stand_in_its_text_whole_and_streamed() {
    let upstream = Picky::start(|_| false);
    let process = serve(&[backend("m", "openai", &upstream.base, "")]);
    let tokens = |entries: &Value| -> String {
        let entries = entries.as_array().unwrap().iter();
        entries.map(|entry| entry["token"].as_str().unwrap()).collect()
    };
    let included = json!(["message.output_text.logprobs"]);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |more: Value| {
        let mut body = json!({ "model": "m", "input": "Is it so?" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let request = client.post(format!("{}/v1/responses", process.base));
        Answer::of(request.header("content-type", "application/json").body(body.to_string()))
    };
    let answer = ask(json!({ "include": included, "top_logprobs": 2 })).await.good();
    let part = &answer["output"].as_array().unwrap().last().unwrap()["content"][0];
    assert_eq!(
        (part["text"].as_str().unwrap(), tokens(&part["logprobs"]).as_str()),
        ("It is so", "It is so")
    );
    assert_eq!((&answer["top_logprobs"], &upstream.asked()[0]["top_logprobs"]), (&json!(2), &json!(2)));
    let streamed = ask(json!({ "include": included, "stream": true })).await;
    let (mut deltas, mut done) = (String::new(), Value::Null);
    for event in streamed.chunks().all {
        match event["type"].as_str().unwrap() {
            "response.output_text.delta" => deltas += &tokens(&event["logprobs"]),
            "response.output_text.done" => done = event["logprobs"].clone(),
            _ => {}
        }
    }
    assert_eq!((deltas.as_str(), tokens(&done).as_str()), ("It is so", "It is so"));
    let plain = ask(json!({})).await.good();
    assert_eq!(plain["output"].as_array().unwrap().last().unwrap()["content"][0]["logprobs"], json!([]));
}
