//! What a response goes on from and refers to, out of the stores.

use std::sync::Arc;

use serde_json::Value;

use crate::agent::conversations::{Claim, StoredItem};
use crate::agent::stored::ResponsesError;
use crate::http::bodies::{Held, Room};
use crate::http::error::Problem;
use crate::http::router::Service;
use crate::tenant::Tenant;

use super::before::Before;
use super::conversations::{full, put_in};
use super::items::Conversation;
use super::parse::Asked;
use super::refer::dereference;

/// What a request holds of what it goes on from, until its answer is over.
#[derive(Debug, Default)]
pub(super) struct Recalled {
    /// Room for it, and for what it refers to.
    pub(super) held: Vec<Held>,
    /// The conversation that it lengthens.
    pub(super) joins: Option<Joins>,
}

/// A conversation that an answer lengthens, and by what before it.
#[derive(Debug, Clone)]
pub(super) struct Joins {
    pub(super) claim: Arc<Claim>,
    /// What was put in.
    pub(super) input: Vec<StoredItem>,
}

/// Puts the conversation into the request: what is gone on from, then what was sent, with what that refers to in its place.
/// What is gone on from takes room as a body does.
///
/// # Errors
/// 400 where something is not there for this key, or wrong; 503 where there is no room, or a store does not answer.
pub(super) async fn conversation(
    service: &Service,
    tenant: &Tenant,
    asked: &mut Asked,
    room: Option<&Room>,
) -> Result<Recalled, Problem> {
    let before = Before::find(service, tenant, asked).await?;
    let joined = join(service, tenant, asked, room, &before).await;
    let Before::Conversation(conversation) = before else {
        return joined.map(|(held, _)| Recalled { held, joins: None });
    };
    let claim = conversation.claim;
    match joined {
        Ok((held, input)) => {
            let joins = Joins { claim: Arc::new(claim), input };
            Ok(Recalled { held, joins: Some(joins) })
        }
        Err(problem) => {
            claim.give_back().await;
            Err(problem)
        }
    }
}

/// Joins what was sent to what is gone on from. Gives back the room that is taken, and what a conversation is lengthened by.
async fn join(
    service: &Service,
    tenant: &Tenant,
    asked: &mut Asked,
    room: Option<&Room>,
    before: &Before,
) -> Result<(Vec<Held>, Vec<StoredItem>), Problem> {
    let take = |bytes: usize| room.filter(|_| bytes > 0).map(|room| room.more(bytes)).transpose();
    let size = before.size();
    let held = take(size)?;
    let referred = dereference(service, tenant, &mut asked.input, before.kept()).await?;
    let held = held.into_iter().chain(take(referred)?).collect();
    let (param, items) = (before.param(), before.items());
    let mut conversation = Conversation::new(asked.instructions.as_deref());
    for item in &items {
        conversation.push(param, item)?;
    }
    for (at, item) in asked.input.iter().enumerate() {
        conversation.push(&format!("input[{at}]"), item)?;
    }
    asked.offer.join(conversation.take_offer());
    let choice = asked.choice.take().map(|choice| choice.of(&mut asked.offer));
    asked.request.tool_choice = choice.transpose()?;
    asked.request.tools = asked.offer.tools()?;
    asked.look.kinds = Arc::new(std::mem::take(&mut asked.offer.kinds));
    asked.request.messages = conversation.into_messages()?;
    if asked.request.messages.is_empty() {
        return Err(Problem::invalid(Some("input"), "must have at least one item"));
    }
    if asked.request.budget.episode.is_none() {
        asked.request.budget.episode = before.episode(&asked.request);
    }
    Ok((held, lengthening(service, asked, before, size)?))
}

/// What was sent, as it is kept in the conversation that it lengthens.
fn lengthening(
    service: &Service,
    asked: &Asked,
    before: &Before,
    size: usize,
) -> Result<Vec<StoredItem>, Problem> {
    let Before::Conversation(_) = before else { return Ok(Vec::new()) };
    let input = put_in(&asked.input);
    let more: usize = input.iter().map(StoredItem::size).sum();
    match size + more > service.conversations.settings().history_max {
        true => Err(full("input")),
        false => Ok(input),
    }
}

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

/// The items of a stored list.
pub(super) fn read(list: &str) -> Vec<Value> {
    serde_json::from_str(list).unwrap_or_default()
}
