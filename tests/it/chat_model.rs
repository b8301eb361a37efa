//! A real chat model from a file in the engine of this process, beside a real llama.cpp server with the same file.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::tools::{LlamaServer, chat_model};
use crate::harness::{Answer, Folder, Process};

const PROMPTS: &str = include_str!("chatting/prompts.txt");

/// llama.cpp rounds activations to 8 bits where the engine does not, so what is about as likely may come out either way: where
/// the two part, the server itself must hold our token for nearly as likely as its own, in nats.
const NEAR_TIE: f64 = 0.5;

fn serve(more: &str) -> Process {
    let file = chat_model();
    Folder::new(&format!(
        "[[backend]]\nname = 'desk'\nkind = 'local'\nfile = '{}'\n{more}\n\
         [[backend.model]]\nname = 'smollm2'\nprice_input = '0.01'\nprice_output = '0.04'\n",
        file.display()
    ))
    .serve()
}

fn body(prompt: &str) -> Value {
    json!({ "model": "smollm2", "messages": [{ "role": "user", "content": prompt }], "temperature": 0, "max_tokens": 64 })
}

/// Where our answer leaves the server's, and by how much the server prefers its own token there; nothing where it does not.
fn parting(ours: &str, theirs: &Value) -> Option<(String, f64)> {
    let mut rest = ours;
    for entry in theirs["choices"][0]["logprobs"]["content"].as_array().unwrap() {
        let token = entry["token"].as_str().unwrap();
        match rest.strip_prefix(token) {
            Some(after) => rest = after,
            None => {
                let likely = |entry: &Value| entry["logprob"].as_f64().unwrap();
                let others = entry["top_logprobs"].as_array().unwrap().iter();
                let other = others.filter(|other| {
                    let text = other["token"].as_str().unwrap();
                    text != token && (rest.starts_with(text) && !text.is_empty() || rest.is_empty())
                });
                let gap = other.map(|other| likely(entry) - likely(other)).fold(f64::INFINITY, f64::min);
                return Some((format!("{rest:.20} instead of {token}"), gap));
            }
        }
    }
    None
}

#[tokio::test]
async fn a_real_chat_model_writes_what_llama_cpp_writes_up_to_near_ties() {
    let server = LlamaServer::start(chat_model().to_str().unwrap(), &["--chat"]);
    let process = serve("");
    let prompts: Vec<&str> = PROMPTS.lines().map(|line| line.split_once(' ').unwrap().1).take(20).collect();
    let ours = join_all(prompts.iter().map(async |prompt| process.ask("", &body(prompt)).await)).await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let mut same = 0;
    for (prompt, ours) in prompts.iter().zip(ours) {
        let ours = ours.good();
        let text = ours["choices"][0]["message"]["content"].as_str().unwrap();
        let mut asked = body(prompt);
        asked["logprobs"] = json!(true);
        asked["top_logprobs"] = json!(8);
        let request = client.post(format!("{}/v1/chat/completions", server.base));
        let request = request.header("content-type", "application/json").body(asked.to_string());
        let theirs = Answer::of(request).await.good();
        assert_eq!(ours["usage"]["prompt_tokens"], theirs["usage"]["prompt_tokens"], "{prompt}");
        match parting(text, &theirs) {
            None => same += 1,
            Some((place, gap)) => assert!(gap < NEAR_TIE, "{prompt}: {place}, by {gap} nats"),
        }
    }
    assert!(same >= 5, "{same} of 20 answers are the same to their end");
}

#[tokio::test]
async fn a_newcomers_greeting_gets_an_answer_and_arithmetic_still_goes_to_the_model_that_thinks() {
    let process = serve("");
    let ask = async |text: &str| {
        let body =
            json!({ "model": "auto", "messages": [{ "role": "user", "content": text }], "max_tokens": 300 });
        process.ask("", &body).await.good()
    };
    let greeted = ask("hi").await;
    assert_eq!(greeted["model"], "smollm2", "{greeted}");
    assert!(!greeted["choices"][0]["message"]["content"].as_str().unwrap().trim().is_empty(), "{greeted}");
    let counted = ask("What is 12+34*2?").await;
    assert_eq!(
        (&counted["model"], &counted["choices"][0]["message"]["content"]),
        (&json!("reasoner"), &json!("80"))
    );
}
