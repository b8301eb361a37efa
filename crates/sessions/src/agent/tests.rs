//! Tests of episodes.

mod chaining;
mod circles;
mod reading;
mod steps;
mod telling;
mod trimming;

use serde_json::json;

use stint_ledger::EpisodeBalance;
use stint_types::chat::{EpisodeLimits, Message, Request, Role, Tool, ToolCall, ToolCounts};
use stint_types::units::{Count, Money};

use super::*;

/// A request with tools of these names, after these messages.
fn request(tools: &[&str], messages: Vec<Message>) -> Request {
    let tool = |name: &&str| {
        let declaration = json!({"type": "function", "function": {"name": name}});
        Tool::new(*name, declaration)
    };
    Request { tools: tools.iter().map(tool).collect(), ..Request::new("m", messages) }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

/// A turn with calls of (tool, arguments); ids are made of `id` and the place.
fn calls(id: &str, calls: &[(&str, &str)]) -> Message {
    let call = |(at, (name, arguments)): (usize, &(&str, &str))| ToolCall {
        id: format!("{id}{at}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    let tool_calls = calls.iter().enumerate().map(call).collect();
    Message { content: Vec::new(), tool_calls, ..Message::text(Role::Assistant, "") }
}

fn result(id: &str, text: &str) -> Message {
    Message { tool_call_id: Some(id.to_owned()), ..Message::text(Role::Tool, text) }
}

/// An episode that has made one search.
fn searched() -> Vec<Message> {
    vec![user("Who?"), calls("a", &[("search", r#"{"q":"x"}"#)]), result("a0", "Nobody.")]
}

fn counts(each: &[(&str, u64)]) -> ToolCounts {
    let mut counts = ToolCounts::default();
    each.iter().for_each(|(tool, count)| counts.add(&(*tool).into(), Count(*count)));
    counts
}

/// Limits like `search 3, * 5`.
fn limits(said: &str) -> EpisodeLimits {
    let mut limits = EpisodeLimits::default();
    for part in said.split(", ").filter(|part| !part.is_empty()) {
        let (what, most) = part.split_once(' ').unwrap();
        let most = || Count(most.parse().unwrap());
        match what {
            "turns" => limits.turns = Some(most()),
            "nanos" => limits.cost = Some(Money(most().0)),
            "*" => limits.tools.all = Some(most()),
            tool => drop(limits.tools.each.insert(tool.into(), most())),
        }
    }
    limits
}

/// A step of a named episode under rules that are held, with the tracker, to which nothing was added before.
fn step_input<'a>(
    request: &'a Request,
    limits: &'a EpisodeLimits,
    balance: &'a EpisodeBalance,
    history: &'a History,
) -> StepInput<'a> {
    StepInput {
        request,
        limits,
        balance,
        account_headroom: None,
        history,
        is_named: true,
        turn_cap: None,
        is_enforced: true,
        tracker: true,
        added_bytes: 0,
        last_added: None,
        calls_max: Settings::default().calls_per_answer,
    }
}

/// Searches count their queries, and each costs 100 nano-dollars.
fn settings() -> Settings {
    let search = ToolTerms { price: Money(100), counts: Some("queries".into()) };
    Settings { tools: Tools([("search".into(), search)].into()), ..Settings::default() }
}
