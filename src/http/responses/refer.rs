//! References to items that lie in the stores.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::agent::stored::StoredResponse;
use crate::http::error::Problem;
use crate::http::router::Service;
use crate::tenant::Tenant;
use crate::units::RequestId;

use super::recall::{forgetful, read};
use super::stored::named;

/// The most responses that the references of one request may lie in.
const REFERRED_MAX: usize = 64;

/// Puts items where references to them stand: those of what is gone on from, and those of any response that is kept.
///
/// # Errors
/// 400 where there is no such item for this key; 503 where the store does not answer.
pub(super) async fn dereference(
    service: &Service,
    tenant: &Tenant,
    input: &mut [Value],
    before: &[Value],
) -> Result<(), Problem> {
    if !input.iter().any(is_reference) {
        return Ok(());
    }
    let at_hand: HashMap<&str, &Value> =
        before.iter().filter_map(|item| Some((item["id"].as_str()?, item))).collect();
    let mut read: BTreeMap<RequestId, StoredResponse> = BTreeMap::new();
    for (at, item) in input.iter_mut().enumerate().filter(|(_, item)| is_reference(item)) {
        let param = format!("input[{at}].id");
        let lost = || {
            let why = "names no item that is kept for this key; send the item itself";
            Problem::invalid(Some(&param), why).code("item_not_found")
        };
        let wanted = item["id"].as_str().unwrap_or_default().to_owned();
        if let Some(&found) = at_hand.get(&*wanted) {
            *item = found.clone();
            continue;
        }
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

/// The kind may be left out where there is nothing but an id.
fn is_reference(item: &Value) -> bool {
    let bare = item["type"].is_null() && item["role"].is_null() && item["id"].is_string();
    item["type"] == "item_reference" || bare
}

/// The response that an item's id tells of: it stands between a word and a number.
fn response_of(item: &str) -> Option<RequestId> {
    item.split('_').nth(1)?.parse().ok()
}

fn referred(kept: &StoredResponse, wanted: &str) -> Option<Value> {
    named(kept).into_iter().chain(read(&kept.output)).find(|item| item["id"] == wanted)
}
