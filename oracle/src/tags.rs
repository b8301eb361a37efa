//! The splitter of thought and answer, against a slow one that sees the whole text, and against itself cut elsewhere.

use crate::{Subject, cuts, same, settings, texts};

/// A run of text of one kind, or a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Thought(String),
    Answer(String),
    Start,
    End,
}

/// A splitter's way from pieces of a text to its parts.
trait Split {
    fn split(pieces: &[&str], tags: Tags, thinking: bool) -> Vec<Part>;
}

/// The tags that begin and end a thought.
type Tags = (&'static str, &'static str);

/// Usual ones, and ones that look like their own beginning.
const TAGS: [Tags; 3] = [("<think>", "</think>"), ("aab", "aac"), ("abab<", "ababc")];

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @split sound }
        $(subjects! { @split $planted })*

        /// The splitter's checks.
        pub const SUBJECT: Subject = Subject {
            name: "tags",
            sound: check::<sound::Splitter>,
            planted: &[$((stringify!($planted), check::<$planted::Splitter>)),*],
            words: &[b"<think>", b"</think>", b"aab", b"aac", b"aa", b"abab", b"abab<", b"ababc", b" ", b"\n", b"<", b"x"],
        };
    };
    (@split $copy:ident) => {
        impl Split for $copy::Splitter {
            fn split(pieces: &[&str], (start, end): Tags, thinking: bool) -> Vec<Part> {
                let mut splitter = $copy::Splitter::new(start, end, thinking);
                let mut spans: Vec<_> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
                spans.extend(splitter.finish());
                let part = |span| match span {
                    $copy::TaggedSpan::Thought(text) => Part::Thought(text),
                    $copy::TaggedSpan::Answer(text) => Part::Answer(text),
                    $copy::TaggedSpan::Start => Part::Start,
                    $copy::TaggedSpan::End => Part::End,
                };
                joined(spans.into_iter().map(part))
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/tags.rs"));

fn check<S: Split>(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    for setting in settings(bytes, 2 * TAGS.len()) {
        let (tags, thinking) = (TAGS[setting / 2], setting % 2 > 0);
        let expected = slow(text, tags, thinking);
        same(&S::split(&[text], tags, thinking), &expected, "whole")?;
        for cuts in cuts(bytes) {
            let found = S::split(&texts(text, &cuts), tags, thinking);
            same(&found, &expected, format_args!("cut at {cuts:?}"))?;
        }
    }
    Ok(())
}

/// A thought begins behind so many bytes of white space at most.
const SPACE_MAX: usize = 256;

/// What a text is, seen whole: a thought begins only at its start, white space aside; after one, every tag is a tag. A thought that
/// has begun before the text may begin there once more.
fn slow(text: &str, (start, end): Tags, thinking: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    let near = Some(text.trim_start()).filter(|from| text.len() - from.len() <= SPACE_MAX);
    match near.and_then(|from| from.strip_prefix(start)) {
        None if thinking => {}
        None => return joined([Part::Answer(text.to_owned())]),
        Some(thought) => {
            parts.push(Part::Start);
            rest = thought;
        }
    }
    let mut thinks = true;
    let mut said = String::new();
    while let Some(character) = rest.chars().next() {
        let tag = [(start, Part::Start), (end, Part::End)]
            .into_iter()
            .find(|(tag, part)| rest.starts_with(tag) && !(thinks && *part == Part::Start));
        if let Some((tag, part)) = tag {
            parts.push(text_of(std::mem::take(&mut said), thinks));
            thinks = part == Part::Start;
            parts.push(part);
            rest = &rest[tag.len()..];
        } else {
            said.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    parts.push(text_of(said, thinks));
    joined(parts)
}

fn text_of(text: String, thinks: bool) -> Part {
    if thinks { Part::Thought(text) } else { Part::Answer(text) }
}

/// Neighbours of one kind as one; empty ones left out.
fn joined(parts: impl IntoIterator<Item = Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match (all.last_mut(), part) {
            (_, Part::Thought(text) | Part::Answer(text)) if text.is_empty() => {}
            (Some(Part::Thought(before)), Part::Thought(text))
            | (Some(Part::Answer(before)), Part::Answer(text)) => before.push_str(&text),
            (_, part) => all.push(part),
        }
    }
    all
}
