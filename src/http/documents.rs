//! PDF files in requests. The canonical conversation has them as chat completions do.

use serde_json::{Value, json};

use stint_types::chat::ContentPart;

use super::error::ApiError;
use super::fields::Fields;

/// What a file is called whose caller gave it no name: providers refuse one without.
const UNNAMED: &str = "document.pdf";
/// The longest name that is passed on, in characters.
const NAME_MAX: usize = 200;
const PDF: &str = "application/pdf";
/// What a PDF file begins with, in base 64.
const MAGIC: &str = "JVBERi";

/// Why a file of any other kind is refused.
pub(super) const ONLY_PDF: &str =
    "must be a PDF file in base64, as in data:application/pdf;base64,…; send any other file's text as text";
/// What to do about a file that was uploaded elsewhere.
const NO_FILES: &str = "is not offered: there are no files here; send the file itself in base64";

/// `file_data` and `filename`, or what stands in their place, of chat completions and of responses.
///
/// # Errors
/// 400 where that is no PDF file.
pub(super) fn take(fields: &mut Fields) -> Result<ContentPart, ApiError> {
    let (name, detail) = (fields.text("filename")?, fields.text("detail")?);
    if fields.take("file_id").is_some_and(|id| !id.is_null()) {
        return Err(ApiError::invalid(Some(&fields.full_name("file_id")), NO_FILES));
    }
    let (member, file) = match fields.text("file_url")? {
        Some(url) => ("file_url", at_url(url, name)),
        None => ("file_data", in_data(fields.require("file_data")?, name)),
    };
    let file = file.ok_or_else(|| ApiError::invalid(Some(&fields.full_name(member)), ONLY_PDF))?;
    Ok(with_detail(file, detail))
}

/// A file at an address, or in it where it is a `data:` URL; nothing where that is no PDF file.
pub(super) fn at_url(url: String, name: Option<String>) -> Option<ContentPart> {
    if url.starts_with("data:") { in_url(&url, name) } else { Some(elsewhere(url, name)) }
}

/// A file in base 64, or at an address, which is `OpenRouter`'s way to write one; nothing where it is no PDF file.
fn in_data(data: String, name: Option<String>) -> Option<ContentPart> {
    let is_address = data.starts_with("https://") || data.starts_with("http://");
    if is_address { Some(elsewhere(data, name)) } else { in_url(&data, name) }
}

/// A file in base 64, as a `data:` URL or plain; nothing where it is no PDF file.
fn in_url(data: &str, name: Option<String>) -> Option<ContentPart> {
    let Some(url) = data.strip_prefix("data:") else { return inline("", data, name) };
    let (kind, bytes) = url.split_once(',')?;
    inline(kind.strip_suffix(";base64")?.split(';').next().unwrap_or_default(), bytes, name)
}

/// A file of this media type, in base 64; nothing where it is no PDF file. It is copied once: it may have megabytes.
pub(super) fn inline(kind: &str, bytes: &str, name: Option<String>) -> Option<ContentPart> {
    let is_pdf = kind.eq_ignore_ascii_case(PDF) || bytes.starts_with(MAGIC);
    (is_pdf && !bytes.is_empty()).then(|| part(name, "file_data", format!("data:{PDF};base64,{bytes}")))
}

/// A file at an address.
fn elsewhere(url: String, name: Option<String>) -> ContentPart {
    part(name, "file_url", url)
}

fn part(name: Option<String>, member: &str, text: String) -> ContentPart {
    let mut part = json!({ "type": "file", "file": { "filename": named(name) } });
    part["file"][member] = Value::String(text);
    ContentPart::Other(part)
}

/// The file, to be looked at so closely, where its caller says how.
fn with_detail(file: ContentPart, detail: Option<String>) -> ContentPart {
    match (file, detail) {
        (ContentPart::Other(mut file), Some(detail)) => {
            file["file"]["detail"] = Value::String(detail);
            ContentPart::Other(file)
        }
        (file, _) => file,
    }
}

/// The name, by which some providers tell what kind of file it is.
fn named(name: Option<String>) -> String {
    let Some(name) = name.filter(|name| !name.trim().is_empty()) else { return UNNAMED.to_owned() };
    let short: String = name.chars().filter(|letter| !letter.is_control()).take(NAME_MAX).collect();
    if short.to_ascii_lowercase().ends_with(".pdf") { short } else { format!("{short}.pdf") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(data: &str, expected: Option<&str>) {
        let file = in_url(data, None).map(|part| match part {
            ContentPart::Other(part) => part["file"]["file_data"].as_str().unwrap().to_owned(),
            other => panic!("{other:?}"),
        });
        assert_eq!(file.as_deref(), expected, "{data}");
    }

    #[test]
    fn a_pdf_file_is_known_by_its_type_or_by_its_bytes() {
        let pdf = Some("data:application/pdf;base64,JVBERi0x");
        for data in [
            "data:application/pdf;base64,JVBERi0x",
            "data:Application/PDF;name=a.pdf;base64,JVBERi0x",
            "data:application/octet-stream;base64,JVBERi0x",
            "data:;base64,JVBERi0x",
            "JVBERi0x",
        ] {
            check(data, pdf);
        }
        for data in [
            "",
            "AAAA",
            "data:text/plain;base64,AAAA",
            "data:application/pdf,x",
            "data:application/pdf;base64,",
        ] {
            check(data, None);
        }
    }

    fn taken(file: Value) -> Result<ContentPart, ApiError> {
        take(&mut Fields::from_value("file", file)?)
    }

    #[test]
    fn a_file_at_a_data_url_is_checked_as_one_in_the_message() {
        let pdf = json!({ "file_url": "data:application/pdf;base64,JVBERi0x", "detail": "high" });
        let file = json!({ "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0x", "detail": "high" });
        let expected = ContentPart::Other(json!({ "type": "file", "file": file }));
        assert_eq!(taken(pdf).unwrap_or_else(|problem| panic!("{}", problem.message())), expected);
        let problem =
            taken(json!({ "file_url": "data:text/plain;base64,AAAA" })).expect_err("is no PDF file");
        assert!(problem.message().starts_with("file.file_url must be a PDF file"), "{}", problem.message());
    }

    #[test]
    fn a_file_has_a_name_that_says_what_it_is() {
        for (name, expected) in [
            (None, "document.pdf"),
            (Some(" "), "document.pdf"),
            (Some("a.PDF"), "a.PDF"),
            (Some("My\nreport"), "Myreport.pdf"),
        ] {
            assert_eq!(named(name.map(str::to_owned)), expected);
        }
    }
}
