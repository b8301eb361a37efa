//! The episode that a request belongs to: its name and its limits, from the `budget` object, headers and metadata.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use axum::http::HeaderMap;
use serde_json::{Map, Value};

use crate::http::error::ApiError;
use crate::http::fields::Fields;
use stint_types::chat::{EpisodeLimits, Tool, ToolLimits, short_tool_name};
use stint_types::units::{Count, EpisodeId, Tokens, nearest};

use super::members;

/// Among so many of a request's tools one is looked for whose name is like a mistaken one.
const NEAREST_OF: usize = 1_000;

/// What is stated of an episode.
#[derive(Debug, Default)]
pub(super) struct EpisodeSettings {
    pub(super) episode: Option<EpisodeId>,
    pub(super) limits: EpisodeLimits,
    /// The tools that are limited by name for this request, and the member that does so.
    pub(super) named_tools: Option<NamedTools>,
}

/// Tools that a member names.
#[derive(Debug)]
pub(super) struct NamedTools {
    member: String,
    tools: Vec<Arc<str>>,
}

impl NamedTools {
    /// # Errors
    /// 400 where one is none of those that the request declares, if it declares any: it would never be counted.
    pub(super) fn check(&self, declared: &[Tool]) -> Result<(), ApiError> {
        let known: HashSet<Cow<'_, str>> = declared.iter().map(|tool| short_tool_name(&tool.name)).collect();
        let is_declared = |tool: &str| known.contains(&*short_tool_name(tool));
        let unknown = self.tools.iter().find(|tool| !declared.is_empty() && !is_declared(tool));
        let Some(unknown) = unknown else { return Ok(()) };
        let what = match nearest(unknown, declared.iter().take(NEAREST_OF).map(|tool| &*tool.name)) {
            Some(meant) => format!("did you mean {meant:?}?"),
            None => "write a name of one of its tools, or \"*\" for all of them together".to_owned(),
        };
        let message = format!("limits {unknown:?}, which is none of the request's tools; {what}");
        Err(ApiError::invalid(Some(&self.member), message))
    }
}

/// `episode`, `turns` and `tool_calls` of the extension object.
pub(super) fn read(fields: &mut Fields) -> Result<EpisodeSettings, ApiError> {
    let mut settings = episode(fields)?;
    let (turns, tools) = (members::turns(fields)?, tool_calls(fields)?);
    // Headers are a program's, for all that it sends: its sub-agents may have other tools.
    if !fields.are_headers() {
        let named = tools.each.keys().cloned().collect();
        settings.named_tools = Some(NamedTools { member: fields.full_name("tool_calls"), tools: named });
    }
    settings.limits.lower(&EpisodeLimits { turns, tools, ..EpisodeLimits::default() });
    Ok(settings)
}

/// `X-Episode-Id`, which other gateways know too.
pub(super) fn from_header(headers: &HeaderMap) -> Result<EpisodeSettings, ApiError> {
    let mut names = headers.get_all("x-episode-id").iter();
    let Some(name) = names.next() else { return Ok(EpisodeSettings::default()) };
    let wrong = |what: &str| ApiError::invalid(Some("x-episode-id"), what);
    if names.next().is_some() {
        return Err(wrong("is there twice; send it once"));
    }
    let name = name.to_str().map_err(|_| wrong("must be plain text"))?;
    Ok(EpisodeSettings {
        episode: Some(parse_episode_id("x-episode-id", name)?),
        ..EpisodeSettings::default()
    })
}

/// `metadata.episode_id`, for clients that can set nothing else.
pub(in crate::http) fn from_metadata(extra: &Map<String, Value>) -> Result<Option<EpisodeId>, ApiError> {
    match extra.get("metadata").and_then(|metadata| metadata.get("episode_id")) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => parse_episode_id("metadata.episode_id", name).map(Some),
        Some(_) => Err(ApiError::invalid(Some("metadata.episode_id"), "must be a string")),
    }
}

/// An episode's name.
pub(in crate::http) fn parse_episode_id(member: &str, name: &str) -> Result<EpisodeId, ApiError> {
    name.parse().map_err(|error| ApiError::invalid(Some(member), format!("is {error}")))
}

/// A name, or an object with a name and totals.
fn episode(fields: &mut Fields) -> Result<EpisodeSettings, ApiError> {
    let member = fields.full_name("episode");
    match fields.take("episode") {
        None => Ok(EpisodeSettings::default()),
        Some(Value::String(name)) => Ok(EpisodeSettings {
            episode: Some(parse_episode_id(&member, &name)?),
            ..EpisodeSettings::default()
        }),
        Some(object @ Value::Object(_)) => totals(Fields::from_value(&member, object)?),
        Some(_) => {
            let must = "must be a name, or an object of id, cost_usd, thinking_tokens, turns and tool_calls";
            Err(ApiError::invalid(Some(&member), must))
        }
    }
}

