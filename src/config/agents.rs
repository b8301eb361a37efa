//! `[agents]` and `[tools.NAME]`: how runs of agents are held; and what a route says of them.

use std::time::Duration;

use toml::de::DeValue;

use stint_sessions::agent::{BudgetThresholds, Settings, ToolTerms, Tools, TrackerMessages};
use stint_types::catalog::TurnRule;
use stint_types::chat::{ToolLimits, short_tool_name};
use stint_types::units::{Chance, Count, Money};

use super::reader::{FromValue, Section, ValueError, ValueShape};

/// The longest that a run without news is kept.
const EXPIRES_MAX: Duration = Duration::from_secs(90 * 24 * 3600);

/// `[agents]`, with the tools beside it. No request runs longer than `time_max`.
pub(super) fn agents(root: &Section<'_>, time_max: Duration) -> Settings {
    let section = root.section("agents");
    let usual = Settings::default();
    let calls = section.within("calls_per_answer", 1..=1_000_u32);
    let expires = section.within("expires_after", Duration::from_secs(60)..=EXPIRES_MAX);
    let wait = section.within("wait_max", Duration::ZERO..=Duration::from_secs(600));
    if wait.is_some_and(|wait| wait > time_max) {
        let remedy = "write at most time_max of [gateway], or raise that";
        section.reject("wait_max", "longer than a request may run", remedy);
    }
    let messages = section.within("messages_max", 100..=200_000_usize);
    let additions = section.within("additions_max", 1024..=1_048_576_usize);
    Settings {
        tracker: section.get_or("tracker", usual.tracker),
        task_budget: section.get_or("task_budget", usual.task_budget),
        thresholds: budget_levels(&section),
        tracker_messages: words(&section.section("words")),
        additions_max: additions.unwrap_or(usual.additions_max),
        calls_per_answer: calls.map_or(usual.calls_per_answer, |calls| Count(calls.into())),
        wait_max: wait.unwrap_or(usual.wait_max),
        expires_after: expires.unwrap_or(usual.expires_after),
        messages_max: messages.unwrap_or(usual.messages_max),
        tools: tools(&root.section("tools")),
    }
}

fn budget_levels(section: &Section<'_>) -> BudgetThresholds {
    let usual = BudgetThresholds::default();
    let share = |key, usual| section.within(key, 0.0..=1.0).map_or(usual, Chance::new);
    let thresholds = BudgetThresholds {
        high: share("high", usual.high),
        medium: share("medium", usual.medium),
        low: share("low", usual.low),
    };
    if !(thresholds.high > thresholds.medium && thresholds.medium > thresholds.low) {
        section.reject_section("shares out of order", "write high above medium, and medium above low");
    }
    thresholds
}

fn words(section: &Section<'_>) -> TrackerMessages {
    let usual = TrackerMessages::default();
    let line = |key: &'static str, usual| {
        let Some(PromptLine(line)) = section.get(key) else { return usual };
        if let Some(name) = placeholder(&line) {
            let what = format!("{{{name}}} is sent to the model as written");
            let remedy =
                "take it out: lines are sent as written, and what is used and left stands above them";
            section.warn(key, what, remedy);
        }
        line
    };
    TrackerMessages {
        policy: line("policy", usual.policy),
        high: line("high", usual.high),
        medium: line("medium", usual.medium),
        low: line("low", usual.low),
        critical: line("critical", usual.critical),
        spent: line("spent", usual.spent),
        last: line("last", usual.last),
        extended: line("extended", usual.extended),
        dead_end: line("dead_end", usual.dead_end),
    }
}

/// The first word in braces, as templates write what is to be filled in.
fn placeholder(line: &str) -> Option<&str> {
    let names = line.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name);
    let is_name = |name: &&str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ' '))
    };
    names.into_iter().find(is_name)
}

/// The tools by their names, and by their shortened ones too: which of them a model knows is the API's matter.
fn tools(section: &Section<'_>) -> Tools {
    let tools = section.named_sections().into_iter().flat_map(|(name, tool)| {
        check_name(&name, &tool);
        let terms = ToolTerms {
            price: tool.get_or("price_usd", Money::ZERO),
            counts: tool.get::<String>("counts").map(Into::into),
        };
        [(short_tool_name(&name).into(), terms.clone()), (name.into(), terms)]
    });
    Tools(tools.collect())
}

fn check_name(name: &str, tool: &Section<'_>) {
    let wrong = |what: &str, remedy: &str| tool.reject_section(what, remedy);
    if name == "*" {
        wrong("all tools have no price together", "write the name of one tool; callers limit all with \"*\"");
    } else if name.is_empty()
        || name.len() > ToolLimits::NAME_MAX
        || name.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        wrong("not the name of a tool", "write it as callers declare it: at most 128 bytes, without blanks");
    } else if tool.is_empty() {
        wrong("says nothing of the tool", "write price_usd or counts, or take it out");
    }
}

/// A line that is put into the model's context; an empty one is left out.
struct PromptLine(String);

impl FromValue for PromptLine {
    fn from_value(value: &DeValue<'_>) -> Result<PromptLine, ValueError> {
        match value.as_str() {
            Some("") => Ok(PromptLine(String::new())),
            _ => String::from_value(value).map(PromptLine),
        }
    }

    fn shape() -> ValueShape {
        ValueShape::AnyText
    }
}

impl FromValue for TurnRule {
    fn from_value(value: &DeValue<'_>) -> Result<TurnRule, ValueError> {
        if let Some(learned) = value.as_bool() {
            return Ok(if learned { TurnRule::Learned } else { TurnRule::Free });
        }
        let remedy = "write true for as many as such tasks usually take, or a number from 1";
        match u64::from_value(value) {
            Ok(0) => Err(ValueError::new("no turn at all", remedy)),
            Ok(turns) => Ok(TurnRule::Fixed(Count(turns))),
            Err(_) => Err(ValueError::new("not a number of turns", remedy)),
        }
    }

    fn shape() -> ValueShape {
        ValueShape::Either(Box::new(ValueShape::Flag), Box::new(ValueShape::Integer))
    }
}
