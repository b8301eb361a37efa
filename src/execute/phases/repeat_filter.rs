//! Removes the repeated beginning of an answer that was to be continued.
//!
//! An upstream that cannot continue a turn takes it for a new one, and writes the answer from its beginning. The reader has
//! that part already, so it is left out.
//!
//! An answer may also repeat itself: a model that is caught in a loop writes the same word for a page. If the new text
//! continues such a loop exactly where it was broken off, nothing is left out.

/// So many bytes are not written twice by chance.
const MATCH_MIN: usize = 16;
/// The same, if something else shows that the upstream does not continue as it should.
const MATCH_MIN_DISTRUSTED: usize = 3;

/// Leaves out the previous text, as long as the new text repeats it.
#[derive(Debug, Clone)]
pub(super) struct RepeatFilter {
    previous: String,
    pending: String,
    is_decided: bool,
    is_distrusted: bool,
    /// The previous text without its blanks, of which some are left out where an answer is broken off.
    bare: Vec<u8>,
    /// After how many bytes of that it repeats itself, where it does.
    period: Option<usize>,
}

impl RepeatFilter {
    /// The filter for the continuation of an answer. `is_distrusted` is true if the upstream mixes thoughts into its
    /// answers: upstreams that can continue a turn do not.
    pub(super) fn of(previous: &str, is_distrusted: bool) -> RepeatFilter {
        let previous = previous.trim_start().to_owned();
        let bare: Vec<u8> = bare(&previous).collect();
        RepeatFilter {
            period: period(&bare),
            bare,
            previous,
            pending: String::new(),
            is_decided: false,
            is_distrusted,
        }
    }

    /// Its upstream thinks again, so it begins the answer again.
    pub(super) fn distrust(&mut self) {
        self.is_distrusted = true;
    }

    /// Returns the part of the text that is new.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.is_decided {
            return text.to_owned();
        }
        self.pending.push_str(text);
        if self.continues_loop() {
            self.is_decided = !self.pending.trim().is_empty();
            return std::mem::take(&mut self.pending);
        }
        let begun = self.pending.trim_start();
        if let Some(rest) =
            begun.strip_prefix(&*self.previous).filter(|_| self.is_conclusive(self.previous.len()))
        {
            let rest = rest.to_owned();
            self.is_decided = true;
            return rest;
        }
        if self.previous.starts_with(begun) && begun.len() < self.previous.len() {
            return String::new();
        }
        self.is_decided = true;
        std::mem::take(&mut self.pending)
    }

    /// What is pending, now that no more comes. It is like the beginning of the previous text, but the end of an answer may be
    /// like its beginning. So it is left out only if something else shows that the upstream has begun again.
    pub(super) fn flush(&mut self) -> String {
        let rest = if self.is_decided { String::new() } else { std::mem::take(&mut self.pending) };
        self.is_decided = true;
        if self.is_distrusted && self.is_conclusive(rest.trim_start().len()) { String::new() } else { rest }
    }

    /// Whether what is pending continues the loop that the previous text is caught in.
    fn continues_loop(&self) -> bool {
        self.period.is_some_and(|period| {
            let (previous, pending) = (&self.bare, bare(&self.pending).collect::<Vec<u8>>());
            (0..pending.len()).all(|at| match at.checked_sub(period) {
                Some(before) => pending[before] == pending[at],
                None => previous[previous.len() + at - period] == pending[at],
            })
        })
    }

    fn is_conclusive(&self, length: usize) -> bool {
        length >= if self.is_distrusted { MATCH_MIN_DISTRUSTED } else { MATCH_MIN }
    }
}

fn bare(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(|byte| !byte.is_ascii_whitespace())
}

/// The smallest number of bytes after which a text repeats itself from its beginning to its end, at least once whole: by the
/// borders of its beginnings (Knuth, Morris and Pratt, 1977).
fn period(text: &[u8]) -> Option<usize> {
    let mut borders = vec![0; text.len()];
    for at in 1..text.len() {
        let mut border: usize = borders[at - 1];
        while border > 0 && text[border] != text[at] {
            border = borders[border - 1];
        }
        borders[at] = border + usize::from(text[border] == text[at]);
    }
    let period = text.len() - borders.last()?;
    (period * 2 <= text.len()).then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, doubted: bool, goes_on: &str, whole: &str) {
        for cut in (0..=goes_on.len()).filter(|at| goes_on.is_char_boundary(*at)) {
            let mut repeat = RepeatFilter::of(said, doubted);
            let pieces = [&goes_on[..cut], &goes_on[cut..]];
            let mut text: String = pieces.into_iter().map(|piece| repeat.push(piece)).collect();
            text += &repeat.flush();
            assert_eq!([said, &text].concat(), whole, "{said:?} and {goes_on:?}, cut at {cut}");
        }
    }

    #[test]
    fn an_answer_that_is_begun_again_is_said_once() {
        check("The answer is four", false, "The answer is four.", "The answer is four.");
        check("The answer is 4.", false, "\n\nThe answer is 4.", "The answer is 4.");
        check("The", true, "The answer is 4.", "The answer is 4.");
        check("The answer is four, since", true, "The answer is four", "The answer is four, since");
    }

    #[test]
    fn one_that_goes_on_is_left_as_it_is() {
        check("The answer is ", false, "four, the answer is", "The answer is four, the answer is");
        check("1", true, "1, 2", "11, 2");
        check("ha ", false, "ha ha", "ha ha ha");
        check("The answer is four", false, "The end", "The answer is fourThe end");
        let song = "Row, row, row your boat, gently down the stream. ";
        check(song, false, "Row, row, row your boat", &[song, "Row, row, row your boat"].concat());
    }

    #[test]
    fn one_that_goes_round_in_a_loop_loses_nothing() {
        let round = |times| "so ".repeat(times);
        for (said, goes_on) in [(9, 9), (9, 12), (12, 9), (200, 65), (2, 1)] {
            check(&round(said), false, &round(goes_on), &round(said + goes_on));
            check(&round(said), true, &round(goes_on), &round(said + goes_on));
        }
        let said = round(9).trim_end().to_owned();
        check(&said, false, " so so, that is all", &[&said, " so so, that is all"].concat());
        // Some of the blank after the previous text was left out.
        let lines = "line \n ".repeat(40);
        let (said, goes_on) = (lines.trim_end().to_owned() + " \n", lines.trim_start());
        check(&said, false, goes_on, &[&said, goes_on].concat());
        check("ha! ha! ha! ha! h", false, "a! ha! ha! ha! h", "ha! ha! ha! ha! ha! ha! ha! ha! h");
    }

    #[test]
    fn a_loop_that_is_begun_again_at_another_place_is_said_once() {
        check("ha! ha! ha! ha! h", false, "ha! ha! ha! ha! ha!", "ha! ha! ha! ha! ha!");
    }
}
