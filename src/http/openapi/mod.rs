//! `GET /openapi.json`: the API, described. A test holds the document to the route table and to the members that are read.
//!
//! What other vendors' APIs define (messages, tools, events) is described as far as every client needs it; their own documents have
//! the rest. What is Stint's own is described whole.

mod operations;
mod schemas;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use operations::{Answer, Operation, operations};

/// Serves the document. It is the same for everybody, and needs no key.
pub(super) fn routes() -> Router {
    let text = Bytes::from(document().to_string());
    let answer = move || {
        let text = text.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], text) }
    };
    Router::new().route("/openapi.json", get(answer))
}

/// The document.
fn document() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let path = operation.path.replace("{*", "{");
        let place = paths.entry(path).or_insert_with(|| json!({}));
        place[operation.method.to_lowercase()] = described(&operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Stint",
            "version": env!("CARGO_PKG_VERSION"),
            "description": env!("CARGO_PKG_DESCRIPTION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": schemas::schemas(),
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer" },
                "anthropicKey": { "type": "apiKey", "in": "header", "name": "x-api-key" },
            },
        },
    })
}

fn described(operation: &Operation) -> Value {
    let Operation { method, path, tag, summary, body, answer, query } = operation;
    let name = format!("{} {path}", method.to_lowercase()).replace(['/', '.', '{', '}', '*'], " ");
    let mut shown = json!({
        "operationId": name.split_whitespace().collect::<Vec<_>>().join("_"),
        "tags": [tag],
        "summary": summary,
        "responses": responses(*answer, path.starts_with("/v1/messages")),
    });
    let is_open = ["/healthz", "/readyz", "/openapi.json", "/"].contains(path);
    if !is_open {
        shown["security"] = json!([{ "key": [] }, { "anthropicKey": [] }]);
    }
    let of_path = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    let of_path = of_path.map(|name| {
        json!({ "name": name.trim_start_matches('*'), "in": "path", "required": true, "schema": { "type": "string" } })
    });
    let of_query =
        query.iter().map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
    let parameters: Vec<Value> = of_path.chain(of_query).collect();
    if !parameters.is_empty() {
        shown["parameters"] = parameters.into();
    }
    if let Some(body) = body {
        let content = json!({ "application/json": { "schema": reference(body) } });
        shown["requestBody"] = json!({ "required": true, "content": content });
    }
    shown
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// What is answered, and what errors look like.
fn responses(answer: Answer, is_anthropics: bool) -> Value {
    let (status, content) = match answer {
        Answer::Json(name) => ("200", json!({ "application/json": { "schema": reference(name) } })),
        Answer::Accepted(name) => ("202", json!({ "application/json": { "schema": reference(name) } })),
        Answer::JsonOrEvents(name) => {
            let events = json!({ "schema": { "type": "string" } });
            ("200", json!({ "application/json": { "schema": reference(name) }, "text/event-stream": events }))
        }
        Answer::Text => ("200", json!({ "text/plain": { "schema": { "type": "string" } } })),
    };
    let error = if is_anthropics { "AnthropicError" } else { "Error" };
    let mut responses = json!({
        "default": {
            "description": "an error, in the form of the API that was called",
            "content": { "application/json": { "schema": reference(error) } },
        },
    });
    responses[status] = json!({ "description": "the answer", "content": content });
    responses
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::{api_table, budget};

    /// IN-23: what the fuzzer is told is what is served.
    #[test]
    fn the_document_has_every_endpoint_and_no_other() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(move |method| (method.to_uppercase(), path.clone()))
            })
            .collect();
        let others = [("GET", "/openapi.json")];
        let served = api_table().into_iter().chain(others);
        let served = served.map(|(method, path)| (method.to_owned(), path.replace("{*", "{"))).collect();
        assert_eq!(described, served);
    }

    #[test]
    fn every_schema_that_is_named_is_there() {
        let document = document();
        let text = document.to_string();
        let named = text.split("#/components/schemas/").skip(1);
        for name in named.map(|rest| rest.split('"').next().unwrap()) {
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
        let mut ids = BTreeSet::new();
        for operation in operations() {
            assert!(ids.insert(described(&operation)["operationId"].to_string()), "{}", operation.path);
        }
    }

    #[test]
    fn the_budget_has_the_members_that_are_read() {
        let document = document();
        let members = document["components"]["schemas"]["Budget"]["properties"].as_object().unwrap();
        let described: BTreeSet<&str> = members.keys().map(|name| &**name).collect();
        assert_eq!(described, budget::EXTENSION_MEMBERS.into_iter().collect());
    }
}
