//! Filters the text of an answer: drops the blank between a thought and the answer, and ends the answer at a stop text of
//! the caller.

use std::sync::Arc;

use stint_types::chat::CompletionKind;

/// Lets an answer's text through, as soon as it cannot be part of a stop text any more.
#[derive(Debug, Clone, Default)]
pub(super) struct StopFilter {
    stops: Vec<StopMatcher>,
    pending: String,
    has_begun: bool,
    /// The blank that it may begin with, until something else comes.
    blank: String,
    /// Which of the stop texts came.
    stopped_at: Option<usize>,
}

/// How much of one stop text stands at the end of what came. Each byte is looked at once, however long the stop text is.
#[derive(Debug, Clone)]
struct StopMatcher {
    stop: Arc<str>,
    /// For each beginning of the stop text, how many bytes of it are both its end and a shorter beginning.
    borders: Arc<[u32]>,
    matched: usize,
}

impl StopMatcher {
    fn new(stop: &str) -> StopMatcher {
        let mut matcher = StopMatcher { stop: stop.into(), borders: Arc::default(), matched: 0 };
        let mut borders = vec![0; stop.len()];
        for at in 1..stop.len() {
            matcher.matched = longer(stop.as_bytes(), &borders, matcher.matched, stop.as_bytes()[at]);
            borders[at] = u32::try_from(matcher.matched).unwrap_or(u32::MAX);
        }
        StopMatcher { borders: borders.into(), matched: 0, ..matcher }
    }

    /// Looks at the next bytes: after how many of them the stop text was there, if it was.
    fn push(&mut self, text: &str) -> Option<usize> {
        text.bytes().zip(1..).find_map(|(byte, count)| {
            self.matched = longer(self.stop.as_bytes(), &self.borders, self.matched, byte);
            (self.matched == self.stop.len()).then_some(count)
        })
    }
}

/// How much of a stop text there is with one more byte behind so much of it.
fn longer(stop: &[u8], borders: &[u32], mut matched: usize, byte: u8) -> usize {
    while matched > 0 && stop.get(matched) != Some(&byte) {
        matched = borders[matched - 1] as usize;
    }
    matched + usize::from(stop.get(matched) == Some(&byte))
}

