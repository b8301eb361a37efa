//! The sources of a message (`annotations`), as they come.

use serde_json::{Map, Value, json};

use crate::Piece;
use stint_types::chat::AnswerNote;

/// Members that count characters of the part that they stand in.
const PLACES: [&str; 2] = ["start_index", "end_index"];

/// The sources of the message that has begun.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MessageSources {
    /// How many characters of the answer came before its part.
    letters_before: usize,
    /// True once one of them came by itself.
    has_come: bool,
}

impl MessageSources {
    /// Those of a message of which so much of the answer comes before.
    pub(super) fn after(letters: usize) -> MessageSources {
        MessageSources { letters_before: letters, has_come: false }
    }

    /// Another part of the message begins.
    pub(super) fn begin_part(&mut self, letters: usize) {
        self.letters_before = letters;
    }

    /// One that came by itself.
    pub(super) fn note(&mut self, source: &Value) -> Option<Piece> {
        self.has_come = true;
        self.piece(source)
    }

    /// Those of a whole message, where none came by itself.
    pub(super) fn of_whole(&self, message: &Value) -> Vec<Piece> {
        let parts = message["content"].as_array().into_iter().flatten().filter(|_| !self.has_come);
        parts.flat_map(|part| self.of_part(part)).collect()
    }

    /// Those of a part that is there whole.
    pub(super) fn of_part(&self, part: &Value) -> Vec<Piece> {
        let sources = part["annotations"].as_array().into_iter().flatten();
        sources.filter_map(|source| self.piece(source)).collect()
    }

    /// As chat completions have it: what is cited stands under the name of the kind, and places count all of the answer.
    fn piece(&self, source: &Value) -> Option<Piece> {
        let mut members: Map<String, Value> = source.as_object()?.clone();
        let kind = members.shift_remove("type")?.as_str()?.to_owned();
        for name in PLACES {
            if let Some(place) = members.get(name).and_then(Value::as_u64) {
                members.insert(name.to_owned(), json!(place + self.letters_before as u64));
            }
        }
        let mut nested = Map::new();
        nested.insert("type".to_owned(), kind.as_str().into());
        nested.insert(kind, members.into());
        Some(Piece::Note(AnswerNote::Annotation(nested.into())))
    }
}
