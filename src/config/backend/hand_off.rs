//! `hand_off`: what closes a thought that was cut, and how many tokens it takes.

use crate::config::reader::{AnyText, Section};
use stint_backend::remote::openai;
use stint_types::catalog::{EnforcementClass, HandOff, Model};
use stint_types::units::Tokens;

/// The hand-off where none is configured: the sentence that Qwen's makers recommend.
pub(super) const HAND_OFF: &str = "\n\nConsidering the limited time by the user, I have to give the solution based on \
                        the thinking directly now.\n</think>\n\n";

/// The default texts that open and close a thought.
pub(super) const START_TAG: &str = "<think>";

pub(super) const END_TAG: &str = "</think>";

/// The configured text that closes a thought; an empty text inserts nothing.
pub(super) fn read_hand_off(section: &Section<'_>, text: &mut String) {
    if let Some(AnyText(stated)) = section.get("hand_off") {
        *text = stated;
    }
}

/// Takes the hand-off where one is configured, which must close the thought.
pub(super) fn take_hand_off(section: &Section<'_>, model: &mut Model, text: &str, end_tag: &str) {
    let says_nothing = text.is_empty() && !model.classes.contains(&EnforcementClass::Inline);
    if !text.contains(end_tag) && !says_nothing {
        let remedy = format!("write \"{end_tag}\" where the thought is to end");
        section.reject("hand_off", "does not close the thought", remedy);
    }
    if section.has("hand_off") {
        let class = model.classes.first().copied().unwrap_or(EnforcementClass::Effort);
        let overhead = overhead_bound(&model.classes, text, openai::NEW_TURN_PROMPT);
        model.hand_off = hand_off(class, text.to_owned(), overhead);
    }
}

/// Nothing is handed over to a hidden thought.
pub(super) fn hand_off(class: EnforcementClass, text: String, overhead: Tokens) -> HandOff {
    match class {
        EnforcementClass::Effort => {
            HandOff { text: String::new(), overhead, overhead_without_thought: overhead }
        }
        // The end of the text; the engine says more once it runs.
        EnforcementClass::Inline => HandOff { text, overhead, overhead_without_thought: Tokens(1) },
        EnforcementClass::Continue | EnforcementClass::Native | EnforcementClass::Turn => {
            HandOff { text, overhead, overhead_without_thought: overhead }
        }
    }
}

/// What is reserved beside thought and answer. A token is one byte at least, so the bytes of what is put in bound its
/// tokens; both tags and the end-of-text token come on top. For a hidden thought it is the template's share.
pub(super) fn overhead_bound(classes: &[EnforcementClass], hand_off: &str, turn: &str) -> Tokens {
    let bytes = |class: &EnforcementClass| match class {
        EnforcementClass::Effort => 16,
        EnforcementClass::Inline | EnforcementClass::Continue | EnforcementClass::Native => {
            hand_off.len() + 3
        }
        // The turn's own marks come on top.
        EnforcementClass::Turn => turn.len() + 16,
    };
    Tokens(classes.iter().map(bytes).max().unwrap_or(0) as u64)
}
