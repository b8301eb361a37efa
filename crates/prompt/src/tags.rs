//! Separates thought from answer in text that contains thinking tags.

/// What some text turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaggedSpan {
    /// Part of the thought.
    Thought(String),
    /// Part of the answer.
    Answer(String),
    /// The tag that begins a thought.
    Start,
    /// The tag that closes a thought.
    End,
}

/// A thought may begin behind so much white space, in bytes: some models write white space until a limit ends them.
const SPACE_MAX: usize = 256;

/// Splits text that arrives in pieces at its tags, wherever the pieces are cut.
///
/// A thought may begin only where nothing but white space was said before, so that an answer *about* tags
/// stays whole; once there was a thought, later tags are tags too, since models fall back into thinking.
/// Where the prompt has opened a thought, some servers show the tag that the prompt ends in: that is a tag as well.
#[derive(Debug, Clone)]
pub struct Splitter {
    start: String,
    end: String,
    place: SplitterState,
    /// The text that may be the beginning of a tag, or white space that may precede one.
    held: String,
    /// True until some text came.
    untouched: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SplitterState {
    /// There was no text yet.
    Before,
    /// Inside a thought that the prompt has opened, of which there was no text yet.
    Opened,
    /// Inside a thought.
    Thinking,
    /// After a thought.
    After,
    /// In an answer without a thought; tags are only text.
    Plain,
}

impl Splitter {
    /// A splitter for a model with these tags; `thinking` where the prompt has opened the thought already.
    pub fn new(start: impl Into<String>, end: impl Into<String>, thinking: bool) -> Splitter {
        let place = if thinking { SplitterState::Opened } else { SplitterState::Before };
        Splitter { start: start.into(), end: end.into(), place, held: String::new(), untouched: true }
    }

    /// A splitter for an answer whose thought came before, in a text of its own.
    pub fn after_thought(start: impl Into<String>, end: impl Into<String>) -> Splitter {
        Splitter { place: SplitterState::After, ..Splitter::new(start, end, false) }
    }

    /// Told that thoughts come by another way: whatever comes here is answer, also where the prompt has opened a thought,
    /// since the upstream that takes the thoughts out takes their end tag out too.
    pub fn plain(&mut self) {
        if matches!(self.place, SplitterState::Before | SplitterState::Opened) || self.untouched {
            self.place = SplitterState::Plain;
        }
    }

    /// Takes more text.
    pub fn push(&mut self, text: &str) -> Vec<TaggedSpan> {
        self.untouched &= text.is_empty();
        let mut spans = Vec::new();
        if self.held.is_empty() && self.has_no_tag(text) {
            self.say(text, &mut spans);
            return spans;
        }
        self.held.push_str(text);
        while self.step(&mut spans) {}
        spans
    }

    /// The text has ended; what was held back is text after all.
    pub fn finish(&mut self) -> Vec<TaggedSpan> {
        let mut spans = Vec::new();
        let rest = std::mem::take(&mut self.held);
        self.say(&rest, &mut spans);
        spans
    }

    /// True where no part of a tag can be in the text, as in nearly every piece of an answer.
    fn has_no_tag(&self, text: &str) -> bool {
        let tags: &[&String] = match self.place {
            SplitterState::Before | SplitterState::Opened => return false,
            SplitterState::Plain => &[],
            SplitterState::Thinking => &[&self.end],
            SplitterState::After => &[&self.start, &self.end],
        };
        tags.iter().all(|tag| tag.as_bytes().first().is_some_and(|first| !text.as_bytes().contains(first)))
    }

