//! Ids of tool calls as Claude takes them: in its characters, and none of them twice in a conversation. Some upstreams count anew in each
//! turn (`call_0`), and a run that began there may go on here.

use std::collections::{HashMap, HashSet, VecDeque};

use stint_types::chat::ToolCall;

/// Writes the ids of one conversation, in its order.
#[derive(Debug, Default)]
pub(super) struct DistinctIds {
    written: HashSet<String>,
    uses: HashMap<String, IdUses>,
}

/// The calls that came with one id.
#[derive(Debug, Default)]
struct IdUses {
    count: usize,
    /// What those are called here that have no result yet.
    open: VecDeque<String>,
}

impl DistinctIds {
    /// The ids of a turn's calls.
    pub(super) fn of_calls(&mut self, calls: &[ToolCall]) -> Vec<String> {
        calls.iter().map(|call| self.of_call(&call.id)).collect()
    }

    fn of_call(&mut self, id: &str) -> String {
        let plain = sanitized_id(id);
        let uses = self.uses.entry(plain.clone()).or_default();
        loop {
            uses.count += 1;
            let own = if uses.count == 1 { plain.clone() } else { format!("{plain}_{}", uses.count) };
            if self.written.insert(own.clone()) {
                uses.open.push_back(own.clone());
                return own;
            }
        }
    }

    /// The id of the call that a result is of: the first one of that id without a result.
    pub(super) fn of_result(&mut self, id: &str) -> String {
        let plain = sanitized_id(id);
        self.uses.get_mut(&plain).and_then(|uses| uses.open.pop_front()).unwrap_or(plain)
    }
}

/// The id of a call, in the characters that are allowed there.
fn sanitized_id(id: &str) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    id.chars().map(|character| if allowed(character) { character } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids of a conversation: `+a` is a call, `-a` its result.
    fn check(conversation: &str, expected: &str) {
        let mut ids = DistinctIds::default();
        let written = conversation.split(' ').map(|word| match word.split_at(1) {
            ("+", id) => ids.of_call(id),
            (_, id) => ids.of_result(id),
        });
        assert_eq!(written.collect::<Vec<String>>().join(" "), expected);
    }

    #[test]
    fn an_id_that_came_before_is_another_one_and_its_result_has_it_too() {
        check("+a -a +b -b", "a a b b");
        check("+a -a +a -a +a -a", "a a a_2 a_2 a_3 a_3");
        check("+a +a -a -a", "a a_2 a a_2");
        check("+a_2 -a_2 +a -a +a -a", "a_2 a_2 a a a_3 a_3");
        check("+f:0 -f:0 +f_0 -f_0", "f_0 f_0 f_0_2 f_0_2");
        check("-x", "x");
    }
}
