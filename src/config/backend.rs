//! `[[backend]]`: what serves the models.

use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;

use crate::backend::remote;

use super::mistake::Wrong;
use super::model::Declared;
use super::reader::Section;
use super::{model, secret};

/// Something that serves models, and which.
#[derive(Debug, Clone)]
pub struct Backend {
    /// Its name in metrics and the log.
    pub name: Arc<str>,
    /// What it is.
    pub source: Source,
    /// The models it serves, one at least.
    pub models: Vec<Served>,
}

/// Where a backend's answers come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// The model that ships with the binary, in the local engine.
    Embedded,
    /// A GGUF file, in the local engine.
    File(PathBuf),
    /// An upstream that speaks OpenAI's chat completions.
    OpenAi(remote::Settings, TokenLimit),
    /// A llama.cpp server, over its own `/completion`.
    LlamaCpp(remote::Settings),
}

/// What an upstream calls the limit of everything that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenLimit {
    /// `max_completion_tokens`, as OpenAI has it now.
    MaxCompletionTokens,
    /// `max_tokens`, as it was and as most others have it.
    MaxTokens,
}

/// One model of a backend: the catalog has the rest under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// Its name here.
    pub name: Arc<str>,
    /// Its name there.
    pub upstream: String,
    /// How its thoughts are marked.
    pub marks: Marks,
}

/// How a model marks its thoughts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// The tag that opens a thought.
    pub start_tag: String,
    /// The tag that closes it.
    pub end_tag: String,
    /// True where the prompt's template has opened the thought already, so that the text begins inside it.
    pub starts_in_thinking: bool,
}

/// The kinds of backends, as they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Local,
    OpenAi,
    LlamaCpp,
}

const KINDS: [(&str, Kind); 3] =
    [("openai", Kind::OpenAi), ("llamacpp", Kind::LlamaCpp), ("local", Kind::Local)];

/// All backends of the file, with what they declare of their models.
pub(super) fn backends(root: &Section<'_>) -> Vec<(Backend, Vec<Declared>)> {
    let mut backends: Vec<(Backend, Vec<Declared>)> = Vec::new();
    for section in root.sections("backend") {
        let Some((backend, models)) = backend(&section) else { continue };
        if backends.iter().any(|(other, _)| other.name == backend.name) {
            let what = format!("a second backend \"{}\"", backend.name);
            section.wrong("name", Wrong::new(what, "give each a name of its own"));
        }
        backends.push((backend, models));
    }
    backends
}

fn backend(section: &Section<'_>) -> Option<(Backend, Vec<Declared>)> {
    let kind = if section.has("kind") { section.word("kind", &KINDS) } else { Some(Kind::OpenAi) };
    let name = section.get::<String>("name");
    // Without a kind it is not known which keys are right, so none of them is called wrong.
    let Some(kind) = kind else {
        section.ignore();
        return None;
    };
    let word = KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(word, _)| word);
    let name: Arc<str> = name.as_deref().unwrap_or(word).into();
    let source = source(section, kind);
    let models = model::declared(section, kind, &name);
    let served = models.iter().map(|declared| declared.served.clone()).collect();
    Some((Backend { name, source: source?, models: served }, models))
}

fn source(section: &Section<'_>, kind: Kind) -> Option<Source> {
    match kind {
        Kind::Local => {
            section.need::<PathBuf>("file", "name the model's GGUF file")?;
            section.path("file").map(Source::File)
        }
        Kind::LlamaCpp => upstream(section).map(Source::LlamaCpp),
        Kind::OpenAi => {
            let words = [
                ("max_completion_tokens", TokenLimit::MaxCompletionTokens),
                ("max_tokens", TokenLimit::MaxTokens),
            ];
            let limit = section.word("token_limit", &words).unwrap_or(TokenLimit::MaxCompletionTokens);
            upstream(section).map(|settings| Source::OpenAi(settings, limit))
        }
    }
}

fn upstream(section: &Section<'_>) -> Option<remote::Settings> {
    let base_url =
        section.need::<String>("base_url", "write where its API begins, like \"https://api.example.com/v1\"");
    let usual = remote::Settings::default();
    let wait = |key, usual| super::server::time(section, key, usual);
    let settings = remote::Settings {
        base_url: base_url.clone().unwrap_or_default(),
        api_key: secret::api_key(section),
        proxy: section.get("proxy"),
        connect: wait("connect_timeout", usual.connect),
        first_byte: wait("first_byte_timeout", usual.first_byte),
        idle: wait("idle_timeout", usual.idle),
        total: wait("total_timeout", usual.total),
        ..usual
    };
    check_url(section, "base_url", base_url.as_deref());
    check_url(section, "proxy", settings.proxy.as_deref());
    base_url.map(|_| settings)
}

fn check_url(section: &Section<'_>, key: &str, url: Option<&str>) {
    let remedy = "write it whole, like \"https://api.example.com/v1\"";
    let what = match url.map(Url::parse) {
        None => return,
        Some(Err(error)) => format!("not a URL: {error}"),
        Some(Ok(url)) if !matches!(url.scheme(), "http" | "https") => "neither http nor https".to_owned(),
        Some(Ok(url)) if !url.username().is_empty() || url.password().is_some() => {
            "has a password in it".to_owned()
        }
        Some(Ok(url)) if url.query().is_some() || url.fragment().is_some() => {
            "has more than a path".to_owned()
        }
        Some(Ok(_)) => return,
    };
    section.wrong(key, Wrong::new(what, remedy));
}
