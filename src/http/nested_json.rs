//! JSON inside of texts: the arguments of earlier calls, and what providers have signed. It is read after the body was, and takes
//! many times the memory of its text, so its values count as those of the body do.

use axum::http::Extensions;

use stint_types::chat::Message;
use stint_types::strict_json;

use super::body_limiter::{self, ValueRoom};
use super::error::{ApiError, codes};

/// So many bytes of it take no room.
const FREE: usize = 64 << 10;

/// Takes room for what is made of it.
///
/// # Errors
/// 400 where it has more values than a body may, 503 where there is no room.
pub(super) fn check(messages: &[Message], extensions: &Extensions) -> Result<(), ApiError> {
    let bytes = room_needed(messages)?;
    if ValueRoom::of(extensions).take(bytes) { Ok(()) } else { Err(body_limiter::no_room()) }
}

/// How many bytes of room it needs.
///
/// # Errors
/// 400 where it has more values than a body may.
pub(super) fn room_needed(messages: &[Message]) -> Result<usize, ApiError> {
    if texts(messages).map(str::len).sum::<usize>() <= FREE {
        return Ok(0);
    }
    let values: usize = texts(messages).map(strict_json::values_at_most).sum();
    if values > strict_json::VALUES_MAX {
        let most = strict_json::VALUES_MAX;
        let what = format!(
            "the arguments of earlier tool calls have more than {most} values; leave some of them out"
        );
        return Err(ApiError::invalid(None, what).with_code(codes::TOO_MANY_VALUES));
    }
    Ok(strict_json::values_room(values))
}

fn texts(messages: &[Message]) -> impl Iterator<Item = &str> {
    messages.iter().flat_map(|message| {
        let calls = message.tool_calls.iter().map(|call| call.arguments.as_str());
        calls.chain(message.signed.iter().map(|signed| &*signed.block))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stint_types::chat::{Role, ToolCall};

    fn called(arguments: &str, times: usize) -> Vec<Message> {
        let call = ToolCall { id: "a".to_owned(), name: "f".to_owned(), arguments: arguments.to_owned() };
        vec![Message { tool_calls: vec![call; times], ..Message::text(Role::Assistant, "") }]
    }

    #[test]
    fn the_values_in_all_arguments_together_are_bounded_and_take_room() {
        let list = format!("[{}1]", "1,".repeat(99_999));
        let needed = |times| room_needed(&called(&list, times)).map_err(|problem| problem.to_json());
        assert!((10_000_000..20_000_000).contains(&needed(1).unwrap()));
        assert_eq!(needed(2), needed(1).map(|one| 2 * one));
        assert_eq!(needed(3).unwrap_err()["error"]["code"], "too_many_values");
        // A file that an agent wrote has many signs in it, and is one value.
        let written = format!("{{\"content\":\"{}\"}}", "a, [b], {c}: ".repeat(100_000));
        assert!(room_needed(&called(&written, 1)).unwrap() < 1_000);
        assert_eq!(room_needed(&called("[1,2]", 1_000)).unwrap(), 0);
    }
}
