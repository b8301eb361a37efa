//! A table of the document, read key by key.
//!
//! A section counts which keys it was asked for; when it is dropped, the others in it are unknown keys.

use std::cell::RefCell;
use std::ops::{Range, RangeInclusive};
use std::path::PathBuf;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use stint_types::units::nearest;

use super::diagnostic::{ValueError, suggest};
use super::document::Document;
use super::shape::{KeyShape, ShapeRecorder};
use super::value::{Bounded, FromValue};

/// A table of the document, or the absence of one.
pub(in crate::config) struct Section<'d> {
    document: &'d Document<'d>,
    path: String,
    /// The path before the names of its keys, where their shapes are noted: that of every section in its place.
    shape_path: String,
    line: Option<usize>,
    table: Option<&'d DeTable<'d>>,
    known_keys: RefCell<Vec<&'d str>>,
}

/// Stands for the names that the operator chooses.
const ANY_NAME: &str = "*";

/// The shortest and the longest time that any deadline may be.
const DEADLINES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(24 * 3600);

impl<'d> Section<'d> {
    /// The document's top level.
    pub(in crate::config) fn root(document: &'d Document<'d>, table: &'d DeTable<'d>) -> Section<'d> {
        Section {
            document,
            path: String::new(),
            shape_path: String::new(),
            line: None,
            table: Some(table),
            known_keys: RefCell::default(),
        }
    }

    /// Takes every key for known, where it cannot be said which are.
    pub(in crate::config) fn allow_all(&self) {
        self.known_keys
            .borrow_mut()
            .extend(self.table.into_iter().flat_map(DeTable::keys).map(|key| key.get_ref().as_ref()));
    }

    /// Takes these keys for known, even where nothing here reads them.
    pub(in crate::config) fn allow(&self, keys: &[&'static str]) {
        for key in keys {
            self.entry(key);
        }
    }

    /// The document it belongs to.
    pub(in crate::config) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// True if it has the key, whatever its value.
    pub(in crate::config) fn has(&self, key: &'static str) -> bool {
        self.note(key, || KeyShape::Unread);
        // What hangs on a key is asked for too where it is noted what is asked for.
        self.entry(key).is_some() || self.recorder().is_some()
    }

    /// The key's value, where there is a good one.
    pub(in crate::config) fn get<T: FromValue>(&self, key: &'static str) -> Option<T> {
        self.note(key, || KeyShape::Value(T::shape()));
        let value = self.entry(key)?;
        T::from_value(value.get_ref()).map_err(|wrong| self.reject_value(key, wrong)).ok()
    }

    /// The key's value, or what holds without it.
    pub(in crate::config) fn get_or<T: FromValue>(&self, key: &'static str, default: T) -> T {
        self.get(key).unwrap_or(default)
    }

    /// Puts the key's value in place of what held without it.
    pub(in crate::config) fn set<T: FromValue>(&self, key: &'static str, place: &mut T) {
        if let Some(value) = self.get(key) {
            *place = value;
        }
    }

    /// The key's value within a range, where there is one.
    pub(in crate::config) fn within<T: Bounded>(
        &self,
        key: &'static str,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        self.note(key, || KeyShape::Ranged(T::shape(), range.start().shown(), range.end().shown()));
        let value = self.get(key)?;
        if range.contains(&value) {
            return Some(value);
        }
        let what = format!("{} is out of range", value.shown());
        self.reject(key, what, format!("write {} to {}", range.start().shown(), range.end().shown()));
        None
    }

    /// A deadline, or what holds without one.
    pub(in crate::config) fn time(&self, key: &'static str, usual: Duration) -> Duration {
        self.within(key, DEADLINES).unwrap_or(usual)
    }

    /// A value that must be there, with the remedy where it is not.
    pub(in crate::config) fn require<T: FromValue>(&self, key: &'static str, remedy: &str) -> Option<T> {
        self.recorder().iter().for_each(|shapes| shapes.require(&self.shape_path, key));
        if !self.has(key) {
            self.reject(key, "missing", remedy);
        }
        self.get(key)
    }

    /// One of a few words.
    pub(in crate::config) fn word<T: Clone>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.note(key, || KeyShape::Word(owned(words)));
        let word = match self.entry(key)?.get_ref() {
            // TOML has words of its own for on and off, and people write them.
            DeValue::Boolean(written) => {
                let what = format!("{written} is not one of its words");
                self.reject(key, what, format!("write {}", word_list(words)));
                return None;
            }
            _ => self.get::<String>(key)?,
        };
        let meant = words.iter().find(|(known, _)| *known == word);
        if meant.is_none() {
            self.reject_value(key, unknown_word(&word, words));
        }
        meant.map(|(_, value)| value.clone())
    }

    /// Several of a few words, each once.
    pub(in crate::config) fn words<T: Copy + PartialEq>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Vec<T> {
        self.note(key, || KeyShape::Words(owned(words)));
        let mut values = Vec::new();
        for word in self.get_or(key, Vec::<String>::new()) {
            match words.iter().find(|(known, _)| *known == word) {
                Some((_, value)) if values.contains(value) => {
                    self.reject(key, format!("\"{word}\" stands twice"), "write it once");
                }
                Some((_, value)) => values.push(*value),
                None => self.reject_value(key, unknown_word(&word, words)),
            }
        }
        values
    }

    /// A path, relative to the folder of the file.
    pub(in crate::config) fn path(&self, key: &'static str) -> Option<PathBuf> {
        self.get::<PathBuf>(key).map(|path| self.document.folder.join(path))
    }

    /// The section below that name; an absent one has no keys.
    pub(in crate::config) fn section(&self, key: &'static str) -> Section<'d> {
        self.note(key, || KeyShape::Section);
        let table = self.entry(key).and_then(|value| match value.get_ref() {
            DeValue::Table(table) => Some((table, value.span())),
            _ => {
                self.reject(key, "not a section", format!("write [{}]", self.full_key(key)));
                None
            }
        });
        self.child(key, self.shape_path_of(&[key, "."]), table)
    }

    /// The sections of that name, `[[key]]` in the file.
    pub(in crate::config) fn sections(&self, key: &'static str) -> Vec<Section<'d>> {
        self.note(key, || KeyShape::Sections);
        let below = self.shape_path_of(&[key, "[]."]);
        let items = match self.entry(key).map(Spanned::get_ref) {
            // One that is absent, so that its keys are asked for.
            None if self.recorder().is_some() => return vec![self.child(key, below, None)],
            None => return Vec::new(),
            Some(DeValue::Array(items)) => items,
            Some(_) => {
                let remedy = format!("write [[{}]], in double brackets", self.full_key(key));
                self.reject(key, "not a list of sections", remedy);
                return Vec::new();
            }
        };
        let tables = items.iter().filter_map(|item| match item.get_ref() {
            DeValue::Table(table) => Some(self.child(key, below.clone(), Some((table, item.span())))),
            _ => {
                self.reject(key, "not a list of sections", "write each item in braces, { … }");
                None
            }
        });
        tables.collect()
    }

    /// Every section below this one, where their names are the operator's own.
    pub(in crate::config) fn named_sections(&self) -> Vec<(String, Section<'d>)> {
        self.note(ANY_NAME, || KeyShape::Section);
        self.allow_all();
        let below = self.shape_path_of(&[ANY_NAME, "."]);
        if self.recorder().is_some() {
            return vec![(ANY_NAME.to_owned(), self.child(ANY_NAME, below, None))];
        }
        let own = self.table.into_iter().flat_map(DeTable::iter).filter_map(|(key, value)| {
            let DeValue::Table(table) = value.get_ref() else {
                let remedy = format!("write [{}]", self.full_key(key.get_ref()));
                self.reject(key.get_ref(), "not a section", remedy);
                return None;
            };
            let section = self.child(key.get_ref(), below.clone(), Some((table, value.span())));
            Some((key.get_ref().to_string(), section))
        });
        own.collect()
    }

    /// Every entry of a section whose keys are the operator's own.
    pub(in crate::config) fn entries<T: FromValue>(&self) -> Vec<(String, T)> {
        self.note(ANY_NAME, || KeyShape::Value(T::shape()));
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

    /// True if nothing at all stands in it.
    pub(in crate::config) fn is_empty(&self) -> bool {
        self.table.is_none_or(DeTable::is_empty)
    }

    /// The line of a key; that of its section where it is absent.
    pub(in crate::config) fn line_of(&self, key: &str) -> Option<usize> {
        let at = self.table.and_then(|table| table.get_key_value(key));
        at.map(|(key, _)| self.document.line(&key.span())).or(self.line)
    }

    /// Notes what is wrong with a key's value, or with its absence.
    pub(in crate::config) fn reject(&self, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.reject_value(key, ValueError::new(what, remedy));
    }

    /// The same, where a value itself says what is wrong.
    pub(in crate::config) fn reject_value(&self, key: &str, wrong: ValueError) {
        self.document.reject(self.line_of(key), self.full_key(key), wrong);
    }

    /// Notes what is wrong with the section as a whole.
    pub(in crate::config) fn reject_section(&self, what: impl Into<String>, remedy: impl Into<String>) {
        self.document.reject(self.line, self.path.clone(), ValueError::new(what, remedy));
    }

    /// Notes what is valid and hardly meant with a key's value, or with its absence.
    pub(in crate::config) fn warn(&self, key: &str, what: impl Into<String>, remedy: impl Into<String>) {
        self.document.warn(self.line_of(key), &self.full_key(key), ValueError::new(what, remedy));
    }

    /// Whether a list of sections has any, right or wrong.
    pub(in crate::config) fn has_items(&self, key: &'static str) -> bool {
        matches!(self.entry(key).map(Spanned::get_ref), Some(DeValue::Array(items)) if !items.is_empty())
    }

    fn entry(&self, key: &'static str) -> Option<&'d Spanned<DeValue<'d>>> {
        let mut keys = self.known_keys.borrow_mut();
        if !keys.contains(&key) {
            keys.push(key);
        }
        self.table.and_then(|table| table.get(key))
    }

    fn recorder(&self) -> Option<&'d ShapeRecorder> {
        self.document.shapes
    }

    fn note(&self, key: &str, shape: impl FnOnce() -> KeyShape) {
        if let Some(shapes) = self.recorder() {
            shapes.note(&self.shape_path, key, shape());
        }
    }

    /// The path before the keys of a section below; none where no shapes are noted.
    fn shape_path_of(&self, below: &[&str]) -> String {
        if self.recorder().is_none() {
            return String::new();
        }
        format!("{}{}", self.shape_path, below.concat())
    }

    fn child(
        &self,
        key: &str,
        shape_path: String,
        table: Option<(&'d DeTable<'d>, Range<usize>)>,
    ) -> Section<'d> {
        self.recorder().iter().for_each(|shapes| shapes.open(&shape_path));
        let line = table.as_ref().map_or(self.line, |(_, span)| Some(self.document.line(span)));
        let table = table.map(|(table, _)| table);
        Section {
            document: self.document,
            path: self.full_key(key),
            shape_path,
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
        let known_keys = self.known_keys.take();
        let written = self.table.into_iter().flat_map(DeTable::keys).map(|key| key.get_ref().as_ref());
        for key in written.filter(|key| !known_keys.contains(key)) {
            let remedy = match nearest(key, known_keys.iter().copied()) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("take it out; known here: {}", known_keys.join(", ")),
            };
            self.reject(key, "unknown key", remedy);
        }
    }
}

fn owned<T>(words: &[(&str, T)]) -> Vec<String> {
    words.iter().map(|(word, _)| (*word).to_owned()).collect()
}

fn unknown_word<T>(word: &str, words: &[(&str, T)]) -> ValueError {
    let what = format!("\"{word}\" is unknown");
    let known = words.iter().map(|(known, _)| *known);
    ValueError::new(what, suggest(word, known, || format!("write {}", word_list(words))))
}

/// Words as they may be written.
fn word_list<T>(words: &[(&str, T)]) -> String {
    words.iter().map(|(known, _)| format!("\"{known}\"")).collect::<Vec<_>>().join(" or ")
}