    /// Takes one tag out of the held text; false if there is none to take.
    fn step(&mut self, spans: &mut Vec<TaggedSpan>) -> bool {
        let is_decided = match self.place {
            SplitterState::Before => self.enter(SplitterState::Plain),
            SplitterState::Opened => self.enter(SplitterState::Thinking),
            SplitterState::Thinking | SplitterState::After | SplitterState::Plain => true,
        };
        if !is_decided {
            return false;
        }
        let tags: &[(&str, TaggedSpan)] = match self.place {
            SplitterState::Thinking => &[(&self.end, TaggedSpan::End)],
            // A second end tag closes nothing, but it is no answer either.
            SplitterState::Before | SplitterState::Opened | SplitterState::After => {
                &[(&self.start, TaggedSpan::Start), (&self.end, TaggedSpan::End)]
            }
            SplitterState::Plain => &[],
        };
        let found = tags
            .iter()
            .filter_map(|(tag, span)| Some((self.held.find(tag)?, tag.len(), span.clone())))
            .min_by_key(|(at, ..)| *at);
        let Some((at, length, span)) = found else {
            let keep = tags.iter().map(|(tag, _)| overlap(&self.held, tag)).max().unwrap_or(0);
            let rest = self.held.split_off(self.held.len() - keep);
            let said = std::mem::replace(&mut self.held, rest);
            self.say(&said, spans);
            return false;
        };
        let rest = self.held.split_off(at + length);
        let said = std::mem::replace(&mut self.held, rest);
        self.say(&said[..at], spans);
        self.place = if span == TaggedSpan::Start { SplitterState::Thinking } else { SplitterState::After };
        spans.push(span);
        true
    }

    /// Decides whether the text begins with the tag of a thought; false if more of it is needed. Without one it is `otherwise`.
    fn enter(&mut self, otherwise: SplitterState) -> bool {
        let text = self.held.trim_start();
        if self.held.len() - text.len() > SPACE_MAX {
            self.place = otherwise;
        } else if text.starts_with(&self.start) {
            self.held = text.to_owned();
        } else if self.start.starts_with(text) {
            return false;
        } else {
            self.place = otherwise;
        }
        true
    }

