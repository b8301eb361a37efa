//! Phrases that are looked for in a text, all in one pass: most places are passed after a look at two bytes.

use std::ops::RangeInclusive;

/// Groups of phrases in small letters.
pub(super) struct PhraseList {
    groups: &'static [&'static [&'static str]],
    /// Which second bytes follow a first one, each by its last five bits.
    starts: [u32; 32],
}

/// How letters of kana, Han and Hangul begin.
const UNSPACED: RangeInclusive<u8> = 0xe3..=0xed;

/// A phrase that was found, by its group, with what stands before and behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundPhrase<'t> {
    pub group: usize,
    pub before: &'t str,
    pub after: &'t str,
}

impl<'t> FoundPhrase<'t> {
    /// True if it begins a sentence, or follows a sign that may end one or a formula; a "please" may stand in front of it.
    pub(super) fn begins_sentence(&self) -> bool {
        let before = self.before_please();
        before.is_empty() || before.ends_with(['.', '!', '?', ':', ';', ')', '\n', '$'])
    }

    /// The same, or it follows a comma.
    pub(super) fn begins_clause(&self) -> bool {
        self.begins_sentence() || self.before_please().ends_with(',')
    }

    fn before_please(&self) -> &'t str {
        let before = self.before.trim_end_matches(' ');
        before.strip_suffix("please").unwrap_or(before).trim_end_matches(' ')
    }
}

impl PhraseList {
    /// A list of phrases of two bytes or more.
    pub(super) const fn of(groups: &'static [&'static [&'static str]]) -> PhraseList {
        let mut starts = [0_u32; 32];
        let mut group = 0;
        while group < groups.len() {
            let mut at = 0;
            while at < groups[group].len() {
                let bytes = groups[group][at].as_bytes();
                starts[(bytes[0] & 31) as usize] |= 1 << (bytes[1] & 31);
                at += 1;
            }
            group += 1;
        }
        PhraseList { groups, starts }
    }

    /// The first phrase that is meant, of those that begin where a word does. Letters beyond ASCII begin one anywhere, for not all
    /// scripts write blanks, and so does what stands behind a letter of those.
    pub(super) fn find<'t>(
        &self,
        text: &'t str,
        is_meant: impl Fn(&FoundPhrase<'t>) -> bool,
    ) -> Option<FoundPhrase<'t>> {
        let (mut in_word, mut is_unspaced) = (false, false);
        for (at, pair) in text.as_bytes().windows(2).enumerate() {
            let (first, second) = (pair[0], pair[1]);
            let begins = if first.is_ascii() { !in_word } else { first >= 0xc0 };
            if first >= 0xc0 {
                is_unspaced = UNSPACED.contains(&first);
            }
            in_word = if first.is_ascii() { first.is_ascii_alphanumeric() } else { !is_unspaced };
            if begins && self.starts[usize::from(first & 31)] >> (second & 31) & 1 == 1 {
                let found = self.phrases_at(text, at).find(&is_meant);
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    fn phrases_at<'t>(&self, text: &'t str, at: usize) -> impl Iterator<Item = FoundPhrase<'t>> {
        let (before, rest) = text.split_at(at);
        self.groups.iter().enumerate().flat_map(move |(group, phrases)| {
            let after = phrases.iter().filter_map(move |phrase| rest.strip_prefix(phrase));
            after.map(move |after| FoundPhrase { group, before, after })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PhraseList;

    static LIST: PhraseList = PhraseList::of(&[&["go on", "über"], &["翻译", "on top"]]);

    #[test]
    fn a_phrase_is_found_where_a_word_begins() {
        let found = |text: &'static str| {
            LIST.find(text, |_| true).map(|found| (found.group, found.before, found.after))
        };
        assert_eq!(found("so go on now"), Some((0, "so ", " now")));
        assert_eq!(found("go on"), Some((0, "", "")));
        assert_eq!(found("请翻译：x"), Some((1, "请", "：x")));
        assert_eq!(found("(on top"), Some((1, "(", "")));
        assert_eq!(found("die übersicht"), Some((0, "die ", "sicht")));
        assert_eq!(found("请go on吧"), Some((0, "请", "吧")));
        for text in ["", "g", "argo on", "go off", "salon topic"] {
            assert_eq!(found(text), None, "{text}");
        }
        assert!(LIST.find("go on and go on", |found| found.after.is_empty()).is_some());
    }

    #[test]
    fn a_please_in_front_of_a_phrase_is_not_what_it_follows() {
        let begins = |text: &'static str| {
            let found = LIST.find(text, |_| true).unwrap();
            (found.begins_sentence(), found.begins_clause())
        };
        for text in ["go on", "please go on", "well. please go on", "x = $2$ go on"] {
            assert_eq!(begins(text), (true, true), "{text}");
        }
        for text in ["if so, go on", "if so, please go on"] {
            assert_eq!(begins(text), (false, true), "{text}");
        }
        for text in ["and go on", "and please go on"] {
            assert_eq!(begins(text), (false, false), "{text}");
        }
    }
}
