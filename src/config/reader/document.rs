//! A TOML document that is being read: its text, where it is read, and every mistake that was found in it so far.
//!
//! Everything that reads settings holds a [`Section`](super::Section) of one, and notes mistakes in it through that.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::path::Path;

use super::diagnostic::{Diagnostic, ValueError};
use super::files::ConfigFiles;
use super::shape::ShapeRecorder;

/// The file, the environment, and what is wrong with them.
pub(in crate::config) struct Document<'d> {
    /// The text of the file; empty without one.
    pub(in crate::config) text: &'d str,
    /// What relative paths start from.
    pub(in crate::config) folder: &'d Path,
    /// The environment.
    pub(in crate::config) env: &'d dyn Fn(&str) -> Option<String>,
    /// Whether secrets must be there that are needed to serve and to call upstreams.
    pub(in crate::config) secrets: SecretsPolicy,
    /// Every file that it names and that was read.
    pub(in crate::config) files: &'d ConfigFiles,
    /// Found so far.
    pub(in crate::config) errors: RefCell<Vec<Diagnostic>>,
    /// What is no mistake, and hardly meant.
    pub(in crate::config) warnings: RefCell<Vec<Diagnostic>>,
    /// Where the lines end, once one was asked for: every section asks.
    pub(in crate::config) line_ends: OnceCell<Vec<usize>>,
    /// Where is noted what its keys may be, if somebody wants to know.
    pub(in crate::config) shapes: Option<&'d ShapeRecorder>,
}

/// Where a document is read.
#[derive(Clone, Copy)]
pub(in crate::config) struct ReadContext<'d> {
    /// What relative paths start from.
    pub(in crate::config) folder: &'d Path,
    /// The environment.
    pub(in crate::config) env: &'d dyn Fn(&str) -> Option<String>,
    /// Whether secrets must be there.
    pub(in crate::config) secrets: SecretsPolicy,
    /// Where is noted what is read.
    pub(in crate::config) files: &'d ConfigFiles,
}

/// Whether secrets must be there that the file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum SecretsPolicy {
    /// A server cannot do without them.
    Required,
    /// Verbs that only read what is stored do not need them.
    Optional,
}

impl<'d> Document<'d> {
    /// A document that nothing was read from yet.
    pub(in crate::config) fn new(text: &'d str, place: ReadContext<'d>) -> Document<'d> {
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
            shapes: None,
        }
    }

    /// The same, and what its keys may be is noted. It has every key that is asked after.
    pub(in crate::config) fn noting(
        text: &'d str,
        place: ReadContext<'d>,
        shapes: &'d ShapeRecorder,
    ) -> Document<'d> {
        Document { shapes: Some(shapes), ..Document::new(text, place) }
    }

    /// What an environment variable says, made into a value.
    pub(in crate::config) fn env_value<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> Result<T, ValueError>,
    ) -> Option<T> {
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
    pub(in crate::config) fn line(&self, span: &Range<usize>) -> usize {
        let ends = self.line_ends.get_or_init(|| self.text.match_indices('\n').map(|(at, _)| at).collect());
        1 + ends.partition_point(|end| *end < span.start)
    }

    /// Notes what is hardly meant.
    pub(in crate::config) fn warn(&self, line: Option<usize>, key: &str, wrong: ValueError) {
        let ValueError { what, remedy } = wrong;
        self.warnings.borrow_mut().push(Diagnostic { line, key: key.to_owned(), what, remedy });
    }

    /// Notes a mistake.
    pub(in crate::config) fn reject(&self, line: Option<usize>, key: String, wrong: ValueError) {
        self.errors.borrow_mut().push(Diagnostic { line, key, what: wrong.what, remedy: wrong.remedy });
    }
}
