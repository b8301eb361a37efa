//! Keeps a response before its end is told.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::stored::{Kept, ResponseKeeper, StoredResponse};
use crate::gateway::Receipt;
use crate::metrics::Metrics;
use crate::units::{AccountId, RequestId, Timestamp};

use super::output::Item;

/// What is to be kept of a response beside what comes out.
#[derive(Debug, Clone)]
pub(super) struct Keeping {
    pub(super) keeper: ResponseKeeper,
    pub(super) metrics: Arc<Metrics>,
    pub(super) account: AccountId,
    /// The response that it continues.
    pub(super) previous: Option<RequestId>,
    /// What this request put in.
    pub(super) input: Arc<[Value]>,
}

impl Keeping {
    /// Keeps it; says of the response whether that came about.
    pub(super) async fn keep(&self, receipt: &Receipt, now: Timestamp, told: &mut Value, items: &[Item]) {
        let kept = self.keeper.keep(self.record(receipt, now, told, items)).await;
        self.metrics.requests.stored.with_label_values(&[kept.word()]).inc();
        if kept != Kept::Kept {
            told["store"] = false.into();
        }
    }

    fn record(&self, receipt: &Receipt, now: Timestamp, told: &Value, items: &[Item]) -> StoredResponse {
        let mut told = told.clone();
        if items.iter().all(|item| item.shown)
            && let Some(members) = told.as_object_mut()
        {
            members.shift_remove("output");
        }
        let output: Vec<&Value> = items.iter().map(|item| &item.value).collect();
        StoredResponse {
            id: receipt.id,
            account: self.account.clone(),
            at: now,
            previous: self.previous,
            // The run is what the gateway took it for, whether it was named or not.
            episode: receipt.episode.as_ref().map(|run| run.id.clone()),
            input: json!(self.input).to_string().into(),
            output: json!(output).to_string().into(),
            told: told.to_string().into(),
        }
    }
}
