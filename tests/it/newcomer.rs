//! The first minutes: no configuration, a greeting, a browser.

use serde_json::{Value, json};

use crate::harness::tools::{printed, tool};
use crate::harness::{Answer, Folder, Process};

fn say(model: &str, text: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }], "max_tokens": 300 })
}

#[tokio::test]
async fn the_embedded_model_alone_turns_talk_away_kindly_and_answers_arithmetic_and_its_name() {
    let folder = Folder::new("[[route]]\nname = 'mine'\nmodels = ['reasoner']\n");
    let process = folder.serve();
    for (model, text) in
        [("auto", "hi"), ("auto", "Who are you?"), ("mine", "What is the capital of France?")]
    {
        let refused = process.ask("", &say(model, text)).await;
        let error = refused.error();
        assert_eq!((refused.status, error["code"].as_str()), (400, Some("model_not_capable")), "{text}");
        let message = error["message"].as_str().unwrap();
        for expected in
            ["whole-number arithmetic", "\"model\": \"reasoner\"", "[[backend]]\nbase_url = ", "\nmodels = ["]
        {
            assert!(message.contains(expected), "{expected} in {message}");
        }
    }
    let sum = process.ask("", &say("auto", "What is 12+34*2?")).await.good();
    assert_eq!(sum["choices"][0]["message"]["content"], "80");
    process.ask("", &say("reasoner", "hi")).await.good();
    let quote =
        process.client.post(format!("{}/v1/plan", process.base)).header("content-type", "application/json");
    assert_eq!(Answer::of(quote.body(say("auto", "hi").to_string())).await.status, 400);
}

/// `make walk` in its short form: from a first answer to an upgrade under load, each step as the documentation has it.
#[test]
fn the_newcomers_walk_leads_to_its_end() {
    let mut walk = tool("python");
    walk.args(["load-tests/walk.py", "--seconds", "1", "--binary", env!("CARGO_BIN_EXE_stint")]);
    let text = printed(&mut walk, "");
    assert!(text.contains("an upgrade under load") && text.trim_end().ends_with("altogether"), "{text}");
}

#[tokio::test]
async fn where_there_is_another_model_talk_goes_there_and_never_to_the_embedded_one() {
    // Nothing listens there: what matters is who is offered.
    let folder = Folder::new("[[backend]]\nbase_url = 'http://127.0.0.1:9/v1'\nmodels = ['talker']\n");
    let process = folder.serve();
    let offered = |text: &str| {
        let quote = process.client.post(format!("{}/v1/plan", process.base));
        let quote = quote.header("content-type", "application/json").body(say("auto", text).to_string());
        async move {
            let quote = Answer::of(quote).await.good();
            let models: Vec<String> = quote["offers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|offer| offer["model"].as_str().unwrap().to_owned())
                .collect();
            models
        }
    };
    let talk = offered("Tell me a story about the sea").await;
    assert!(!talk.is_empty() && talk.iter().all(|model| model == "talker"), "{talk:?}");
    assert!(offered("What is 12+34*2?").await.contains(&"reasoner".to_owned()));
}

#[tokio::test]
async fn nothing_but_the_gateways_own_lines_is_printed_at_the_start() {
    let folder = Folder::new("");
    let mut command = folder.stint("serve");
    command.env_remove("XDG_RUNTIME_DIR");
    let process = folder.serve_by(command);
    process.get("", "/healthz").await;
    assert!(process.lines("XDG_RUNTIME_DIR").is_empty(), "{:?}", process.lines("XDG_RUNTIME_DIR"));
}

/// The page at `/` for a client that takes this.
async fn front(process: &Process, accept: &str) -> Answer {
    Answer::of(process.client.get(&process.base).header("accept", accept)).await
}

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn a_browser_is_shown_what_this_is_and_how_to_try_it() {
    let process = Folder::new("").serve();
    let page = front(&process, BROWSER).await;
    assert_eq!(
        (page.status, &page.headers["content-type"]),
        (200, &"text/html; charset=utf-8".parse().unwrap())
    );
    let base = &process.base;
    let (curl, sdk) =
        (format!("curl {base}/v1/chat/completions"), format!("OpenAI(base_url=&quot;{base}/v1&quot;"));
    for expected in [
        "<code>reasoner</code>",
        "<code>auto</code>",
        "No key is needed",
        &curl,
        &sdk,
        "href=\"/v1/models\"",
        "href=\"/metrics\"",
    ] {
        assert!(page.text.contains(expected), "{expected} in {}", page.text);
    }
    for foreign in ["<script", "src=", "<link", "url(", "{{"] {
        assert!(!page.text.contains(foreign), "{foreign} in {}", page.text);
    }
    assert!(page.headers["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
}

#[tokio::test]
async fn where_a_key_is_needed_the_page_names_neither_models_nor_tenants() {
    let hash = stint_types::tenant::hash_key("sk-test").to_string();
    let process = Folder::new(&format!("[[key]]\nname = 'secretive'\nhash = '{hash}'\n")).serve();
    let page = front(&process, BROWSER).await;
    assert_eq!(page.status, 200);
    assert!(page.text.contains("A key is needed") && page.text.contains("STINT_KEY"), "{}", page.text);
    for hidden in ["reasoner", "secretive", &hash, "href=\"/v1/models\""] {
        assert!(!page.text.contains(hidden), "{hidden} in {}", page.text);
    }
}

#[tokio::test]
async fn a_client_other_than_a_browser_gets_one_line_with_the_apis_address() {
    let process = Folder::new("").serve();
    for accept in ["*/*", "application/json"] {
        let answer = front(&process, accept).await;
        assert!(answer.status == 200 && answer.text.contains("under /v1"), "{accept}: {}", answer.text);
    }
    let posted = Answer::of(process.client.post(&process.base).header("accept", BROWSER)).await;
    assert_eq!(posted.status, 404);
}

/// OB-06: what a caller writes does not get into the first page as HTML.
#[tokio::test]
async fn a_host_that_is_no_name_does_not_get_into_the_page() {
    let process = Folder::new("").serve();
    let request = process.client.get(&process.base).header("accept", BROWSER).header("host", "a<b>\"c");
    let page = Answer::of(request).await;
    assert!(!page.text.contains("a<b>"), "{}", page.text);
}
