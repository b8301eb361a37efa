//! OpenAI's newer models tell what they say on their way (`commentary`) from their final answer. Where that stands is the API's matter.

use serde_json::Value;

/// Where what a model says on its way stands in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommentaryPlace {
    /// By itself, as the model has it: the API has blocks of text, or messages for each phase.
    #[default]
    Block,
    /// In the text of the answer, as a paragraph.
    Paragraph,
    /// In the thought: the answer has the form that its caller states, and nothing else.
    Thought,
}

impl CommentaryPlace {
    /// In an API whose answers are one text, where this form is stated.
    pub fn in_text(response_format: Option<&Value>) -> CommentaryPlace {
        if is_form(response_format) { CommentaryPlace::Thought } else { CommentaryPlace::Paragraph }
    }

    /// In an API whose answers are blocks, where this form is stated.
    pub fn in_blocks(response_format: Option<&Value>) -> CommentaryPlace {
        if is_form(response_format) { CommentaryPlace::Thought } else { CommentaryPlace::Block }
    }
}

fn is_form(response_format: Option<&Value>) -> bool {
    response_format.is_some_and(|format| format["type"] != "text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_is_stated_by_any_format_but_text() {
        for (format, in_text, in_blocks) in [
            (None, CommentaryPlace::Paragraph, CommentaryPlace::Block),
            (Some(json!({ "type": "text" })), CommentaryPlace::Paragraph, CommentaryPlace::Block),
            (Some(json!({ "type": "json_object" })), CommentaryPlace::Thought, CommentaryPlace::Thought),
        ] {
            assert_eq!(CommentaryPlace::in_text(format.as_ref()), in_text);
            assert_eq!(CommentaryPlace::in_blocks(format.as_ref()), in_blocks);
        }
    }
}
