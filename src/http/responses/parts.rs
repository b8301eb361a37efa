//! The content parts of an item.

use serde_json::{Value, json};

use crate::http::documents;
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_prompt::image_type;
use stint_types::chat::ContentPart;

/// A text, or a list of parts.
pub(super) fn read(fields: &mut Fields, key: &str) -> Result<Vec<ContentPart>, ApiError> {
    let path = fields.full_name(key);
    match fields.take(key) {
        Some(Value::String(text)) => Ok(vec![ContentPart::Text(text)]),
        Some(Value::Array(parts)) => {
            parts.into_iter().enumerate().map(|(at, part)| one(&format!("{path}[{at}]"), part)).collect()
        }
        _ => Err(ApiError::invalid(Some(&path), "must be a string or a list of parts")),
    }
}

/// Only kinds for which a prompt's tokens have a bound.
fn one(path: &str, part: Value) -> Result<ContentPart, ApiError> {
    let mut fields = Fields::from_value(path, part)?;
    let kind = fields.text("type")?;
    let part = match kind.as_deref() {
        Some("input_text" | "output_text") => ContentPart::Text(fields.require("text")?),
        Some("refusal") => ContentPart::Text(fields.require("refusal")?),
        Some("input_image") => image(&mut fields)?,
        Some("input_audio") => audio(&mut fields)?,
        Some("input_file") => documents::take(&mut fields)?,
        _ => {
            let must = "must be input_text, output_text, input_image, input_audio or input_file";
            return Err(ApiError::invalid(Some(&fields.full_name("type")), must));
        }
    };
    // There is none.
    fields.take_all(&["annotations", "logprobs", "prompt_cache_breakpoint"]);
    fields.finish()?;
    Ok(part)
}

/// An image by its address, or in it, as chat completions have it, which is how the canonical conversation has it.
fn image(fields: &mut Fields) -> Result<ContentPart, ApiError> {
    if fields.take("file_id").is_some() {
        let why = "is not offered: there are no files here; send image_url";
        return Err(ApiError::invalid(Some(&fields.full_name("file_id")), why));
    }
    let mut image = fields.take_all(&["detail"]);
    image.insert("url".into(), image_type::with_media_type(fields.require("image_url")?).into());
    Ok(ContentPart::Other(json!({ "type": "image_url", "image_url": image })))
}

/// Sound, in base 64.
fn audio(fields: &mut Fields) -> Result<ContentPart, ApiError> {
    let mut audio = fields.require_fields("input_audio")?;
    let (data, format) = (audio.require("data")?, audio.require("format")?);
    audio.finish()?;
    Ok(ContentPart::Other(
        json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } }),
    ))
}
