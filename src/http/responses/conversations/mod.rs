//! `/v1/conversations`: items that callers keep here, and that responses go on from and lengthen.

mod items;
mod kept;
mod objects;

pub(in crate::http) use items::{append, item, list, remove};
pub(super) use kept::{put_in, recalled, said, shown};
pub(in crate::http) use objects::{create, delete, describe, retrieve};

use std::sync::Arc;

use axum::http::HeaderMap;
use serde_json::Value;

use crate::agent::conversations::{Change, ConversationsError, StoredItem};
use crate::http::auth;
use crate::http::error::Problem;
use crate::http::router::Service;
use crate::tenant::Tenant;
use crate::units::ConversationId;

use super::items::Conversation;

/// Whose conversations, and which of them.
struct Asked {
    tenant: Arc<Tenant>,
    id: ConversationId,
}

/// Who asks for which conversation.
fn asked(service: &Service, headers: &HeaderMap, id: &str) -> Result<Asked, Problem> {
    let tenant = auth::tenant(&service.keys, headers)?;
    let id = id.parse().map_err(|_| unknown())?;
    Ok(Asked { tenant, id })
}

/// The items of a list that a caller puts in, whole and named.
///
/// # Errors
/// 400 where there are too many at once, or one is not an item.
fn taken(items: &[Value], most: usize) -> Result<Vec<StoredItem>, Problem> {
    if items.len() > most {
        let why = format!("may have {most} items at once; add the others after them");
        return Err(Problem::invalid(Some("items"), why));
    }
    let mut conversation = Conversation::default();
    for (at, item) in items.iter().enumerate() {
        conversation.push(&format!("items[{at}]"), item)?;
    }
    Ok(put_in(items))
}

/// The problem with a change that is not made.
fn made(change: Change, unknown: fn() -> Problem) -> Result<(), Problem> {
    match change {
        Change::Done => Ok(()),
        Change::Busy => Err(Problem::locked()),
        Change::Full => Err(full("items")),
        Change::Unknown => Err(unknown()),
    }
}

/// It says the same of what there never was, of what is gone, and of what is somebody else's.
pub(super) fn unknown() -> Problem {
    Problem::not_found("this key has no conversation of that id, or it is not kept any more")
        .code("conversation_not_found")
}

/// The conversation would be longer than one may be.
pub(super) fn full(param: &str) -> Problem {
    let why = "would make the conversation longer than is kept; delete items of it, or begin another one";
    Problem::invalid(Some(param), why).code("context_length_exceeded")
}

/// The operator keeps nothing.
pub(super) fn nothing_is_kept() -> Problem {
    let why = "cannot be kept: this gateway keeps nothing of responses; send all of it as input";
    Problem::invalid(Some("conversation"), why).code("conversations_not_kept")
}

/// The store does not answer.
pub(super) fn forgetful(error: &ConversationsError) -> Problem {
    tracing::error!(error = error as &dyn std::error::Error, "the store of conversations failed");
    let message = "what is kept of conversations cannot be read or changed right now; try again shortly";
    Problem::overloaded(message.to_owned(), std::time::Duration::from_secs(2))
}
