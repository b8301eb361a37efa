//! What a response continues and refers to, out of the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::agent::stored::{Chain, ResponsesError, StoredResponse};
use crate::chat::Request;
use crate::http::bodies::{Held, Room};
use crate::http::error::Problem;
use crate::http::router::Service;
use crate::tenant::Tenant;
use crate::units::{EpisodeId, RequestId};

use super::items::Conversation;
use super::name;
use super::parse::Asked;

/// The most responses that the references of one request may lie in.
const REFERRED_MAX: usize = 64;

/// A response that there is not, that was too long ago, or that is somebody else's: it says the same of all.
pub(super) fn unknown() -> Problem {
    let why = "names no response that is kept for this key; send the whole conversation as input";
    Problem::invalid(Some("previous_response_id"), why).code("previous_response_not_found")
}

/// The store does not answer.
pub(super) fn forgetful(error: &ResponsesError) -> Problem {
    tracing::error!(error = error as &dyn std::error::Error, "responses cannot be read");
    let message = "what is kept of responses cannot be read right now; try again shortly";
    Problem::overloaded(message.to_owned(), std::time::Duration::from_secs(2))
}

/// Puts the conversation into the request: what is continued, then what was sent, with what that refers to in its place.
/// What is continued takes room as a body does.
pub(super) async fn conversation(
    service: &Service,
    tenant: &Tenant,
    asked: &mut Asked,
    room: Option<&Room>,
) -> Result<Option<Held>, Problem> {
    let chain = match asked.previous {
        Some(previous) => Some(continued(service, tenant, previous).await?),
        None => None,
    };
    let size = chain.as_ref().map_or(0, Chain::size);
    let held = room.filter(|_| size > 0).map(|room| room.more(size)).transpose()?;
    dereference(service, tenant, &mut asked.input).await?;
    let mut conversation = Conversation::new(asked.instructions.as_deref());
    for link in chain.iter().flat_map(|chain| chain.links.iter().rev()) {
        for item in [&link.input, &link.output].into_iter().flat_map(|text| read(text)) {
            conversation.push("previous_response_id", &item)?;
        }
    }
    for (at, item) in asked.input.iter().enumerate() {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    asked.offer.join(conversation.take_offer())?;
    asked.request.tools = asked.offer.tools()?;
    asked.look.kinds = Arc::new(std::mem::take(&mut asked.offer.kinds));
    asked.request.messages = conversation.into_messages()?;
    if asked.request.messages.is_empty() {
        return Err(Problem::invalid(Some("input"), "must have at least one item"));
    }
    if asked.request.budget.episode.is_none() {
        asked.request.budget.episode = chain.and_then(|chain| episode(&chain, &asked.request));
    }
    Ok(held)
}

/// The items of a stored list.
pub(super) fn read(list: &str) -> Vec<Value> {
    serde_json::from_str(list).unwrap_or_default()
}

async fn continued(service: &Service, tenant: &Tenant, previous: RequestId) -> Result<Chain, Problem> {
    let found = service.responses.chain(&tenant.account, previous, service.gateway.now()).await;
    let chain = found.map_err(|error| forgetful(&error))?.ok_or_else(unknown)?;
    if chain.size() > service.responses.settings().history_max {
        let why = "brings along more than may be continued here; send a shorter conversation as input";
        return Err(Problem::invalid(Some("previous_response_id"), why).code("context_length_exceeded"));
    }
    if chain.first().is_none() {
        let why = "continues a response that is not kept any more; send the whole conversation as input";
        return Err(Problem::invalid(Some("previous_response_id"), why).code("previous_response_not_found"));
    }
    Ok(chain)
}

/// The run of what is continued. One that has no name yet is named after its first response, once tools are in play.
fn episode(chain: &Chain, request: &Request) -> Option<EpisodeId> {
    let has_tools =
        !request.tools.is_empty() || request.messages.iter().any(|message| !message.tool_calls.is_empty());
    let named = chain.links.iter().find_map(|link| link.episode.clone());
    named.or_else(|| name(chain.first().filter(|_| has_tools)?.id).parse().ok())
}

/// Puts stored items where references to them stand.
async fn dereference(service: &Service, tenant: &Tenant, input: &mut [Value]) -> Result<(), Problem> {
    let mut read: BTreeMap<RequestId, StoredResponse> = BTreeMap::new();
    for (at, item) in input.iter_mut().enumerate() {
        // The kind may be left out where there is nothing but an id.
        let bare = item["type"].is_null() && item["role"].is_null() && item["id"].is_string();
        if item["type"] != "item_reference" && !bare {
            continue;
        }
        let param = format!("input[{at}].id");
        let lost = || {
            let why = "names no item that is kept for this key; send the item itself";
            Problem::invalid(Some(&param), why).code("item_not_found")
        };
        let wanted = item["id"].as_str().unwrap_or_default().to_owned();
        let id = response_of(&wanted).ok_or_else(lost)?;
        if !read.contains_key(&id) {
            if read.len() == REFERRED_MAX {
                return Err(Problem::invalid(Some(&param), "is one reference too many; send the items"));
            }
            let found = service.responses.find(&tenant.account, id, service.gateway.now()).await;
            let found = found.map_err(|error| forgetful(&error))?.ok_or_else(lost)?;
            read.insert(id, found);
        }
        *item = read.get(&id).and_then(|kept| referred(kept, &wanted)).ok_or_else(lost)?;
    }
    Ok(())
}

/// The response that an item's id tells of: it stands between a word and a number.
fn response_of(item: &str) -> Option<RequestId> {
    item.split('_').nth(1)?.parse().ok()
}

fn referred(kept: &StoredResponse, wanted: &str) -> Option<Value> {
    let input = super::stored::named(kept);
    input.into_iter().chain(read(&kept.output)).find(|item| item["id"] == wanted)
}
