//! Passes on members of a caller's request that have no meaning to the gateway. They are sent only in the phases that they
//! affect, and never replace a member that the gateway sets.

use serde_json::{Map, Value};

use crate::{BackendCall, GenerationPart};
use stint_types::catalog::{EnforcementClass, MemberAction, MemberRules, UnknownMembers};
use stint_types::chat::{MemberPhase, Message, Request};

/// What fills a chat template; where that is rendered apart, it goes there alone.
const TEMPLATE: &str = "chat_template_kwargs";

/// What multiplies a bill, and is never passed on raw, whatever was let through before.
const NEVER: [&str; 2] = ["n", "best_of"];

/// Adds to a whole request what it is to have besides.
pub(super) fn add_members(body: &mut Value, call: &BackendCall, rules: &MemberRules) {
    let Value::Object(body) = body else { return };
    sent_members(call, rules).for_each(|(name, value)| merge(body, name, value));
}

/// The same where the template was rendered before.
pub(super) fn add_members_after_template(body: &mut Value, call: &BackendCall, rules: &MemberRules) {
    let Value::Object(body) = body else { return };
    sent_members(call, rules)
        .filter(|(name, _)| *name != TEMPLATE)
        .for_each(|(name, value)| merge(body, name, value));
}

/// Adds to a message what it is to have besides.
pub(super) fn add_message_members(turn: &mut Value, message: &Message, rules: &MemberRules) {
    let Value::Object(turn) = turn else { return };
    if rules.unknown == UnknownMembers::Pass {
        message.unknown_members.iter().for_each(|(name, value)| merge(turn, name, value));
    }
}

/// What the caller says to the chat template.
pub(super) fn template_arguments(request: &Request, rules: &MemberRules) -> Map<String, Value> {
    let said =
        request.unknown_members.get(TEMPLATE).filter(|_| rules.action_for(TEMPLATE) == MemberAction::Pass);
    said.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn sent_members<'c>(
    call: &'c BackendCall,
    rules: &MemberRules,
) -> impl Iterator<Item = (&'c str, &'c Value)> {
    let thought_alone =
        call.class == EnforcementClass::Continue && matches!(call.part, GenerationPart::Thought { .. });
    let has_a_say = move |name: &str| !thought_alone || MemberPhase::of(name) != MemberPhase::Answer;
    let members = call.request.unknown_members.iter().map(|(name, value)| (name.as_str(), value));
    let members = members.filter(|(name, _)| !NEVER.contains(name));
    members.filter(move |(name, _)| rules.action_for(name) == MemberAction::Pass && has_a_say(name))
}

/// What is there already stays; members of objects are put together.
fn merge(body: &mut Map<String, Value>, name: &str, value: &Value) {
    match (body.get_mut(name), value) {
        (None, value) => drop(body.insert(name.to_owned(), value.clone())),
        (Some(Value::Object(ours)), Value::Object(theirs)) => {
            theirs.iter().for_each(|(name, value)| merge(ours, name, value));
        }
        (Some(_), _) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::Thought;
    use stint_types::units::Tokens;

    fn check(class: EnforcementClass, part: GenerationPart, expected: &Value) {
        let passed = json!({ "n": 50, "min_p": 0.1, "grammar": "root ::= \"a\"", "temperature": 9,
            "chat_template_kwargs": { "enable_thinking": true, "language": "de" } });
        let Value::Object(passed) = passed else { unreachable!() };
        let request = Arc::new(Request { unknown_members: passed, ..Request::new("m", Vec::new()) });
        let call = BackendCall {
            request,
            class,
            part,
            seed: 1,
            hidden: false,
            whole: false,
            tells_limit: true,
            effort: None,
            effort_least: None,
        };
        let rules = MemberRules { unknown: UnknownMembers::Pass, ..MemberRules::default() };
        let mut body = json!({ "temperature": 0, "chat_template_kwargs": { "enable_thinking": false } });
        add_members(&mut body, &call, &rules);
        assert_eq!(body, *expected, "{class:?}");
    }

    #[test]
    fn a_thought_alone_is_not_shaped_as_an_answer_and_nothing_of_ours_is_replaced() {
        let kwargs = json!({ "enable_thinking": false, "language": "de" });
        let thought = || GenerationPart::Thought { thinking: Tokens(8), solution: Tokens(8) };
        let unshaped = json!({ "temperature": 0, "chat_template_kwargs": kwargs, "min_p": 0.1 });
        check(EnforcementClass::Continue, thought(), &unshaped);
        let mut shaped = unshaped;
        shaped["grammar"] = json!("root ::= \"a\"");
        check(EnforcementClass::Turn, thought(), &shaped);
        check(
            EnforcementClass::Continue,
            GenerationPart::after_thought(Thought::default(), Tokens(8)),
            &shaped,
        );
        check(EnforcementClass::Effort, GenerationPart::Total { effort: None, tokens: Tokens(8) }, &shaped);
    }
}
