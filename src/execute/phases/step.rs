//! `ChoiceStep`: what the driver must do next.

use stint_backend::GenerationPart;
use stint_types::catalog::SolutionStopReason;
use stint_types::chat::{ChoiceEvent, FinishReason};

/// What to do after a piece.
#[derive(Debug, Clone, PartialEq)]
pub enum ChoiceStep {
    /// Nothing is to be shown.
    Continue,
    /// The caller sees this; more pieces follow.
    Show(ChoiceEvent),
    /// The caller sees this, if anything, and nothing more; what still comes is drained.
    Drain(Option<ChoiceEvent>),
    /// This part is over: drop it and call for the next one.
    Call(GenerationPart),
    /// The caller sees this, if anything; this part is over, and the next one goes on with the answer.
    GoOn(Option<ChoiceEvent>, GenerationPart),
    /// The choice is over; the text that was held back, if any, is shown first.
    Finish(Option<ChoiceEvent>, FinishReason),
}

/// How a choice ends, for its account and for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChoiceEnd {
    /// What ended its answer.
    pub(super) reason: SolutionStopReason,
    /// The finish reason for its caller.
    pub(super) finish: FinishReason,
}

impl ChoiceEnd {
    /// The answer came to its own end, or to a stop text.
    pub(super) const STOPPED: ChoiceEnd =
        ChoiceEnd { reason: SolutionStopReason::Stop, finish: FinishReason::Stop };

    /// Something broke the answer off.
    pub(super) fn broken_off(reason: SolutionStopReason) -> ChoiceEnd {
        ChoiceEnd { reason, finish: FinishReason::Length }
    }
}

/// Shows text of the answer, if there is any.
pub(super) fn visible_answer(text: String) -> Option<ChoiceEvent> {
    (!text.is_empty()).then_some(ChoiceEvent::Answer(text))
}
