//! What a request asks for, as far as an answer depends on it.

use memchr::memmem;

/// What is looked for in a request, by its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    /// A stream.
    pub(super) stream: bool,
    /// The usage of a stream, in an event of its own.
    pub(super) usage: bool,
    /// An answer to a thought that is there already.
    pub(super) continues: bool,
    /// In Anthropic's Messages.
    pub(super) messages: bool,
}

impl Wanted {
    /// What is told in this body.
    pub(super) fn of(body: &[u8], messages: bool) -> Wanted {
        Wanted {
            stream: is_set(body, b"\"stream\""),
            usage: is_set(body, b"\"include_usage\""),
            continues: is_set(body, b"\"prefix\"") || is_set(body, b"\"continue_final_message\""),
            messages,
        }
    }
}

/// True if this member is true somewhere. Members of that name elsewhere than at the top are not told apart.
fn is_set(body: &[u8], name: &[u8]) -> bool {
    let is_true = |at: usize| {
        let rest = body[at + name.len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"true"))
    };
    memmem::find_iter(body, name).any(is_true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_seen_however_it_is_written() {
        let check =
            |body: &str, expected: bool| assert_eq!(Wanted::of(body.as_bytes(), false).stream, expected);
        check(r#"{"stream":true}"#, true);
        check(r#"{"stream" : true, "model": "m"}"#, true);
        check(r#"{"stream":false}"#, false);
        check(r#"{"messages":[{"content":"stream"}]}"#, false);
        check(r#"{"stream_options":{"include_usage":true}}"#, false);
    }
}
