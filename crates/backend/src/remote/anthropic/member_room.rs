//! How many members of an answer are kept that only their own API knows.

use serde_json::{Map, Value};

/// The most bytes of them that are kept of one answer.
const MEMBERS_MAX: usize = 1 << 20;

/// The bytes that are left for an answer's members.
#[derive(Debug)]
pub(super) struct MemberRoom(usize);

impl Default for MemberRoom {
    fn default() -> MemberRoom {
        MemberRoom(MEMBERS_MAX)
    }
}

impl MemberRoom {
    /// Keeps a member in place of what it was before, if there is room.
    pub(super) fn keep(&mut self, kept: &mut Map<String, Value>, name: &str, value: &Value) {
        let before = kept.get(name).map_or(0, |before| bytes(name, before));
        if let Some(left) = self.0.saturating_add(before).checked_sub(bytes(name, value)) {
            self.0 = left;
            kept.insert(name.to_owned(), value.clone());
        }
    }

    /// Keeps the members of an object that are not known here, as far as there is room.
    pub(super) fn keep_unknown(&mut self, object: &Value, known: &[&str], kept: &mut Map<String, Value>) {
        let members = object.as_object().into_iter().flatten();
        for (name, value) in
            members.filter(|(name, value)| !known.contains(&name.as_str()) && !value.is_null())
        {
            self.keep(kept, name, value);
        }
    }
}

fn bytes(name: &str, value: &Value) -> usize {
    name.len() + value.to_string().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_members_of_an_answer_together_have_a_most() {
        let (mut room, mut kept) = (MemberRoom::default(), Map::new());
        let half = "x".repeat(MEMBERS_MAX / 2);
        let object = json!({ "a": half, "b": half, "c": 1, "known": 2, "none": null });
        room.keep_unknown(&object, &["known"], &mut kept);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a", "c"], "there is no room for the second half");
        room.keep(&mut kept, "a", &json!(1));
        room.keep(&mut kept, "b", &json!(half));
        assert_eq!((&kept["a"], &kept["b"]), (&json!(1), &json!(half)), "the first half has made room");
    }
}
