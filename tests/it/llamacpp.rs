//! A real llama.cpp server behind the gateway, with the embedded model's own file.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::patience::within;
use crate::harness::tools::{LlamaServer, held_out, lines, printed, tool};
use crate::harness::{Answer, Folder, Process, World, model};
use crate::sdk::{NODE, PYTHON, check, keys};
use stint_backend::Backend;
use stint_backend::remote::{self, Connections, llamacpp, llamacpp::LlamaCppBackend};
use stint_types::catalog::{Capability, EnforcementClass, Model};
use stint_types::units::Tokens;

/// The file that is built into the binary.
const REASONER: &str = "models/reasoner.gguf";

/// A backend that serves `remote-reasoner`, and what is particular about it.
fn remote(server: &LlamaServer, more: &str) -> String {
    format!(
        r#"
        [[backend]]
        kind = "llamacpp"
        base_url = "{}"

        [[backend.model]]
        name = "remote-reasoner"
        price_input = "0.10"
        price_output = "0.40"
        solution_max = 64
        {more}
        "#,
        server.base
    )
}

/// What the embedded model's own settings are. It can do little, and nothing without a thought.
const LIKE_LOCAL: &str = r#"
    ability = 0.03
    context = 512
    thinking_max = 256
    hand_off = "\n</think>\n\n"
"#;

#[tokio::test]
async fn the_official_python_sdk_works_through_a_real_llama_cpp_server() {
    check_counts(PYTHON).await;
}

#[tokio::test]
async fn the_official_node_sdk_works_through_a_real_llama_cpp_server() {
    check_counts(NODE).await;
}

/// Everything holds that holds locally, and the server itself generated what callers were told.
async fn check_counts(script: [&str; 2]) {
    let server = LlamaServer::start(REASONER, &[]);
    let process = Folder::new(&(keys() + &remote(&server, LIKE_LOCAL))).serve();
    let answers = check(&process, script, "remote-reasoner").await;
    let told = answers.iter().map(|said| said["usage"]["completion_tokens"].as_u64().unwrap());
    let cut = answers.iter().filter(|said| said["budget"]["thinking"]["ended"] == "cut").count() as u64;
    // The hand-off is the gateway's: its three tokens are written into the prompt of the second phase.
    assert_eq!(server.count("tokens_predicted_total").await, told.sum::<u64>() - 3 * cut);
}

/// Greedy answers part where two tokens are as good as equal. Measured: 2 of 320, none of the 80 here.
const DIFFERENT_MAX: usize = 2;

#[tokio::test]
async fn local_and_remote_answers_of_one_model_are_the_same_at_every_budget() {
    let folder = Folder::new("");
    let wide = folder.path().join("wide.gguf");
    let wide = wide.to_str().unwrap();
    printed(tool("python").args(["tests/python/widen.py", REASONER, wide]), "");
    let server = LlamaServer::start(wide, &[]);
    let process = Folder::new(&remote(&server, LIKE_LOCAL)).serve();
    let problems = lines(&held_out(4, "1,2,3,4,5"));
    let mut differ = Vec::new();
    for problem in &problems {
        for thinking in [0, 8, 24, 256] {
            let local = said(&process, "reasoner", problem, thinking, &[]).await;
            let remote = said(&process, "remote-reasoner", problem, thinking, &[]).await;
            if local != remote {
                differ.push(format!("{problem} at {thinking}:\n  local  {local}\n  remote {remote}"));
            }
        }
    }
    let asked = 4 * problems.len();
    assert!(differ.len() <= DIFFERENT_MAX, "{} of {asked} differ:\n{}", differ.len(), differ.join("\n"));
}

/// Texts that the model writes as two tokens, as the blank before its answer, at once, and only the beginning of.
const STOPS: [&[&str]; 5] = [&["32"], &["\n"], &["1"], &["132!", "2"], &["132!"]];

#[tokio::test]
async fn a_stop_text_ends_local_and_remote_answers_alike_and_both_know_their_prompts() {
    let server = LlamaServer::start(REASONER, &[]);
    let process = Folder::new(&remote(&server, LIKE_LOCAL)).serve();
    let problem = json!({ "question": "12+30*4?" });
    for stop in STOPS {
        for thinking in [0, 7, 256] {
            let local = said(&process, "reasoner", &problem, thinking, stop).await;
            let remote = said(&process, "remote-reasoner", &problem, thinking, stop).await;
            assert_eq!(local, remote, "{stop:?} at {thinking}");
        }
    }
}

