//! Replaces references to stored items by the items. `load_context` calls it.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::http::api_state::ApiState;
use crate::http::error::{ApiError, codes};
use stint_sessions::agent::conversations::StoredItem;
use stint_sessions::agent::stored::StoredResponse;
use stint_types::tenant::Tenant;
use stint_types::units::RequestId;

use super::conversations::visible_item;
use super::errors::responses_unavailable;
use super::item::{input_with_ids, parse_items};

/// The most responses that the references of one request may lie in.
const RESPONSES_MAX: usize = 64;

/// Puts items where references to them stand: those of the conversation, and those of any response that is kept. Says how many
/// bytes they are together.
///
/// # Errors
/// 400 where there is no such item for this key, or more is referred to than a request may bring along; 503 where the store
/// does not answer.
pub(super) async fn dereference(
    service: &ApiState,
    tenant: &Tenant,
    input: &mut [Value],
    conversation: &[StoredItem],
) -> Result<usize, ApiError> {
    if !input.iter().any(is_reference) {
        return Ok(0);
    }
    let at_hand = conversation.iter().map(|item| (&*item.id, item)).collect();
    let mut resolver = ReferenceResolver {
        service,
        tenant,
        conversation: at_hand,
        responses: BTreeMap::new(),
        read: 0,
        found: 0,
    };
    for (at, item) in input.iter_mut().enumerate().filter(|(_, item)| is_reference(item)) {
        let wanted = item["id"].as_str().unwrap_or_default().to_owned();
        *item = resolver.find(&format!("input[{at}].id"), &wanted).await?;
    }
    Ok(resolver.found)
}

/// What may be referred to, as far as it was looked at.
struct ReferenceResolver<'a> {
    service: &'a ApiState,
    tenant: &'a Tenant,
    /// The items of the conversation.
    conversation: HashMap<&'a str, &'a StoredItem>,
    /// The items of each response.
    responses: BTreeMap<RequestId, HashMap<String, Value>>,
    /// The bytes of all these responses.
    read: usize,
    /// The bytes of all that was found.
    found: usize,
}

impl ReferenceResolver<'_> {
    async fn find(&mut self, param: &str, wanted: &str) -> Result<Value, ApiError> {
        if let Some(&item) = self.conversation.get(wanted) {
            self.found += item.value.len();
            self.check(param)?;
            return Ok(visible_item(item));
        }
        let id = response_of(wanted).ok_or_else(|| item_not_found(param))?;
        if !self.responses.contains_key(&id) {
            self.read(param, id).await?;
        }
        let item = self
            .responses
            .get(&id)
            .and_then(|items| items.get(wanted))
            .ok_or_else(|| item_not_found(param))?;
        self.found += item.to_string().len();
        self.check(param)?;
        Ok(item.clone())
    }

    async fn read(&mut self, param: &str, id: RequestId) -> Result<(), ApiError> {
        if self.responses.len() == RESPONSES_MAX {
            return Err(ApiError::invalid(Some(param), "is one reference too many; send the items"));
        }
        let ReferenceResolver { service, tenant, .. } = self;
        let found = service.responses.find(tenant, id, service.gateway.now()).await;
        let found =
            found.map_err(|error| responses_unavailable(&error))?.ok_or_else(|| item_not_found(param))?;
        self.read += found.size();
        self.check(param)?;
        self.responses.insert(id, items_by_id(&found));
        Ok(())
    }

    /// However often something is referred to, it comes along each time.
    fn check(&self, param: &str) -> Result<(), ApiError> {
        let most = self.service.responses.settings().history_max;
        if self.read.max(self.found) <= most {
            return Ok(());
        }
        let why = "is one reference too many: what they lie in, or they together, is more than may be brought along";
        Err(ApiError::invalid(Some(param), why).with_code(codes::CONTEXT_LENGTH_EXCEEDED))
    }
}

fn item_not_found(param: &str) -> ApiError {
    let why = "names no item that is stored for this key; send the item itself";
    ApiError::invalid(Some(param), why).with_code(codes::ITEM_NOT_FOUND)
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

/// What was put in and what came out, by id.
fn items_by_id(kept: &StoredResponse) -> HashMap<String, Value> {
    let by_name = |item: Value| Some((item["id"].as_str()?.to_owned(), item));
    input_with_ids(kept).into_iter().chain(parse_items(&kept.output)).filter_map(by_name).collect()
}
