//! `cache_control`: with it callers mark what a provider is to keep in its cache, on a part of a message or on a tool.

use serde_json::Value;

use stint_types::chat::{CacheTtl, ContentPart, Message, Request};

use super::error::ApiError;
use super::fields::Fields;

/// The member.
const MARK: &str = "cache_control";
/// GitHub's name for it, which VS Code writes on messages, and also sends to models of one's own.
const COPILOT_MARK: &str = "copilot_cache_control";
/// OpenAI's name for it, on a part of a message.
const BREAKPOINT: &str = "prompt_cache_breakpoint";
/// So many marks may a request have; Anthropic's own limit.
const MARKS_MAX: usize = 4;

/// For how long the part, or tool, is to be kept, where it is marked. The mark is taken out.
pub(super) fn take(fields: &mut Fields) -> Result<Option<CacheTtl>, ApiError> {
    take_named(fields, MARK)
}

fn take_named(fields: &mut Fields, member: &str) -> Result<Option<CacheTtl>, ApiError> {
    let name = fields.full_name(member);
    fields.take(member).map(|mark| read(&name, mark)).transpose()
}

/// The same by any of its names: OpenAI has another for a part of a message, by which its own cache says how long it holds.
pub(super) fn take_any(fields: &mut Fields) -> Result<Option<CacheTtl>, ApiError> {
    let name = fields.full_name(BREAKPOINT);
    let read = |mark| {
        let mut mark = Fields::from_value(&name, mark)?;
        match mark.text("mode")?.as_deref() {
            Some("explicit") => mark.finish().map(|()| CacheTtl::Minutes),
            _ => Err(ApiError::invalid(Some(&mark.full_name("mode")), "must be explicit")),
        }
    };
    let breakpoint = fields.take(BREAKPOINT).map(read).transpose()?;
    Ok(take(fields)?.max(take_named(fields, COPILOT_MARK)?).max(breakpoint))
}

/// The same of a tool as OpenAI declares it: beside its function, or in it.
pub(super) fn take_from_tool(path: &str, declaration: &mut Value) -> Result<Option<CacheTtl>, ApiError> {
    let mut marked = None;
    for (inner, pointer) in [("", ""), (".function", "/function")] {
        let Some(members) = declaration.pointer_mut(pointer).and_then(Value::as_object_mut) else { continue };
        for name in [MARK, COPILOT_MARK] {
            if let Some(mark) = members.shift_remove(name).filter(|it| !it.is_null()) {
                marked = marked.max(Some(read(&format!("{path}{inner}.{name}"), mark)?));
            }
        }
    }
    Ok(marked)
}

fn read(path: &str, mark: Value) -> Result<CacheTtl, ApiError> {
    let mut mark = Fields::from_value(path, mark)?;
    if mark.text("type")?.as_deref() != Some("ephemeral") {
        return Err(ApiError::invalid(Some(&mark.full_name("type")), "must be ephemeral"));
    }
    let keep = match mark.text("ttl")?.as_deref() {
        None | Some("5m") => CacheTtl::Minutes,
        Some("1h") => CacheTtl::Hour,
        Some(_) => return Err(ApiError::invalid(Some(&mark.full_name("ttl")), "must be 5m or 1h")),
    };
    // Who else may read it, as some agents say: nobody's business but the account's.
    mark.take_all(&["scope"]);
    mark.finish()?;
    Ok(keep)
}

/// A mark beside the whole conversation is one at its end.
pub(super) fn take_from_request(fields: &mut Fields, conversation: &mut [Message]) -> Result<(), ApiError> {
    if let Some((keep, last)) = take(fields)?.zip(conversation.last_mut()) {
        add_mark(&mut last.content, keep);
    }
    Ok(())
}

/// Marks the content so far. One mark in a place is enough: the longer one holds.
pub(super) fn add_mark(content: &mut Vec<ContentPart>, keep: CacheTtl) {
    match content.last_mut() {
        Some(ContentPart::CacheBreakpoint(known)) => *known = keep.max(*known),
        _ => content.push(ContentPart::CacheBreakpoint(keep)),
    }
}

