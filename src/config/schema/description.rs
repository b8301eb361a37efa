//! The settings in words.

use crate::config::reader::{KeyShape, ValueShape};

use super::comments::{Comment, Comments};
use super::record::Recorded;

/// A setting, or a section of them.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingDescription {
    /// The section that it stands in, as it is written: `server`, or `[backend.model]` where there may be several.
    pub section: String,
    /// Its name; none of what is said of a section.
    pub name: Option<String>,
    /// What may be written.
    pub kind: String,
    /// What holds without it.
    pub default: Option<DefaultDescription>,
    /// What it is for.
    pub help: String,
    /// The kinds of backends that have it, where not all do.
    pub kinds: Vec<&'static str>,
}

/// What holds without a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultDescription {
    /// A value, as it is written.
    Value(String),
    /// What it follows from, or that the setting is required.
    Words(String),
}

/// All settings and sections, each after what it stands in.
pub(super) fn descriptions(recorded: &Recorded, comments: &Comments) -> Vec<SettingDescription> {
    let mut paths: Vec<&String> = recorded.all.keys().collect();
    // Those without a line of their own come after the others of their section.
    let place = |path: &str| {
        let own = |path: &str| comments.of(path).place.unwrap_or(usize::MAX);
        let sections = path.match_indices('.').map(|(dot, _)| own(path[..dot].trim_end_matches("[]")));
        sections.chain([own(path)]).collect::<Vec<_>>()
    };
    paths.sort_by_cached_key(|path| (place(path), (*path).clone()));
    let described = paths.into_iter().map(|path| {
        let (shape, _) = &recorded.all[path];
        let comment = comments.of(path);
        let has_keys = matches!(shape, KeyShape::Section | KeyShape::Sections);
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        let written = |path: &str| {
            let bare = path.replace("[]", "").replace('*', "NAME");
            if path.ends_with("[]") { format!("[{bare}]") } else { bare }
        };
        let is_list = if *shape == KeyShape::Sections { "[]" } else { "" };
        SettingDescription {
            section: if has_keys { written(&format!("{path}{is_list}")) } else { written(section) },
            name: (!has_keys).then(|| if name == "*" { "NAME".to_owned() } else { name.to_owned() }),
            kind: kind(shape),
            default: default(&comment),
            help: comment.help,
            kinds: kinds_with(path, recorded),
        }
    });
    described.collect()
}

fn default(comment: &Comment) -> Option<DefaultDescription> {
    let value = || comment.default.as_ref().map(|value| DefaultDescription::Value(in_one_line(value)));
    comment.default_words.clone().map(DefaultDescription::Words).or_else(value)
}

/// As it may be written in one line of the file.
fn in_one_line(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

fn kinds_with(path: &str, recorded: &Recorded) -> Vec<&'static str> {
    let having = recorded.by_kind.iter().filter(|(_, keys)| keys.contains_key(path));
    let having: Vec<&str> = having.map(|(kind, _)| *kind).collect();
    if having.len() == recorded.by_kind.len() { Vec::new() } else { having }
}

fn kind(shape: &KeyShape) -> String {
    match shape {
        KeyShape::Unread => String::new(),
        KeyShape::Value(shape) => value_kind(shape),
        KeyShape::Ranged(shape, least, most) => format!("{}, {least} to {most}", value_kind(shape)),
        KeyShape::Word(words) => words_kind(words),
        KeyShape::Words(words) => format!("list of {}", words_kind(words)),
        KeyShape::Section => "section".to_owned(),
        KeyShape::Sections => "sections".to_owned(),
    }
}

fn words_kind(words: &[String]) -> String {
    words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ")
}

fn value_kind(shape: &ValueShape) -> String {
    match shape {
        ValueShape::Text | ValueShape::AnyText => "text".to_owned(),
        ValueShape::Flag => "true or false".to_owned(),
        ValueShape::Number => "number".to_owned(),
        ValueShape::Integer => "whole number".to_owned(),
        ValueShape::Size => "size".to_owned(),
        ValueShape::Time => "time".to_owned(),
        ValueShape::Money => "dollars".to_owned(),
        ValueShape::Moment => "moment".to_owned(),
        ValueShape::Network => "network".to_owned(),
        ValueShape::Address => "address and port".to_owned(),
        ValueShape::Path => "path".to_owned(),
        ValueShape::List(items) => format!("list of {}", value_kind(items)),
        ValueShape::Either(one, other) => format!("{}, or {}", value_kind(one), value_kind(other)),
    }
}
