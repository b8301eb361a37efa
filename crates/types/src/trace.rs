//! A place in a distributed trace, by W3C's Trace Context: what a caller's `traceparent` says, and what upstreams are told.

use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of `tracestate` that are passed on; the standard asks for no less.
const STATE_MAX: usize = 512;

/// What a caller said of the trace that its request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: u128,
    /// The span in which it was sent.
    pub span: u64,
    /// Whether its caller records it.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Reads a `traceparent`; nothing if it is malformed.
    pub fn parse(text: &str) -> Option<TraceParent> {
        let mut parts = text.trim().split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Later versions may go on behind the flags.
        let is_known = hex(version, 2)? != 0xff && (version != "00" || parts.next().is_none());
        let (trace, span, flags) = (hex(trace, 32)?, hex(span, 16)?, hex(flags, 2)?);
        let span = u64::try_from(span).ok()?;
        let is_valid = is_known && trace != 0 && span != 0;
        is_valid.then_some(TraceParent { trace, span, is_sampled: flags & 1 == 1 })
    }
}

/// A number of so many lower-case hexadecimal digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    let is_whole = text.len() == digits && text.as_bytes().iter().all(is_digit);
    is_whole.then(|| u128::from_str_radix(text, 16).ok())?
}

/// The trace of a request while it runs. What is sent upstream says in which span.
#[derive(Debug)]
pub struct TraceLink {
    trace: u128,
    is_sampled: bool,
    state: Option<Box<str>>,
    /// The span that calls belong to by now.
    span: AtomicU64,
}

impl TraceLink {
    /// A trace at its first span here, with its caller's `tracestate`.
    pub fn new(trace: u128, span: u64, is_sampled: bool, state: Option<&str>) -> TraceLink {
        let state = state.filter(|state| !state.is_empty() && state.len() <= STATE_MAX).map(Into::into);
        TraceLink { trace, is_sampled, state, span: AtomicU64::new(span) }
    }

    /// The trace.
    pub fn trace(&self) -> u128 {
        self.trace
    }

    /// Calls belong to this span from now on.
    pub fn enter(&self, span: u64) {
        self.span.store(span, Ordering::Relaxed);
    }

    /// What an upstream is sent as `traceparent`.
    pub fn parent(&self) -> String {
        let span = self.span.load(Ordering::Relaxed);
        format!("00-{:032x}-{span:016x}-{:02x}", self.trace, u8::from(self.is_sampled))
    }

    /// What it is sent as `tracestate`.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl PartialEq for TraceLink {
    fn eq(&self, other: &TraceLink) -> bool {
        self.trace == other.trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

    fn check(text: &str, sampled: Option<bool>) {
        assert_eq!(TraceParent::parse(text).map(|parent| parent.is_sampled), sampled, "{text}");
    }

    #[test]
    fn a_parent_is_read_as_the_standard_says() {
        check(&format!("00-{TRACE}-b7ad6b7169203331-01"), Some(true));
        check(&format!("00-{TRACE}-b7ad6b7169203331-00"), Some(false));
        check(&format!("cc-{TRACE}-b7ad6b7169203331-01-what-comes-later"), Some(true));
        for wrong in [
            String::new(),
            "00".to_owned(),
            format!("ff-{TRACE}-b7ad6b7169203331-01"),
            format!("00-{TRACE}-b7ad6b7169203331-01-more"),
            format!("00-{TRACE}-b7ad6b716920333-01"),
            format!("00-{}-b7ad6b7169203331-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-0000000000000000-01"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01".to_owned(),
            format!("00-{TRACE}-+7ad6b7169203331-01"),
        ] {
            check(&wrong, None);
        }
    }

    #[test]
    fn an_upstream_is_told_the_span_that_calls_it() {
        let parent = TraceParent::parse(&format!("00-{TRACE}-b7ad6b7169203331-01")).unwrap();
        let link = TraceLink::new(parent.trace, 1, parent.is_sampled, Some("a=b"));
        link.enter(0xabc);
        assert_eq!(link.parent(), format!("00-{TRACE}-0000000000000abc-01"));
        assert_eq!(link.state(), Some("a=b"));
        assert_eq!(TraceLink::new(1, 1, false, Some(&"x".repeat(513))).state(), None);
    }
}
