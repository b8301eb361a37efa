//! `GET /v1/usage`: what this key used, and what is below it.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde_json::{Map, Value, json};

use crate::gateway::RequestRefusal;
use stint_ledger::{AccountId, GroupBy, GroupUsage, UsageGroup, UsageQuery};
use stint_types::units::Timestamp;

use super::api_state::ApiState;
use super::auth;
use super::error::ApiError;
use super::json_response::json_response;

/// How far back one looks who does not say.
const LOOK_BACK: Duration = Duration::from_secs(31 * 24 * 3600);
const LIMIT_USUAL: usize = 100;
const LIMIT_MAX: usize = 1000;

const PARAMETERS: [&str; 5] = ["from", "to", "group_by", "limit", "after"];

/// Groups of what was used, a page of them.
pub(super) async fn usage(
    State(service): State<Arc<ApiState>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Result<Response, ApiError> {
    let tenant = auth::tenant(&service, &headers)?;
    let usage_query = read(query.as_deref().unwrap_or(""), &tenant.account, service.gateway.now())?;
    // One more tells whether there is another page.
    let one_more = UsageQuery { limit: usage_query.limit + 1, ..usage_query.clone() };
    let found = service
        .gateway
        .usage(&one_more)
        .await
        .map_err(|error| ApiError::from(RequestRefusal::Ledger(error)))?;
    Ok(json_response(&page(&usage_query, found)))
}

/// Reads the question without mercy: what is not known or is there twice is an error, not a choice.
fn read(query: &str, account: &AccountId, now: Timestamp) -> Result<UsageQuery, ApiError> {
    let mut values: [Option<String>; PARAMETERS.len()] = Default::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let Some(place) = PARAMETERS.iter().position(|known| *known == name) else {
            let message = format!("is not known here; there are {}", PARAMETERS.join(", "));
            return Err(ApiError::invalid(Some(&name), message));
        };
        if values[place].replace(value.into_owned()).is_some() {
            return Err(ApiError::invalid(Some(&name), "is there twice; send it once"));
        }
    }
    let [from, to, group_by, limit, after] = values;
    // What was admitted at this very moment is part of it.
    let until_now = now + Duration::from_millis(1);
    let to = to.map_or(Ok(until_now), |text| moment("to", &text))?;
    let usual = Timestamp(to.0.saturating_sub(i64::try_from(LOOK_BACK.as_millis()).unwrap_or(i64::MAX)));
    let from = from.map_or(Ok(usual), |text| moment("from", &text))?;
    if from >= to {
        return Err(ApiError::invalid(Some("from"), "must be before to"));
    }
    Ok(UsageQuery {
        account: Some(account.clone()),
        from,
        to,
        by: group_by.map_or(Ok(GroupBy::default()), |text| groups(&text))?,
        after: after.map(|text| group(&text)).transpose()?,
        limit: limit.map_or(Ok(LIMIT_USUAL), |text| limit_of(&text))?,
    })
}

fn moment(name: &str, text: &str) -> Result<Timestamp, ApiError> {
    text.parse().map_err(|error| ApiError::invalid(Some(name), format!("is {error}")))
}

fn limit_of(text: &str) -> Result<usize, ApiError> {
    let number = text.parse().ok().filter(|number| (1..=LIMIT_MAX).contains(number));
    number.ok_or_else(|| {
        ApiError::invalid(Some("limit"), format!("must be a whole number from 1 to {LIMIT_MAX}"))
    })
}

fn groups(text: &str) -> Result<GroupBy, ApiError> {
    let mut by = GroupBy::default();
    for word in text.split(',') {
        let known = match word {
            "day" => &mut by.day,
            "key" => &mut by.key,
            "model" => &mut by.model,
            _ => {
                return Err(ApiError::invalid(
                    Some("group_by"),
                    "must be some of model, key, day, with commas",
                ));
            }
        };
        if std::mem::replace(known, true) {
            return Err(ApiError::invalid(Some("group_by"), format!("has {word} twice")));
        }
    }
    Ok(by)
}

