//! The tokens that stand around a model's thoughts, and how they are found in its file.

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
    /// None of a model that does not think, as far as can be known.
    pub(super) tags: Option<ThinkingTags>,
    /// What they are called. Without tags these are tokens that the chat template does not mention.
    pub(super) names: Option<[String; 2]>,
}

impl FoundTags {
    /// Looks for tokens of these names, and else of others that are known. A template must know of them: models that only answer share
    /// their vocabulary with others that think.
    pub(super) fn search(vocabulary: &Vocabulary, template: &str, usual: [&str; 2]) -> FoundTags {
        let mut unmentioned = FoundTags::default();
        for names in [usual].into_iter().chain(OTHER_NAMES) {
            let Some(tags) = tokens(vocabulary, names) else { continue };
            let owned = Some(names.map(str::to_owned));
            if names.iter().any(|name| template.contains(*name)) {
                return FoundTags { tags: Some(tags), names: owned };
            }
            unmentioned.names = unmentioned.names.or(owned);
        }
        unmentioned
    }

    /// Takes tokens of these names, whatever the template mentions.
    pub(super) fn stated(vocabulary: &Vocabulary, names: [&str; 2]) -> Result<FoundTags, PromptError> {
        let unknown = names.into_iter().find(|name| vocabulary.special(name).is_none());
        match unknown {
            Some(name) => Err(PromptError::NoToken(name.to_owned())),
            None => Ok(FoundTags { tags: tokens(vocabulary, names), names: Some(names.map(str::to_owned)) }),
        }
    }
}

fn tokens(vocabulary: &Vocabulary, [start, end]: [&str; 2]) -> Option<ThinkingTags> {
    let tokens = vocabulary.special(start).zip(vocabulary.special(end));
    tokens.map(|(start, end)| ThinkingTags { start, end })
}