/// All that a caller is told of a greedy answer but its name, its price and its way.
async fn said(process: &Process, model: &str, problem: &Value, thinking: u64, stop: &[&str]) -> Value {
    let body = json!({
        "model": model,
        "messages": [{ "role": "user", "content": problem["question"] }],
        "temperature": 0,
        "budget": { "thinking_tokens": thinking },
        "stop": stop,
    });
    let mut answer = process.ask("", &body).await.good();
    // What each found in its cache depends on what it was asked before.
    answer["usage"].as_object_mut().unwrap().remove("prompt_tokens_details");
    let budget = &answer["budget"];
    json!({
        "choices": answer["choices"],
        "usage": answer["usage"],
        "thinking": [budget["thinking"]["used"], budget["thinking"]["ended"]],
        "solution": [budget["solution"]["used"], budget["solution"]["ended"]],
        "overhead": budget["overhead_tokens"],
        "estimated": budget["estimated"],
    })
}

/// The same server behind the gateway in this process, with its budget held by itself and by us.
async fn both(server: &LlamaServer) -> World {
    let one = |class: EnforcementClass| {
        let client = remote::Settings { base_url: server.base.clone(), ..remote::Settings::default() };
        let settings = llamacpp::Settings { client, ..llamacpp::Settings::default() };
        let capabilities = vec![Capability::Tools];
        let model = Model { context: Tokens(512), capabilities, ..model(class.as_str(), class) };
        (
            model,
            Arc::new(LlamaCppBackend::new(&Connections::default(), settings).unwrap()) as Arc<dyn Backend>,
        )
    };
    World::with(vec![one(EnforcementClass::Native), one(EnforcementClass::Continue)], Vec::new(), |_| ())
        .await
}

#[tokio::test]
async fn a_budget_that_the_server_holds_itself_is_the_same_to_the_token() {
    let server = LlamaServer::start(REASONER, &[]);
    let world = both(&server).await;
    for problem in ["12+30*4?", "7+8?"] {
        for thinking in [0, 1, 2, 7, 8, 20, 26, 256] {
            let said = async |class: EnforcementClass| {
                let body = json!({
                    "model": class.as_str(),
                    "messages": [{ "role": "user", "content": problem }],
                    "temperature": 0,
                    "budget": { "thinking_tokens": thinking },
                });
                let answer = world.ask("", &body).await.good();
                assert_eq!(answer["budget"]["enforced"], class.as_str());
                assert!(!answer["choices"][0]["message"]["content"].as_str().unwrap().is_empty());
                let thought = answer["choices"][0]["message"]["reasoning_content"].clone();
                (thought, answer["budget"]["thinking"]["used"].clone())
            };
            let (native, resumed) =
                (said(EnforcementClass::Native).await, said(EnforcementClass::Continue).await);
            assert_eq!(native, resumed, "{problem} at {thinking}");
        }
    }
}

/// What a real server takes beyond what the gateway gives a meaning to, each with what its answer must be.
#[tokio::test]
async fn a_real_server_is_taken_to_have_tools_schemas_grammars_and_chances_of_tokens() {
    let server = LlamaServer::start(REASONER, &[]);
    // A prompt with tools is bounded by its bytes, which are more than the model's own context.
    let process = Folder::new(&remote(&server, &LIKE_LOCAL.replace("512", "8192"))).serve();
    let ask = async |more: Value| {
        let mut body = json!({ "model": "remote-reasoner", "temperature": 0,
            "messages": [{ "role": "user", "content": "12+30*4?" }], "budget": { "thinking_tokens": 8 } });
        more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
        let answer = process.ask("", &body).await.good();
        let choice = &answer["choices"][0];
        let enforced = answer["budget"]["enforced"].as_str().unwrap().to_owned();
        (enforced, choice["message"]["content"].clone(), choice["logprobs"].clone())
    };
    let (_, plain, _) = ask(json!({})).await;
    let (enforced, content, _) =
        ask(json!({ "min_p": 0.05, "repeat_penalty": 1.0, "cache_prompt": false })).await;
    assert_eq!((enforced.as_str(), &content), ("continue", &plain), "greedy, so as without");
    let (enforced, content, _) = ask(json!({ "grammar": "root ::= \"77\"" })).await;
    assert_eq!(
        (enforced.as_str(), &content),
        ("continue", &json!("77")),
        "the answer has it, and the thought has not"
    );
    let (enforced, content, _) = ask(json!({ "json_schema": { "const": 77 } })).await;
    assert_eq!((enforced.as_str(), &content), ("continue", &json!("77")));
    let format =
        json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "integer" } } });
    let (_, content, _) = ask(json!({ "response_format": format })).await;
    assert!(content.as_str().unwrap().parse::<i64>().is_ok(), "{content}");
    let tools =
        json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    assert_eq!(ask(json!({ "tools": tools })).await.0, "native");
    let (enforced, content, logprobs) = ask(json!({ "logprobs": true, "top_logprobs": 2 })).await;
    let entries = logprobs["content"].as_array().unwrap();
    let told: String = entries.iter().map(|entry| entry["token"].as_str().unwrap()).collect();
    assert_eq!((enforced.as_str(), told.trim_start()), ("native", content.as_str().unwrap()), "{logprobs}");
    assert!(entries.iter().all(|entry| entry["top_logprobs"].as_array().unwrap().len() == 2), "{logprobs}");
}

