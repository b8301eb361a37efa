//! What stands around a model's thoughts, and how it is found in its file: two tokens, or text of which the file makes no tokens.

use super::error::PromptError;
use super::vocabulary::Vocabulary;

/// What models call them whose makers do not take the usual names: Mistral's.
const OTHER_NAMES: [[&str; 2]; 1] = [["[THINK]", "[/THINK]"]];

/// The tokens that begin and close a thought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinkingTags {
    /// Begins it.
    pub start: u32,
    /// Closes it.
    pub end: u32,
}

/// What was found of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FoundTags {
    /// None of a model that does not think, as far as can be known, or whose tags are no tokens.
    pub(super) tags: Option<ThinkingTags>,
    /// What they are called. Without tags these are tokens that the chat template does not mention, unless they are spelled.
    pub(super) names: Option<[String; 2]>,
    /// Whether the tags are text of several tokens.
    pub(super) is_spelled: bool,
}

impl FoundTags {
    /// Looks for tokens of these names, and else of others that are known. A template must know of them: models that only answer share
    /// their vocabulary with others that think. What a template knows of, though there are no such tokens, is text.
    pub(super) fn search(vocabulary: &Vocabulary, template: &str, usual: [&str; 2]) -> FoundTags {
        let mut unmentioned = FoundTags::default();
        let mut spelled = None;
        for names in [usual].into_iter().chain(OTHER_NAMES) {
            let is_mentioned = names.iter().any(|name| template.contains(*name));
            let owned = Some(names.map(str::to_owned));
            match tokens(vocabulary, names) {
                Some(tags) if is_mentioned => {
                    return FoundTags { tags: Some(tags), names: owned, is_spelled: false };
                }
                Some(_) => unmentioned.names = unmentioned.names.or(owned),
                None if is_mentioned && are_text(vocabulary, names) => {
                    spelled.get_or_insert(FoundTags { tags: None, names: owned, is_spelled: true });
                }
                None => {}
            }
        }
        spelled.unwrap_or(unmentioned)
    }

    /// Takes tokens of these names, or text where neither is a token, whatever the template mentions.
    pub(super) fn stated(vocabulary: &Vocabulary, names: [&str; 2]) -> Result<FoundTags, PromptError> {
        let is_spelled = are_text(vocabulary, names);
        let unknown = names.into_iter().find(|name| vocabulary.special(name).is_none());
        match unknown.filter(|_| !is_spelled) {
            Some(name) => Err(PromptError::NoToken(name.to_owned())),
            None => {
                let (tags, names) = (tokens(vocabulary, names), Some(names.map(str::to_owned)));
                Ok(FoundTags { tags, names, is_spelled })
            }
        }
    }
}

/// Whether neither tag is a token.
fn are_text(vocabulary: &Vocabulary, names: [&str; 2]) -> bool {
    names.into_iter().all(|name| !name.is_empty() && vocabulary.special(name).is_none())
}

fn tokens(vocabulary: &Vocabulary, [start, end]: [&str; 2]) -> Option<ThinkingTags> {
    let tokens = vocabulary.special(start).zip(vocabulary.special(end));
    tokens.map(|(start, end)| ThinkingTags { start, end })
}
