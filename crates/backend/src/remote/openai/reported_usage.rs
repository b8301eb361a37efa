//! `usage` as an upstream writes it, read leniently: a usage that makes no sense is no reason to lose the answer.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use stint_types::units::Tokens;

/// What `usage` says, where it is an object.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ReportedUsage {
    pub(super) prompt: Option<Tokens>,
    pub(super) completion: Option<Tokens>,
    pub(super) total: Option<Tokens>,
    /// Of the thought, beside the details.
    pub(super) reasoning: Option<Tokens>,
    /// Of the prompt from a cache, beside the details.
    pub(super) cache_hit: Option<Tokens>,
    pub(super) of_prompt: ReportedDetails,
    pub(super) of_completion: ReportedDetails,
}

/// What one of its details says.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ReportedDetails {
    pub(super) cached: Option<Tokens>,
    pub(super) cache_write: Option<Tokens>,
    pub(super) cache_creation: Option<Tokens>,
    pub(super) reasoning: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum UsageName {
    PromptTokens,
    CompletionTokens,
    TotalTokens,
    ReasoningTokens,
    PromptCacheHitTokens,
    PromptTokensDetails,
    CompletionTokensDetails,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum UsageDetailName {
    CachedTokens,
    CacheWriteTokens,
    CacheCreationInputTokens,
    ReasoningTokens,
    #[serde(other)]
    Other,
}

/// What is read of an object's members. The last one of a name counts.
trait LenientObject: Default {
    fn read<'de, A: MapAccess<'de>>(&mut self, members: A) -> Result<(), A::Error>;
}

impl LenientObject for ReportedUsage {
    fn read<'de, A: MapAccess<'de>>(&mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key()? {
            match name {
                UsageName::PromptTokens => self.prompt = count(&mut members)?,
                UsageName::CompletionTokens => self.completion = count(&mut members)?,
                UsageName::TotalTokens => self.total = count(&mut members)?,
                UsageName::ReasoningTokens => self.reasoning = count(&mut members)?,
                UsageName::PromptCacheHitTokens => self.cache_hit = count(&mut members)?,
                UsageName::PromptTokensDetails => self.of_prompt = object(&mut members)?,
                UsageName::CompletionTokensDetails => self.of_completion = object(&mut members)?,
                UsageName::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl LenientObject for ReportedDetails {
    fn read<'de, A: MapAccess<'de>>(&mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(name) = members.next_key()? {
            match name {
                UsageDetailName::CachedTokens => self.cached = count(&mut members)?,
                UsageDetailName::CacheWriteTokens => self.cache_write = count(&mut members)?,
                UsageDetailName::CacheCreationInputTokens => self.cache_creation = count(&mut members)?,
                UsageDetailName::ReasoningTokens => self.reasoning = count(&mut members)?,
                UsageDetailName::Other => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The next value, if it is a count.
fn count<'de, A: MapAccess<'de>>(members: &mut A) -> Result<Option<Tokens>, A::Error> {
    Ok(match members.next_value::<LenientValue<NoMembers>>()? {
        LenientValue::Count(count) => Some(Tokens(count)),
        LenientValue::Object(_) | LenientValue::Null | LenientValue::Other => None,
    })
}

/// The next value, if it is an object; else one that says nothing.
fn object<'de, A: MapAccess<'de>, O: LenientObject>(members: &mut A) -> Result<O, A::Error> {
    Ok(match members.next_value::<LenientValue<O>>()? {
        LenientValue::Object(object) => object,
        LenientValue::Count(_) | LenientValue::Null | LenientValue::Other => O::default(),
    })
}

/// An object whose members are not read.
#[derive(Default)]
struct NoMembers;

impl LenientObject for NoMembers {
    fn read<'de, A: MapAccess<'de>>(&mut self, mut members: A) -> Result<(), A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// A value, whatever it is.
enum LenientValue<O> {
    Null,
    Count(u64),
    Object(O),
    Other,
}

impl<'de, O: LenientObject> Deserialize<'de> for LenientValue<O> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LenientValue<O>, D::Error> {
        from.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<O>(PhantomData<O>);

impl<'de, O: LenientObject> Visitor<'de> for LenientVisitor<O> {
    type Value = LenientValue<O>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<LenientValue<O>, E> {
        Ok(LenientValue::Null)
    }

    fn visit_u64<E>(self, value: u64) -> Result<LenientValue<O>, E> {
        Ok(LenientValue::Count(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<LenientValue<O>, E> {
        Ok(LenientValue::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<LenientValue<O>, E> {
        Ok(LenientValue::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<LenientValue<O>, E> {
        Ok(LenientValue::Other)
    }

    fn visit_str<E>(self, _: &str) -> Result<LenientValue<O>, E> {
        Ok(LenientValue::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LenientValue<O>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LenientValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<LenientValue<O>, A::Error> {
        let mut object = O::default();
        object.read(members)?;
        Ok(LenientValue::Object(object))
    }
}

/// `usage`, where it is there: nothing where it is `null`, and one that says nothing where it is no object.
pub(super) fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ReportedUsage>, D::Error> {
    Ok(match LenientValue::deserialize(from)? {
        LenientValue::Null => None,
        LenientValue::Object(usage) => Some(usage),
        LenientValue::Count(_) | LenientValue::Other => Some(ReportedUsage::default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<ReportedUsage>) {
        let read = lenient(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(read, expected, "{text}");
    }

    #[test]
    fn counts_are_read_and_whatever_else_stands_there_says_nothing() {
        check("null", None);
        for other in
            ["7", "-7", "0.5", "true", "\"x\"", "[{\"a\":[1]}]", "{}", r#"{"prompt_tokens":{"a":[null]}}"#]
        {
            check(other, Some(ReportedUsage::default()));
        }
        let text = r#"{"prompt_tokens":1,"prompt_tokens":28,"completion_tokens":7.5,"total_tokens":-1,"reasoning_tokens":"3",
            "prompt_tokens_details":{"cached_tokens":20,"audio_tokens":0,"x":{}},"completion_tokens_details":null,"queue_time":0.1}"#;
        let of_prompt = ReportedDetails { cached: Some(Tokens(20)), ..ReportedDetails::default() };
        check(text, Some(ReportedUsage { prompt: Some(Tokens(28)), of_prompt, ..ReportedUsage::default() }));
    }
}
