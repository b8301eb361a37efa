//! Budgets in, in every dialect that callers already speak; where several speak, the least wins.

mod episode;
mod foreign;
mod members;

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName};
use serde_json::Value;

use crate::chat::{Budget, EpisodeLimits, MemberNames, ReasoningEffort, Tool};
use crate::http::error::ApiError;
use crate::http::fields::Fields;
use crate::http::strict;
use crate::units::{Count, Effort, EpisodeId, Preference, Tokens};

use episode::NamedTools;
pub(super) use episode::{from_metadata, parse_episode_id, tool_calls};
pub(super) use foreign::{TOTALS, token_limit};
pub(super) use members::cost;

/// What says something of budgets behind a model's name.
const SUFFIX: &str = "the suffix of model";

/// How the names of headers begin that are the extension object's members.
const HEADERS: &str = "x-budget-";

/// The extension object's members.
const EXTENSION_MEMBERS: [&str; 9] = [
    "thinking_tokens",
    "solution_tokens",
    "cost_usd",
    "deadline_ms",
    "effort",
    "preference",
    "episode",
    "turns",
    "tool_calls",
];

/// What the extension object's members are called in a body, and as headers.
struct BudgetMemberNames {
    thinking: &'static str,
    solution: &'static str,
    cost: &'static str,
    deadline: &'static str,
    depth: &'static str,
}

const IN_BODY: BudgetMemberNames = BudgetMemberNames {
    thinking: "budget.thinking_tokens",
    solution: "budget.solution_tokens",
    cost: "budget.cost_usd",
    deadline: "budget.deadline_ms",
    depth: "budget.effort",
};

const IN_HEADERS: BudgetMemberNames = BudgetMemberNames {
    thinking: "x-budget-thinking-tokens",
    solution: "x-budget-solution-tokens",
    cost: "x-budget-cost-usd",
    deadline: "x-budget-deadline-ms",
    depth: "x-budget-effort",
};

/// The effort words and what they mean.
pub(crate) type EffortTable = BTreeMap<String, Effort>;

/// What is said about budgets where there is no thinking to speak of: the extension object and its headers.
pub(super) fn extension_only(fields: &mut Fields, headers: &HeaderMap) -> Result<Budget, ApiError> {
    let efforts = EffortTable::new();
    let mut dialects = BudgetParser::for_completions(&efforts);
    if let Some(budget) = fields.fields("budget")? {
        dialects.extension(budget, &IN_BODY)?;
    }
    dialects.headers(headers)?;
    Ok(dialects.finish())
}

/// The run that is named, and its limits, where nothing else can be said about budgets.
pub(super) fn episode_only(
    fields: &mut Fields,
    headers: &HeaderMap,
    extra: &serde_json::Map<String, Value>,
) -> Result<(Option<EpisodeId>, EpisodeLimits), ApiError> {
    let other = |name: &str, known: &str| {
        ApiError::invalid(Some(name), format!("is not known here; of budgets only {known} is"))
    };
    let is_other = |name: &str| name.starts_with(HEADERS) && name != "x-budget-episode";
    if let Some(name) = headers.keys().map(HeaderName::as_str).find(|name| is_other(name)) {
        return Err(other(name, "x-budget-episode"));
    }
    let efforts = EffortTable::new();
    let mut dialects = BudgetParser::for_completions(&efforts);
    if let Some(budget) = fields.fields("budget")? {
        if let Some(name) = budget.names().iter().find(|name| *name != "episode") {
            return Err(other(&budget.full_name(name), "budget.episode").with_code("unknown_parameter"));
        }
        dialects.extension(budget, &IN_BODY)?;
    }
    dialects.headers(headers)?;
    dialects.name_episode(from_metadata(extra)?);
    let Budget { episode, episode_limits: run, .. } = dialects.finish();
    if episode.is_none() && !run.is_empty() {
        return Err(ApiError::missing("budget.episode.id", "the name of the run that these limits are of"));
    }
    Ok((episode, run))
}

