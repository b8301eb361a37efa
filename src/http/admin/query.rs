//! The query parameters of lists: filters, how many rows, and the row to begin after.

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde_json::{Value, json};

use crate::http::error::{ApiError, codes};

/// The usual and the largest page of a list.
const PAGE: usize = 100;
const PAGE_MAX: usize = 1000;

/// The parameters of a request, as axum takes them apart.
pub(super) type QueryParams = Result<Query<Vec<(String, String)>>, QueryRejection>;

/// A part of a list.
#[derive(Debug, Default)]
pub(super) struct PageQuery {
    /// The last entry of the part before.
    pub(super) after: Option<String>,
    /// How many entries are asked for.
    pub(super) limit: Option<usize>,
    /// Only what belongs to this account.
    pub(super) account: Option<String>,
}

impl PageQuery {
    /// # Errors
    /// 400 that names what is not known or wrong.
    pub(super) fn read(asked: QueryParams, known: &[&str]) -> Result<PageQuery, ApiError> {
        let Query(pairs) = asked.map_err(|error| ApiError::invalid(None, error.to_string()))?;
        let mut span = PageQuery::default();
        for (name, value) in pairs {
            let twice = match name.as_str() {
                _ if !known.contains(&&*name) => {
                    let message = format!("is not known here; these are: {}", known.join(", "));
                    return Err(ApiError::invalid(Some(&name), message).with_code(codes::UNKNOWN_PARAMETER));
                }
                "after" => span.after.replace(value).is_some(),
                "account" => span.account.replace(value).is_some(),
                _ => span.limit.replace(limit(&value)?).is_some(),
            };
            if twice {
                return Err(ApiError::invalid(Some(&name), "is there twice; send it once"));
            }
        }
        Ok(span)
    }

    /// How many entries it has at most.
    pub(super) fn page_size(&self) -> u32 {
        u32::try_from(self.limit.unwrap_or(PAGE)).unwrap_or(u32::MAX)
    }

    /// The part of the list, each entry shown, and where the next part begins.
    ///
    /// # Errors
    /// 400 where nothing of the list is called what the part is to begin after.
    pub(super) fn page<T>(
        &self,
        list: &[T],
        name: impl Fn(&T) -> String,
        show: impl Fn(&T) -> Value,
    ) -> Result<Value, ApiError> {
        let start = match &self.after {
            None => 0,
            Some(after) => {
                let place = list.iter().position(|entry| name(entry) == *after);
                1 + place
                    .ok_or_else(|| ApiError::invalid(Some("after"), "must be the `next` of another page"))?
            }
        };
        let rest = list.get(start..).unwrap_or_default();
        let part = rest.get(..self.limit.unwrap_or(PAGE)).unwrap_or(rest);
        let next = part.last().filter(|_| part.len() < rest.len()).map(name);
        Ok(json!({ "object": "list", "data": part.iter().map(show).collect::<Vec<_>>(), "next": next }))
    }
}

fn limit(text: &str) -> Result<usize, ApiError> {
    let limit = text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
    limit.ok_or_else(|| {
        ApiError::invalid(Some("limit"), format!("must be a whole number from 1 to {PAGE_MAX}"))
    })
}
