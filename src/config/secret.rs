//! Secrets: named in the file, kept elsewhere.

use std::path::Path;

use crate::backend::remote::Secret;

use super::mistake::Wrong;
use super::reader::Section;

/// The upstream's key, from the environment or a file of its own; none where neither is named.
pub(super) fn api_key(section: &Section<'_>) -> Option<Secret> {
    if section.has("api_key") {
        let remedy =
            "put it into an environment variable or a file and name that: api_key_env or api_key_file";
        section.wrong("api_key", Wrong::new("a secret in the configuration", remedy));
    }
    let variable = section.get::<String>("api_key_env");
    let file = section.path("api_key_file");
    match (variable, file) {
        (Some(_), Some(_)) => {
            section.wrong(
                "api_key_file",
                Wrong::new("a second place for the key", "name one of api_key_env and api_key_file"),
            );
            None
        }
        (Some(variable), None) => from_environment(section, &variable),
        (None, Some(file)) => from_file(section, &file),
        (None, None) => None,
    }
}

fn from_environment(section: &Section<'_>, variable: &str) -> Option<Secret> {
    let value = (section.document().env)(variable).filter(|value| !value.trim().is_empty());
    if value.is_none() {
        section
            .wrong("api_key_env", Wrong::new(format!("{variable} is not set"), "export it before starting"));
    }
    value.map(|value| Secret::new(value.trim()))
}

fn from_file(section: &Section<'_>, file: &Path) -> Option<Secret> {
    let wrong =
        |what: String| section.wrong("api_key_file", Wrong::new(what, "put the key alone into that file"));
    match std::fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => wrong(format!("{} is empty", file.display())),
        Ok(text) => return Some(Secret::new(text.trim())),
        Err(error) => wrong(format!("{} cannot be read: {error}", file.display())),
    }
    None
}
