//! The list of models as Anthropic has it, for callers that say which version of its API they speak.

use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::http::error::ApiError;

/// How many models a page has where nobody says, and at most.
const LIMIT_USUAL: usize = 20;
const LIMIT_MAX: usize = 1000;

/// When a model was made: nobody knows here, and for that Anthropic has this.
const CREATED: &str = "1970-01-01T00:00:00Z";

/// True if the caller speaks this dialect.
pub(in crate::http) fn speaks(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version")
}

/// A model, by what is listed of it in OpenAI's shape.
pub(in crate::http) fn model(listed: &Value) -> Value {
    json!({
        "type": "model",
        "id": listed["id"],
        "display_name": listed["id"],
        "created_at": CREATED,
        "max_input_tokens": listed["context_length"],
        "max_tokens": listed["output_max"],
    })
}

/// A page of the list: the first of them, or those next to one that is named.
///
/// # Errors
/// 400 that names the parameter and the remedy.
pub(in crate::http) fn page(listed: &[Value], query: Option<&str>) -> Result<Value, ApiError> {
    let (mut limit, mut from, mut to) = (LIMIT_USUAL, 0, listed.len());
    let mut is_before = false;
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let place = || {
            let found = listed.iter().position(|model| model["id"] == *value);
            found.ok_or_else(|| ApiError::invalid(Some(&name), "names no model of this list"))
        };
        match &*name {
            "limit" => {
                let number = value.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
                let must = format!("must be a whole number from 1 to {LIMIT_MAX}");
                limit = number.ok_or_else(|| ApiError::invalid(Some("limit"), must))?;
            }
            "after_id" => from = place()? + 1,
            "before_id" => (to, is_before) = (place()?, true),
            // Anthropic's own client adds this to some paths.
            "beta" => {}
            _ => return Err(ApiError::invalid(Some(&name), "is not known here; leave it out")),
        }
    }
    let between = listed.get(from..to).unwrap_or_default();
    let first = if is_before { between.len().saturating_sub(limit) } else { 0 };
    let models: Vec<Value> = between.iter().skip(first).take(limit).map(model).collect();
    let id = |model: Option<&Value>| model.map(|model| model["id"].clone());
    Ok(json!({
        "first_id": id(models.first()),
        "last_id": id(models.last()),
        "has_more": between.len() > models.len(),
        "data": models,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_a_model_writes_is_not_all_that_it_holds() {
        let shown = model(&json!({ "id": "a", "context_length": 200_000, "output_max": 64_000 }));
        assert_eq!((&shown["max_input_tokens"], &shown["max_tokens"]), (&json!(200_000), &json!(64_000)));
    }

    #[test]
    fn pages_go_on_from_the_model_that_is_named() {
        let listed: Vec<Value> = ["a", "b", "c", "d"].map(|name| json!({ "id": name })).into();
        let check = |query: &str, ids: &[&str], more: bool| {
            let page = page(&listed, Some(query)).unwrap();
            let seen: Vec<&Value> =
                page["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
            assert_eq!(
                (seen, &page["has_more"]),
                (ids.iter().map(|id| json!(id)).collect::<Vec<_>>().iter().collect(), &json!(more)),
                "{query}"
            );
        };
        check("", &["a", "b", "c", "d"], false);
        check("limit=2", &["a", "b"], true);
        check("limit=2&after_id=b", &["c", "d"], false);
        check("limit=2&before_id=d", &["b", "c"], true);
        check("after_id=d", &[], false);
        for wrong in ["limit=0", "after_id=x", "order=asc"] {
            assert!(page(&listed, Some(wrong)).is_err(), "{wrong}");
        }
    }
}
