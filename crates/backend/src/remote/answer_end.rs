//! How an upstream tells that an answer is over, before its stream ends.

/// True for `[DONE]`, behind which nothing comes. Some have blank around it.
pub(super) fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}

/// Whether an answer is over though its stream is not: a word for its end came, and no more of the answer behind that. Some servers
/// have such a word in every chunk, where it says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnswerEnd {
    is_stated: bool,
    goes_on: bool,
}

impl AnswerEnd {
    /// More of the answer came.
    pub(super) fn more_came(&mut self) {
        self.goes_on |= self.is_stated;
    }

    /// The upstream's word for the end came. Some send a blank one until then.
    pub(super) fn stated(&mut self, word: &str) {
        self.is_stated |= !matches!(word, "" | "null" | "FINISH_REASON_UNSPECIFIED");
    }

    /// True if nothing of the answer is missing.
    pub(super) fn is_reached(self) -> bool {
        self.is_stated && !self.goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_over_behind_the_word_for_its_end_unless_that_comes_all_the_time() {
        let check = |words: &[&str], expected| {
            let mut end = AnswerEnd::default();
            for word in words {
                end.more_came();
                end.stated(word);
            }
            assert_eq!(end.is_reached(), expected, "{words:?}");
        };
        check(&[""], false);
        check(&["", "null", "stop"], true);
        check(&["stop"], true);
        check(&["stop", "stop"], false);
        check(&["stop", ""], false);
    }

    #[test]
    fn blank_around_the_last_event_changes_nothing() {
        for (data, expected) in
            [("[DONE]", true), ("[DONE] ", true), (" [DONE]\t", true), ("[DONE", false), ("", false)]
        {
            assert_eq!(is_done(data.as_bytes()), expected, "{data:?}");
        }
    }
}
