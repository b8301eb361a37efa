//! Writes values as JSON: large ones beside the runtime, whose threads have others to serve.

use serde::Serialize;
use serde_json::Value;

/// The largest value that is written where it is wanted, by [`text_bytes`]: that takes less than a millisecond.
const AT_ONCE_MAX: usize = 256 << 10;

/// A value as JSON, with about so much text in it, by [`text_bytes`]. A large one is written and dropped beside the runtime.
///
/// # Errors
/// When it cannot be written.
pub async fn write_json<T>(value: T, about: usize) -> serde_json::Result<String>
where
    T: Serialize + Send + 'static,
{
    if about <= AT_ONCE_MAX {
        return serde_json::to_string(&value);
    }
    let writing = tokio::task::spawn_blocking(move || serde_json::to_string(&value));
    writing.await.unwrap_or_else(|error| Err(serde::ser::Error::custom(error)))
}

/// How much text is in a value, in bytes: as JSON it takes at least as many. What is no text counts one.
pub fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => members.iter().map(|(name, member)| name.len() + text_bytes(member)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};
    use std::thread::{self, ThreadId};

    use serde::Serializer;
    use serde_json::json;

    use super::*;

    /// Notes which thread writes it.
    #[derive(Debug, Default)]
    struct ThreadNote(Arc<OnceLock<ThreadId>>);

    impl Serialize for ThreadNote {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.get_or_init(|| thread::current().id());
            serializer.serialize_str("written")
        }
    }

    async fn is_written_here(bytes: usize) -> bool {
        let note = ThreadNote::default();
        let written_by = note.0.clone();
        assert_eq!(write_json(note, bytes).await.unwrap(), "\"written\"");
        written_by.get() == Some(&thread::current().id())
    }

    #[tokio::test]
    async fn a_large_value_is_written_beside_the_runtime() {
        assert!(is_written_here(AT_ONCE_MAX).await);
        assert!(!is_written_here(AT_ONCE_MAX + 1).await);
    }

    #[test]
    fn the_text_in_a_value_is_no_more_than_it_takes_as_json() {
        for (value, expected) in [
            (json!({ "a": "grüße", "list": [1, null, true, { "b": "" }] }), 1 + 7 + 4 + 3 + 1),
            (json!(vec![7; 1000]), 1000),
            (json!("\n"), 1),
            (json!([]), 0),
        ] {
            assert_eq!(text_bytes(&value), expected);
            assert!(text_bytes(&value) <= value.to_string().len());
        }
    }
}
