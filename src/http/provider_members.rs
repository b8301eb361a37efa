//! What a provider says of an answer besides, as callers of the same API are told it. Nothing of it replaces what the gateway says.

use serde_json::{Map, Value};

use crate::gateway::{RequestReceipt, SettledChoice};
use stint_types::chat::{AnswerApi, ProviderMembers};

/// Why a model declined, where its provider does not say.
pub(super) const DECLINED: &str = "The model's provider declined to answer, and does not say why.";

/// What all of OpenAI's APIs have in an answer.
const OF_OPENAI: &str = "service_tier";

/// What is said of a choice, if its provider has the same API.
pub(super) fn of_choice(choice: &SettledChoice, api: AnswerApi) -> Option<&ProviderMembers> {
    choice.spent.members.as_deref().filter(|members| members.api == api)
}

/// What is said of all of an answer.
pub(super) fn of_answer(receipt: &RequestReceipt, api: AnswerApi) -> Map<String, Value> {
    let all = receipt.choices.iter().filter_map(|choice| choice.spent.members.as_deref());
    let is_told = |members: &ProviderMembers, name: &str| {
        let is_related = members.api != AnswerApi::Messages && api != AnswerApi::Messages;
        members.api == api || is_related && name == OF_OPENAI
    };
    let members_of_api =
        all.flat_map(|members| members.answer.iter().filter(move |(name, _)| is_told(members, name)));
    members_of_api.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What is counted besides, of all choices together.
pub(super) fn of_usage(receipt: &RequestReceipt, api: AnswerApi) -> Map<String, Value> {
    let mut all = ProviderMembers::new(api);
    for members in receipt.choices.iter().filter_map(|choice| of_choice(choice, api)) {
        let usage = members.usage.clone();
        if all.usage.is_empty() {
            all.usage = usage;
        } else {
            all.absorb(ProviderMembers { usage, ..ProviderMembers::new(api) });
        }
    }
    all.usage
}

/// Adds members to an object. What is there stays; in objects of one name both have theirs.
pub(super) fn add(object: &mut Value, members: Map<String, Value>) {
    let Value::Object(object) = object else { return };
    for (name, value) in members {
        match (object.get_mut(&name), value) {
            (None, value) => drop(object.insert(name, value)),
            (Some(ours @ Value::Object(_)), Value::Object(theirs)) => add(ours, theirs),
            (Some(_), _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_the_gateway_says_is_replaced() {
        let mut ours = json!({ "id": "a", "details": { "cached_tokens": 3 } });
        let theirs = json!({ "id": "b", "details": { "cached_tokens": 4, "audio_tokens": 5 }, "cost": 0.1 });
        add(&mut ours, theirs.as_object().cloned().unwrap());
        let both = json!({ "id": "a", "details": { "cached_tokens": 3, "audio_tokens": 5 }, "cost": 0.1 });
        assert_eq!(ours, both);
    }
}
