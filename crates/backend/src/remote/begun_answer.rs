//! Requests whose last message is the beginning of the answer, which the model is to continue.

use crate::{Failure, UnsupportedFeature};

/// Why no thought goes with such a request.
pub(super) const NO_THOUGHT: &str = "an answer that goes on from the assistant's message has no thought";

/// The failure of a model that cannot continue one.
pub(super) fn cannot_continue() -> Failure {
    let why =
        "this model cannot go on with an assistant's message: end with the user's, or ask another model";
    Failure::incapable(UnsupportedFeature::Prompt, why)
}
