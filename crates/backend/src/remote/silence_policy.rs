//! How long an upstream may be silent before the first token of its answer.

/// What an upstream does until the first token of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilencePolicy {
    /// It sends tokens as they are made, thoughts too: the usual times hold.
    Streams,
    /// It thinks unseen, in a stream that it has begun: only the time for the whole holds until the first token.
    ThinksInStream,
    /// It thinks unseen, and sends nothing before, not even the head of its answer. Some do (Azure's chat completions),
    /// and nothing tells which: a head that does not come is no sign of illness there.
    ThinksBeforeHeaders,
}
