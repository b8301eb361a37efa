//! Keeps a response, and lengthens its conversation, before its end is told.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::agent::conversations::ConversationWriteResult;
use crate::agent::stored::{ResponseService, ResponseStoreResult, StoredResponse};
use crate::gateway::RequestReceipt;
use crate::metrics::Metrics;
use crate::units::{AccountId, RequestId, Timestamp};

use super::conversations;
use super::load_context::PendingAppend;
use super::output::OutputItem;

/// What is to be kept of a response beside what comes out.
#[derive(Debug, Clone)]
pub(super) struct ResponseRecorder {
    /// Where it is kept, if it is.
    pub(super) keeper: Option<ResponseService>,
    /// The conversation that it lengthens, if it is in one.
    pub(super) append: Option<PendingAppend>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) account: AccountId,
    /// The response that it continues.
    pub(super) previous: Option<RequestId>,
    /// What this request put in.
    pub(super) input: Arc<[Value]>,
}

impl ResponseRecorder {
    /// Whether it is to be had again.
    pub(super) fn is_stored(&self) -> bool {
        self.keeper.is_some()
    }

    /// Keeps it; says of the response whether that came about.
    pub(super) async fn store(
        &self,
        receipt: &RequestReceipt,
        now: Timestamp,
        told: &mut Value,
        items: &[OutputItem],
    ) {
        if let Some(joins) = &self.append
            && !self.append_to_conversation(joins, receipt, items).await
        {
            told["conversation"] = Value::Null;
        }
        let Some(keeper) = &self.keeper else { return };
        let kept = keeper.keep(self.stored_response(receipt, now, told, items)).await;
        self.metrics.storage.responses.with_label_values(&[kept.as_str()]).inc();
        if kept != ResponseStoreResult::Stored {
            told["store"] = false.into();
        }
    }

    /// Puts what was sent and what came of it at the end of its conversation; false where that did not come about.
    async fn append_to_conversation(
        &self,
        joins: &PendingAppend,
        receipt: &RequestReceipt,
        items: &[OutputItem],
    ) -> bool {
        let said = joins.input.iter().cloned().chain(conversations::stored_output(items)).collect();
        let change = joins.claim.append(said, receipt.episode.as_ref().map(|run| run.id.clone())).await;
        let outcome = change.map_or("failed", ConversationWriteResult::as_str);
        self.metrics.storage.conversations.with_label_values(&[outcome]).inc();
        if change != Some(ConversationWriteResult::Done) {
            let conversation = joins.claim.conversation();
            tracing::warn!(request = %receipt.id, %conversation, outcome, "an answer is missing in its conversation");
        }
        change == Some(ConversationWriteResult::Done)
    }

    fn stored_response(
        &self,
        receipt: &RequestReceipt,
        now: Timestamp,
        told: &Value,
        items: &[OutputItem],
    ) -> StoredResponse {
        let mut told = told.clone();
        if items.iter().all(|item| item.is_visible)
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
            body: told.to_string().into(),
        }
    }
}
