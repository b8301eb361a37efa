//! How a prompt is marked that the provider is to keep in its cache, where its caller marks nothing.

use serde_json::{Value, json};

use crate::remote::wire;
use stint_types::chat::{CacheTtl, Request};

use super::Settings;

/// Whether a request's prompt is to be kept.
pub(super) fn is_kept(settings: &Settings, request: &Request) -> bool {
    settings.cache.keeps(request, settings.rules.cache_min, &settings.client.images)
}

/// Has all of a request kept, and what stands before its messages by itself too: that holds where something makes the provider
/// read the messages anew.
pub(super) fn mark(body: &mut Value) {
    wire::mark_for_cache(body, CacheTtl::Minutes);
    if let Some(Value::String(text)) = body.get("system") {
        body["system"] = json!([{"type": "text", "text": text}]);
    }
    let before = if body.get("system").is_some() { "system" } else { "tools" };
    let last = body.get_mut(before).and_then(Value::as_array_mut).and_then(|blocks| blocks.last_mut());
    if let Some(block) = last {
        wire::mark_for_cache(block, CacheTtl::Minutes);
    }
}