    fn say(&mut self, text: &str, spans: &mut Vec<TaggedSpan>) {
        let thinks = matches!(self.place, SplitterState::Thinking | SplitterState::Opened);
        let said = if thinks { TaggedSpan::Thought } else { TaggedSpan::Answer };
        if !text.is_empty() {
            spans.push(said(text.to_owned()));
        }
    }
}

/// How many bytes at the end of the text may be the beginning of the tag.
fn overlap(text: &str, tag: &str) -> usize {
    let longest = text.len().min(tag.len().saturating_sub(1));
    (1..=longest)
        .rev()
        .find(|&length| tag.is_char_boundary(length) && text.as_bytes().ends_with(&tag.as_bytes()[..length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(spans: Vec<TaggedSpan>) -> Vec<TaggedSpan> {
        let mut all: Vec<TaggedSpan> = Vec::new();
        for span in spans {
            match (all.last_mut(), &span) {
                (Some(TaggedSpan::Thought(before)), TaggedSpan::Thought(text)) => before.push_str(text),
                (Some(TaggedSpan::Answer(before)), TaggedSpan::Answer(text)) => before.push_str(text),
                _ => all.push(span),
            }
        }
        all
    }

    fn split(thinking: bool, pieces: &[&str]) -> Vec<TaggedSpan> {
        let mut splitter = Splitter::new("<think>", "</think>", thinking);
        let mut spans: Vec<TaggedSpan> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
        spans.extend(splitter.finish());
        joined(spans)
    }

    /// The same spans wherever the text is cut in two, and character by character.
    fn check(thinking: bool, text: &str, expected: &[TaggedSpan]) {
        assert_eq!(split(thinking, &[text]), expected, "whole");
        for (cut, _) in text.char_indices() {
            assert_eq!(split(thinking, &[&text[..cut], &text[cut..]]), expected, "cut at {cut}");
        }
        let single: Vec<String> = text.chars().map(String::from).collect();
        let single: Vec<&str> = single.iter().map(String::as_str).collect();
        assert_eq!(split(thinking, &single), expected, "character by character");
    }

    fn thought(text: &str) -> TaggedSpan {
        TaggedSpan::Thought(text.to_owned())
    }

    fn answer(text: &str) -> TaggedSpan {
        TaggedSpan::Answer(text.to_owned())
    }

    #[test]
    fn a_thought_and_its_answer_are_told_apart() {
        check(
            false,
            "<think>\n1+1=2\n</think>\n\nIt is 2. ",
            &[TaggedSpan::Start, thought("\n1+1=2\n"), TaggedSpan::End, answer("\n\nIt is 2. ")],
        );
    }

    #[test]
    fn a_thought_that_the_prompt_opened_shows_only_its_end() {
        check(true, "a<b ü</think> c", &[thought("a<b ü"), TaggedSpan::End, answer(" c")]);
        check(true, " \n</think>c", &[thought(" \n"), TaggedSpan::End, answer("c")]);
        check(true, " </think", &[thought(" </think")]);
        check(true, "<thi", &[thought("<thi")]);
    }

    #[test]
    fn a_tag_that_the_prompt_ends_in_is_no_thought_where_it_is_shown_all_the_same() {
        let expected = [TaggedSpan::Start, thought("\nhm <think>"), TaggedSpan::End, answer("c")];
        check(true, "<think>\nhm <think></think>c", &expected);
        check(true, "\n <think>\nhm <think></think>c", &expected);
        check(true, "hm <think>x", &[thought("hm <think>x")]);
        let many = format!("{} <think>x", " ".repeat(SPACE_MAX));
        check(true, &many, &[thought(&many)]);
    }

    #[test]
    fn white_space_without_end_is_not_held_back() {
        let few = " ".repeat(SPACE_MAX);
        check(false, &format!("{few}<think>x</think>"), &[TaggedSpan::Start, thought("x"), TaggedSpan::End]);
        let many = format!("{few}\n<think>x");
        check(false, &many, &[answer(&many)]);
    }

    #[test]
    fn an_answer_about_tags_stays_whole() {
        check(false, "  Write <think>x</think>.", &[answer("  Write <think>x</think>.")]);
        check(false, "<thin air>", &[answer("<thin air>")]);
        check(false, "</think>", &[answer("</think>")]);
    }

    #[test]
    fn a_thought_may_begin_again_and_a_second_end_is_no_answer() {
        check(
            false,
            " <think>a</think>b<think>c</think></think> d",
            &[
                TaggedSpan::Start,
                thought("a"),
                TaggedSpan::End,
                answer("b"),
                TaggedSpan::Start,
                thought("c"),
                TaggedSpan::End,
                TaggedSpan::End,
                answer(" d"),
            ],
        );
    }

    #[test]
    fn an_answer_whose_thought_came_before_may_fall_back_into_thinking() {
        let after = |pieces: &[&str]| {
            let mut splitter = Splitter::after_thought("<think>", "</think>");
            let mut spans: Vec<TaggedSpan> = pieces.iter().flat_map(|piece| splitter.push(piece)).collect();
            spans.extend(splitter.finish());
            joined(spans)
        };
        let expected = [answer("It is"), TaggedSpan::Start, thought(" 3?"), TaggedSpan::End, answer(" 2.")];
        assert_eq!(after(&["It is<think> 3?</think> 2."]), expected);
        assert_eq!(after(&["It is<th", "ink> 3?</thin", "k> 2."]), expected);
    }

    #[test]
    fn what_looks_like_a_tag_at_the_end_is_text() {
        check(false, "<think>a</thi", &[TaggedSpan::Start, thought("a</thi")]);
        check(false, "<thi", &[answer("<thi")]);
        check(true, "a</think>b</", &[thought("a"), TaggedSpan::End, answer("b</")]);
    }

    #[test]
    fn a_server_that_takes_thoughts_out_leaves_an_answer_whatever_the_prompt_opened() {
        let mut splitter = Splitter::new("<think>", "</think>", true);
        splitter.plain();
        assert_eq!(splitter.push("51"), [TaggedSpan::Answer("51".to_owned())]);
        let mut splitter = Splitter::new("<think>", "</think>", true);
        assert_eq!(splitter.push("\n"), []);
        splitter.plain();
        assert_eq!(splitter.push("51"), [TaggedSpan::Answer("\n51".to_owned())]);
        let mut splitter = Splitter::new("<think>", "</think>", true);
        assert_eq!(splitter.push("17"), [TaggedSpan::Thought("17".to_owned())]);
        splitter.plain();
        assert_eq!(splitter.push("*3"), [TaggedSpan::Thought("*3".to_owned())], "it does not");
    }
}
