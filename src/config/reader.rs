//! Walks a TOML document and collects every mistake on the way.
//!
//! A section counts which keys it was asked for; when it is dropped, the others in it are unknown keys.

use std::cell::{OnceCell, RefCell};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostic::{Diagnostic, ValueError};
use super::files::ConfigFiles;
use super::value::{Bounded, FromValue};
use crate::units::nearest;

/// The file, the environment, and what is wrong with them.
pub(super) struct Document<'d> {
    /// The text of the file; empty without one.
    pub(super) text: &'d str,
    /// What relative paths start from.
    pub(super) folder: &'d Path,
    /// The environment.
    pub(super) env: &'d dyn Fn(&str) -> Option<String>,
    /// Whether secrets must be there that are needed to serve and to call upstreams.
    pub(super) secrets: SecretsPolicy,
    /// Every file that it names and that was read.
    pub(super) files: &'d ConfigFiles,
    /// Found so far.
    pub(super) errors: RefCell<Vec<Diagnostic>>,
    /// What is no mistake, and hardly meant.
    pub(super) warnings: RefCell<Vec<Diagnostic>>,
    /// Where the lines end, once one was asked for: every section asks.
    pub(super) line_ends: OnceCell<Vec<usize>>,
}

/// Where a document is read.
#[derive(Clone, Copy)]
pub(super) struct ReadContext<'d> {
    /// What relative paths start from.
    pub(super) folder: &'d Path,
    /// The environment.
    pub(super) env: &'d dyn Fn(&str) -> Option<String>,
    /// Whether secrets must be there.
    pub(super) secrets: SecretsPolicy,
    /// Where is noted what is read.
    pub(super) files: &'d ConfigFiles,
}

/// Whether secrets must be there that the file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretsPolicy {
    /// A server cannot do without them.
    Required,
    /// Whoever only looks at what is kept does not need them.
    Optional,
}

/// A table of the document, or the absence of one.
pub(super) struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    line: Option<usize>,
    table: Option<&'d DeTable<'d>>,
    known_keys: RefCell<Vec<&'d str>>,
}

impl<'d> Document<'d> {
    /// A document of which nothing was read yet.
    pub(super) fn new(text: &'d str, place: ReadContext<'d>) -> Document<'d> {
        let ReadContext { folder, env, secrets, files } = place;
        Document {
            text,
            folder,
            env,
            secrets,
            files,
            errors: RefCell::default(),
            warnings: RefCell::default(),
            line_ends: OnceCell::new(),
        }
    }

    /// The document's top level.
    pub(super) fn root(&'d self, table: &'d DeTable<'d>) -> Section<'d> {
        Section {
            document: self,
            path: String::new(),
            line: None,
            table: Some(table),
            known_keys: RefCell::default(),
        }
    }

    /// What an environment variable says, made into a value.
    pub(super) fn env_value<T>(&self, name: &str, read: impl Fn(&str) -> Result<T, ValueError>) -> Option<T> {
        let text = (self.env)(name)?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.reject(None, name.to_owned(), wrong);
                None
            }
        }
    }

    /// The line, from 1, on which a stretch of the text begins.
    pub(super) fn line(&self, span: &Range<usize>) -> usize {
        let ends = self.line_ends.get_or_init(|| self.text.match_indices('\n').map(|(at, _)| at).collect());
        1 + ends.partition_point(|end| *end < span.start)
    }

    /// Notes what is hardly meant.
    pub(super) fn warn(&self, line: Option<usize>, key: &str, wrong: ValueError) {
        let ValueError { what, remedy } = wrong;
        self.warnings.borrow_mut().push(Diagnostic { line, key: key.to_owned(), what, remedy });
    }

    /// Notes a mistake.
    pub(super) fn reject(&self, line: Option<usize>, key: String, wrong: ValueError) {
        self.errors.borrow_mut().push(Diagnostic { line, key, what: wrong.what, remedy: wrong.remedy });
    }
}

impl<'d> Section<'d> {
    /// Takes every key for known, where it cannot be said which are.
    pub(super) fn allow_all(&self) {
        self.known_keys
            .borrow_mut()
            .extend(self.table.into_iter().flat_map(DeTable::keys).map(|key| key.get_ref().as_ref()));
    }

