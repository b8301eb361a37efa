//! The series of what is kept of answers, for those who come back to them.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, IntCounterVec};

use super::maker::Maker;

/// What is kept of answers.
#[derive(Debug)]
pub struct Kept {
    pub idempotency: IntCounterVec,
    pub stored: IntCounterVec,
    pub joined: IntCounterVec,
}

impl Kept {
    pub(super) fn new(make: &Maker) -> Result<Kept, Error> {
        Ok(Kept {
            idempotency: make.counts(
                "idempotency_total",
                "Requests with an idempotency key, by what there was under it",
                &["outcome"],
            )?,
            stored: make.counts(
                "responses_stored_total",
                "Responses that were to be kept, by what became of them",
                &["outcome"],
            )?,
            joined: make.counts(
                "conversations_lengthened_total",
                "Answers that were to be added to their conversations, by what became of them",
                &["outcome"],
            )?,
        })
    }
}
