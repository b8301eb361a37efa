//! `ErrorCode`: a code by which callers tell errors apart.

/// A code by which callers tell errors apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// As it stands in the body.
    pub word: &'static str,
    /// The status that it comes with, or mostly; `when` names others.
    pub status: u16,
    /// When it comes.
    pub when: &'static str,
    /// What its caller can do.
    pub remedy: &'static str,
}