    /// Takes these keys for known, whoever reads them.
    pub(super) fn allow(&self, keys: &[&'static str]) {
        for key in keys {
            self.entry(key);
        }
    }

    /// The document it belongs to.
    pub(super) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// True where it has the key, whatever its value.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.entry(key).is_some()
    }

    /// The key's value, where there is a good one.
    pub(super) fn get<T: FromValue>(&self, key: &'static str) -> Option<T> {
        let value = self.entry(key)?;
        T::from_value(value.get_ref()).map_err(|wrong| self.reject(key, wrong)).ok()
    }

    /// The key's value, or what holds without it.
    pub(super) fn get_or<T: FromValue>(&self, key: &'static str, default: T) -> T {
        self.get(key).unwrap_or(default)
    }

    /// Puts the key's value in place of what held without it.
    pub(super) fn set<T: FromValue>(&self, key: &'static str, place: &mut T) {
        if let Some(value) = self.get(key) {
            *place = value;
        }
    }

    /// The key's value within a range, where there is one.
    pub(super) fn within<T: Bounded>(&self, key: &'static str, range: RangeInclusive<T>) -> Option<T> {
        let value = self.get(key)?;
        if range.contains(&value) {
            return Some(value);
        }
        let what = format!("{} is out of range", value.shown());
        self.reject(
            key,
            ValueError::new(what, format!("write {} to {}", range.start().shown(), range.end().shown())),
        );
        None
    }

    /// A value that must be there, with the remedy where it is not.
    pub(super) fn require<T: FromValue>(&self, key: &'static str, remedy: &str) -> Option<T> {
        if !self.has(key) {
            self.reject(key, ValueError::new("missing", remedy));
        }
        self.get(key)
    }

