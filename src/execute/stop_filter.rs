//! Filters the text of an answer: drops the blank between a thought and the answer, and ends the answer at a stop text of
//! the caller.

use stint_types::chat::CompletionKind;

/// Lets an answer's text through, as soon as it cannot be part of a stop text any more.
#[derive(Debug, Clone, Default)]
pub(super) struct StopFilter {
    stops: Vec<String>,
    pending: String,
    has_begun: bool,
    /// The blank that it may begin with, until something else comes.
    blank: String,
    /// Which of the stop texts came.
    stopped_at: Option<usize>,
}

impl StopFilter {
    pub(super) fn new(stops: &[String], form: CompletionKind) -> StopFilter {
        let stops = stops.iter().filter(|stop| !stop.is_empty()).cloned().collect();
        StopFilter { stops, has_begun: form == CompletionKind::Text, ..StopFilter::default() }
    }

    /// What may be shown now of all that came so far. `behind_thought` where the blank that it begins with only parts it from its
    /// thought: any other belongs to it, as the indentation of code does.
    pub(super) fn push(&mut self, text: &str, behind_thought: bool) -> String {
        if self.stopped_at.is_some() {
            return String::new();
        }
        if self.has_begun {
            self.pending.push_str(text);
        } else {
            let said = text.trim_start();
            self.blank.push_str(&text[..text.len() - said.len()]);
            self.has_begun = !said.is_empty();
            if !self.has_begun {
                return String::new();
            }
            let blank = std::mem::take(&mut self.blank);
            self.pending.push_str(if behind_thought { "" } else { &blank });
            self.pending.push_str(said);
        }
        let found = |(which, stop): (usize, &String)| Some((self.pending.find(stop.as_str())?, which));
        if let Some((end, which)) = self.stops.iter().enumerate().filter_map(found).min() {
            self.stopped_at = Some(which);
            self.pending.truncate(end);
            return std::mem::take(&mut self.pending);
        }
        let safe = self.pending.len() - self.undecided();
        let rest = self.pending.split_off(safe);
        std::mem::replace(&mut self.pending, rest)
    }

    /// What was held back, now that no more comes.
    pub(super) fn flush(&mut self) -> String {
        std::mem::take(&mut self.pending)
    }

    /// The stop text that came.
    pub(super) fn stopped_by(&self) -> Option<&str> {
        Some(&self.stops[self.stopped_at?])
    }

    /// True while nothing but blank came.
    pub(super) fn is_empty(&self) -> bool {
        !self.has_begun
    }

    /// How many bytes at the end may be the beginning of a stop text.
    fn undecided(&self) -> usize {
        let longest = |stop: &String| {
            let starts = stop.char_indices().map(|(at, _)| at).skip(1);
            starts.filter(|&at| self.pending.ends_with(&stop[..at])).max().unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
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
}
