//! What is wrong with a configuration, with its line and its remedy.

use std::fmt;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line in the file, from 1; none for what stands in no file.
    pub line: Option<usize>,
    /// The key, with the sections it stands in: `backend.model.price_input`; or an environment variable.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// Every mistake of a configuration; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes {
    /// Where the configuration stands.
    pub source: String,
    /// In the order of their lines.
    pub list: Vec<Mistake>,
}

/// Why one value is refused, before it is known where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) what: String,
    pub(super) remedy: String,
}

impl Wrong {
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        Wrong { what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        write!(f, "{}; {}", self.what, self.remedy)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.list.len();
        let noun = if count == 1 { "mistake" } else { "mistakes" };
        write!(f, "{count} {noun} in {}", self.source)?;
        self.list.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl std::error::Error for Mistakes {}
