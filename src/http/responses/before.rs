//! What a request goes on from: a response with all before it, a conversation, or nothing.

use serde_json::Value;

use crate::agent::conversations::{Claim, Claimed, Page, StoredConversation, StoredItem};
use crate::agent::stored::Chain;
use crate::chat::Request;
use crate::http::error::Problem;
use crate::http::router::Service;
use crate::tenant::Tenant;
use crate::units::{ConversationId, EpisodeId, RequestId};

use super::parse::Asked;
use super::recall::{forgetful, read, unknown};
use super::{conversations, name};

/// What a request goes on from.
#[derive(Debug)]
pub(super) enum Before {
    Nothing,
    /// A response and those before it.
    Responses(Chain),
    /// A conversation, which no other request goes on from meanwhile.
    Conversation(Box<Joined>),
}

/// A conversation that a request has a claim on.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) claim: Claim,
    conversation: StoredConversation,
    items: Vec<StoredItem>,
}

impl Before {
    /// Finds it in the stores.
    ///
    /// # Errors
    /// 400 where it is not there for this key, is too long, or is being gone on from; 503 where a store does not answer.
    pub(super) async fn find(service: &Service, tenant: &Tenant, asked: &Asked) -> Result<Before, Problem> {
        Ok(match (asked.previous, asked.conversation) {
            (Some(previous), _) => Before::Responses(continued(service, tenant, previous).await?),
            (None, Some(id)) => Before::Conversation(Box::new(joined(service, tenant, id).await?)),
            (None, None) => Before::Nothing,
        })
    }

    /// The bytes that it takes.
    pub(super) fn size(&self) -> usize {
        match self {
            Before::Nothing => 0,
            Before::Responses(chain) => chain.size(),
            Before::Conversation(joined) => {
                joined.conversation.size() + joined.items.iter().map(StoredItem::size).sum::<usize>()
            }
        }
    }

    /// The member that names it.
    pub(super) fn param(&self) -> &'static str {
        match self {
            Before::Nothing | Before::Responses(_) => "previous_response_id",
            Before::Conversation(_) => "conversation",
        }
    }

    /// Its items, the first first.
    pub(super) fn items(&self) -> Vec<Value> {
        match self {
            Before::Nothing => Vec::new(),
            Before::Responses(chain) => {
                let links = chain.links.iter().rev();
                links.flat_map(|link| [&link.input, &link.output]).flat_map(|list| read(list)).collect()
            }
            Before::Conversation(joined) => joined.items.iter().map(conversations::recalled).collect(),
        }
    }

    /// What stands in the conversation, if it is one.
    pub(super) fn kept(&self) -> &[StoredItem] {
        match self {
            Before::Nothing | Before::Responses(_) => &[],
            Before::Conversation(joined) => &joined.items,
        }
    }

    /// The run that it belongs to. One that has no name yet is named after what is gone on from, once tools are in play.
    pub(super) fn episode(&self, request: &Request) -> Option<EpisodeId> {
        let has_calls = || request.messages.iter().any(|message| !message.tool_calls.is_empty());
        let has_tools = !request.tools.is_empty() || has_calls();
        let (named, own) = match self {
            Before::Nothing => return None,
            Before::Responses(chain) => {
                let named = chain.links.iter().find_map(|link| link.episode.clone());
                (named, name(chain.first()?.id))
            }
            Before::Conversation(joined) => {
                (joined.conversation.episode.clone(), joined.conversation.id.to_string())
            }
        };
        named.or_else(|| own.parse().ok().filter(|_| has_tools))
    }
}

async fn continued(service: &Service, tenant: &Tenant, previous: RequestId) -> Result<Chain, Problem> {
    let found = service.responses.chain(&tenant.account, previous, service.gateway.now()).await;
    let chain = found.map_err(|error| forgetful(&error))?.ok_or_else(unknown)?;
    if chain.size() > service.responses.settings().history_max {
        let why = "brings along more than may be continued here; send a shorter conversation as input";
        return Err(Problem::invalid(Some("previous_response_id"), why).code("context_length_exceeded"));
    }
    let Some(first) = chain.first() else {
        let why = "continues a response that is not kept any more; send the whole conversation as input";
        return Err(Problem::invalid(Some("previous_response_id"), why).code("previous_response_not_found"));
    };
    let told: Value = serde_json::from_str(&first.told).unwrap_or_default();
    if let Some(conversation) = told["conversation"]["id"].as_str() {
        let why =
            format!("names a response that was made in {conversation}; send that as conversation instead");
        return Err(Problem::invalid(Some("previous_response_id"), why));
    }
    Ok(chain)
}

async fn joined(service: &Service, tenant: &Tenant, id: ConversationId) -> Result<Joined, Problem> {
    let (keeper, now) = (&service.conversations, service.gateway.now());
    if !keeper.settings().store {
        return Err(conversations::nothing_is_kept());
    }
    let claimed = keeper.claim(&tenant.account, id, now).await;
    let (conversation, claim) = match claimed.map_err(|error| conversations::forgetful(&error))? {
        (Claimed::Claimed(conversation), Some(claim)) => (conversation, claim),
        (Claimed::Unknown, _) => return Err(conversations::unknown()),
        (Claimed::Busy | Claimed::Claimed(_), _) => return Err(Problem::locked()),
    };
    let placed = keeper.items(&tenant.account, id, Page::ALL, now).await;
    let placed = placed.map_err(|error| conversations::forgetful(&error))?;
    let items = placed.into_iter().map(|placed| placed.item).collect();
    Ok(Joined { claim, conversation, items })
}
