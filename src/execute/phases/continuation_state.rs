//! The state that the phase machine keeps of an answer, so that another call can continue it.

use std::sync::Arc;

use stint_backend::Thought;
use stint_types::catalog::SolutionStopReason;

/// How far the rest of an answer has come.
#[derive(Debug, Clone, Default)]
pub(super) struct ContinuationState {
    /// The thought that stands before the answer, where one was resumed from.
    prior_thought: Arc<Thought>,
    /// Another call is paid for.
    granted: bool,
    /// Why none is.
    denied: Option<SolutionStopReason>,
    /// Another call was made, and nothing has come from it yet.
    is_pending: bool,
    /// The blank that the answer had ended with. It is not sent, so the next call writes it again.
    trailing_blank: String,
}

impl ContinuationState {
    /// The answer is asked for behind this thought.
    pub(super) fn set_prior_thought(&mut self, thought: &Arc<Thought>) {
        self.prior_thought.clone_from(thought);
    }

    /// The thought that stands before the answer.
    pub(super) fn prior_thought(&self) -> Arc<Thought> {
        self.prior_thought.clone()
    }

    /// Another call is paid for.
    pub(super) fn grant(&mut self) {
        self.granted = true;
    }

    /// True once where another call is paid for.
    pub(super) fn take_grant(&mut self) -> bool {
        std::mem::take(&mut self.granted)
    }

    /// No other call is paid for.
    pub(super) fn deny(&mut self, reason: SolutionStopReason) {
        self.denied = Some(reason);
    }

    /// Why there is no other call, where one was asked for.
    pub(super) fn denied(&self) -> Option<SolutionStopReason> {
        self.denied
    }

    /// A call that continues the answer is made, or has failed.
    pub(super) fn set_pending(&mut self, is_pending: bool) {
        self.is_pending = is_pending;
    }

    /// True while nothing has come of a call that continues the answer.
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// The answer so far, without the blank that it ends with.
    pub(super) fn split_trailing_blank(&mut self, answer: &str) -> String {
        let sent = answer.trim_end();
        answer[sent.len()..].clone_into(&mut self.trailing_blank);
        sent.to_owned()
    }

    /// The text without the blank that its reader has already.
    pub(super) fn strip_repeated_blank<'t>(&mut self, text: &'t str) -> &'t str {
        self.is_pending &= text.is_empty();
        let mut text = text;
        while let (Some(had), Some(next)) = (self.trailing_blank.chars().next(), text.chars().next()) {
            if had != next {
                self.trailing_blank.clear();
                break;
            }
            self.trailing_blank.remove(0);
            text = &text[next.len_utf8()..];
        }
        text
    }
}
