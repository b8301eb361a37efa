//! What OpenAI refuses of a chat completion, although it could be read: members that contradict each other, and names that no model
//! is given. Clients' tests look for it, and an upstream that is asked all the same answers each in its own way.

use serde_json::Value;

use crate::http::error::ApiError;
use crate::http::tool_choice;
use stint_types::chat::Request;

/// The most bytes of a tool's name.
const TOOL_NAME_MAX: usize = 64;
/// The most texts that may end an answer. Who takes fewer is told the first ones; the gateway itself looks for all.
pub(super) const STOPS_MAX: usize = 64;

/// Checks what was read against itself.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn check(request: &Request) -> Result<(), ApiError> {
    request.tools.iter().enumerate().try_for_each(|(at, tool)| check_tool_name(at, &tool.name))?;
    request.tool_choice.as_ref().map_or(Ok(()), |choice| tool_choice::check(choice, &request.tools))?;
    request.response_format.as_ref().map_or(Ok(()), check_response_format)
}

fn check_tool_name(at: usize, name: &str) -> Result<(), ApiError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=TOOL_NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let must = format!("must be 1 to {TOOL_NAME_MAX} letters, digits, _ and -");
    Err(ApiError::invalid(Some(&format!("tools[{at}].function.name")), must))
}

fn check_response_format(format: &Value) -> Result<(), ApiError> {
    match format["type"].as_str() {
        Some("json_schema") if format["json_schema"]["name"].as_str().is_none_or(str::is_empty) => {
            Err(ApiError::missing("response_format.json_schema.name", "a name for the schema"))
        }
        Some("json_schema") if format["json_schema"]["schema"].is_null() => {
            Err(ApiError::missing("response_format.json_schema.schema", "a JSON schema"))
        }
        Some(_) => Ok(()),
        None => Err(ApiError::missing("response_format.type", "text, json_object or json_schema")),
    }
}
