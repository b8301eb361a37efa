//! `text`: the form that the answer must have, and how long it is to be.

use serde_json::{Map, Value, json};

use crate::http::error::ApiError;
use crate::http::fields::Fields;

/// The form as the canonical request has it, and the word for the length.
pub(super) fn read(fields: &mut Fields) -> Result<(Option<Value>, Option<String>), ApiError> {
    let Some(mut text) = fields.fields("text")? else { return Ok((None, None)) };
    let verbosity = text.text("verbosity")?;
    if !matches!(verbosity.as_deref(), None | Some("low" | "medium" | "high")) {
        return Err(ApiError::invalid(Some(&text.full_name("verbosity")), "must be low, medium or high"));
    }
    let format = text.fields("format")?.map(format).transpose()?.flatten();
    text.finish()?;
    Ok((format, verbosity))
}

fn format(mut format: Fields) -> Result<Option<Value>, ApiError> {
    let canonical = match format.text("type")?.as_deref() {
        Some("text") => None,
        Some("json_object") => Some(json!({ "type": "json_object" })),
        Some("json_schema") => Some(json!({ "type": "json_schema", "json_schema": schema(&mut format)? })),
        _ => {
            let must = "must be text, json_object or json_schema";
            return Err(ApiError::invalid(Some(&format.full_name("type")), must));
        }
    };
    format.finish()?;
    Ok(canonical)
}

fn schema(format: &mut Fields) -> Result<Value, ApiError> {
    let mut named = Map::new();
    named.insert("name".into(), format.require("name")?.into());
    let path = format.full_name("schema");
    let schema = format.take("schema").filter(Value::is_object);
    named.insert("schema".into(), schema.ok_or_else(|| ApiError::invalid(Some(&path), "must be an object"))?);
    named.extend(format.take_all(&["description", "strict"]));
    Ok(named.into())
}