fn totals(mut fields: Fields) -> Result<EpisodeSettings, ApiError> {
    let member = fields.full_name("id");
    let settings = EpisodeSettings {
        episode: fields.text("id")?.map(|name| parse_episode_id(&member, &name)).transpose()?,
        limits: EpisodeLimits {
            cost: members::money(&mut fields)?,
            thinking: fields.integer("thinking_tokens")?.map(Tokens),
            turns: members::turns(&mut fields)?,
            tools: tool_calls(&mut fields)?,
            raises: 0,
        },
        // Other steps of the episode may have other tools.
        named_tools: None,
    };
    fields.finish()?;
    Ok(settings)
}

/// How many calls of each tool, `"*"` standing for all together.
pub(in crate::http) fn tool_calls(fields: &mut Fields) -> Result<ToolLimits, ApiError> {
    let member = fields.full_name("tool_calls");
    let mut limits = ToolLimits::default();
    let mut tools = match fields.take("tool_calls") {
        None => return Ok(limits),
        Some(object @ Value::Object(_)) => Fields::from_value(&member, object)?,
        Some(_) => {
            let must = "must be an object of tools and how often each may be called, like {\"search\": 10, \"*\": 20}; \
                        \"*\" stands for all of them together";
            return Err(ApiError::invalid(Some(&member), must));
        }
    };
    let names = tools.names();
    if names.len() > ToolLimits::NAMED_MAX {
        let message =
            format!("limits {} tools; at most {} can be limited by name", names.len(), ToolLimits::NAMED_MAX);
        return Err(ApiError::invalid(Some(&member), message));
    }
    for name in names {
        let Some(most) = tools.integer(&name)?.map(Count) else { continue };
        if name == "*" {
            limits.all = Some(most);
        } else if name.is_empty() || name.len() > ToolLimits::NAME_MAX || name.chars().any(char::is_control) {
            return Err(ApiError::invalid(
                Some(&member),
                "has a name that no tool has; write the tool's own, or *",
            ));
        } else {
            limits.each.insert(name.into(), most);
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use serde_json::json;

    use stint_types::chat::{Budget, Request};
    use stint_types::units::Money;

    use super::*;

    fn read(more: &Value, headers: &[(&'static str, &'static str)]) -> Result<Request, ApiError> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "?"}]});
        more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        let header = |(name, value): &(&'static str, &'static str)| {
            ((*name).parse().unwrap(), HeaderValue::from_static(value))
        };
        let headers: HeaderMap = headers.iter().map(header).collect();
        let efforts = crate::http::budget::EffortTable::new();
        crate::http::openai::read(body.as_object().unwrap().clone(), &headers, &efforts)
            .map(|(request, _)| request)
    }

    fn budget(more: &Value, headers: &[(&'static str, &'static str)]) -> Budget {
        read(more, headers).unwrap().budget
    }

    fn episode(more: &Value, headers: &[(&'static str, &'static str)]) -> Option<String> {
        budget(more, headers).episode.map(|id| id.to_string())
    }

    #[test]
    fn totals_of_a_run_are_said_beside_its_name_or_in_it() {
        let said = budget(
            &json!({"max_tool_calls": 4, "budget": {
                "tool_calls": {"search": 10, "*": 20}, "turns": 30,
                "episode": {"id": "task-42", "cost_usd": "0.5", "thinking_tokens": 900, "turns": 12,
                            "tool_calls": {"search": 12, "browse": 3}},
            }}),
            &[],
        );
        assert_eq!((said.episode.unwrap().as_str(), said.tool_calls_max), ("task-42", Some(Count(4))));
        let run = said.episode_limits;
        assert_eq!((run.cost, run.thinking), (Some(Money(500_000_000)), Some(Tokens(900))));
        assert_eq!((run.turns, run.tools.all), (Some(Count(12)), Some(Count(20))), "the least wins");
        let each: Vec<(&str, u64)> = run.tools.each.iter().map(|(tool, most)| (&**tool, most.0)).collect();
        assert_eq!(each, [("browse", 3), ("search", 10)]);
    }

    #[test]
    fn a_run_is_named_in_many_places_and_the_first_holds() {
        let (metadata, header) = (json!({"metadata": {"episode_id": "m"}}), [("x-episode-id", "h")]);
        let both = json!({"metadata": {"episode_id": "m"}, "budget": {"episode": "b"}});
        assert_eq!(episode(&both, &header).as_deref(), Some("b"));
        assert_eq!(episode(&metadata, &header).as_deref(), Some("h"));
        assert_eq!(episode(&metadata, &[]).as_deref(), Some("m"));
        assert_eq!(episode(&json!({}), &[("x-budget-episode", "42")]).as_deref(), Some("42"));
        assert_eq!(
            episode(&json!({}), &[("x-budget-episode", r#"{"id": "o", "turns": 3}"#)]).as_deref(),
            Some("o")
        );
        assert_eq!(episode(&json!({}), &[]), None);
    }

    #[test]
    fn headers_limit_a_run_too() {
        let said =
            budget(&json!({}), &[("x-budget-tool-calls", r#"{"search": 3}"#), ("x-budget-turns", "7")]);
        assert_eq!(
            (said.episode_limits.tools.each["search"], said.episode_limits.turns),
            (Count(3), Some(Count(7)))
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |budget: Value, param: &str, message: &str| {
            let problem = read(&json!({ "budget": budget }), &[]).unwrap_err().to_json();
            assert_eq!(problem["error"]["param"], param, "{problem}");
            assert!(problem["error"]["message"].as_str().unwrap().contains(message), "{problem}");
        };
        check(
            json!({"tool_calls": {"search": -1}}),
            "budget.tool_calls.search",
            "a whole number, zero or more",
        );
        check(json!({"tool_calls": {"search": "3"}}), "budget.tool_calls.search", "a whole number");
        check(json!({"tool_calls": 3}), "budget.tool_calls", "an object");
        check(json!({"tool_calls": {"": 3}}), "budget.tool_calls", "no tool has");
        let many: Map<String, Value> = (0..65).map(|at| (at.to_string(), 1.into())).collect();
        check(json!({ "tool_calls": many }), "budget.tool_calls", "at most 64");
        check(json!({"turns": 0}), "budget.turns", "at least 1");
        check(json!({"turns": 1.5}), "budget.turns", "a whole number");
        check(json!({"episode": ""}), "budget.episode", "is empty");
        check(json!({"episode": 7}), "budget.episode", "a name, or an object");
        check(json!({"episode": {"id": " x"}}), "budget.episode.id", "not a name");
        check(json!({"episode": {"turn": 1}}), "budget.episode.turn", "not known");
        check(json!({"episode": {"cost_usd": "-1"}}), "budget.episode.cost_usd", "zero or more");
        check(json!({"episode": {"cost_usd": "0"}}), "budget.episode.cost_usd", "more than 0");
        check(json!({"episode": {"cost_usd": 0.0}}), "budget.episode.cost_usd", "more than 0");
        check(json!({"episode": {"turns": 0}}), "budget.episode.turns", "at least 1");
        let header = read(&json!({}), &[("x-episode-id", "")]).unwrap_err().to_json();
        assert_eq!(header["error"]["param"], "x-episode-id");
        let twice =
            read(&json!({}), &[("x-budget-tool-calls", r#"{"a": 1, "a": 2}"#)]).unwrap_err().to_json();
        assert_eq!(twice["error"]["param"], "x-budget-tool-calls");
        let metadata = read(&json!({"metadata": {"episode_id": 7}}), &[]).unwrap_err().to_json();
        assert_eq!(metadata["error"]["param"], "metadata.episode_id");
    }

    #[test]
    fn what_a_header_says_is_told_by_the_headers_name() {
        let of = |name, value| read(&json!({}), &[(name, value)]);
        let members = of("x-budget-thinking-tokens", "9").unwrap().budget.members;
        assert_eq!(members.thinking, "x-budget-thinking-tokens");
        let check = |name, value, words: &str| {
            let error = of(name, value).unwrap_err().to_json();
            assert_eq!((&error["error"]["param"], &error["error"]["message"]), (&json!(name), &json!(words)));
        };
        check(
            "x-budget-thinking-tokens",
            "many",
            "x-budget-thinking-tokens must be a whole number, zero or more",
        );
        let near = "x-budget-thinking is not known here; did you mean x-budget-thinking-tokens?";
        check("x-budget-thinking", "9", near);
        check("x-budget-purple", "9", "x-budget-purple is not known here; leave it out");
        let body = read(&json!({ "budget": { "thinking_token": 9 } }), &[]).unwrap_err().to_json();
        let near = "budget.thinking_token is not known here; did you mean budget.thinking_tokens?";
        assert_eq!(body["error"]["message"], near);
    }
}