/// Collects what is said about budgets.
#[derive(Debug)]
pub(super) struct BudgetParser<'a> {
    efforts: &'a EffortTable,
    budget: Budget,
    /// The tools that are limited by name.
    tools: Vec<NamedTools>,
    /// False where the caller wants no thoughts shown.
    pub(super) thoughts: bool,
    /// True where it wants them back all the same, unread, as what their provider signed.
    pub(super) sealed: bool,
}

/// A header that is an object.
fn object(name: &str, text: &str) -> Result<Value, ApiError> {
    let wrong = |_| ApiError::invalid(Some(name), "must be a JSON object, each key once");
    strict::object(text.as_bytes()).map(Value::Object).map_err(wrong)
}

/// Lowers what was said; says whether that is what holds from now on.
fn take_least<T: PartialOrd>(said: &mut Option<T>, now: Option<T>) -> bool {
    let Some(now) = now.filter(|now| said.as_ref().is_none_or(|said| now < said)) else { return false };
    *said = Some(now);
    true
}

impl<'a> BudgetParser<'a> {
    /// Those of chat completions.
    pub(super) fn for_chat(efforts: &'a EffortTable) -> BudgetParser<'a> {
        BudgetParser::new(efforts, MemberNames::default())
    }

    /// Those of completions.
    fn for_completions(efforts: &'a EffortTable) -> BudgetParser<'a> {
        let (solution, total, prompt) = ("max_tokens", "max_tokens", "prompt");
        BudgetParser::new(efforts, MemberNames { solution, total, prompt, ..MemberNames::default() })
    }

    /// Those of Messages.
    pub(super) fn for_messages(efforts: &'a EffortTable) -> BudgetParser<'a> {
        let (thinking, depth) = ("thinking.budget_tokens", "output_config.effort");
        let (total, form) = ("max_tokens", "output_config.format");
        BudgetParser::new(
            efforts,
            MemberNames {
                thinking,
                total,
                reasoning_effort: depth,
                response_format: form,
                ..MemberNames::default()
            },
        )
    }

    /// Those of Responses.
    pub(super) fn for_responses(efforts: &'a EffortTable) -> BudgetParser<'a> {
        let (total, depth, prompt) = ("max_output_tokens", "reasoning.effort", "input");
        BudgetParser::new(
            efforts,
            MemberNames {
                total,
                reasoning_effort: depth,
                prompt,
                response_format: "text.format",
                ..MemberNames::default()
            },
        )
    }

    fn new(efforts: &'a EffortTable, members: MemberNames) -> BudgetParser<'a> {
        let (budget, tools) = (Budget { members, ..Budget::default() }, Vec::new());
        BudgetParser { efforts, budget, tools, thoughts: true, sealed: false }
    }

    pub(super) fn finish(self) -> Budget {
        self.budget
    }

    /// The same, for a request with these tools.
    ///
    /// # Errors
    /// 400 where calls of another tool are limited.
    pub(super) fn finish_with_tools(self, tools: &[Tool]) -> Result<Budget, ApiError> {
        self.tools.iter().try_for_each(|named| named.check(tools))?;
        Ok(self.budget)
    }

    /// The members of a chat completion's body.
    pub(super) fn body(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        self.effort_word("reasoning_effort", fields.text("reasoning_effort")?)?;
        self.thinking("thinking_token_budget", fields.integer("thinking_token_budget")?);
        self.max_tool_calls(fields)?;
        self.total(fields, "max_completion_tokens")?;
        self.total(fields, "max_tokens")?;
        self.foreign_totals(fields)?;
        self.foreign_thinking(fields)?;
        if let Some(reasoning) = fields.fields("reasoning")? {
            self.reasoning(reasoning)?;
        }
        if let Some(thinking) = fields.fields("thinking")? {
            self.anthropic(thinking)?;
        }
        if fields.boolean("include_reasoning")? == Some(false) {
            self.thoughts = false;
        }
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget, &IN_BODY),
            None => Ok(()),
        }
    }

    /// The members of a Messages body: `max_tokens` is there always, and holds thought and answer.
    pub(super) fn messages(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        self.total(fields, "max_tokens")?;
        if self.budget.total.is_none() {
            return Err(ApiError::invalid(Some("max_tokens"), "is missing; it holds thought and answer")
                .with_code(super::fields::MISSING));
        }
        self.foreign_totals(fields)?;
        self.max_tool_calls(fields)?;
        // Whoever does not ask for thinking does not look for thoughts; how much is thought is still the plan's.
        self.thoughts = false;
        if let Some(thinking) = fields.fields("thinking")? {
            self.thoughts = true;
            self.anthropic(thinking)?;
        }
        self.foreign_thinking(fields)?;
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget, &IN_BODY),
            None => Ok(()),
        }
    }

    /// The members of a Responses body, all but `reasoning`.
    pub(super) fn responses(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        self.total(fields, "max_output_tokens")?;
        self.foreign_totals(fields)?;
        self.foreign_thinking(fields)?;
        // OpenAI counts calls of its own tools; here there are none, so it is those of the caller's in this one answer.
        self.max_tool_calls(fields)?;
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget, &IN_BODY),
            None => Ok(()),
        }
    }

    /// `X-Budget-Thinking-Tokens: 200` and its like, for clients without an extra body; and `X-Episode-Id`.
    pub(super) fn headers(&mut self, headers: &HeaderMap) -> Result<(), ApiError> {
        let mut members = serde_json::Map::new();
        for (name, value) in headers {
            let Some(member) = name.as_str().strip_prefix(HEADERS) else { continue };
            let text =
                value.to_str().map_err(|_| ApiError::invalid(Some(name.as_str()), "must be plain text"))?;
            let member = member.replace('-', "_");
            let value = match member.as_str() {
                "cost_usd" => Value::from(text),
                // A name may look like a number; only the object with limits is JSON.
                "episode" if !text.starts_with('{') => Value::from(text),
                _ if text.starts_with('{') => object(name.as_str(), text)?,
                _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
            };
            if members.insert(member, value).is_some() {
                return Err(ApiError::invalid(Some(name.as_str()), "is there twice; send it once"));
            }
        }
        self.extension(Fields::from_headers(HEADERS, members), &IN_HEADERS)?;
        self.apply_episode(episode::from_header(headers)?);
        Ok(())
    }

    /// The most tool calls of one answer (`max_tool_calls`).
    pub(super) fn max_tool_calls(&mut self, fields: &mut Fields) -> Result<(), ApiError> {
        take_least(&mut self.budget.tool_calls_max, fields.integer("max_tool_calls")?.map(Count));
        Ok(())
    }

    /// What is said of the whole run. The first name holds, and every limit.
    fn apply_episode(&mut self, said: episode::EpisodeSettings) {
        self.budget.episode = self.budget.episode.take().or(said.episode);
        self.budget.episode_limits.lower(&said.limits);
        self.tools.extend(said.named_tools);
    }

    /// The run's name where only the request's metadata have it.
    pub(super) fn name_episode(&mut self, name: Option<EpisodeId>) {
        self.apply_episode(episode::EpisodeSettings { episode: name, ..episode::EpisodeSettings::default() });
    }

    /// `auto:low` or `reasoner:t=200`; gives back the name without it.
    pub(super) fn suffix(&mut self, model: &str) -> Result<String, ApiError> {
        let Some((name, suffix)) = model.rsplit_once(':') else { return Ok(model.to_owned()) };
        if let Some(tokens) = suffix.strip_prefix("t=") {
            let tokens = tokens.parse().map_err(|_| {
                ApiError::invalid(
                    Some("model"),
                    "the suffix t= must be followed by a number of thinking tokens",
                )
            })?;
            self.thinking(SUFFIX, Some(tokens));
        } else if self.efforts.contains_key(suffix) {
            self.effort_word(SUFFIX, Some(suffix.to_owned()))?;
        } else {
            // Names of models may have colons themselves.
            return Ok(model.to_owned());
        }
        Ok(name.to_owned())
    }

    fn thinking(&mut self, member: &'static str, tokens: Option<u64>) {
        if take_least(&mut self.budget.thinking, tokens.map(Tokens)) {
            self.budget.members.thinking = member;
        }
    }

    fn total(&mut self, fields: &mut Fields, key: &'static str) -> Result<(), ApiError> {
        let tokens = fields.integer(key)?;
        if tokens == Some(0) {
            return Err(ApiError::invalid(Some(key), "must be at least 1"));
        }
        if take_least(&mut self.budget.total, tokens.map(Tokens)) {
            self.budget.members.total = key;
        }
        Ok(())
    }

    /// An effort word.
    pub(super) fn effort_word(&mut self, param: &'static str, word: Option<String>) -> Result<(), ApiError> {
        let Some(word) = word else { return Ok(()) };
        let effort = self.effort(param, &word)?;
        self.depth(param, ReasoningEffort { effort, word: Some(word) });
        Ok(())
    }

    /// What an effort word stands for.
    ///
    /// # Errors
    /// 400 where it is not one, also of a word that another one overrides.
    pub(super) fn effort(&self, param: &str, word: &str) -> Result<Effort, ApiError> {
        self.efforts.get(word).copied().ok_or_else(|| {
            let known = self.efforts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            ApiError::invalid(Some(param), format!("must be one of {known}"))
        })
    }

    fn depth(&mut self, member: &'static str, depth: ReasoningEffort) {
        if self.budget.reasoning_effort.as_ref().is_none_or(|said| depth.effort < said.effort) {
            self.budget.reasoning_effort = Some(depth);
            self.budget.members.reasoning_effort = member;
        }
    }

    /// `OpenRouter`'s `reasoning`.
    pub(super) fn reasoning(&mut self, mut fields: Fields) -> Result<(), ApiError> {
        self.effort_word("reasoning.effort", fields.text("effort")?)?;
        self.thinking("reasoning.max_tokens", fields.integer("max_tokens")?);
        if fields.boolean("enabled")? == Some(false) {
            self.thinking("reasoning.enabled", Some(0));
        }
        if fields.boolean("exclude")? == Some(true) {
            self.thoughts = false;
        }
        fields.finish()
    }

    /// Anthropic's `thinking`.
    fn anthropic(&mut self, mut fields: Fields) -> Result<(), ApiError> {
        match fields.text("type")?.as_deref() {
            Some("enabled" | "adaptive") => {
                self.thinking("thinking.budget_tokens", fields.integer("budget_tokens")?);
            }
            Some("disabled") => self.thinking("thinking.type", Some(0)),
            _ => {
                return Err(ApiError::invalid(
                    Some("thinking.type"),
                    "must be enabled, adaptive or disabled",
                ));
            }
        }
        match fields.text("display")?.as_deref() {
            None | Some("summarized") => {}
            // Models here write no updates on what they think, so nothing is left of it.
            Some("omitted" | "updates") => (self.thoughts, self.sealed) = (false, true),
            Some(_) => {
                let must = "must be summarized, omitted or updates";
                return Err(ApiError::invalid(Some("thinking.display"), must));
            }
        }
        fields.finish()
    }

    /// Our own extension object.
    fn extension(&mut self, mut fields: Fields, called: &BudgetMemberNames) -> Result<(), ApiError> {
        self.thinking(called.thinking, fields.integer("thinking_tokens")?);
        let budget = &mut self.budget;
        if take_least(&mut budget.solution, members::solution(&mut fields)?) {
            budget.members.solution = called.solution;
        }
        if take_least(&mut budget.cost, cost(&mut fields)?) {
            budget.members.cost = called.cost;
        }
        if take_least(&mut budget.deadline, members::deadline(&mut fields)?) {
            budget.members.deadline = called.deadline;
        }
        let effort = fields.number("effort", 0.0, Effort::MAX)?;
        if let Some(effort) = effort.and_then(|number| Effort::try_from(number).ok()) {
            self.depth(called.depth, ReasoningEffort { effort, word: None });
        }
        let preference = fields.number("preference", 0.0, 1.0)?;
        take_least(
            &mut self.budget.preference,
            preference.and_then(|number| Preference::try_from(number).ok()),
        );
        self.apply_episode(episode::read(&mut fields)?);
        fields.finish_with_known(&EXTENSION_MEMBERS)
    }
}
