//! `ErrorCode`: a code by which callers tell errors apart.

/// A code by which callers tell errors apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// As it stands in the body.
    pub word: &'static str,
    /// The status that it comes with.
    pub status: u16,
    /// Another that it comes with; `when` says of what.
    pub also: Option<u16>,
    /// When it comes.
    pub when: &'static str,
    /// What its caller can do.
    pub remedy: &'static str,
}
