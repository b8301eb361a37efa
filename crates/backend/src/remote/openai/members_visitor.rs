//! Reads an object of which some members are known, and keeps those that are not: serde's own way of that copies every event.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::lenient_text::LenientText;

/// The most bytes of one object's unknown members that are kept.
const KEPT_MAX: usize = 1 << 20;

/// An object with members that are known here.
pub(super) trait KnownMembers<'de>: Default {
    /// Members that mean nothing to a caller: the gateway says them itself, or has asked for them.
    const IGNORED: &'static [&'static str];

    /// Reads the value of a member; false if it is not known, and its value is still to be read.
    fn read_member<M: MapAccess<'de>>(&mut self, name: &str, members: &mut M) -> Result<bool, M::Error>;

    /// Where the others are kept.
    fn unknown(&mut self) -> &mut ForeignMembers<'de>;
}

/// The members of an event's object that are not known, without those that are `null`.
#[derive(Debug, Default)]
pub(super) struct ForeignMembers<'a>(Vec<(Cow<'a, str>, LenientText<'a>)>);

impl ForeignMembers<'_> {
    /// Puts them into what is kept of a stream's. Most say in each event what they said in the one before.
    pub(super) fn keep_in(self, kept: &mut Map<String, Value>, bytes: &mut usize) {
        for (name, value) in self.0 {
            let is_same = matches!((&value, kept.get(&*name)), (LenientText::Text(new), Some(Value::String(old))) if new == old);
            if is_same {
                continue;
            }
            let value = match value {
                LenientText::Absent => continue,
                LenientText::Text(text) => Value::String(text.into_owned()),
                LenientText::Other(value) => *value,
            };
            *bytes = bytes.saturating_add(name.len() + json_length(&value));
            if *bytes > KEPT_MAX {
                return;
            }
            kept.insert(name.into_owned(), value);
        }
    }
}

/// About how long a value is as JSON.
fn json_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        value => value.to_string().len(),
    }
}

/// Reads such an object.
pub(super) fn read_object<'de, T: KnownMembers<'de>, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    from.deserialize_map(ObjectVisitor(PhantomData))
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: KnownMembers<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<T, M::Error> {
        let mut object = T::default();
        while let Some(name) = members.next_key::<LenientText<'de>>()? {
            let LenientText::Text(name) = name else { continue };
            if object.read_member(&name, &mut members)? {
                continue;
            }
            if T::IGNORED.contains(&&*name) {
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = members.next_value::<LenientText<'de>>()?;
            if value != LenientText::Absent {
                object.unknown().0.push((name, value));
            }
        }
        Ok(object)
    }
}