/// Refuses more marks than a provider takes.
pub(super) fn check(request: &Request) -> Result<(), ApiError> {
    match request.cache_breakpoints().count() {
        0..=MARKS_MAX => Ok(()),
        marks => {
            let message =
                format!("may mark {MARKS_MAX} parts and tools of a request, not {marks}: leave some out");
            Err(ApiError::invalid(Some(MARK), message))
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderMap;
    use serde_json::json;

    use super::*;
    use crate::http::budget::EffortTable;
    use crate::http::{anthropic, openai};

    fn completion(body: &Value) -> Result<Request, ApiError> {
        openai::read(body.as_object().unwrap().clone(), &HeaderMap::new(), &EffortTable::new())
            .map(|(read, _)| read)
    }

    fn message(body: &Value) -> Result<Request, ApiError> {
        anthropic::read(body.as_object().unwrap().clone(), &HeaderMap::new(), &EffortTable::new())
            .map(|(read, _)| read)
    }

    fn good(read: Result<Request, ApiError>) -> Request {
        read.unwrap_or_else(|problem| panic!("{}", problem.message()))
    }

    fn said(text: &str) -> ContentPart {
        ContentPart::Text(text.to_owned())
    }

    fn marked(text: &str) -> Value {
        json!({ "type": "text", "text": text, "cache_control": { "type": "ephemeral", "ttl": "1h" } })
    }

    #[test]
    fn a_chat_completion_may_mark_parts_of_any_role_and_tools() {
        let function = || json!({ "name": "f", "parameters": {} });
        let mut inside = function();
        inside["cache_control"] = json!({ "type": "ephemeral" });
        let request = good(completion(&json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": [marked("book"), { "type": "text", "text": "today" }] },
                { "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": null }] },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
                ]},
                { "role": "tool", "tool_call_id": "a", "content": [marked("found")] },
            ],
            "tools": [
                { "type": "function", "function": inside },
                { "type": "function", "function": function(), "cache_control": { "type": "ephemeral" } },
                { "type": "function", "function": function() },
            ],
        })));
        assert_eq!(
            request.messages[0].content,
            [said("book"), ContentPart::CacheBreakpoint(CacheTtl::Hour), said("today")]
        );
        assert_eq!(request.messages[1].content, [said("hi")]);
        assert_eq!(
            request.messages[3].content,
            [said("found"), ContentPart::CacheBreakpoint(CacheTtl::Hour)]
        );
        let tools: Vec<Option<CacheTtl>> = request.tools.iter().map(|tool| tool.cache_breakpoint).collect();
        assert_eq!(tools, [Some(CacheTtl::Minutes), Some(CacheTtl::Minutes), None]);
        assert_eq!(request.cache_ttl(), CacheTtl::Hour, "the longest of all");
        for tool in &request.tools {
            assert_eq!(tool.declaration, json!({ "type": "function", "function": function() }));
        }
    }

    #[test]
    fn a_message_may_mark_its_blocks_its_tools_and_its_end() {
        let mark = json!({ "type": "ephemeral", "scope": "global" });
        let source = json!({ "type": "url", "url": "u" });
        let request = good(message(&json!({
            "model": "m", "max_tokens": 9, "cache_control": mark,
            "system": [marked("book"), { "type": "text", "text": "today" }],
            "messages": [
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "a", "content": "found", "cache_control": mark },
                    { "type": "image", "source": source },
                ]},
            ],
            "tools": [{ "name": "f", "input_schema": {}, "cache_control": mark }],
        })));
        assert_eq!(
            request.messages[0].content,
            [said("book"), ContentPart::CacheBreakpoint(CacheTtl::Hour), said("today")]
        );
        assert_eq!(
            request.messages[3].content,
            [said("found"), ContentPart::CacheBreakpoint(CacheTtl::Minutes)]
        );
        let end = request.messages[4].content.last();
        assert_eq!(
            end,
            Some(&ContentPart::CacheBreakpoint(CacheTtl::Minutes)),
            "the end of the conversation"
        );
        assert_eq!(request.tools[0].cache_breakpoint, Some(CacheTtl::Minutes));
        assert_eq!(request.cache_breakpoints().count(), 4);
    }

    #[test]
    fn vs_code_marks_messages_by_a_name_of_its_own() {
        let mark = json!({ "type": "ephemeral" });
        let request = good(completion(&json!({
            "model": "m",
            "messages": [
                { "role": "system", "content": [{ "type": "text", "text": "book" }], "copilot_cache_control": mark },
                { "role": "user", "content": "hi", "copilot_cache_control": mark },
            ],
            "tools": [{ "type": "function", "function": { "name": "f" }, "copilot_cache_control": mark }],
        })));
        for (message, text) in request.messages.iter().zip(["book", "hi"]) {
            assert_eq!(message.content, [said(text), ContentPart::CacheBreakpoint(CacheTtl::Minutes)]);
            assert!(message.unknown_members.is_empty());
        }
        assert_eq!(request.tools[0].cache_breakpoint, Some(CacheTtl::Minutes));
        assert_eq!(request.tools[0].declaration, json!({ "type": "function", "function": { "name": "f" } }));
    }

    #[test]
    fn a_fifth_mark_and_one_that_is_none_are_refused() {
        let asked = |parts: Value| json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": parts }] });
        let check = |parts: Value, says: &str| {
            for problem in
                [completion(&asked(parts.clone())), message(&asked(parts))].map(|read| read.expect_err(says))
            {
                assert_eq!(problem.message(), says);
            }
        };
        let most = asked(json!(["1", "2", "3", "4"].map(marked)));
        assert_eq!(
            [completion(&most), message(&most)].map(|read| good(read).cache_breakpoints().count()),
            [4, 4]
        );
        check(
            json!(["1", "2", "3", "4", "5"].map(marked)),
            "cache_control may mark 4 parts and tools of a request, not 5: leave some out",
        );
        let part = |mark: Value| json!([{ "type": "text", "text": "x", "cache_control": mark }]);
        let at = "messages[0].content[0].cache_control";
        check(part(json!({})), &format!("{at}.type must be ephemeral"));
        check(part(json!({ "type": "ephemeral", "ttl": "1d" })), &format!("{at}.ttl must be 5m or 1h"));
        check(part(json!(true)), &format!("{at} must be an object"));
    }
}
