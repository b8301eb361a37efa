//! What a request continues: a response with all before it, a conversation, or nothing. `load_context` finds it.

use serde_json::Value;

use crate::http::api_state::ApiState;
use crate::http::error::{ApiError, codes};
use stint_sessions::agent::conversations::{
    ClaimResult, ConversationClaim, ItemPage, StoredConversation, StoredItem,
};
use stint_sessions::agent::stored::ResponseChain;
use stint_types::chat::Request;
use stint_types::tenant::Tenant;
use stint_types::units::{ConversationId, EpisodeId, RequestId};

use super::conversations::model_item;
use super::errors::{
    conversation_not_found, conversations_unavailable, response_not_found, responses_unavailable,
    storage_disabled,
};
use super::id::response_id;
use super::item::parse_items;
use super::parse::ResponsesRequest;

/// What a request continues.
#[derive(Debug)]
pub(super) enum PreviousContext {
    Nothing,
    /// A response and those before it.
    Responses(ResponseChain),
    /// A conversation, which no other request continues meanwhile.
    Conversation(Box<ClaimedConversation>),
}

/// A conversation that a request has a claim on.
#[derive(Debug)]
pub(super) struct ClaimedConversation {
    pub(super) claim: ConversationClaim,
    conversation: StoredConversation,
    items: Vec<StoredItem>,
}

impl PreviousContext {
    /// Finds it in the stores.
    ///
    /// # Errors
    /// 400 where it is not there for this key, is too long, or is being continued; 503 where a store does not answer.
    pub(super) async fn find(
        service: &ApiState,
        tenant: &Tenant,
        asked: &ResponsesRequest,
    ) -> Result<PreviousContext, ApiError> {
        Ok(match (asked.previous, asked.conversation) {
            (Some(previous), _) => PreviousContext::Responses(load_chain(service, tenant, previous).await?),
            (None, Some(id)) => {
                PreviousContext::Conversation(Box::new(claim_conversation(service, tenant, id).await?))
            }
            (None, None) => PreviousContext::Nothing,
        })
    }

    /// The bytes that it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            PreviousContext::Nothing => 0,
            PreviousContext::Responses(chain) => chain.size(),
            PreviousContext::Conversation(joined) => {
                joined.conversation.size() + joined.items.iter().map(StoredItem::size).sum::<usize>()
            }
        }
    }

    /// The member that names it.
    pub(super) fn param(&self) -> &'static str {
        match self {
            PreviousContext::Nothing | PreviousContext::Responses(_) => "previous_response_id",
            PreviousContext::Conversation(_) => "conversation",
        }
    }

    /// Its items, the first first.
    pub(super) fn items(&self) -> Vec<Value> {
        match self {
            PreviousContext::Nothing => Vec::new(),
            PreviousContext::Responses(chain) => {
                let links = chain.responses.iter().rev();
                links
                    .flat_map(|link| [&link.input, &link.output])
                    .flat_map(|list| parse_items(list))
                    .collect()
            }
            PreviousContext::Conversation(joined) => joined.items.iter().map(model_item).collect(),
        }
    }

    /// What stands in the conversation, if it is one.
    pub(super) fn stored_items(&self) -> &[StoredItem] {
        match self {
            PreviousContext::Nothing | PreviousContext::Responses(_) => &[],
            PreviousContext::Conversation(joined) => &joined.items,
        }
    }

    /// The episode that it belongs to. An episode without a name is named after what is continued, once tools are in play.
    pub(super) fn episode(&self, request: &Request) -> Option<EpisodeId> {
        let has_calls = || request.messages.iter().any(|message| !message.tool_calls.is_empty());
        let has_tools = !request.tools.is_empty() || has_calls();
        let (named, own) = match self {
            PreviousContext::Nothing => return None,
            PreviousContext::Responses(chain) => {
                let named = chain.responses.iter().find_map(|link| link.episode.clone());
                (named, response_id(chain.first()?.id))
            }
            PreviousContext::Conversation(joined) => {
                (joined.conversation.episode.clone(), joined.conversation.id.to_string())
            }
        };
        named.or_else(|| own.parse().ok().filter(|_| has_tools))
    }
}

async fn load_chain(
    service: &ApiState,
    tenant: &Tenant,
    previous: RequestId,
) -> Result<ResponseChain, ApiError> {
    let found = service.responses.chain(tenant, previous, service.gateway.now()).await;
    let chain = found.map_err(|error| responses_unavailable(&error))?.ok_or_else(response_not_found)?;
    if chain.size() > service.responses.settings().history_max {
        let why = "brings along more than may be continued here; send a shorter conversation as input";
        return Err(
            ApiError::invalid(Some("previous_response_id"), why).with_code(codes::CONTEXT_LENGTH_EXCEEDED)
        );
    }
    let Some(first) = chain.first() else {
        let why = "continues a response that is no longer stored; send the whole conversation as input";
        return Err(ApiError::invalid(Some("previous_response_id"), why)
            .with_code(codes::PREVIOUS_RESPONSE_NOT_FOUND));
    };
    let body: Value = serde_json::from_str(&first.body).unwrap_or_default();
    if let Some(conversation) = body["conversation"]["id"].as_str() {
        let why =
            format!("names a response that was made in {conversation}; send that as conversation instead");
        return Err(ApiError::invalid(Some("previous_response_id"), why));
    }
    Ok(chain)
}

async fn claim_conversation(
    service: &ApiState,
    tenant: &Tenant,
    id: ConversationId,
) -> Result<ClaimedConversation, ApiError> {
    let (conversations, now) = (&service.conversations, service.gateway.now());
    if !conversations.settings().store {
        return Err(storage_disabled());
    }
    let claimed = conversations.claim(tenant, id, now).await;
    let (conversation, claim) = match claimed.map_err(|error| conversations_unavailable(&error))? {
        (ClaimResult::Granted(conversation), Some(claim)) => (conversation, claim),
        (ClaimResult::Unknown, _) => return Err(conversation_not_found()),
        (ClaimResult::Busy | ClaimResult::Granted(_), _) => return Err(ApiError::conversation_locked()),
    };
    let placed = conversations.items(&conversation, ItemPage::ALL, now).await;
    let placed = placed.map_err(|error| conversations_unavailable(&error))?;
    let items = placed.into_iter().map(|placed| placed.item).collect();
    Ok(ClaimedConversation { claim, conversation, items })
}
