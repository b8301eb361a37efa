//! What a backend's API has no words for is refused by the member of the request that asks for it, in the words of the API
//! that the request came in by.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::harness::{World, model};
use stint_backend::Backend;
use stint_backend::remote::anthropic::{AnthropicBackend, AnthropicThinking, Settings};
use stint_backend::remote::{self, Connections};
use stint_types::catalog::{Capability, EnforcementClass, Model};

/// A model behind Anthropic's API that nobody can reach: what is refused here was never sent.
async fn world(thinking: AnthropicThinking) -> World {
    let client = remote::Settings { base_url: "http://127.0.0.1:9/v1".into(), ..remote::Settings::default() };
    let settings = Settings { client, thinking, ..Settings::default() };
    let backend: Arc<dyn Backend> =
        Arc::new(AnthropicBackend::new(&Connections::default(), settings).unwrap());
    let capabilities = vec![Capability::Tools, Capability::Schema, Capability::Penalties, Capability::Images];
    let model = Model { capabilities, ..model("m", EnforcementClass::Native) };
    World::with(vec![(model, backend)], Vec::new(), |_| ()).await
}

async fn check(world: &World, path: &str, more: &Value, param: &str) {
    let mut body = match path {
        "/v1/responses" => json!({ "model": "m", "input": "hi", "max_output_tokens": 3000 }),
        _ => json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "max_tokens": 3000 }),
    };
    // What is not about thinking is not to be refused for it.
    let thinks = more.get("thinking").is_some();
    body["budget"] = json!({ "thinking_tokens": if thinks { Value::Null } else { json!(0) } });
    more.as_object().unwrap().iter().for_each(|(name, value)| body[name] = value.clone());
    let answer = world.post(path, "", &body).await;
    let error = answer.error();
    let refusal = (answer.status, &error["code"], &error["param"]);
    assert_eq!(refusal, (400, &json!("model_not_capable"), &json!(param)), "{path} {more}: {}", answer.text);
}

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

#[tokio::test]
async fn the_member_is_named_that_asks_for_what_a_model_cannot_do() {
    let world = world(AnthropicThinking::Budget).await;
    // It knows no other form than JSON.
    check(
        &world,
        CHAT,
        &json!({ "response_format": { "type": "regex", "pattern": "a" } }),
        "response_format",
    )
    .await;
    // It ends with what the user says.
    let turns = json!([{ "role": "user", "content": "hi" }, { "role": "assistant", "content": "so" }]);
    let newer = self::world(AnthropicThinking::Adaptive).await;
    check(&newer, CHAT, &json!({ "messages": turns }), "messages").await;
    check(&newer, RESPONSES, &json!({ "input": turns }), "input").await;
    // It thinks 1024 tokens at least.
    let thinks = json!({ "budget": { "thinking_tokens": 500 } });
    check(&world, CHAT, &thinks, "budget.thinking_tokens").await;
    check(&world, RESPONSES, &thinks, "budget.thinking_tokens").await;
    check(&world, MESSAGES, &thinks, "budget.thinking_tokens").await;
    // It knows no biases.
    check(&world, CHAT, &json!({ "logit_bias": { "7": 1 } }), "logit_bias").await;
    let tools =
        json!([{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }]);
    let custom = json!({ "type": "custom", "custom": { "name": "look" } });
    check(&world, CHAT, &json!({ "tools": tools, "tool_choice": custom }), "tool_choice").await;
}
