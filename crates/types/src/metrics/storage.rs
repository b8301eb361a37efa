//! The series of what is kept of answers, for those who come back to them.

#![expect(missing_docs, reason = "each series carries its help text")]

use prometheus::{Error, IntCounterVec};

use super::factory::MetricFactory;

/// What is kept of answers.
#[derive(Debug)]
pub struct StorageMetrics {
    pub idempotency: IntCounterVec,
    pub responses: IntCounterVec,
    pub conversations: IntCounterVec,
}

impl StorageMetrics {
    pub(super) fn new(make: &MetricFactory) -> Result<StorageMetrics, Error> {
        Ok(StorageMetrics {
            idempotency: make.counter_vec(
                "idempotency_total",
                "Requests with an idempotency key, by what there was under it",
                &["outcome"],
            )?,
            responses: make.counter_vec(
                "responses_stored_total",
                "Responses that were to be kept, by what became of them",
                &["outcome"],
            )?,
            conversations: make.counter_vec(
                "conversations_lengthened_total",
                "Answers that were to be added to their conversations, by what became of them",
                &["outcome"],
            )?,
        })
    }
}
