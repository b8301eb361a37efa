//! Keeps a response, and lengthens its conversation, before its end is told.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::conversations::Change;
use crate::agent::stored::{Kept, ResponseKeeper, StoredResponse};
use crate::gateway::Receipt;
use crate::metrics::Metrics;
use crate::units::{AccountId, RequestId, Timestamp};

use super::conversations;
use super::output::Item;
use super::recall::Joins;

/// What is to be kept of a response beside what comes out.
#[derive(Debug, Clone)]
pub(super) struct Keeping {
    /// Where it is kept, if it is.
    pub(super) keeper: Option<ResponseKeeper>,
    /// The conversation that it lengthens, if it is in one.
    pub(super) joins: Option<Joins>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) account: AccountId,
    /// The response that it continues.
    pub(super) previous: Option<RequestId>,
    /// What this request put in.
    pub(super) input: Arc<[Value]>,
}

impl Keeping {
    /// Whether it is to be had again.
    pub(super) fn stores(&self) -> bool {
        self.keeper.is_some()
    }

    /// Keeps it; says of the response whether that came about.
    pub(super) async fn keep(&self, receipt: &Receipt, now: Timestamp, told: &mut Value, items: &[Item]) {
        if let Some(joins) = &self.joins
            && !self.lengthened(joins, receipt, items).await
        {
            told["conversation"] = Value::Null;
        }
        let Some(keeper) = &self.keeper else { return };
        let kept = keeper.keep(self.record(receipt, now, told, items)).await;
        self.metrics.kept.stored.with_label_values(&[kept.word()]).inc();
        if kept != Kept::Kept {
            told["store"] = false.into();
        }
    }

    /// Puts what was sent and what came of it at the end of its conversation; false where that did not come about.
    async fn lengthened(&self, joins: &Joins, receipt: &Receipt, items: &[Item]) -> bool {
        let said = joins.input.iter().cloned().chain(conversations::said(items)).collect();
        let change = joins.claim.lengthen(said, receipt.episode.as_ref().map(|run| run.id.clone())).await;
        let outcome = change.map_or("failed", Change::word);
        self.metrics.kept.joined.with_label_values(&[outcome]).inc();
        if change != Some(Change::Done) {
            let conversation = joins.claim.conversation();
            tracing::warn!(request = %receipt.id, %conversation, outcome, "an answer is missing in its conversation");
        }
        change == Some(Change::Done)
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
