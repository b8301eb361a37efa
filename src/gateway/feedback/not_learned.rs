//! Why a verdict that is recorded teaches nothing.

/// Why nothing is learned from a verdict, in words for who gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotLearned {
    /// Its account has used up its influence for now.
    #[error(
        "this account's words have counted all that they may within an hour (feedback_max = {most} in [learn]); \
         the operator lifts that for a key with feedback = \"trusted\""
    )]
    InfluenceSpent {
        /// What one account's words may weigh within an hour.
        most: u32,
    },
    /// The same was said before.
    #[error("the same was said of this answer before")]
    Unchanged,
    /// A changed verdict counts what the first one did, and that was nothing.
    #[error("a changed word counts what the first one on this answer did, and that counted nothing")]
    FirstUncounted,
    /// The answer broke off or failed.
    #[error("the answer did not come to its end, so that it shows little of its model")]
    Unfinished,
    /// Several answers were compared.
    #[error("the answer was chosen among several, so that it shows little of how often one is right")]
    Chosen,
    /// The model that answered was not among those that were weighed.
    #[error("nothing was predicted for the model that answered, so there is nothing to correct")]
    Unpredicted,
    /// There is no room in the learner's queue.
    #[error("too much is waiting to be learned just now")]
    Busy,
}
