//! Of issue 17, item 14: no caller has an engine fetch what only the engine can reach.

use serde_json::{Value, json};

use super::{Folder, Process, listening};
use crate::harness::Answer;
use stint_types::tenant::hash_key;

/// Every one that would be sent as it is today.
const ADDRESSES: [&str; 12] = [
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "http://example.com/a.png",
    "//example.com/a.png",
    " https://example.com/a.png",
    "https://169.254.169.254/latest/meta-data",
    "https://2852039166/",
    "https://[::ffff:169.254.169.254]/",
    "https://localhost./a.png",
    "https://metadata.google.internal/",
    "https://example.com@10.0.0.1/",
    "gopher://example.com",
];

fn settings(base: &str, urls: &str) -> String {
    format!(
        "[server]\n{urls}\n[engine]\nembedded = false\n[[backend]]\nbase_url = '{base}'\n[[backend.model]]\nname = 'm'\n\
         price_input = '1'\nprice_output = '1'\ncapabilities = ['images', 'tools']\ncontext = 100000\n\
         [[key]]\nname = 'test'\nhash = '{}'\n",
        hash_key("sk-test")
    )
}

async fn post(process: &Process, path: &str, body: &Value) -> Answer {
    let request = process.client.post(format!("{}{path}", process.base)).bearer_auth("sk-test");
    Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
}

/// A request with an image there, for every place where one may stand, and the member that it stands in.
fn requests(url: &str) -> Vec<(&'static str, Value, &'static str)> {
    let chat = json!([{ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": url } }] }]);
    let image = json!({ "type": "image", "source": { "type": "url", "url": url } });
    let call = json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "t", "content": [image] });
    let turns = json!([
        { "role": "user", "content": "x" }, { "role": "assistant", "content": [call] },
        { "role": "user", "content": [result] },
    ]);
    let item = json!({ "role": "user", "content": [{ "type": "input_image", "image_url": url }] });
    let message = json!([{ "role": "user", "content": [image] }]);
    vec![
        (
            "/v1/chat/completions",
            json!({ "model": "m", "messages": chat }),
            "messages[0].content[0].image_url.url",
        ),
        ("/v1/plan", json!({ "model": "m", "messages": chat }), "messages[0].content[0].image_url.url"),
        (
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 9, "messages": message }),
            "messages[0].content[0].source.url",
        ),
        (
            "/v1/messages/count_tokens",
            json!({ "model": "m", "messages": turns }),
            "messages[2].content[0].content[0].source.url",
        ),
        ("/v1/responses", json!({ "model": "m", "input": [item] }), "input[0].content[0].image_url"),
        ("/v1/conversations", json!({ "items": [item] }), "items[0].content[0].image_url"),
    ]
}

/// IN-13, IN-16: nothing is fetched here, and no engine is sent to this machine or its network.
#[tokio::test]
async fn an_image_that_is_not_public_is_refused_by_the_name_of_its_member() {
    let (base, heard) = listening();
    let folder = Folder::new(&settings(&base, ""));
    let process = folder.serve();
    for url in ADDRESSES {
        for (path, body, member) in requests(url) {
            let answer = post(&process, path, &body).await;
            assert_eq!(answer.status, 400, "{url} {path} {}", answer.text);
            assert!(answer.text.contains(member), "{url} {path} {}", answer.text);
            assert!(answer.text.contains("data:"), "the remedy is named: {}", answer.text);
        }
    }
    assert!(heard.lock().unwrap().is_empty(), "nothing went upstream");
    let (path, body, _) = requests("https://example.com/a.png").remove(0);
    post(&process, path, &body).await.good();
}

#[tokio::test]
async fn what_was_stored_while_it_was_allowed_is_refused_when_it_comes_back() {
    let (base, heard) = listening();
    let folder = Folder::new(&settings(&base, "image_urls = 'private'"));
    let process = folder.serve();
    let (path, body, _) = requests("http://10.0.0.1/a.png").pop().unwrap();
    let conversation = post(&process, path, &body).await.good()["id"].clone();
    let next = json!({ "model": "m", "input": "What is it?", "conversation": conversation });
    post(&process, "/v1/responses", &next).await.good();
    assert!(heard.lock().unwrap().pop().unwrap().contains("http://10.0.0.1/a.png"));
    folder.write(&settings(&base, ""));
    process.signal("HUP");
    process.logged("reloaded: the configuration is in force").await;
    let refused = post(&process, "/v1/responses", &next).await;
    assert_eq!(
        (refused.status, &refused.error()["param"]),
        (400, &json!("conversation")),
        "{}",
        refused.text
    );
    assert!(heard.lock().unwrap().is_empty());
}
