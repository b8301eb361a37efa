//! The places of the entries of a streamed answer's lists. OpenAI's own client puts the pieces of a list together by their `index`, and
//! fails on entries without one.

use serde_json::Value;

use stint_types::chat::{AnswerNote, ChoiceEvent};

/// How many entries of each list a choice has so far.
#[derive(Debug, Clone, Default)]
pub(super) struct ListPlaces {
    annotations: usize,
    images: usize,
    details: usize,
    /// The last detail is some of a thought's text, which what comes next goes on.
    is_in_text: bool,
}

impl ListPlaces {
    /// The event, with its entry's place in it where it is one of a list.
    pub(super) fn number(&mut self, event: ChoiceEvent) -> ChoiceEvent {
        match event {
            ChoiceEvent::Note(AnswerNote::Annotation(source)) => {
                ChoiceEvent::Note(AnswerNote::Annotation(numbered(source, &mut self.annotations)))
            }
            ChoiceEvent::Note(AnswerNote::Image(image)) => {
                ChoiceEvent::Note(AnswerNote::Image(numbered(image, &mut self.images)))
            }
            event => event,
        }
    }

    /// Puts a detail's place into it. All text of one thought is one entry, which says only once what form it has: clients join texts.
    pub(super) fn number_detail(&mut self, detail: &mut Value) {
        let is_text = detail["type"] == "reasoning.text";
        let goes_on = std::mem::replace(&mut self.is_in_text, is_text) && is_text;
        self.details += usize::from(!goes_on);
        if let Some(members) = detail.as_object_mut() {
            if goes_on {
                members.shift_remove("format");
            }
            members.insert("index".to_owned(), self.details.saturating_sub(1).into());
        }
    }
}

fn numbered(mut entry: Value, count: &mut usize) -> Value {
    if let Some(members) = entry.as_object_mut() {
        members.insert("index".to_owned(), (*count).into());
        *count += 1;
    }
    entry
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::signed;

    #[test]
    fn entries_say_their_places_and_a_thoughts_text_is_one_entry() {
        let mut places = ListPlaces::default();
        let encrypted = json!({ "type": "reasoning.encrypted", "format": "unknown", "data": "{}" });
        let mut details = [
            signed::text_detail("a"),
            signed::text_detail("b"),
            encrypted.clone(),
            encrypted,
            signed::text_detail("c"),
        ];
        details.iter_mut().for_each(|detail| places.number_detail(detail));
        let seen: Vec<(u64, bool)> =
            details.iter().map(|it| (it["index"].as_u64().unwrap(), it.get("format").is_some())).collect();
        assert_eq!(seen, [(0, true), (0, false), (1, true), (2, true), (3, true)]);
        assert_eq!(signed::details_text(&details).as_deref(), Some("abc"));
    }

    #[test]
    fn each_list_is_counted_by_itself() {
        let mut places = ListPlaces::default();
        let source = || ChoiceEvent::Note(AnswerNote::Annotation(json!({ "type": "url_citation" })));
        // As an upstream counts them, which began elsewhere.
        let image = || ChoiceEvent::Note(AnswerNote::Image(json!({ "type": "image_url", "index": 7 })));
        let seen = [source(), image(), source(), image()].map(|event| match places.number(event) {
            ChoiceEvent::Note(AnswerNote::Annotation(entry) | AnswerNote::Image(entry)) => {
                entry["index"].clone()
            }
            _ => Value::Null,
        });
        assert_eq!(seen, [json!(0), json!(0), json!(1), json!(1)]);
    }
}
