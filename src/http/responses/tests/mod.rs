use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::http::budget::EffortTable;
use crate::http::error::ApiError;
use stint_types::chat::{Message, SignedThought, SigningDomain, ThoughtSigner};

use super::conversation_builder::ConversationBuilder;
use super::parse::{self, ResponsesRequest};

mod events;
mod requests;
mod tools;

fn read(more: &Value) -> Result<ResponsesRequest, ApiError> {
    let mut body = json!({ "model": "m", "input": "hi" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    parse::read(body.as_object().unwrap().clone(), &HeaderMap::new(), &EffortTable::new())
}

fn asked(more: &Value) -> ResponsesRequest {
    read(more).unwrap_or_else(|problem| panic!("{}", problem.message()))
}

fn conversation(items: &Value) -> Result<Vec<Message>, ApiError> {
    let mut conversation = ConversationBuilder::new(Some("Be brief."));
    for (at, item) in items.as_array().unwrap().iter().enumerate() {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    conversation.into_messages()
}

fn part() -> SignedThought {
    let signer = ThoughtSigner { model: "sonnet".into(), domain: SigningDomain(7) };
    SignedThought { signer, block: r#"{"type":"thinking", "signature":"E=="}"#.into() }
}