impl StopFilter {
    pub(super) fn new(stops: &[String], form: CompletionKind) -> StopFilter {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).map(|stop| StopMatcher::new(stop)).collect();
        StopFilter { stops, has_begun: form == CompletionKind::Text, ..StopFilter::default() }
    }

    /// What may be shown now of all that came so far. `behind_thought` where the blank that it begins with only parts it from its
    /// thought: any other belongs to it, as the indentation of code does.
    pub(super) fn push(&mut self, text: &str, behind_thought: bool) -> String {
        if self.stopped_at.is_some() {
            return String::new();
        }
        let before = self.pending.len();
        if self.has_begun {
            self.pending.push_str(text);
        } else {
            let trimmed = text.trim_start();
            self.blank.push_str(&text[..text.len() - trimmed.len()]);
            self.has_begun = !trimmed.is_empty();
            if !self.has_begun {
                return String::new();
            }
            let blank = std::mem::take(&mut self.blank);
            self.pending.push_str(if behind_thought { "" } else { &blank });
            self.pending.push_str(trimmed);
        }
        let found = |(which, matcher): (usize, &mut StopMatcher)| {
            let end = before + matcher.push(&self.pending[before..])?;
            Some((end - matcher.stop.len(), which))
        };
        if let Some((end, which)) = self.stops.iter_mut().enumerate().filter_map(found).min() {
            self.stopped_at = Some(which);
            self.pending.truncate(end);
            return std::mem::take(&mut self.pending);
        }
        // It begins where a letter does: so does the stop text.
        let undecided = self.stops.iter().map(|matcher| matcher.matched).max().unwrap_or(0);
        let rest = self.pending.split_off(self.pending.len() - undecided);
        std::mem::replace(&mut self.pending, rest)
    }

    /// What was held back, now that no more comes that could belong to it.
    pub(super) fn flush(&mut self) -> String {
        self.stops.iter_mut().for_each(|matcher| matcher.matched = 0);
        std::mem::take(&mut self.pending)
    }

    /// The stop text that came.
    pub(super) fn stopped_by(&self) -> Option<&str> {
        Some(&self.stops[self.stopped_at?].stop)
    }

    /// True while nothing but blank came.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_begun
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proptest::prelude::*;

    use super::*;

    fn check(stops: &[&str], pieces: &[&str], shown: &str, stopped: bool) {
        let stops: Vec<String> = stops.iter().map(ToString::to_string).collect();
        let mut answer = StopFilter::new(&stops, CompletionKind::Chat);
        let mut seen: String = pieces.iter().map(|piece| answer.push(piece, true)).collect();
        seen.push_str(&answer.flush());
        assert_eq!((seen.as_str(), answer.stopped_by().is_some()), (shown, stopped), "{stops:?} {pieces:?}");
    }

    #[test]
    fn a_stop_text_ends_the_answer_also_when_it_is_split() {
        check(&["END"], &["a EN", "D b"], "a ", true);
        check(&["END"], &["a EN", "C b"], "a ENC b", false);
        check(&["x", "aby"], &["ab", "y"], "", true);
        check(&["→"], &["a", "→", "b"], "a", true);
    }

    #[test]
    fn what_only_looked_like_a_stop_text_is_shown_at_the_end() {
        check(&["END"], &["the EN"], "the EN", false);
    }

    #[test]
    fn the_blank_before_an_answer_is_not_part_of_it() {
        check(&[], &["\n\n", " 51", "\n"], "51\n", false);
    }

    #[test]
    fn the_blank_that_an_answer_begins_with_is_part_of_it_where_no_thought_came_before() {
        let mut answer = StopFilter::new(&[], CompletionKind::Chat);
        assert_eq!((answer.push("  ", false), answer.is_empty()), (String::new(), true));
        assert_eq!(answer.push("  return x\n", false), "    return x\n");
        assert_eq!(answer.push("  \n", false), "  \n");
    }

    /// What a slow and obvious filter shows of the same pieces.
    fn shown_slowly(stops: &[String], pieces: &[String]) -> String {
        let (mut shown, mut pending) = (String::new(), String::new());
        for piece in pieces {
            pending.push_str(piece);
            let stops = || stops.iter().filter(|stop| !stop.is_empty());
            if let Some(at) = stops().filter_map(|stop| pending.find(stop.as_str())).min() {
                return shown + &pending[..at];
            }
            let may_begin = |at: &usize| stops().any(|stop| stop.starts_with(&pending[*at..]));
            let kept = pending.char_indices().map(|(at, _)| at).find(may_begin).unwrap_or(pending.len());
            shown.extend(pending.drain(..kept));
        }
        shown + &pending
    }

    proptest! {
        #[test]
        fn it_stops_where_a_slow_and_obvious_filter_does(
            stops in prop::collection::vec("[abü]{0,5}", 0..4), pieces in prop::collection::vec("[abü]{0,4}", 0..12),
        ) {
            let mut answer = StopFilter::new(&stops, CompletionKind::Text);
            let mut seen: String = pieces.iter().map(|piece| answer.push(piece, true)).collect();
            seen.push_str(&answer.flush());
            prop_assert_eq!(seen, shown_slowly(&stops, &pieces), "{:?} {:?}", stops, pieces);
        }
    }

    #[test]
    fn behind_what_was_let_out_a_stop_text_begins_anew() {
        let mut answer = StopFilter::new(&["END".to_owned()], CompletionKind::Text);
        assert_eq!((answer.push("a EN", true), answer.flush()), ("a ".to_owned(), "EN".to_owned()));
        assert_eq!((answer.push("D b", true), answer.stopped_by()), ("D b".to_owned(), None));
    }

    /// The longest that a request may have, as many as it may have, against an answer that nearly has each of them.
    #[test]
    fn long_stop_texts_cost_an_answer_little() {
        let stops: Vec<String> = (0..64).map(|at| format!("{}b{at}", "a".repeat(1_000))).collect();
        let mut answer = StopFilter::new(&stops, CompletionKind::Text);
        let began = Instant::now();
        let shown: usize = (0..20_000).map(|_| answer.push("aaaa", true).len()).sum();
        assert_eq!(shown + answer.flush().len(), 80_000);
        // Far less, where the machine is not busy.
        assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
    }
}
