//! The reader of callers' JSON, against `serde_json`'s own, which takes the last of two members of one name.

use std::collections::BTreeSet;
use std::fmt::Display;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::{Subject, same};

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        /// The reader's checks.
        pub const SUBJECT: Subject = Subject {
            name: "json",
            sound: |bytes| check(bytes, in_words(sound::read(bytes, VALUES_MAX))),
            planted: &[$((stringify!($planted), |bytes| check(bytes, in_words($planted::read(bytes, VALUES_MAX))))),*],
            words: &[b"{", b"}", b"[", b"]", b":", b",", b"\"a\"", b"\"a\":1,", b"null", b"-1", b"1e400", b"\\u0061", b"0.5", b"\""],
        };
    };
}

include!(concat!(env!("OUT_DIR"), "/json.rs"));

/// The most values in these checks.
const VALUES_MAX: usize = 24;

/// What a copy of the reader found; each copy has an error of its own.
fn in_words<E: Display>(read: Result<Value, E>) -> Result<Value, String> {
    read.map_err(|error| error.to_string())
}

fn check(bytes: &[u8], ours: Result<Value, String>) -> Result<(), String> {
    let theirs = serde_json::from_slice::<Value>(bytes);
    match (ours, theirs) {
        (Ok(read), Ok(value)) => {
            same(&read, &value, "against serde_json")?;
            same(&(values(&value) > VALUES_MAX), &false, "too many values")?;
            same(&repeats(bytes), &false, "a name that is there twice")
        }
        (Ok(read), Err(error)) => Err(format!("{read:?} of what is no JSON: {error}")),
        (Err(_), Ok(value)) if repeats(bytes) || values(&value) > VALUES_MAX => Ok(()),
        (Err(error), Ok(_)) => Err(format!("refused without a reason: {error}")),
        (Err(_), Err(_)) => Ok(()),
    }
}

/// How many values it has, itself among them.
fn values(value: &Value) -> usize {
    let inside = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    inside + 1
}

/// Whether an object in it has two members of one name, by a walk that keeps nothing else.
fn repeats(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Names>(bytes).is_ok_and(|names| names.repeats)
}

struct Names {
    repeats: bool,
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Names, D::Error> {
        deserializer.deserialize_any(Walk).map(|repeats| Names { repeats })
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("anything")
    }
    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_f64<E>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_str<E>(self, _: &str) -> Result<bool, E> {
        Ok(false)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(names) = items.next_element::<Names>()? {
            found |= names.repeats;
        }
        Ok(found)
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<bool, A::Error> {
        let (mut seen, mut found) = (BTreeSet::new(), false);
        while let Some(name) = entries.next_key::<String>()? {
            found |= !seen.insert(name);
            found |= entries.next_value::<Names>()?.repeats;
        }
        Ok(found)
    }
}
