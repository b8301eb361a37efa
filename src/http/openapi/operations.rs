//! What each endpoint does.

/// One method of one path.
pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    /// The schema of the body that it takes.
    pub(super) body: Option<&'static str>,
    pub(super) answer: Answer,
    /// The members of the query that it takes.
    pub(super) query: &'static [&'static str],
}

/// What it answers where all is well, by the name of its schema.
#[derive(Clone, Copy)]
pub(super) enum Answer {
    Json(&'static str),
    /// With 202.
    Accepted(&'static str),
    /// As events where they are asked for.
    JsonOrEvents(&'static str),
    Text,
}

use Answer::{Accepted, Json, JsonOrEvents, Text};

const OPENAI: &str = "OpenAI";
const ANTHROPIC: &str = "Anthropic";
const STINT: &str = "Stint";
const WATCHING: &str = "Watching";

/// How lists are gone through.
const PAGE: &[&str] = &["limit", "order", "after", "include"];

fn get(path: &'static str, tag: &'static str, summary: &'static str, answer: Answer) -> Operation {
    Operation { method: "GET", path, tag, summary, body: None, answer, query: &[] }
}

fn post(
    path: &'static str,
    tag: &'static str,
    summary: &'static str,
    body: &'static str,
    answer: Answer,
) -> Operation {
    Operation { method: "POST", path, tag, summary, body: Some(body), answer, query: &[] }
}

fn delete(path: &'static str, summary: &'static str) -> Operation {
    let answer = Json("Deleted");
    Operation { method: "DELETE", path, tag: OPENAI, summary, body: None, answer, query: &[] }
}

impl Operation {
    fn asked(self, query: &'static [&'static str]) -> Operation {
        Operation { query, ..self }
    }
}

/// Every endpoint.
pub(super) fn operations() -> Vec<Operation> {
    [answers(), responses(), conversations(), ours(), watching()].into_iter().flatten().collect()
}

fn answers() -> Vec<Operation> {
    vec![
        post(
            "/v1/chat/completions",
            OPENAI,
            "Answers a conversation",
            "ChatRequest",
            JsonOrEvents("ChatCompletion"),
        ),
        post(
            "/v1/completions",
            OPENAI,
            "Goes on with a text",
            "CompletionRequest",
            JsonOrEvents("Completion"),
        ),
        post("/v1/embeddings", OPENAI, "Makes vectors of texts", "EmbeddingRequest", Json("Embeddings")),
        post(
            "/v1/messages",
            ANTHROPIC,
            "Answers a conversation",
            "MessagesRequest",
            JsonOrEvents("AnthropicMessage"),
        ),
        post(
            "/v1/messages/count_tokens",
            ANTHROPIC,
            "Counts a prompt's tokens",
            "MessagesRequest",
            Json("InputTokens"),
        ),
    ]
}

fn responses() -> Vec<Operation> {
    vec![
        post(
            "/v1/responses",
            OPENAI,
            "Answers, and stores the response where that is asked for",
            "ResponseRequest",
            JsonOrEvents("Response"),
        ),
        post(
            "/v1/responses/compact",
            OPENAI,
            "Makes a long conversation short",
            "ResponseRequest",
            Json("Response"),
        ),
        post(
            "/v1/responses/input_tokens",
            OPENAI,
            "Counts a prompt's tokens",
            "ResponseRequest",
            Json("InputTokens"),
        ),
        get("/v1/responses/{id}", OPENAI, "A response that was stored", Json("Response")),
        delete("/v1/responses/{id}", "Deletes a response that was stored"),
        Operation {
            method: "POST",
            ..get(
                "/v1/responses/{id}/cancel",
                OPENAI,
                "Says that no response goes on in the background",
                Json("Response"),
            )
        },
        get("/v1/responses/{id}/input_items", OPENAI, "What a stored response was asked with", Json("List"))
            .asked(PAGE),
    ]
}

fn conversations() -> Vec<Operation> {
    vec![
        post(
            "/v1/conversations",
            OPENAI,
            "Begins a conversation",
            "ConversationRequest",
            Json("Conversation"),
        ),
        get("/v1/conversations/{id}", OPENAI, "A conversation", Json("Conversation")),
        post(
            "/v1/conversations/{id}",
            OPENAI,
            "Changes its metadata",
            "ConversationRequest",
            Json("Conversation"),
        ),
        delete("/v1/conversations/{id}", "Deletes a conversation"),
        get("/v1/conversations/{id}/items", OPENAI, "What was said in it", Json("List")).asked(PAGE),
        post("/v1/conversations/{id}/items", OPENAI, "Adds to it", "ItemsRequest", Json("List")),
        get("/v1/conversations/{id}/items/{item}", OPENAI, "One item of it", Json("Item")),
        delete("/v1/conversations/{id}/items/{item}", "Takes an item out of it"),
    ]
}

fn ours() -> Vec<Operation> {
    vec![
        post(
            "/v1/plan",
            STINT,
            "What a chat completion would be planned as, and what it would cost",
            "ChatRequest",
            Json("Quote"),
        )
        .asked(&["explain", "sweep"]),
        get("/v1/models", STINT, "The models and routes that this key may name", Json("Models")),
        get("/v1/models/{*name}", STINT, "One of them", Json("Model")),
        get("/v1/allowance", STINT, "What is left under each limit of this key", Json("Allowance")),
        get("/v1/usage", STINT, "What this key used, and what is below it", Json("List"))
            .asked(&["from", "to", "group_by", "limit", "after"]),
        post(
            "/v1/feedback",
            STINT,
            "Says how right an answer was",
            "FeedbackRequest",
            Accepted("FeedbackAnswer"),
        ),
        get("/v1/requests/{id}", STINT, "The story of one request, by any of its ids", Json("RequestStory")),
        get("/v1/episodes/{id}", STINT, "How a run of an agent stands", Json("Episode")),
        get("/openapi.json", STINT, "This document", Json("Anything")),
    ]
}

fn watching() -> Vec<Operation> {
    vec![
        get("/metrics", WATCHING, "What Prometheus reads; a key with a role, once there are keys", Text),
        get("/healthz", WATCHING, "The process is alive", Text),
        get("/readyz", WATCHING, "New requests can be served", Text),
    ]
}
