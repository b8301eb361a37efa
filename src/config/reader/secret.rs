//! Secrets: named in the file, kept elsewhere.

use std::path::Path;

use stint_backend::remote::Secret;
use stint_storage::DatabaseUrl;

use super::document::SecretsPolicy;
use super::section::Section;

/// Where a secret may be named, and where it must not stand.
#[derive(Debug)]
pub(in crate::config) struct SecretKeys {
    /// The key that would have it as text.
    pub(in crate::config) text: &'static str,
    /// The key that names an environment variable.
    pub(in crate::config) variable: &'static str,
    /// The key that names a file.
    pub(in crate::config) file: &'static str,
    /// Whether verbs that only read what is stored can do without it.
    pub(in crate::config) is_for_servers: bool,
}

/// The upstream's key, from the environment or a file of its own; none where neither is named.
pub(in crate::config) fn api_key(section: &Section<'_>) -> Option<Secret> {
    let places =
        SecretKeys { text: "api_key", variable: "api_key_env", file: "api_key_file", is_for_servers: true };
    read(section, &places).map(Secret::new)
}

/// The address of the ledger's database, which has a password in it; none where neither place is named.
pub(in crate::config) fn database_url(section: &Section<'_>) -> Option<DatabaseUrl> {
    let places = SecretKeys { text: "url", variable: "url_env", file: "url_file", is_for_servers: false };
    let url = DatabaseUrl::new(read(section, &places)?);
    if url.check().is_err() {
        let key = if section.has(places.file) { places.file } else { places.variable };
        let remedy = "put postgres://user:password@host/database there";
        section.reject(key, "what it names is no address of a PostgreSQL database", remedy);
    }
    Some(url)
}

/// A secret from the environment or a file of its own; none where neither is named.
pub(in crate::config) fn read(section: &Section<'_>, places: &SecretKeys) -> Option<String> {
    if section.has(places.text) {
        let remedy = format!(
            "put it into an environment variable or a file and name that: {} or {}",
            places.variable, places.file
        );
        section.reject(places.text, "a secret in the configuration", remedy);
    }
    let variable = section.get::<String>(places.variable);
    let file = section.path(places.file);
    match (variable, file) {
        (Some(_), Some(_)) => {
            let remedy = format!("name one of {} and {}", places.variable, places.file);
            section.reject(places.file, "a second place for the secret", remedy);
            None
        }
        (Some(variable), None) => from_environment(section, places, &variable),
        (None, Some(file)) => from_file(section, places, &file),
        (None, None) => None,
    }
}

fn is_required(section: &Section<'_>, places: &SecretKeys) -> bool {
    !places.is_for_servers || section.document().secrets == SecretsPolicy::Required
}

fn from_environment(section: &Section<'_>, places: &SecretKeys, variable: &str) -> Option<String> {
    let value = (section.document().env)(variable).filter(|value| !value.trim().is_empty());
    if value.is_none() && is_required(section, places) {
        let what = format!("{variable} is not set");
        section.reject(places.variable, what, "export it before starting");
    }
    value.map(|value| value.trim().to_owned())
}

fn from_file(section: &Section<'_>, places: &SecretKeys, file: &Path) -> Option<String> {
    let wrong = |what: String| {
        if is_required(section, places) {
            section.reject(places.file, what, "put the secret alone into that file");
        }
    };
    match section.document().files.read(file) {
        Ok(text) if text.trim().is_empty() => wrong(format!("{} is empty", file.display())),
        Ok(text) => return Some(text.trim().to_owned()),
        Err(error) => wrong(format!("{} cannot be read: {error}", file.display())),
    }
    None
}
