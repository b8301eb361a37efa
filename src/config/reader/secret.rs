//! Secrets: named in the file, kept elsewhere.

use std::io;
use std::path::Path;

use stint_backend::remote::Secret;
use stint_storage::DatabaseUrl;

use super::diagnostic::ValueError;
use super::document::SecretsPolicy;
use super::section::Section;

/// How keys of providers begin.
const KEY_BEGINNINGS: [&str; 5] = ["sk-", "AIza", "xai-", "gsk_", "hf_"];

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
    let Some(value) = (section.document().env)(variable).filter(|value| !value.trim().is_empty()) else {
        if is_required(section, places) {
            section.reject_value(places.variable, not_set(variable));
        }
        return None;
    };
    let secret = one_line(&value);
    warn_quoted(section, places.variable, secret.as_deref());
    if secret.is_none() && is_required(section, places) {
        section.reject(
            places.variable,
            format!("{variable} has more than one line"),
            "export the secret alone",
        );
    }
    secret
}

/// Why a variable has nothing. What stands in place of its name may be the secret itself. Mistakes stand in logs, so it is repeated
/// only where it is a usual name.
pub(in crate::config) fn not_set(variable: &str) -> ValueError {
    if variable.trim().is_empty() {
        return ValueError::new("names no variable", "write the name of a variable that has the secret");
    }
    if KEY_BEGINNINGS.iter().any(|beginning| variable.starts_with(beginning)) {
        let remedy =
            "export it under a name and write that name here; this one stood in a file, so take a new one";
        return ValueError::new("a secret in place of the name of a variable", remedy);
    }
    let bare = variable.trim_start_matches('$').trim_matches(['{', '}']);
    if !is_usual_name(bare) {
        let remedy = "write the name of a variable that has the secret, never the secret";
        return ValueError::new("what it names is not set, and not shown, since it may be a secret", remedy);
    }
    let remedy = if bare == variable {
        "export it before starting".to_owned()
    } else {
        format!("write the name alone: \"{bare}\"")
    };
    ValueError::new(format!("{variable} is not set"), remedy)
}

/// Whether a text is what variables are usually called. Keys of providers nearly always have small letters or other signs.
pub(in crate::config) fn is_usual_name(variable: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    variable.starts_with(|first: char| !first.is_ascii_digit()) && variable.bytes().all(is_usual)
}

/// Files of variables as Docker reads them have no quotation marks: these would be sent with the secret.
fn warn_quoted(section: &Section<'_>, key: &str, secret: Option<&str>) {
    let is_within = |mark: char| {
        secret.is_some_and(|text| text.len() > 1 && text.starts_with(mark) && text.ends_with(mark))
    };
    if is_within('"') || is_within('\'') {
        let remedy = "take them away if they are not part of it: Docker keeps those of its --env-file";
        section.warn(key, "what it names stands in quotation marks, which are taken for part of it", remedy);
    }
}

/// A secret without what editors and shells put around it; nothing if it has a line break or another control character inside, which no
/// header and no address takes.
fn one_line(text: &str) -> Option<String> {
    let secret = text.trim_start_matches('\u{feff}').trim();
    (!secret.contains(char::is_control)).then(|| secret.to_owned())
}

fn from_file(section: &Section<'_>, places: &SecretKeys, file: &Path) -> Option<String> {
    let missing = |what: String, remedy: &str| {
        if is_required(section, places) {
            section.reject(places.file, what, remedy);
        }
    };
    let alone = "put the secret alone into that file";
    match section.document().files.read(file).map(|text| one_line(&text)) {
        Ok(Some(secret)) if secret.is_empty() => missing(format!("{} is empty", file.display()), alone),
        Ok(Some(secret)) => {
            warn_quoted(section, places.file, Some(&secret));
            return Some(secret);
        }
        Ok(None) => missing(format!("{} has more than one line", file.display()), alone),
        Err(error) => {
            let may_not = error.kind() == io::ErrorKind::PermissionDenied;
            let remedy = if may_not { "let the user read it that runs stint" } else { alone };
            missing(format!("{} cannot be read: {error}", file.display()), remedy);
        }
    }
    None
}
