//! Vectors as upstreams write them. An answer may have millions of numbers: they are kept as numbers, not as JSON values, each of which
//! takes several times the memory of one.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use stint_types::units::Tokens;

/// The vectors of an answer: one for each text, in the order of their texts.
#[derive(Debug, Clone, PartialEq)]
pub struct EmbeddingResult {
    /// The list's items.
    pub data: Vec<EmbeddedText>,
    /// Everything read, where the upstream says it.
    pub prompt: Option<Tokens>,
}

impl EmbeddingResult {
    /// How much text its vectors are as JSON, roughly, in bytes.
    pub fn text_bytes(&self) -> usize {
        self.data.iter().map(|text| text.embedding.text_bytes()).sum()
    }
}

/// The item of one text: what an item of the list `data` has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EmbeddedText {
    /// Whose it is, where that is said.
    pub index: Option<u64>,
    /// Its vector.
    pub embedding: EmbeddingVector,
    /// Its other members (`object`).
    pub others: Map<String, Value>,
}

/// A vector.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum EmbeddingVector {
    /// Of numbers of which none was written with a fraction, as quantised ones are.
    Integers(Vec<i64>),
    /// Of numbers.
    Floats(Vec<f64>),
    /// Packed, as `encoding_format` asks for it.
    Base64(String),
    /// None at all: something else stood in its place.
    #[default]
    Other,
}

impl EmbeddingVector {
    /// How many numbers it has, or how many characters of base64; nothing where it is none.
    pub fn length(&self) -> Option<usize> {
        let length = match self {
            EmbeddingVector::Integers(numbers) => numbers.len(),
            EmbeddingVector::Floats(numbers) => numbers.len(),
            EmbeddingVector::Base64(text) => text.len(),
            EmbeddingVector::Other => 0,
        };
        (length > 0).then_some(length)
    }

    fn text_bytes(&self) -> usize {
        match self {
            EmbeddingVector::Integers(numbers) => 4 * numbers.len(),
            EmbeddingVector::Floats(numbers) => 12 * numbers.len(),
            EmbeddingVector::Base64(text) => text.len(),
            EmbeddingVector::Other => 0,
        }
    }

    /// The vector with one more number.
    fn push(&mut self, number: Element) {
        match (&mut *self, number) {
            (EmbeddingVector::Integers(numbers), Element::Integer(number)) => numbers.push(number),
            (EmbeddingVector::Integers(numbers), Element::Float(number)) => {
                let mut floats: Vec<f64> = numbers.iter().map(|&number| float(number)).collect();
                floats.push(number);
                *self = EmbeddingVector::Floats(floats);
            }
            (EmbeddingVector::Floats(numbers), Element::Integer(number)) => numbers.push(float(number)),
            (EmbeddingVector::Floats(numbers), Element::Float(number)) => numbers.push(number),
            (_, Element::Other) => *self = EmbeddingVector::Other,
            (EmbeddingVector::Base64(_) | EmbeddingVector::Other, _) => {}
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "it stands among numbers with fractions")]
fn float(number: i64) -> f64 {
    number as f64
}

impl Serialize for EmbeddedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = serializer.serialize_map(None)?;
        for (name, value) in &self.others {
            members.serialize_entry(name, value)?;
        }
        if let Some(index) = self.index {
            members.serialize_entry("index", &index)?;
        }
        members.serialize_entry("embedding", &self.embedding)?;
        members.end()
    }
}

impl Serialize for EmbeddingVector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            EmbeddingVector::Integers(numbers) => numbers.serialize(serializer),
            EmbeddingVector::Floats(numbers) => numbers.serialize(serializer),
            EmbeddingVector::Base64(text) => serializer.serialize_str(text),
            EmbeddingVector::Other => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for EmbeddedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemMembers;

        impl<'de> Visitor<'de> for ItemMembers {
            type Value = EmbeddedText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a vector")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<EmbeddedText, A::Error> {
                let mut item = EmbeddedText::default();
                while let Some(name) = members.next_key::<String>()? {
                    match name.as_str() {
                        "index" => item.index = members.next_value()?,
                        "embedding" => item.embedding = members.next_value()?,
                        _ => {
                            item.others.insert(name, members.next_value()?);
                        }
                    }
                }
                Ok(item)
            }
        }

        deserializer.deserialize_map(ItemMembers)
    }
}

impl<'de> Deserialize<'de> for EmbeddingVector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Vector;

        impl<'de> Visitor<'de> for Vector {
            type Value = EmbeddingVector;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a vector")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<EmbeddingVector, A::Error> {
                let mut vector = EmbeddingVector::Integers(Vec::new());
                while let Some(number) = numbers.next_element()? {
                    vector.push(number);
                }
                Ok(vector)
            }

            fn visit_str<E>(self, text: &str) -> Result<EmbeddingVector, E> {
                Ok(EmbeddingVector::Base64(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<EmbeddingVector, E> {
                Ok(EmbeddingVector::Base64(text))
            }

            fn visit_unit<E>(self) -> Result<EmbeddingVector, E> {
                Ok(EmbeddingVector::Other)
            }
        }

        deserializer.deserialize_any(Vector)
    }
}

/// What stands in a list of numbers.
#[derive(Debug, Clone, Copy)]
enum Element {
    Integer(i64),
    Float(f64),
    Other,
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;

        impl<'de> Visitor<'de> for Number {
            type Value = Element;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }

            fn visit_i64<E>(self, number: i64) -> Result<Element, E> {
                Ok(Element::Integer(number))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Element, E> {
                Ok(i64::try_from(number).map_or(Element::Other, Element::Integer))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Element, E> {
                Ok(Element::Float(number))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Element, E> {
                Ok(Element::Other)
            }

            fn visit_unit<E>(self) -> Result<Element, E> {
                Ok(Element::Other)
            }

            fn visit_str<E>(self, _: &str) -> Result<Element, E> {
                Ok(Element::Other)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Element, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Element::Other)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Element, A::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Element::Other)
            }
        }

        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_told_as_it_was_written() {
        for text in [
            r#"{"object":"embedding","index":0,"embedding":[0.5,-1e-7,3.25]}"#,
            r#"{"index":7,"embedding":[1,-128,127]}"#,
            r#"{"note":{"a":[1]},"index":0,"embedding":"AAAAPw=="}"#,
            r#"{"embedding":[0.1]}"#,
        ] {
            let item: EmbeddedText = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&item).unwrap(), text);
            assert!(item.embedding.length().is_some());
        }
    }

    #[test]
    fn whole_numbers_among_others_are_numbers_too() {
        let vector: EmbeddingVector = serde_json::from_str("[1, 0.5, 2]").unwrap();
        assert_eq!(vector, EmbeddingVector::Floats(vec![1.0, 0.5, 2.0]));
    }

    #[test]
    fn what_is_no_vector_has_no_length() {
        for text in ["[]", "null", "\"\"", "[1,\"a\",2]", "[null]", "[[1]]", "[1,{\"a\":[2]}]", "[true]"] {
            let vector: EmbeddingVector = serde_json::from_str(text).unwrap();
            assert_eq!(vector.length(), None, "{text}");
        }
    }
}
