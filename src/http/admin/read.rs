//! Keys and terms as callers of the admin API write them: the configuration's words, in JSON.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::catalog::Catalog;
use stint_types::tenant::{AdminRole, KeyPatch, LimitSelector, Percent, TenantLimit, TermsPatch};
use stint_types::units::{AccountId, Amount, Count, Money, Priority, Timestamp, Tokens, Unit, Window, Zone};

/// The longest time that an old secret may be taken beside the new one.
const GRACE_MAX: Duration = Duration::from_secs(30 * 24 * 3600);

/// The account of a new key: its name below the account that it belongs to.
pub(super) fn account(fields: &mut Fields) -> Result<AccountId, ApiError> {
    let name = fields.require("name")?;
    let path = match fields.text("account")? {
        Some(parent) => format!("{parent}/{name}"),
        None => name,
    };
    path.parse::<AccountId>().map_err(|error| ApiError::invalid(None, error.to_string()))
}

/// Scopes, end and terms of a key, as far as they are stated.
pub(super) fn key(fields: &mut Fields, catalog: &Catalog) -> Result<KeyPatch, ApiError> {
    Ok(KeyPatch {
        models: names(fields, "models", |name| catalog.models.contains_key(name))?,
        routes: names(fields, "routes", |name| catalog.routes.contains_key(name))?,
        role: role(fields)?,
        priority: priority(fields)?,
        expires: expires(fields)?,
        terms: terms(fields, catalog)?,
    })
}

/// Terms of an account, as far as they are stated.
pub(super) fn terms(fields: &mut Fields, catalog: &Catalog) -> Result<TermsPatch, ApiError> {
    let zone = fields.text("time_zone")?.map(|name| name.parse::<Zone>());
    let warn_at = fields.integer("warn_at")?.map(Percent::try_from);
    Ok(TermsPatch {
        limits: limits(fields, catalog)?,
        zone: zone.transpose().map_err(|error| ApiError::invalid(Some("time_zone"), error.to_string()))?,
        warn_at: warn_at
            .transpose()
            .map_err(|error| ApiError::invalid(Some("warn_at"), error.to_string()))?,
    })
}

/// How long a secret is taken beside the one that replaces it; not at all, where nothing is stated.
pub(super) fn grace(fields: &mut Fields) -> Result<Duration, ApiError> {
    let Some(text) = fields.text("grace")? else { return Ok(Duration::ZERO) };
    let grace = text.parse::<jiff::SignedDuration>().ok().and_then(|grace| Duration::try_from(grace).ok());
    let wrong =
        || ApiError::invalid(Some("grace"), "must be a time of at most 30 days, like \"1h\" or \"30m\"");
    grace.filter(|grace| *grace <= GRACE_MAX).ok_or_else(wrong)
}

fn names(
    fields: &mut Fields,
    key: &str,
    known: impl Fn(&str) -> bool,
) -> Result<Option<Vec<Arc<str>>>, ApiError> {
    let Some(list) = fields.list(key)? else { return Ok(None) };
    let one = |(place, value): (usize, Value)| {
        let wrong = |must: String| ApiError::invalid(Some(&format!("{key}[{place}]")), must);
        let name = value.as_str().ok_or_else(|| wrong("must be a string".to_owned()))?;
        if known(name) {
            return Ok(name.into());
        }
        Err(wrong(format!("must be one of the {key} here: there is no {name:?}")))
    };
    list.into_iter().enumerate().map(one).collect::<Result<_, _>>().map(Some)
}

/// `role`, where null is none; or `admin`, which is "all" or none.
fn role(fields: &mut Fields) -> Result<Option<Option<AdminRole>>, ApiError> {
    let is_admin = fields.boolean("admin")?;
    let stated = match fields.take_null("role") {
        true => Some(None),
        false => match fields.text("role")? {
            None => None,
            Some(word) => {
                let must = "must be \"read\", \"keys\" or \"all\", or null for none";
                let role = AdminRole::named(&word).ok_or_else(|| ApiError::invalid(Some("role"), must))?;
                Some(Some(role))
            }
        },
    };
    if stated.is_some() && is_admin.is_some() {
        return Err(ApiError::invalid(Some("admin"), "must be left out beside role, which says more"));
    }
    Ok(stated.or(is_admin.map(|is_admin| is_admin.then_some(AdminRole::All))))
}

fn priority(fields: &mut Fields) -> Result<Option<Priority>, ApiError> {
    let Some(word) = fields.text("priority")? else { return Ok(None) };
    let wrong = || ApiError::invalid(Some("priority"), "must be \"interactive\" or \"batch\"");
    Priority::named(&word).map(Some).ok_or_else(wrong)
}

