//! A text of an event, read without a copy where that is possible, and whatever else some server has put in its place.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// What stands where a text is expected.
#[derive(Debug, Default, PartialEq)]
pub(super) enum LenientText<'a> {
    /// `null`, or nothing.
    #[default]
    Absent,
    /// A text, borrowed where it has no escapes.
    Text(Cow<'a, str>),
    /// Anything else.
    Other(Box<Value>),
}

impl<'a> LenientText<'a> {
    /// The text, if it is one that says something.
    pub(super) fn present(&self) -> Option<&str> {
        match self {
            LenientText::Text(text) if !text.is_empty() => Some(text),
            LenientText::Text(_) | LenientText::Absent | LenientText::Other(_) => None,
        }
    }

    /// The same as text: what is no text as the JSON that it is.
    pub(super) fn into_json_text(self) -> String {
        match self {
            LenientText::Absent => String::new(),
            LenientText::Text(text) => text.into_owned(),
            LenientText::Other(value) => value.to_string(),
        }
    }

    /// The members of a list; of anything else none.
    pub(super) fn as_array(&self) -> &[Value] {
        match self {
            LenientText::Other(value) => value.as_array().map_or(&[], Vec::as_slice),
            LenientText::Text(_) | LenientText::Absent => &[],
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LenientText<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LenientText<'a>, D::Error> {
        from.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = LenientText<'de>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E: Error>(self) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Absent)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Other(Box::new(Value::from(value))))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Other(Box::new(Value::from(value))))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Other(Box::new(Value::from(value))))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<LenientText<'de>, E> {
        Ok(LenientText::Other(Box::new(Value::from(value))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<LenientText<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(|value| LenientText::Other(Box::new(value)))
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<LenientText<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(object))
            .map(|value| LenientText::Other(Box::new(value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_borrowed_unless_it_has_escapes_and_anything_else_is_kept() {
        let read = |text| serde_json::from_str::<LenientText<'_>>(text).unwrap();
        assert!(matches!(read(r#""grüße""#), LenientText::Text(Cow::Borrowed("grüße"))));
        assert!(matches!(read(r#""a\nb""#), LenientText::Text(Cow::Owned(text)) if text == "a\nb"));
        assert_eq!(read("null"), LenientText::Absent);
        for other in ["7", "-7", "0.5", "true", r#"["a",{"b":null}]"#, r#"{"a":[1,"2"]}"#] {
            let value = serde_json::from_str::<Value>(other).unwrap();
            assert_eq!(read(other), LenientText::Other(Box::new(value)));
        }
        assert_eq!(read(r#"{"city":"Oslo"}"#).into_json_text(), r#"{"city":"Oslo"}"#);
        assert_eq!(read("[1,2]").as_array(), [json!(1), json!(2)]);
        assert_eq!((read(r#""""#).present(), read(r#""a""#).present()), (None, Some("a")));
    }
}