/// On a server that never ends a text, a thought that is never closed.
const ENDLESS: &str = r#"
    context = 1000000
    thinking_max = 900000
    end_tag = "[nobody writes this]"
    hand_off = "[nobody writes this]"
"#;

#[tokio::test]
async fn hanging_up_stops_a_real_llama_cpp_server_within_a_second() {
    let server = LlamaServer::start(REASONER, &["--endless"]);
    let process = Folder::new(&remote(&server, ENDLESS)).serve();
    for stream in [true, false] {
        let begun = Cell::new(false);
        tokio::select! {
            () = caller(&process, stream, &begun) => unreachable!("its answer has no end"),
            () = until(&server, |busy| busy && begun.get() == stream) => {}
        }
        // The caller is dropped by now, and its connection with it.
        let stopped = within(Duration::from_secs(1), until(&server, |busy| !busy)).await;
        stopped.expect("it does not generate a second later");
    }
}

/// Asks for a thought without end and waits for the end.
async fn caller(process: &Process, stream: bool, begun: &Cell<bool>) {
    let body = json!({
        "model": "remote-reasoner", "stream": stream,
        "messages": [{ "role": "user", "content": "1+2=" }],
        "budget": { "thinking_tokens": 900_000 },
    });
    let request = process.client.post(format!("{}/v1/chat/completions", process.base));
    let request = request.header("content-type", "application/json").body(body.to_string());
    let mut answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    while answer.chunk().await.unwrap().is_some() {
        begun.set(true);
    }
}

/// Waits until what the server says of itself, that it generates or that it does not, is as it should be.
async fn until(server: &LlamaServer, is_right: impl Fn(bool) -> bool) {
    while !is_right(server.count("requests_processing").await > 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// What the server itself says to a request, with what it counts.
async fn own(server: &LlamaServer, body: &Value) -> (String, u64) {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = client
        .post(format!("{}/v1/chat/completions", server.base))
        .header("content-type", "application/json");
    let answer = Answer::of(request.body(body.to_string())).await.good();
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    (text, answer["usage"]["completion_tokens"].as_u64().unwrap())
}

#[tokio::test]
async fn a_model_whose_template_knows_of_no_thoughts_answers_as_its_server_does() {
    let server = LlamaServer::start(REASONER, &["--plain"]);
    for more in ["", "thinking_max = 0", "thinking_max = 0\nclasses = [\"native\"]", "hand_off = \"\""] {
        let process = Folder::new(&remote(&server, more)).serve();
        for (question, most) in [("12+30*4?", 24), ("7*8?", 5), ("1+2?", 60)] {
            let messages = json!([{ "role": "user", "content": question }]);
            let body = json!({ "model": "remote-reasoner", "messages": messages, "temperature": 0, "max_tokens": most });
            let (text, tokens) = own(&server, &body).await;
            for _ in 0..2 {
                let answer = process.ask("", &body).await.good();
                let said = answer["choices"][0]["message"]["content"].as_str().unwrap();
                assert_eq!(said, text.trim_start(), "{more:?} {question}: {answer}");
                assert_eq!(answer["usage"]["completion_tokens"], tokens, "{more:?} {question}: {answer}");
                assert_eq!(answer["budget"]["thinking"]["used"], 0, "{more:?} {question}: {answer}");
            }
        }
    }
}