    /// One of a few words.
    pub(super) fn word<T: Clone>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let word = match self.entry(key)?.get_ref() {
            // TOML has words of its own for on and off, and people write them.
            DeValue::Boolean(written) => {
                let what = format!("{written} is not one of its words");
                self.reject(key, ValueError::new(what, format!("write {}", word_list(words))));
                return None;
            }
            _ => self.get::<String>(key)?,
        };
        let meant = words.iter().find(|(known, _)| *known == word);
        if meant.is_none() {
            self.reject(key, unknown_word(&word, words));
        }
        meant.map(|(_, value)| value.clone())
    }

    /// Several of a few words, each once.
    pub(super) fn words<T: Copy + PartialEq>(&self, key: &'static str, words: &[(&str, T)]) -> Vec<T> {
        let mut values = Vec::new();
        for word in self.get_or(key, Vec::<String>::new()) {
            match words.iter().find(|(known, _)| *known == word) {
                Some((_, value)) if values.contains(value) => {
                    self.reject(key, ValueError::new(format!("\"{word}\" stands twice"), "write it once"));
                }
                Some((_, value)) => values.push(*value),
                None => self.reject(key, unknown_word(&word, words)),
            }
        }
        values
    }

    /// A path, relative to the folder of the file.
    pub(super) fn path(&self, key: &'static str) -> Option<PathBuf> {
        self.get::<PathBuf>(key).map(|path| self.document.folder.join(path))
    }

    /// The section below that name; an absent one has no keys.
    pub(super) fn section(&self, key: &'static str) -> Section<'d> {
        let table = self.entry(key).and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some((table, value.span())),
            _ => {
                self.reject(key, ValueError::new("not a section", format!("write [{}]", self.full_key(key))));
                None
            }
        });
        self.child(key, table)
    }

    /// The sections of that name, `[[key]]` in the file.
    pub(super) fn sections(&self, key: &'static str) -> Vec<Section<'d>> {
        let items = match self.entry(key).map(Spanned::get_ref) {
            None => return Vec::new(),
            Some(DeValue::Array(items)) => items,
            Some(_) => {
                let remedy = format!("write [[{}]], in double brackets", self.full_key(key));
                self.reject(key, ValueError::new("not a list of sections", remedy));
                return Vec::new();
            }
        };
        let tables = items.iter().filter_map(|item| match item.get_ref() {
            DeValue::Table(table) => Some(self.child(key, Some((table, item.span())))),
            _ => {
                self.reject(
                    key,
                    ValueError::new("not a list of sections", "write each item in braces, { … }"),
                );
                None
            }
        });
        tables.collect()
    }

    /// Every section below this one, where their names are the operator's own.
    pub(super) fn named_sections(&self) -> Vec<(String, Section<'d>)> {
        self.allow_all();
        let own = self.table.into_iter().flat_map(DeTable::iter).filter_map(|(key, value)| {
            let DeValue::Table(table) = value.get_ref() else {
                let remedy = format!("write [{}]", self.full_key(key.get_ref()));
                self.reject(key.get_ref(), ValueError::new("not a section", remedy));
                return None;
            };
            Some((key.get_ref().to_string(), self.child(key.get_ref(), Some((table, value.span())))))
        });
        own.collect()
    }

    /// Every entry of a section whose keys are the operator's own.
    pub(super) fn entries<T: FromValue>(&self) -> Vec<(String, T)> {
        self.allow_all();
        let own = self.table.into_iter().flat_map(DeTable::iter).filter_map(|(key, value)| {
            let read = T::from_value(value.get_ref());
            let line = Some(self.document.line(&key.span()));
            let read =
                read.map_err(|wrong| self.document.reject(line, self.full_key(key.get_ref()), wrong)).ok();
            Some((key.get_ref().to_string(), read?))
        });
        own.collect()
    }

    /// True where nothing at all stands in it.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_none_or(DeTable::is_empty)
    }

    /// The line of a key; that of its section where it is absent.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        let at = self.table.and_then(|table| table.get_key_value(key));
        at.map(|(key, _)| self.document.line(&key.span())).or(self.line)
    }

    /// Notes what is wrong with a key's value, or with its absence.
    pub(super) fn reject(&self, key: &str, wrong: ValueError) {
        self.document.reject(self.line_of(key), self.full_key(key), wrong);
    }

    /// Notes what is wrong with the section as a whole.
    pub(super) fn reject_section(&self, wrong: ValueError) {
        self.document.reject(self.line, self.path.clone(), wrong);
    }

    /// Notes what is hardly meant with a key's value, or with its absence.
    pub(super) fn warn(&self, key: &str, wrong: ValueError) {
        let ValueError { what, remedy } = wrong;
        let doubt = Diagnostic { line: self.line_of(key), key: self.full_key(key), what, remedy };
        self.document.warnings.borrow_mut().push(doubt);
    }

    /// Whether a list of sections has any, right or wrong.
    pub(super) fn has_items(&self, key: &'static str) -> bool {
        matches!(self.entry(key).map(Spanned::get_ref), Some(DeValue::Array(items)) if !items.is_empty())
    }

    fn entry(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'d>>> {
        let mut asked = self.known_keys.borrow_mut();
        if !asked.contains(&key) {
            asked.push(key);
        }
        self.table.and_then(|table| table.get(key))
    }

    fn child(&self, key: &str, table: Option<(&'d DeTable<'d>, Range<usize>)>) -> Section<'d> {
        let line = table.as_ref().map_or(self.line, |(_, span)| Some(self.document.line(span)));
        let table = table.map(|(table, _)| table);
        Section {
            document: self.document,
            path: self.full_key(key),
            line,
            table,
            known_keys: RefCell::default(),
        }
    }

    fn full_key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        let asked = self.known_keys.take();
        let unasked = self.table.into_iter().flat_map(DeTable::keys).map(|key| key.get_ref().as_ref());
        for key in unasked.filter(|key| !asked.contains(key)) {
            let remedy = match nearest(key, asked.iter().copied()) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("take it out; known here: {}", asked.join(", ")),
            };
            self.reject(key, ValueError::new("unknown key", remedy));
        }
    }
}

fn unknown_word<T>(word: &str, words: &[(&str, T)]) -> ValueError {
    let what = format!("\"{word}\" is unknown");
    match nearest(word, words.iter().map(|(known, _)| *known)) {
        Some(known) => ValueError::new(what, format!("did you mean \"{known}\"?")),
        None => ValueError::new(what, format!("write {}", word_list(words))),
    }
}

/// Words as they may be written.
fn word_list<T>(words: &[(&str, T)]) -> String {
    words.iter().map(|(known, _)| format!("\"{known}\"")).collect::<Vec<_>>().join(" or ")
}
