//! Tools that run at a provider: none of them is offered here, and errors name the one that was asked for.

/// The most bytes of a tool's kind that an error repeats.
const KIND_SHOWN_MAX: usize = 64;

/// Why there is no tool of that kind here; `must` says what may be sent.
pub(super) fn not_offered(must: &str, kind: &str) -> String {
    let kind = &kind[..kind.floor_char_boundary(KIND_SHOWN_MAX)];
    format!("{must}: \"{kind}\" is not offered; no tool that runs at a provider is")
}
