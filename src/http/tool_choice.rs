//! Whether the choice of tools that a request states fits the tools that it declares.

use serde_json::Value;

use super::error::ApiError;
use stint_types::chat::Tool;

/// Whether a choice fits the tools that are declared.
///
/// # Errors
/// 400 that says what does not.
pub(super) fn check(choice: &Value, tools: &[Tool]) -> Result<(), ApiError> {
    let wrong = |must: String| Err(ApiError::invalid(Some("tool_choice"), must));
    match (choice.as_str(), choice["type"].as_str()) {
        (Some("none" | "auto"), _) => Ok(()),
        (Some("required"), _) if tools.is_empty() => {
            wrong("is required, and no tools are declared; send tools".to_owned())
        }
        (Some("required"), _) => Ok(()),
        (None, Some("function")) => {
            let Some(name) = choice["function"]["name"].as_str() else {
                return Err(ApiError::missing("tool_choice.function.name", "the name of a tool"));
            };
            if tools.iter().any(|tool| tool.name == name) {
                return Ok(());
            }
            wrong(format!("names {name:?}, which tools does not declare; declare it, or name another"))
        }
        (None, Some("allowed_tools" | "custom")) => Ok(()),
        _ => wrong("must be none, auto, required, or an object that names a tool".to_owned()),
    }
}
