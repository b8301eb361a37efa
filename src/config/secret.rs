//! Secrets: named in the file, kept elsewhere.

use std::path::Path;

use crate::backend::remote::Secret;
use crate::storage::DatabaseUrl;

use super::mistake::Wrong;
use super::reader::Section;

/// The upstream's key, from the environment or a file of its own; none where neither is named.
pub(super) fn api_key(section: &Section<'_>) -> Option<Secret> {
    if section.has("api_key") {
        let remedy =
            "put it into an environment variable or a file and name that: api_key_env or api_key_file";
        section.wrong("api_key", Wrong::new("a secret in the configuration", remedy));
    }
    named(section, "api_key_env", "api_key_file").map(Secret::new)
}

/// The address of the ledger's database, which has a password in it; none where neither place is named.
pub(super) fn database_url(section: &Section<'_>) -> Option<DatabaseUrl> {
    if section.has("url") {
        let remedy = "put it into an environment variable or a file and name that: url_env or url_file";
        section.wrong("url", Wrong::new("a secret in the configuration", remedy));
    }
    named(section, "url_env", "url_file").map(DatabaseUrl::new)
}

/// What stands in the variable or in the file that these two keys name.
fn named(section: &Section<'_>, variable_key: &'static str, file_key: &'static str) -> Option<String> {
    match (section.get::<String>(variable_key), section.path(file_key)) {
        (Some(_), Some(_)) => {
            let remedy = format!("name one of {variable_key} and {file_key}");
            section.wrong(file_key, Wrong::new("a second place for the secret", remedy));
            None
        }
        (Some(variable), None) => from_environment(section, variable_key, &variable),
        (None, Some(file)) => from_file(section, file_key, &file),
        (None, None) => None,
    }
}

fn from_environment(section: &Section<'_>, key: &'static str, variable: &str) -> Option<String> {
    let value = (section.document().env)(variable).filter(|value| !value.trim().is_empty());
    if value.is_none() {
        section.wrong(key, Wrong::new(format!("{variable} is not set"), "export it before starting"));
    }
    value.map(|value| value.trim().to_owned())
}

fn from_file(section: &Section<'_>, key: &'static str, file: &Path) -> Option<String> {
    let wrong = |what: String| section.wrong(key, Wrong::new(what, "put the secret alone into that file"));
    match std::fs::read_to_string(file) {
        Ok(text) if text.trim().is_empty() => wrong(format!("{} is empty", file.display())),
        Ok(text) => return Some(text.trim().to_owned()),
        Err(error) => wrong(format!("{} cannot be read: {error}", file.display())),
    }
    None
}
