//! Finds the first image, sound or file in a request's body, so that a refusal for want of what reads it names it by its path.

use axum::body::Bytes;
use axum::http::Extensions;
use serde_json::Value;

use crate::gateway::RequestRefusal;
use stint_decide::plan;
use stint_types::catalog::Capability;
use stint_types::chat::Request;

use super::error::ApiError;
use super::{ImageUrls, body, image_urls};

/// The kinds of parts that are images or sound, in all dialects.
const IMAGES: &[&str] = &["image_url", "input_audio", "image", "input_image"];
/// The kinds of parts that are files.
const DOCUMENTS: &[&str] = &["file", "input_file", "document"];

/// A refusal for want of images or documents, naming the part that is one rather than the whole conversation.
pub(super) async fn with_image_path(
    refusal: RequestRefusal,
    extensions: &Extensions,
    body: &Bytes,
) -> RequestRefusal {
    match refusal {
        RequestRefusal::Plan(plan::PlanRefusal::MemberNotServed { model, what, member })
            if what == Capability::Images.as_str() || what == Capability::Documents.as_str() =>
        {
            let kinds = if what == Capability::Images.as_str() { IMAGES } else { DOCUMENTS };
            let find = move |body: &[u8]| {
                serde_json::from_slice(body).ok().and_then(|body: Value| first_part(&body, kinds))
            };
            let path = body::parse(extensions, body, find).await.ok().flatten();
            let member = path.map_or(member, Into::into);
            RequestRefusal::Plan(plan::PlanRefusal::MemberNotServed { model, what, member })
        }
        other => other,
    }
}

/// Refuses a request that has an image at an address that may not be asked, or such an address in what is only passed on, given
/// the body in which its caller wrote it.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) async fn check_urls(
    urls: ImageUrls,
    request: &Request,
    extensions: &Extensions,
    body: &Bytes,
) -> Result<(), ApiError> {
    let in_parts = urls.first_refused(image_urls::parts(&request.messages));
    let of_messages = request.messages.iter().map(|message| &message.unknown_members);
    let mut carried = of_messages.chain([&request.unknown_members]);
    let refused = in_parts.or_else(|| carried.find_map(|members| urls.first_refused_member(members)));
    let Some(refused) = refused else { return Ok(()) };
    let url = refused.url.to_owned();
    let find =
        move |body: &[u8]| image_urls::path_of(&url, "", &serde_json::from_slice(body).unwrap_or_default());
    let named = body::parse(extensions, body, find).await.ok().flatten();
    Err(ApiError::invalid(Some(named.as_deref().unwrap_or("messages")), refused.why))
}

fn first_part(body: &Value, kinds: &[&str]) -> Option<String> {
    ["messages", "input"].into_iter().find_map(|list| part_in(list, body.get(list)?, kinds))
}

/// The first such part of a list of messages, parts, or results with parts of their own.
fn part_in(path: &str, list: &Value, kinds: &[&str]) -> Option<String> {
    list.as_array()?.iter().enumerate().find_map(|(at, item)| {
        let path = format!("{path}[{at}]");
        let is_one = item.get("type").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind));
        if is_one && !is_written_out(item) {
            return Some(path);
        }
        [("content", "/content"), ("output", "/output"), ("source.content", "/source/content")]
            .into_iter()
            .find_map(|(inner, at)| part_in(&format!("{path}.{inner}"), item.pointer(at)?, kinds))
    })
}

/// True for a document that is no file: its texts and images stand in the request.
fn is_written_out(item: &Value) -> bool {
    let source = item.pointer("/source/type").and_then(Value::as_str);
    item["type"] == "document" && matches!(source, Some("text" | "content"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_part_is_named_as_its_caller_would_in_every_dialect() {
        let text = json!({ "type": "text", "text": "x" });
        let user = json!({ "role": "user", "content": "x" });
        let check =
            |body: Value, expected: Option<&str>| assert_eq!(first_part(&body, IMAGES).as_deref(), expected);
        let image = json!({ "role": "user", "content": [text, { "type": "image_url" }] });
        check(json!({ "messages": [user, user, image] }), Some("messages[2].content[1]"));
        let result = json!({ "type": "tool_result", "content": [text, { "type": "image" }] });
        check(json!({ "messages": [{ "content": [result] }] }), Some("messages[0].content[0].content[1]"));
        let item = json!({ "type": "message", "content": [{ "type": "input_image" }] });
        check(json!({ "input": [item] }), Some("input[0].content[0]"));
        let inner = json!({ "type": "document", "source": { "type": "content", "content": [text, { "type": "image" }] } });
        check(
            json!({ "messages": [{ "content": [inner] }] }),
            Some("messages[0].content[0].source.content[1]"),
        );
        check(json!({ "input": "x", "messages": [user] }), None);
    }

    #[test]
    fn a_document_that_is_text_is_not_the_file_that_is_refused() {
        let document = |kind: &str| json!({ "type": "document", "source": { "type": kind } });
        let path = |kinds: [&str; 2]| {
            let body = json!({ "messages": [{ "role": "user", "content": kinds.map(document) }] });
            first_part(&body, DOCUMENTS)
        };
        assert_eq!(path(["text", "base64"]).as_deref(), Some("messages[0].content[1]"));
        assert_eq!(path(["content", "url"]).as_deref(), Some("messages[0].content[1]"));
        assert_eq!(path(["text", "content"]), None);
    }
}
