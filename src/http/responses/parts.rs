//! The parts of what is said, in items.

use serde_json::{Value, json};

use crate::chat::Part;
use crate::http::error::Problem;
use crate::http::fields::Fields;

/// A text, or a list of parts.
pub(super) fn read(fields: &mut Fields, key: &str) -> Result<Vec<Part>, Problem> {
    let path = fields.name(key);
    match fields.take(key) {
        Some(Value::String(text)) => Ok(vec![Part::Text(text)]),
        Some(Value::Array(parts)) => {
            parts.into_iter().enumerate().map(|(at, part)| one(&format!("{path}[{at}]"), part)).collect()
        }
        _ => Err(Problem::invalid(Some(&path), "must be a string or a list of parts")),
    }
}

/// Only kinds for which a prompt's tokens have a bound: a file may be any number of them.
fn one(path: &str, part: Value) -> Result<Part, Problem> {
    let mut fields = Fields::of(path, part)?;
    let kind = fields.text("type")?;
    let part = match kind.as_deref() {
        Some("input_text" | "output_text") => Part::Text(fields.need("text")?),
        Some("refusal") => Part::Text(fields.need("refusal")?),
        Some("input_image") => image(&mut fields)?,
        Some("input_audio") => audio(&mut fields)?,
        _ => {
            let must = "must be input_text, output_text, input_image or input_audio";
            return Err(Problem::invalid(Some(&fields.name("type")), must));
        }
    };
    // Nothing of it is said.
    fields.pass(&["annotations", "logprobs", "prompt_cache_breakpoint"]);
    fields.end()?;
    Ok(part)
}

/// An image by its address, or in it, as chat completions have it, which is how the canonical conversation has it.
fn image(fields: &mut Fields) -> Result<Part, Problem> {
    if fields.take("file_id").is_some() {
        let why = "is not offered: there are no files here; send image_url";
        return Err(Problem::invalid(Some(&fields.name("file_id")), why));
    }
    let mut image = fields.pass(&["detail"]);
    image.insert("url".into(), fields.need("image_url")?.into());
    Ok(Part::Other(json!({ "type": "image_url", "image_url": image })))
}

/// Sound, in base 64.
fn audio(fields: &mut Fields) -> Result<Part, Problem> {
    let mut audio = fields.need_fields("input_audio")?;
    let (data, format) = (audio.need("data")?, audio.need("format")?);
    audio.end()?;
    Ok(Part::Other(json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })))
}