/// The cursor: the last group of a page, in a form that nobody is tempted to write by hand.
fn cursor(group: &UsageGroup) -> String {
    let text = json!([group.day.0, &*group.key, &*group.model]).to_string();
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn group(text: &str) -> Result<UsageGroup, ApiError> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = text.as_bytes().chunks(2).map(|pair| match *pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    let bytes: Option<Vec<u8>> = pairs.collect();
    let read = bytes.and_then(|bytes| serde_json::from_slice::<(i64, Arc<str>, Arc<str>)>(&bytes).ok());
    let (day, key, model) =
        read.ok_or_else(|| ApiError::invalid(Some("after"), "is no `next` of an earlier page"))?;
    Ok(UsageGroup { day: Timestamp(day), key, model })
}

fn page(query: &UsageQuery, mut found: Vec<GroupUsage>) -> Value {
    let has_more = found.len() > query.limit;
    found.truncate(query.limit);
    let next = found.last().filter(|_| has_more).map(|last| cursor(&last.group));
    json!({
        "object": "list",
        "from": query.from,
        "to": query.to,
        "data": found.iter().map(|usage| line(query.by, usage)).collect::<Vec<_>>(),
        "has_more": has_more,
        "next": next,
    })
}

fn line(by: GroupBy, usage: &GroupUsage) -> Value {
    let (group, sums) = (&usage.group, &usage.sums);
    let mut line = Map::new();
    if by.day {
        let moment = group.day.to_string();
        line.insert("day".into(), moment.split('T').next().unwrap_or(&moment).into());
    }
    if by.key {
        line.insert("key".into(), (*group.key).into());
    }
    if by.model {
        line.insert("model".into(), Some(&*group.model).filter(|model| !model.is_empty()).into());
    }
    let counts = [
        ("requests", json!(sums.spent.requests)),
        ("spent_usd", json!(sums.spent.money)),
        ("overrun_usd", json!(sums.overrun)),
        ("prompt_tokens", json!(sums.prompt)),
        ("thinking_tokens", json!(sums.spent.thinking)),
        ("solution_tokens", json!(sums.solution)),
        ("overhead_tokens", json!(sums.overhead)),
        ("other_tokens", json!(sums.other)),
        ("tool_calls", json!(sums.spent.tool_calls)),
    ];
    line.extend(counts.into_iter().map(|(name, count)| (name.to_owned(), count)));
    Value::Object(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_at_noon(query: &str) -> Result<UsageQuery, ApiError> {
        read(query, &AccountId::new("acme"), Timestamp(1_795_176_000_000))
    }

    fn check(query: &str, message: &str) {
        let problem = read_at_noon(query).unwrap_err();
        assert_eq!(problem.message(), message, "{query}");
    }

    #[test]
    fn a_question_that_is_not_understood_names_its_parameter() {
        check("form=2026-11-20", "form is not known here; there are from, to, group_by, limit, after");
        check("limit=1&limit=2", "limit is there twice; send it once");
        check("limit=0", "limit must be a whole number from 1 to 1000");
        check("limit=1e3", "limit must be a whole number from 1 to 1000");
        check("group_by=user", "group_by must be some of model, key, day, with commas");
        check("group_by=day,day", "group_by has day twice");
        check("from=2026-11-20&to=2026-11-20", "from must be before to");
        check("after=zz", "after is no `next` of an earlier page");
        let moment = "not a moment: write a day like 2026-11-20, which begins in UTC, or a time like 2026-11-20T08:00:00Z";
        check("from=yesterday", &format!("from is {moment}"));
    }

    #[test]
    fn who_says_nothing_sees_a_month_in_one_line() {
        let asked = read_at_noon("").unwrap();
        assert_eq!((asked.to.0 - asked.from.0) / 86_400_000, 31);
        assert_eq!((asked.by, asked.limit), (GroupBy::default(), LIMIT_USUAL));
    }

    #[test]
    fn a_cursor_leads_back_to_its_group() {
        let before = UsageGroup { day: Timestamp(-5), key: "acme/Müller".into(), model: "m\"".into() };
        assert_eq!(group(&cursor(&before)).unwrap(), before);
    }
}
