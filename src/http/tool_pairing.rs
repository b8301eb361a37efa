//! Checks that tool calls and their results are paired: each call has its result right after the turn that made it, and
//! each result has its call. Providers refuse anything else, each in its own words. Here it is refused before one is called.

use std::collections::{HashMap, VecDeque};

use stint_types::chat::{Message, Role, ToolCall};

/// What an API counts as one turn of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnGrouping {
    /// Each message of the model is a turn.
    PerMessage,
    /// Messages of the model that follow one another are one turn.
    Consecutive,
}

/// A call without its result, or a result without its call.
#[derive(Debug, PartialEq)]
pub(super) enum UnpairedTool<'m> {
    /// The index of the last message of the turn, and the call.
    Call(usize, &'m ToolCall),
    /// The index of the result's message, and the id of the call that it names.
    Result(usize, &'m str),
}

/// Finds the first unpaired call or result.
pub(super) fn check(messages: &[Message], turns: TurnGrouping) -> Result<(), UnpairedTool<'_>> {
    let (mut open, mut turn, mut before) = (OpenCalls::default(), 0, Role::System);
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            open.answer(id).ok_or(UnpairedTool::Result(at, id))?;
        } else {
            let is_turn = message.role == Role::Assistant && before == Role::Assistant;
            if !(is_turn && turns == TurnGrouping::Consecutive) {
                open.end(turn)?;
            }
            turn = at;
            message.tool_calls.iter().for_each(|call| open.add(call));
        }
        before = message.role;
    }
    open.end(turn)
}

/// The calls of a turn. A result is found by its id: a turn may have thousands of both.
#[derive(Debug, Default)]
struct OpenCalls<'m> {
    /// In their order; nothing where the result came.
    calls: Vec<Option<&'m ToolCall>>,
    places: HashMap<&'m str, VecDeque<usize>>,
    left: usize,
}

impl<'m> OpenCalls<'m> {
    fn add(&mut self, call: &'m ToolCall) {
        self.places.entry(call.id.as_str()).or_default().push_back(self.calls.len());
        self.calls.push(Some(call));
        self.left += 1;
    }

    /// The result of the first call of that id is there; nothing where there is no such call.
    fn answer(&mut self, id: &str) -> Option<()> {
        let place = self.places.get_mut(id)?.pop_front()?;
        self.calls[place] = None;
        self.left -= 1;
        Some(())
    }

    /// The turn is over.
    fn end(&mut self, turn: usize) -> Result<(), UnpairedTool<'m>> {
        if self.left > 0
            && let Some(&call) = self.calls.iter().flatten().next()
        {
            return Err(UnpairedTool::Call(turn, call));
        }
        self.calls.clear();
        self.places.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a12` is a turn of the model that calls 1 and 2, `t1` the result of 1, `u` the user.
    fn messages(conversation: &str) -> Vec<Message> {
        let message = |word: &str| {
            let (role, ids) = word.split_at(1);
            let call = |id: char| ToolCall { id: id.into(), name: "f".into(), arguments: "{}".into() };
            match role {
                "a" => Message {
                    tool_calls: ids.chars().map(call).collect(),
                    ..Message::text(Role::Assistant, "")
                },
                "t" => Message { tool_call_id: Some(ids.to_owned()), ..Message::text(Role::Tool, "") },
                _ => Message::text(Role::User, ""),
            }
        };
        conversation.split(' ').map(message).collect()
    }

    /// `1@3` is call 1 of the turn at 3, `t1@3` the result of 1 that stands there.
    fn found(conversation: &str, turns: TurnGrouping) -> Option<String> {
        check(&messages(conversation), turns).err().map(|unpaired| match unpaired {
            UnpairedTool::Call(at, call) => format!("{}@{at}", call.id),
            UnpairedTool::Result(at, id) => format!("t{id}@{at}"),
        })
    }

    fn check_both(conversation: &str, expected: Option<&str>) {
        for turns in [TurnGrouping::PerMessage, TurnGrouping::Consecutive] {
            assert_eq!(found(conversation, turns).as_deref(), expected, "{conversation} {turns:?}");
        }
    }

    #[test]
    fn results_in_any_order_right_after_their_turn_are_paired() {
        check_both("u", None);
        check_both("u a12 t2 t1 u a t", Some("t@6"));
        check_both("u a12 t2 t1 a1 t1 u a u", None);
    }

    #[test]
    fn what_lacks_its_other_half_is_found() {
        check_both("u a12 t2", Some("1@1"));
        check_both("u a1", Some("1@1"));
        check_both("u a1 u t1", Some("1@1"));
        check_both("u t1", Some("t1@1"));
        check_both("u a1 t1 t1", Some("t1@3"));
        check_both("u a1 t1 a t1", Some("t1@4"));
    }

    #[test]
    fn a_turn_in_several_messages_is_one_where_the_api_joins_them() {
        assert_eq!(found("u a1 a2 t1 t2", TurnGrouping::Consecutive), None);
        assert_eq!(found("u a1 a2 t1 t2", TurnGrouping::PerMessage).as_deref(), Some("1@1"));
        assert_eq!(found("u a1 t1 a2 t1", TurnGrouping::Consecutive).as_deref(), Some("t1@4"));
    }
}