/// Null is never.
fn expires(fields: &mut Fields) -> Result<Option<Option<Timestamp>>, ApiError> {
    if fields.take_null("expires_at") {
        return Ok(Some(None));
    }
    let Some(text) = fields.text("expires_at")? else { return Ok(None) };
    let moment = text.parse::<Timestamp>();
    moment
        .map(|moment| Some(Some(moment)))
        .map_err(|_| ApiError::invalid(Some("expires_at"), "must be a moment, like \"2027-01-31T12:00:00Z\""))
}

fn limits(fields: &mut Fields, catalog: &Catalog) -> Result<Option<Vec<TenantLimit>>, ApiError> {
    let Some(list) = fields.list("limits")? else { return Ok(None) };
    let mut limits: Vec<TenantLimit> = Vec::new();
    for (place, value) in list.into_iter().enumerate() {
        let path = format!("limits[{place}]");
        let limit = limit(&path, value, catalog)?;
        let same = |other: &TenantLimit| {
            (other.max.unit(), other.window, &other.scope) == (limit.max.unit(), limit.window, &limit.scope)
        };
        if limits.iter().any(same) {
            return Err(ApiError::invalid(Some(&path), "is a second limit of its kind; keep one of them"));
        }
        limits.push(limit);
    }
    Ok(Some(limits))
}

fn limit(path: &str, value: Value, catalog: &Catalog) -> Result<TenantLimit, ApiError> {
    let mut fields = Fields::from_value(path, value)?;
    let max = amount(path, &mut fields)?;
    let per = fields.text("per")?;
    let scope = scope(path, &mut fields, catalog)?;
    fields.finish()?;
    if max == Amount::Concurrency(Count(0)) {
        let must = "must be at least 1: 0 would refuse every request";
        return Err(ApiError::invalid(Some(&format!("{path}.concurrency")), must));
    }
    let wrong = |must: &str| ApiError::invalid(Some(&format!("{path}.per")), must);
    let window = match (max.unit(), per) {
        (Unit::Concurrency, None) => Window::Total,
        (Unit::Concurrency, Some(_)) => {
            return Err(wrong("must be left out: requests at once are not counted over time"));
        }
        (_, per) => {
            let named = |window: &Window| per.as_deref() == Some(&*window.to_string());
            let window = Window::ALL.into_iter().find(named);
            window.ok_or_else(|| wrong("must be one of minute, hour, day, week, month, total"))?
        }
    };
    Ok(TenantLimit::new(window, max).with_selector(scope))
}

fn amount(path: &str, fields: &mut Fields) -> Result<Amount, ApiError> {
    let amounts = [
        money(path, fields)?.map(Amount::Money),
        fields.integer("thinking")?.map(|tokens| Amount::Thinking(Tokens(tokens))),
        fields.integer("requests")?.map(|count| Amount::Requests(Count(count))),
        fields.integer("tool_calls")?.map(|count| Amount::ToolCalls(Count(count))),
        fields.integer("concurrency")?.map(|count| Amount::Concurrency(Count(count))),
    ];
    let mut named = amounts.into_iter().flatten();
    match (named.next(), named.next()) {
        (Some(amount), None) => Ok(amount),
        _ => Err(ApiError::invalid(
            Some(path),
            "must say one of money (\"20\"), thinking, requests, tool_calls and concurrency",
        )),
    }
}

fn money(path: &str, fields: &mut Fields) -> Result<Option<Money>, ApiError> {
    let Some(value) = fields.take("money") else { return Ok(None) };
    let money = serde_json::from_value::<Money>(value);
    money.map(Some).map_err(|error| {
        ApiError::invalid(Some(&format!("{path}.money")), format!("must be dollars as text: {error}"))
    })
}

fn scope(path: &str, fields: &mut Fields, catalog: &Catalog) -> Result<LimitSelector, ApiError> {
    let model = fields.text("model")?;
    if model.as_ref().is_some_and(|name| !catalog.models.contains_key(&**name)) {
        return Err(ApiError::invalid(
            Some(&format!("{path}.model")),
            "names no model; GET /v1/models lists them",
        ));
    }
    let model = model.map(|name| LimitSelector::Model(name.into()));
    let tag = fields.text("tag")?.map(|name| LimitSelector::Tag(name.into()));
    let each = match fields.text("each")?.as_deref() {
        None => None,
        Some("user") => Some(LimitSelector::EachUser),
        Some(_) => return Err(ApiError::invalid(Some(&format!("{path}.each")), "must be \"user\"")),
    };
    let mut named = [model, tag, each].into_iter().flatten();
    match (named.next(), named.next()) {
        (scope, None) => Ok(scope.unwrap_or_default()),
        _ => Err(ApiError::invalid(
            Some(path),
            "must be on one of model, tag and each; write a limit for each",
        )),
    }
}
