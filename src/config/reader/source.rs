//! From a file to a TOML tree.

use std::path::Path;

use toml::de::DeTable;

use super::diagnostic::{ConfigErrors, Diagnostic, ValueError};
use super::document::Document;
use super::files::ConfigFiles;

/// The text of the configuration and what to call it.
pub(in crate::config) type SourceText = (String, String);

/// The text as it is now.
pub(in crate::config) fn read(file: Option<&Path>, files: &ConfigFiles) -> Result<SourceText, ConfigErrors> {
    let Some(file) = file else { return Ok((String::new(), "the environment".to_owned())) };
    let source = file.display().to_string();
    match files.read(file) {
        Ok(text) => Ok((text, source)),
        Err(error) => {
            let what = format!("cannot be read: {error}");
            let remedy =
                "name a readable file, or none to serve the embedded model on 127.0.0.1:8080".to_owned();
            Err(ConfigErrors {
                source,
                errors: vec![Diagnostic { line: None, key: String::new(), what, remedy }],
            })
        }
    }
}

/// What to say of a file that changed time and again while it was read.
pub(in crate::config) fn unstable_file(file: &Path) -> ConfigErrors {
    let what = "is being written".to_owned();
    let remedy = "write another file beside it and rename that into its place, then reload again".to_owned();
    let list = vec![Diagnostic { line: None, key: String::new(), what, remedy }];
    ConfigErrors { source: file.display().to_string(), errors: list }
}

/// What to say of a file that was named and has nothing in it.
pub(in crate::config) fn empty_file(file: &Path) -> ConfigErrors {
    let what = "there is nothing in it".to_owned();
    let remedy = "write the configuration (`stint init` helps), or name no file to serve the embedded model on 127.0.0.1:8080".to_owned();
    let list = vec![Diagnostic { line: None, key: String::new(), what, remedy }];
    ConfigErrors { source: file.display().to_string(), errors: list }
}

/// The tree of the text. Where the text is not TOML the tree would mislead, so only that is reported; a key
/// that stands twice leaves the tree whole.
pub(in crate::config) fn parse<'d>(document: &Document<'d>) -> Option<DeTable<'d>> {
    let (table, errors) = DeTable::parse_recoverable(document.text);
    let whole = errors.iter().all(|error| error.message() == DUPLICATE_KEY);
    for error in errors {
        let line = error.span().map(|span| document.line(&span));
        let key = error.span().and_then(|span| document.text.get(span)).unwrap_or_default().trim();
        let wrong = match error.message() {
            DUPLICATE_KEY => ValueError::new(STANDS_TWICE, "write it once"),
            message => ValueError::new(format!("not TOML: {message}"), "mend the line; text needs quotes"),
        };
        document.reject(line, if wrong.what == STANDS_TWICE { key.to_owned() } else { String::new() }, wrong);
    }
    whole.then(|| table.into_inner())
}

/// What is wrong with a key that stands twice.
pub(in crate::config) const STANDS_TWICE: &str = "stands twice";

/// The parser's words for a key that stands twice.
const DUPLICATE_KEY: &str = "duplicate key";
