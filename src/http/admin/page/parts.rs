//! `GET /admin/page/{part}`: what the page shows, as JSON. Each part is bounded, however much there is.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::Value;

use crate::http::admin::query::{PageQuery, QueryParams};
use crate::http::admin::show;
use crate::http::admin::state::AdminState;
use crate::http::error::ApiError;
use crate::http::path_params::PathParams;
use crate::http::rounding::rounded;
use stint_types::units::AccountId;

use super::{decisions, episodes, money, now, playground, requests, thinking};

/// The most entries that a list of one part has.
const ENTRIES_MAX: usize = 200;

/// One part of the page.
pub(in crate::http::admin) async fn part(
    State(admin): State<Arc<AdminState>>,
    PathParams(part): PathParams<String>,
    asked: QueryParams,
) -> Result<Response, ApiError> {
    let query = PageQuery::read(asked, &["limit", "account"])?;
    let (page, gateway) = (admin.require_page()?, admin.require_gateway()?);
    let most = |usual| query.limit.unwrap_or(usual).min(ENTRIES_MAX);
    let value: Value = match part.as_str() {
        "now" => now::part(page, gateway, most(60)),
        "history" => page.history.page().into(),
        "models" => playground::models(&admin, gateway),
        "thinking" => rounded(thinking::part(page, gateway, most(40))),
        "requests" => rounded(requests::part(gateway, most(60))),
        "money" => money::part(page, gateway, &admin.directory, most(20)),
        "decisions" => rounded(decisions::part(gateway, most(50))),
        "episodes" => {
            let account = query.account.as_deref().filter(|path| !path.is_empty());
            let account = account.map(str::parse::<AccountId>).transpose();
            let account =
                account.map_err(|error| ApiError::invalid(Some("account"), format!("is {error}")))?;
            episodes::part(gateway, account.as_ref(), most(20)).await?
        }
        _ => {
            let parts = "there are now, history, models, requests, thinking, money, episodes and decisions";
            return Err(ApiError::not_found(format!("the page has no such part; {parts}")));
        }
    };
    Ok(show::page(&value))
}
