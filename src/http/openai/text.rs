//! Reads a request for a plain completion, which continues a text, into the canonical request.

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::{budget, unknown_members};
use stint_types::chat::{Budget, RawPrompt, Request};
use stint_types::units::Tokens;

use super::parse::{self, OpenAiDeliveryOptions};

/// What OpenAI writes where the caller does not say how much.
const DEFAULT_TOKENS: Tokens = Tokens(16);

/// Reads the members of a completion's body, and its headers.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn read_text(
    members: Map<String, Value>,
    headers: &HeaderMap,
) -> Result<(Request, OpenAiDeliveryOptions), ApiError> {
    let mut fields = Fields::from_body(members);
    let model = fields.model()?;
    let mut stated = budget::extension_only(&mut fields, headers)?;
    check_unsupported(&mut fields)?;
    let prompt = prompt(&mut fields)?;
    let stream = fields.boolean("stream")?.unwrap_or(false);
    let choices = parse::choices(&mut fields)?;
    parse::best_of(&mut fields, choices)?;
    // The least wins, as everywhere.
    for param in ["max_tokens"].into_iter().chain(budget::TOTALS) {
        let own = budget::token_limit(&mut fields, param)?.map(Tokens);
        if own.is_some_and(|own| stated.solution.is_none_or(|least| own < least)) {
            (stated.solution, stated.members.solution) = (own, param);
        }
    }
    let wanted = OpenAiDeliveryOptions {
        stream,
        include_usage: parse::include_usage(&mut fields, stream)?,
        thoughts: false,
    };
    let extra = parse::passed_members(&mut fields)?;
    let named = budget::from_metadata(&extra)?;
    let request = Request {
        sampling: parse::sampling(&mut fields)?,
        choices,
        extra,
        budget: Budget {
            thinking: Some(Tokens::ZERO),
            solution: Some(stated.solution.unwrap_or(DEFAULT_TOKENS)),
            episode: stated.episode.or(named),
            ..stated
        },
        streams: stream,
        ..match prompt {
            RawPrompt::Text(text) => Request::text(model, text),
            RawPrompt::Ids(ids) => Request::tokens(model, ids),
        }
    };
    Ok((Request { unknown_members: unknown_members::take_unknown(&mut fields)?, ..request }, wanted))
}

/// What is to go on: a text or the ids of its tokens. Lists of several mean that as many answers are wanted in one: they are
/// asked for one by one here.
fn prompt(fields: &mut Fields) -> Result<RawPrompt, ApiError> {
    let must = "must be one text, or the token ids of one; ask for several one by one";
    let wrong = || ApiError::invalid(Some("prompt"), must);
    match fields.take("prompt") {
        Some(Value::String(text)) => Ok(RawPrompt::Text(text)),
        Some(Value::Array(mut list)) if list.len() == 1 && !list[0].is_number() => match list.pop() {
            Some(Value::String(text)) => Ok(RawPrompt::Text(text)),
            Some(Value::Array(ids)) => token_ids(&ids).ok_or_else(wrong),
            _ => Err(wrong()),
        },
        Some(Value::Array(ids)) => token_ids(&ids).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

/// At least one token, and nothing else.
fn token_ids(ids: &[Value]) -> Option<RawPrompt> {
    let ids: Option<Vec<u32>> = ids.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect();
    ids.filter(|ids| !ids.is_empty()).map(|ids| RawPrompt::Ids(ids.into()))
}

/// What is refused rather than ignored.
fn check_unsupported(fields: &mut Fields) -> Result<(), ApiError> {
    let echo = fields.boolean("echo")? == Some(true);
    let suffix = fields.text("suffix")?.is_some_and(|text| !text.is_empty());
    let logprobs = fields.take("logprobs").is_some();
    for (param, asked) in [("echo", echo), ("suffix", suffix), ("logprobs", logprobs)] {
        if asked {
            return Err(ApiError::invalid(Some(param), "is not offered here; leave it out"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::strict;

    fn check(body: &str, expected: Result<(&str, u64), &str>) {
        let read = read_text(strict::object(body.as_bytes(), strict::VALUES_MAX).unwrap(), &HeaderMap::new());
        let read = read.map(|(request, _)| {
            let prompt = match request.raw_prompt().unwrap() {
                RawPrompt::Text(text) => text,
                RawPrompt::Ids(ids) => format!("{ids:?}"),
            };
            (prompt, request.budget.solution.unwrap().0)
        });
        let param = |problem: ApiError| problem.to_json()["error"]["param"].as_str().unwrap().to_owned();
        assert_eq!(
            read.map_err(param),
            expected.map(|(text, s)| (text.to_owned(), s)).map_err(str::to_owned)
        );
    }

    #[test]
    fn a_text_is_read_as_openai_reads_it() {
        check(r#"{"model":"m","prompt":"Once upon"}"#, Ok(("Once upon", 16)));
        let both = r#"{"model":"m","prompt":"a","max_tokens":500,"budget":{"solution_tokens":5}}"#;
        check(both, Ok(("a", 5)));
        check(r#"{"model":"m","prompt":["a"],"max_tokens":5,"best_of":2,"n":2,"echo":false}"#, Ok(("a", 5)));
    }

    #[test]
    fn token_ids_stand_for_the_text_that_they_are_of() {
        check(r#"{"model":"m","prompt":[7,8]}"#, Ok(("[7, 8]", 16)));
        check(r#"{"model":"m","prompt":[[7]]}"#, Ok(("[7]", 16)));
        check(r#"{"model":"m","prompt":[7]}"#, Ok(("[7]", 16)));
    }

    #[test]
    fn the_member_that_holds_the_answer_is_the_one_that_says_least() {
        let check = |body: &str, member: &str| {
            let (request, _) =
                read_text(strict::object(body.as_bytes(), strict::VALUES_MAX).unwrap(), &HeaderMap::new())
                    .unwrap();
            assert_eq!(request.budget.members.solution, member, "{body}");
        };
        let said = |own: u64| {
            format!(r#"{{"model":"m","prompt":"a","max_tokens":{own},"budget":{{"solution_tokens":9}}}}"#)
        };
        check(&said(5), "max_tokens");
        check(&said(50), "budget.solution_tokens");
        check(r#"{"model":"m","prompt":"a"}"#, "max_tokens");
    }

    #[test]
    fn what_is_not_offered_is_refused_by_its_name() {
        check(r#"{"model":"m","prompt":["a","b"]}"#, Err("prompt"));
        check(r#"{"model":"m","prompt":[[1,2],[3]]}"#, Err("prompt"));
        check(r#"{"model":"m","prompt":[]}"#, Err("prompt"));
        check(r#"{"model":"m","prompt":[1,-2]}"#, Err("prompt"));
        check(r#"{"model":"m","prompt":[1,"a"]}"#, Err("prompt"));
        check(r#"{"model":"m"}"#, Err("prompt"));
        check(r#"{"model":"m","prompt":"a","echo":true}"#, Err("echo"));
        check(r#"{"model":"m","prompt":"a","best_of":3}"#, Err("best_of"));
        check(r#"{"model":"m","prompt":"a","messages":[]}"#, Err("messages"));
        check(r#"{"prompt":"a"}"#, Err("model"));
    }
}
