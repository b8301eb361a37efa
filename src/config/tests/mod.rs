//! What an operator sees of the configuration.

mod abilities;
mod accounts;
mod agents;
mod catalogue;
mod complete_file;
mod environment;
mod issuers;
mod keys;
mod kinds;
mod known_models;
mod learn;
mod mistakes;
mod model_facts;
mod models;
mod prices;
mod recipes;
mod resilience;
mod routes;
mod server;
mod traces;
mod unthought;

use std::io::Write;
use std::path::Path;

use stint_storage as storage;

use super::*;

const COMPLETE: &str = include_str!("../../../config/stint.toml");

/// A model file that there is.
const REASONER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");

const MINIMAL: &str = include_str!("../../../config/minimal.toml");

fn env(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/alice".to_owned()),
        "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" | "GEMINI_API_KEY" => Some("sk-secret".to_owned()),
        "STINT_GUARDRAIL_SECRET" => Some("sk-secret-of-the-guardrail".to_owned()),
        "STINT_ADMIN_TOKEN" => Some("sk-secret-of-the-admin".to_owned()),
        "COLLECTOR_HEADERS" => Some("authorization=Bearer%20sk-secret".to_owned()),
        "EMPTY" => Some("  ".to_owned()),
        "SHORT" => Some("guess-me".to_owned()),
        _ => None,
    }
}

fn kept_in(settings: &Settings) -> &Path {
    match &settings.storage {
        storage::Settings::Sqlite(settings) => &settings.path,
        storage::Settings::Memory => Path::new(":memory:"),
        storage::Settings::Postgres(_) => Path::new("a server"),
    }
}

fn load_text(text: &str) -> Result<Settings, ConfigErrors> {
    load_with(text, &env)
}

fn load_with(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, ConfigErrors> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    load(Some(file.path()), env)
}

/// The mistakes of a text, each as the operator reads it.
fn check(text: &str, expected: &[&str]) {
    let mistakes = load_text(text).map(drop).unwrap_err();
    let list: Vec<String> = mistakes.errors.iter().map(ToString::to_string).collect();
    assert_eq!(list, expected, "{text}");
}

/// A folder with a certificate, its key and an authority.
fn certificates() -> &'static Path {
    static FOLDER: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = tempfile::TempDir::new().unwrap();
        let made = rcgen::generate_simple_self_signed(["stint.internal".to_owned()]).unwrap();
        for (name, text) in [
            ("server.crt", made.cert.pem()),
            ("server.key", made.signing_key.serialize_pem()),
            ("callers.crt", made.cert.pem()),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    });
    folder.path()
}

/// The examples of the complete file, with their `#` taken away.
fn with_examples() -> String {
    let taken = COMPLETE.lines().map(|line| match line.strip_prefix('#') {
        Some(example)
            if example.starts_with(|first: char| first.is_ascii_lowercase() || "[] {".contains(first))
                && !example.starts_with(" ") =>
        {
            example
        }
        Some(example) if example.starts_with("  {") => example,
        _ => line,
    });
    taken
        .collect::<Vec<_>>()
        .join("\n")
        .replace("models/qwen3-0.6b-q8_0.gguf", REASONER)
        .replace("\"tls/", &format!("\"{}/", certificates().display()))
}

fn hash(key: &str) -> String {
    stint_types::tenant::hash_key(key).to_string()
}
