//! The shapes of bodies and answers.

use serde_json::{Map, Value, json};

/// Members by name.
type Members = Value;

fn text() -> Value {
    json!({ "type": "string" })
}

fn whole() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn positive() -> Value {
    json!({ "type": "integer", "minimum": 1 })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn share() -> Value {
    json!({ "type": "number", "minimum": 0, "maximum": 1 })
}

fn money() -> Value {
    json!({ "type": ["string", "number"], "description": "dollars, like \"0.02\"" })
}

fn list(items: &Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn the(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn object(required: &[&str], members: &Members) -> Value {
    json!({ "type": "object", "required": required, "properties": members })
}

/// Every schema that operations name, and those in them.
pub(super) fn schemas() -> Map<String, Value> {
    let all = [errors(), budgets(), requests(), answers(), conversations(), ours()];
    all.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn errors() -> Vec<(&'static str, Value)> {
    let error = json!({
        "message": text(), "type": text(), "param": { "type": ["string", "null"] }, "code": { "type": ["string", "null"] },
        "budget": { "type": "object", "description": "of a limit that refused: which, what was needed, what is left, when it resets" },
    });
    let of_anthropic = json!({ "type": text(), "message": text() });
    vec![
        ("Anything", json!({ "type": "object" })),
        ("Error", object(&["error"], &json!({ "error": object(&["message", "type"], &error) }))),
        (
            "AnthropicError",
            object(
                &["type", "error"],
                &json!({ "type": { "const": "error" }, "error": object(&["type", "message"], &of_anthropic), "request_id": text() }),
            ),
        ),
    ]
}

fn budgets() -> Vec<(&'static str, Value)> {
    let calls = json!({ "type": "object", "additionalProperties": whole(), "description": "of each tool, or of all together as \"*\"" });
    let episode = json!({ "id": text(), "cost_usd": money(), "thinking_tokens": whole(), "turns": positive(), "tool_calls": calls });
    let phase = |used: &str| json!({ "type": "object", "properties": { "budget": whole(), "used": whole(), "ended": { "type": "string", "description": used } } });
    let budget = json!({
        "thinking_tokens": whole(),
        "solution_tokens": positive(),
        "cost_usd": money(),
        "deadline_ms": positive(),
        "effort": { "type": ["string", "number"], "description": "a word, or a share of what the model usually thinks" },
        "preference": share(),
        "episode": { "anyOf": [text(), object(&["id"], &episode)] },
        "turns": positive(),
        "tool_calls": calls,
    });
    let report = json!({
        "id": text(), "model": text(), "enforced": text(),
        "thinking": phase("closed, cut, stopped or none"),
        "solution": phase("stop, tool_calls, caller, operator, model, money, ledger, deadline or upstream"),
        "overhead_tokens": whole(), "tool_calls": { "type": "object" }, "other": { "type": "object" },
        "cost_usd": { "type": ["string", "null"] }, "reserved_usd": text(), "estimated": flag(), "why": text(),
        "choices": list(&the("Anything")), "episode": { "type": "object" },
    });
    vec![
        ("Budget", json!({ "type": "object", "properties": budget, "additionalProperties": false })),
        ("BudgetReport", object(&["id", "model", "why"], &report)),
    ]
}

fn requests() -> Vec<(&'static str, Value)> {
    let effort = json!({ "type": "string", "description": "a word that /v1/models lists under efforts" });
    let sampled = |more: Members| {
        let mut members = json!({
            "model": text(), "stream": flag(), "temperature": { "type": "number" }, "top_p": share(),
            "budget": the("Budget"), "metadata": { "type": "object" }, "user": text(),
        });
        more.as_object().into_iter().flatten().for_each(|(name, schema)| members[name] = schema.clone());
        members
    };
    let message = object(
        &["role"],
        &json!({ "role": text(), "content": {}, "tool_calls": list(&the("Anything")), "tool_call_id": text() }),
    );
    let chat = sampled(json!({
        "messages": { "type": "array", "minItems": 1, "items": message }, "tools": list(&the("Anything")), "tool_choice": {},
        "n": positive(), "stop": {}, "seed": { "type": "integer" }, "max_completion_tokens": positive(), "max_tokens": positive(),
        "reasoning_effort": effort, "response_format": { "type": "object" }, "stream_options": { "type": "object" },
        "logprobs": flag(), "top_logprobs": whole(),
    }));
    let completion = sampled(
        json!({ "prompt": {}, "max_tokens": whole(), "n": positive(), "stop": {}, "seed": { "type": "integer" } }),
    );
    let messages = sampled(json!({
        "messages": list(&the("Anything")), "max_tokens": positive(), "system": {}, "tools": list(&the("Anything")),
        "tool_choice": { "type": "object" }, "thinking": { "type": "object" }, "stop_sequences": list(&text()),
    }));
    let response = sampled(json!({
        "input": {}, "instructions": text(), "tools": list(&the("Anything")), "tool_choice": {}, "max_output_tokens": positive(),
        "max_tool_calls": positive(), "reasoning": { "type": "object" }, "previous_response_id": text(), "conversation": {}, "store": flag(),
    }));
    vec![
        ("ChatRequest", object(&["model", "messages"], &chat)),
        ("CompletionRequest", object(&["model", "prompt"], &completion)),
        (
            "EmbeddingRequest",
            object(
                &["model", "input"],
                &json!({ "model": text(), "input": {}, "dimensions": positive(), "encoding_format": text() }),
            ),
        ),
        ("MessagesRequest", object(&["model", "messages"], &messages)),
        ("ResponseRequest", object(&["model"], &response)),
    ]
}

fn answers() -> Vec<(&'static str, Value)> {
    let usage = json!({ "type": "object" });
    let of = |object_name: &str, more: Members| {
        let mut members = json!({
            "id": text(), "object": { "const": object_name }, "created": whole(), "model": text(), "usage": usage, "budget": the("BudgetReport"),
        });
        more.as_object().into_iter().flatten().for_each(|(name, schema)| members[name] = schema.clone());
        object(&["id", "object"], &members)
    };
    let message = json!({
        "id": text(), "type": { "const": "message" }, "role": text(), "content": list(&the("Anything")), "model": text(),
        "stop_reason": {}, "usage": usage, "budget": the("BudgetReport"),
    });
    let response = json!({
        "id": text(), "object": text(), "status": text(), "model": text(), "output": list(&the("Item")), "usage": {}, "budget": the("BudgetReport"),
    });
    vec![
        ("ChatCompletion", of("chat.completion", json!({ "choices": list(&the("Anything")) }))),
        ("Completion", of("text_completion", json!({ "choices": list(&the("Anything")) }))),
        (
            "Embeddings",
            object(
                &["data"],
                &json!({ "object": text(), "data": list(&the("Anything")), "model": text(), "usage": usage }),
            ),
        ),
        ("AnthropicMessage", object(&["id", "type", "content"], &message)),
        ("InputTokens", object(&["input_tokens"], &json!({ "input_tokens": whole() }))),
        ("Response", object(&["id", "object"], &response)),
    ]
}

fn conversations() -> Vec<(&'static str, Value)> {
    let page = json!({ "object": text(), "data": list(&the("Anything")), "first_id": {}, "last_id": {}, "has_more": flag() });
    vec![
        (
            "ConversationRequest",
            object(&[], &json!({ "metadata": { "type": "object" }, "items": list(&the("Item")) })),
        ),
        (
            "Conversation",
            object(
                &["id"],
                &json!({ "id": text(), "object": text(), "created_at": whole(), "metadata": {} }),
            ),
        ),
        ("ItemsRequest", object(&["items"], &json!({ "items": list(&the("Item")) }))),
        ("Item", object(&["type"], &json!({ "type": text(), "id": text() }))),
        ("List", object(&["data"], &page)),
        (
            "Deleted",
            object(&["id", "deleted"], &json!({ "id": text(), "object": text(), "deleted": flag() })),
        ),
    ]
}

fn ours() -> Vec<(&'static str, Value)> {
    let limit = json!({
        "limit": text(), "unit": { "enum": ["usd", "tokens", "requests", "tool_calls"] }, "max": {}, "spent": {}, "reserved": {}, "left": {},
        "resets_at": {}, "pace": { "type": "object" },
    });
    let model = json!({
        "id": text(), "object": { "const": "model" }, "owned_by": text(), "context_length": {}, "output_max": {}, "thinking_max": whole(), "enforced": {},
        "serves": list(&text()), "capabilities": list(&text()), "price": {}, "route": list(&text()), "unavailable": text(),
        "loaded": flag(),
    });
    let models = json!({ "object": text(), "data": list(&the("Model")), "efforts": { "type": "object", "additionalProperties": { "type": "number" } } });
    let feedback =
        json!({ "id": text(), "correct": flag(), "score": share(), "preferred": text(), "over": text() });
    vec![
        ("Model", object(&["id", "object"], &model)),
        ("Models", object(&["data"], &models)),
        ("Allowance", object(&["limits"], &json!({ "limits": list(&object(&["limit", "unit"], &limit)) }))),
        (
            "FeedbackRequest",
            json!({ "type": "object", "properties": feedback, "additionalProperties": false }),
        ),
        (
            "FeedbackAnswer",
            object(
                &["recorded", "learned"],
                &json!({ "recorded": flag(), "learned": flag(), "why": text() }),
            ),
        ),
        ("Quote", json!({ "type": "object" })),
        ("RequestStory", json!({ "type": "object" })),
        ("Episode", json!({ "type": "object" })),
    ]
}
