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
    pub(super) fn new(make: &MetricFactory<'_>) -> Result<StorageMetrics, Error> {
        let storage = StorageMetrics {
            idempotency: make.counter_vec(
                "idempotency_total",
                "Requests with an idempotency key, by what was found under it",
                &["outcome"],
            )?,
            responses: make.counter_vec(
                "responses_stored_total",
                "Responses to be stored, by outcome",
                &["outcome"],
            )?,
            conversations: make.counter_vec(
                "conversations_lengthened_total",
                "Answers to be added to their conversations, by outcome",
                &["outcome"],
            )?,
        };
        for outcome in ["kept", "too_large", "failed"] {
            storage.responses.with_label_values(&[outcome]);
        }
        for outcome in ["done", "full", "busy", "unknown", "failed"] {
            storage.conversations.with_label_values(&[outcome]);
        }
        Ok(storage)
    }
}
