//! Reads what an upstream sends as JSON.

use serde::Deserialize;

/// What bytes say. Nearly all are text, which is checked once for all strings in it.
pub(super) fn from_json<'d, T: Deserialize<'d>>(bytes: &'d [u8]) -> Result<T, serde_json::Error> {
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(bytes),
    }
}
