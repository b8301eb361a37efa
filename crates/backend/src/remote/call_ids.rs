//! Ids of tool calls. A caller pairs results with calls by them, so each call has one, and no two of a conversation have the same.

use std::borrow::Cow;
use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::BackendCall;
use stint_types::units::mix64;

/// How the ids begin that are made up for calls that came without one.
pub(super) const MADE_ID_PREFIX: &str = "stint_";

/// Sees to it that each call of one answer has an id of its own: some upstreams count anew in each turn (`call_0`).
#[derive(Debug, Default)]
pub(super) struct CallIds {
    /// Tells made ids of one answer from those of another.
    seed: u64,
    /// How many calls of the answer have one.
    given: usize,
    /// Those of the conversation, too.
    used: HashSet<String>,
}

impl CallIds {
    /// For the answer to this call. A caller may ask with the same seed in every turn of a conversation, which is longer each time.
    pub(super) fn new(call: &BackendCall) -> CallIds {
        let messages = &call.request.messages;
        let earlier = messages.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.clone());
        let seed = mix64(call.seed).wrapping_add(messages.len() as u64);
        CallIds { used: earlier.collect(), ..CallIds::with_seed(seed) }
    }

    /// For an answer whose made ids have this seed in them.
    pub(super) fn with_seed(seed: u64) -> CallIds {
        CallIds { seed, given: 0, used: HashSet::new() }
    }

    /// The upstream's id, or one that is made up where it is empty or an earlier call's.
    pub(super) fn unique(&mut self, id: Option<String>) -> String {
        let id = match id.filter(|id| !id.is_empty()) {
            Some(id) if self.used.contains(&id) => self.renumbered(&id).unwrap_or_else(|| self.made()),
            Some(id) => id,
            None => self.made(),
        };
        self.given += 1;
        self.used.insert(id.clone());
        id
    }

    /// The id with another number at its end, where it is one of Kimi's (`functions.f:0`): its models want to see ids of that form
    /// again, with numbers that count all calls of a conversation.
    fn renumbered(&self, id: &str) -> Option<String> {
        let (name, number) = id.rsplit_once(':')?;
        if !name.starts_with("functions.") || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        (self.used.len()..).map(|number| format!("{name}:{number}")).find(|id| !self.used.contains(id))
    }

    fn made(&self) -> String {
        let mut number = self.given;
        loop {
            let id = format!("{MADE_ID_PREFIX}{:x}_{number}", self.seed);
            if !self.used.contains(&id) {
                return id;
            }
            number += 1;
        }
    }
}

/// The id itself where it has at most so many bytes, or else one made of its hash, always the same.
pub(super) fn limited_id(id: &str, bytes_max: usize) -> Cow<'_, str> {
    /// How much of the hash is told, in bytes.
    const HASH: usize = 16;
    if id.len() <= bytes_max {
        return id.into();
    }
    let hash: String = Sha256::digest(id).iter().take(HASH).map(|byte| format!("{byte:02x}")).collect();
    format!("call_{hash}").into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use stint_types::chat::{Message, Request, Role, ToolCall};

    fn check(ids: &[&str], expected: &[&str]) {
        let mut calls = CallIds::with_seed(0xab);
        let given: Vec<String> = ids.iter().map(|id| calls.unique(Some((*id).to_owned()))).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn each_call_has_an_id_of_its_own() {
        check(&["a", "b"], &["a", "b"]);
        check(&["", ""], &["stint_ab_0", "stint_ab_1"]);
        check(&["a", "a", "a"], &["a", "stint_ab_1", "stint_ab_2"]);
        check(&["stint_ab_1", ""], &["stint_ab_1", "stint_ab_2"]);
        assert_eq!(CallIds::with_seed(7).unique(None), "stint_7_0");
    }

    /// The answer to a conversation with calls of these ids.
    fn behind(earlier: &[&str]) -> CallIds {
        let call = |id: &&str| ToolCall { id: (*id).to_owned(), name: "f".into(), arguments: "{}".into() };
        let tool_calls = earlier.iter().map(call).collect();
        let turn = Message { tool_calls, ..Message::text(Role::Assistant, "") };
        CallIds::new(&BackendCall::for_counting(&Arc::new(Request::new("m", vec![turn]))))
    }

    #[test]
    fn an_id_of_an_earlier_turn_is_not_given_again() {
        let mut calls = behind(&["call_0", "functions.f:0"]);
        assert_eq!(calls.unique(Some("call_1".to_owned())), "call_1");
        let made = calls.unique(Some("call_0".to_owned()));
        assert!(made.starts_with(MADE_ID_PREFIX) && made.ends_with("_1"), "{made}");
        assert_eq!(calls.unique(Some("functions.f:0".to_owned())), "functions.f:4");
        assert_eq!(calls.unique(Some("functions.g:0".to_owned())), "functions.g:0");
    }

    #[test]
    fn an_id_that_is_too_long_becomes_one_that_is_not() {
        let long = "chatcmpl-tool-0123456789abcdef0123456789abcdef";
        assert_eq!((limited_id(long, 64), limited_id(long, 40).len()), (long.into(), 37));
        assert_eq!(limited_id(long, 40), limited_id(long, 40));
        assert_ne!(limited_id(long, 40), limited_id(&long.replace('f', "e"), 40));
    }
}
