//! How an upstream tells that an answer is over, before its stream ends.

/// True for `[DONE]`, behind which nothing comes. Some have blank around it.
pub(super) fn is_done(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]"
}

/// Whether an answer is over though its stream is not: some of it came without a word for its end, then such a word, and no more of
/// the answer behind that. Some servers have the word in every chunk, where it says nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AnswerEnd {
    was_open: bool,
    is_stated: bool,
    goes_on: bool,
}

impl AnswerEnd {
    /// A chunk came, with more of the answer or without, and the upstream's word for the end, where it has one. Some send a blank one
    /// until then.
    pub(super) fn read(&mut self, has_more: bool, word: Option<&str>) {
        self.goes_on |= has_more && self.is_stated;
        self.is_stated |= word.is_some_and(|word| !matches!(word, "" | "null" | "FINISH_REASON_UNSPECIFIED"));
        self.was_open |= has_more && !self.is_stated;
    }

    /// True if nothing of the answer is missing.
    pub(super) fn is_reached(self) -> bool {
        self.was_open && self.is_stated && !self.goes_on
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_over_behind_the_word_for_its_end_unless_that_comes_all_the_time() {
        let check = |chunks: &[(bool, Option<&str>)], expected| {
            let mut end = AnswerEnd::default();
            chunks.iter().for_each(|(has_more, word)| end.read(*has_more, *word));
            assert_eq!(end.is_reached(), expected, "{chunks:?}");
        };
        let more = |word| (true, Some(word));
        check(&[more("")], false);
        check(&[more(""), more("null"), more("stop")], true);
        check(&[(true, None), (false, Some("stop"))], true);
        check(&[(true, None), (false, Some("stop")), (false, None)], true);
        check(&[more(""), more("stop"), more("")], false);
        // Whether the word stands in every chunk cannot be known yet.
        check(&[more("stop")], false);
        check(&[(false, None), more("stop")], false);
        check(&[more("stop"), more("stop")], false);
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
