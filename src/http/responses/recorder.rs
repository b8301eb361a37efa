//! Stores a finished response and appends it to its conversation, before its end is sent.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::gateway::{Gateway, RequestReceipt};
use stint_sessions::agent::conversations::ConversationWriteResult;
use stint_sessions::agent::stored::{ResponseService, ResponseStoreResult, StoredResponse};
use stint_types::metrics::Metrics;
use stint_types::tasks::{text_bytes, write_json};
use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, RequestId};

use super::conversations;
use super::load_context::PendingAppend;
use super::output::OutputItem;

/// Stores a response. What of it is known before the answer comes.
#[derive(Debug, Clone)]
pub(super) struct ResponseRecorder {
    /// The store, if it is to be stored.
    pub(super) responses: Option<ResponseService>,
    /// The conversation that it is appended to, if there is one.
    pub(super) append: Option<PendingAppend>,
    pub(super) metrics: Arc<Metrics>,
    /// Tells the time by which it is kept, which replicas share.
    pub(super) gateway: Gateway,
    pub(super) account: AccountId,
    pub(super) key: KeyId,
    /// The response that it continues.
    pub(super) previous: Option<RequestId>,
    /// What this request put in.
    pub(super) input: Arc<[Value]>,
}

impl ResponseRecorder {
    /// Whether it is stored.
    pub(super) fn is_stored(&self) -> bool {
        self.responses.is_some()
    }

    /// Stores it, and notes in the response where that failed.
    pub(super) async fn store(&self, receipt: &RequestReceipt, response: &mut Value, items: &[OutputItem]) {
        if let Some(append) = &self.append
            && !self.append_to_conversation(append, receipt, items).await
        {
            response["conversation"] = Value::Null;
        }
        let Some(responses) = &self.responses else { return };
        let stored = match responses.refusal(receipt.id, &self.account, self.input_bytes()) {
            Some(refusal) => refusal,
            None => match self.stored_response(receipt, response, items).await {
                Some(response) => responses.keep(response).await,
                None => ResponseStoreResult::Failed,
            },
        };
        self.metrics.storage.responses.with_label_values(&[stored.as_str()]).inc();
        if stored != ResponseStoreResult::Stored {
            response["store"] = false.into();
        }
    }

    /// Appends the input and the answer to the conversation; false if that failed.
    async fn append_to_conversation(
        &self,
        append: &PendingAppend,
        receipt: &RequestReceipt,
        items: &[OutputItem],
    ) -> bool {
        let added = append.input.iter().cloned().chain(conversations::stored_output(items)).collect();
        let change =
            append.claim.append(added, receipt.episode.as_ref().map(|episode| episode.id.clone())).await;
        let outcome = change.map_or("failed", ConversationWriteResult::as_str);
        self.metrics.storage.conversations.with_label_values(&[outcome]).inc();
        if change != Some(ConversationWriteResult::Done) {
            let conversation = append.claim.conversation();
            tracing::warn!(request = %receipt.id, %conversation, outcome, "an answer is missing in its conversation");
        }
        change == Some(ConversationWriteResult::Done)
    }

    /// As it is kept; nothing where it cannot be written.
    async fn stored_response(
        &self,
        receipt: &RequestReceipt,
        response: &Value,
        items: &[OutputItem],
    ) -> Option<StoredResponse> {
        let input = write_json(self.input.clone(), self.input_bytes()).await.ok()?;
        let mut response = response.clone();
        if items.iter().all(|item| item.is_visible)
            && let Some(members) = response.as_object_mut()
        {
            members.shift_remove("output");
        }
        let output: Vec<&Value> = items.iter().map(|item| &item.value).collect();
        Some(StoredResponse {
            id: receipt.id,
            account: self.account.clone(),
            key: Some(self.key),
            at: self.gateway.now(),
            previous: self.previous,
            // The gateway may have found the episode without a name.
            episode: receipt.episode.as_ref().map(|episode| episode.id.clone()),
            input: input.into(),
            output: json!(output).to_string().into(),
            body: response.to_string().into(),
        })
    }

    /// How many bytes its input takes at least.
    fn input_bytes(&self) -> usize {
        self.input.iter().map(text_bytes).sum()
    }
}
