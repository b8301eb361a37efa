//! What is wrong with a configuration, with its line and its remedy.

use std::fmt;

use stint_types::units::nearest;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
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
pub struct ConfigErrors {
    /// Where the configuration stands.
    pub source: String,
    /// In the order of their lines.
    pub errors: Vec<Diagnostic>,
}

/// Why one value is refused, before it is known where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::config) struct ValueError {
    pub(in crate::config) what: String,
    pub(in crate::config) remedy: String,
}

impl ValueError {
    pub(in crate::config) fn new(what: impl Into<String>, remedy: impl Into<String>) -> ValueError {
        ValueError { what: what.into(), remedy: remedy.into() }
    }
}

/// The remedy for an unknown name: the nearest one that is known, or else something other.
pub(in crate::config) fn suggest<'k>(
    name: &str,
    known: impl Iterator<Item = &'k str>,
    otherwise: impl FnOnce() -> String,
) -> String {
    nearest(name, known).map_or_else(otherwise, |near| format!("did you mean \"{near}\"?"))
}

impl fmt::Display for Diagnostic {
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

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.errors.len();
        let noun = if count == 1 { "mistake" } else { "mistakes" };
        write!(f, "{count} {noun} in {}", self.source)?;
        self.errors.iter().try_for_each(|mistake| write!(f, "\n  {mistake}"))
    }
}

impl std::error::Error for ConfigErrors {}
