//! Whether the choice of tools that a request states fits the tools that it declares.

use std::collections::HashSet;

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
        (None, Some("allowed_tools")) => check_list(&choice["allowed_tools"], tools),
        (None, Some("custom")) => Ok(()),
        _ => wrong("must be none, auto, required, or an object that names a tool".to_owned()),
    }
}

/// Whether a list of tools that may be called is one, and names tools that are declared.
fn check_list(list: &Value, tools: &[Tool]) -> Result<(), ApiError> {
    const PATH: &str = "tool_choice.allowed_tools";
    if !matches!(list["mode"].as_str(), Some("auto" | "required")) {
        return Err(ApiError::invalid(Some(&format!("{PATH}.mode")), "must be auto or required"));
    }
    let listed = list["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    if listed.is_empty() {
        let must = "must name at least one of the request's own tools";
        return Err(ApiError::invalid(Some(&format!("{PATH}.tools")), must));
    }
    let declared: HashSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    for (at, tool) in listed.iter().enumerate() {
        let path = format!("{PATH}.tools[{at}].function.name");
        let Some(name) = tool["function"]["name"].as_str() else {
            return Err(ApiError::missing(&path, "the name of a tool"));
        };
        if !declared.contains(name) {
            let why = format!("is {name:?}, which tools does not declare; declare it, or leave it out");
            return Err(ApiError::invalid(Some(&path), why));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_allowed_tools_names_tools_that_are_declared() {
        let tool = Tool::new("look", Value::Null);
        let said = |list: Value| {
            let choice = json!({ "type": "allowed_tools", "allowed_tools": list });
            check(&choice, std::slice::from_ref(&tool)).err().map(|problem| problem.message().to_string())
        };
        let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
        assert_eq!(said(json!({ "mode": "auto", "tools": [named("look")] })), None);
        let at = "tool_choice.allowed_tools";
        let refused = |list: Value, says: &str| {
            let problem = said(list).unwrap();
            assert!(problem.starts_with(&format!("{at}.{says}")), "{problem}");
        };
        refused(json!({ "mode": "any", "tools": [named("look")] }), "mode must be auto or required");
        refused(json!({ "mode": "auto", "tools": [] }), "tools must name at least one");
        refused(
            json!({ "mode": "auto", "tools": [named("find")] }),
            "tools[0].function.name is \"find\", which",
        );
        refused(
            json!({ "mode": "auto", "tools": [{ "type": "function" }] }),
            "tools[0].function.name is missing",
        );
    }
}
