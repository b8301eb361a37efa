//! A member that most events lack.

use std::ops::Deref;

use serde::Deserialize;
use serde_json::Value;

/// A value that is not there, or `null`, in most events: it takes a word of what is read, where a [`Value`] takes eighty bytes, which
/// would be moved with every event.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct RareValue(Option<Box<Value>>);

impl RareValue {
    /// The value, which leaves `null` behind.
    pub(super) fn take(&mut self) -> Value {
        self.0.take().map_or(Value::Null, |value| *value)
    }

    /// A member of it, to be changed.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.as_mut()?.get_mut(name)
    }
}

impl Deref for RareValue {
    type Target = Value;

    fn deref(&self) -> &Value {
        const NULL: &Value = &Value::Null;
        self.0.as_deref().unwrap_or(NULL)
    }
}
