//! Budgets in, in every dialect that callers already speak; where several speak, the least wins.

mod foreign;
mod members;
mod run;

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName};
use serde_json::Value;

use crate::chat::{Budget, Depth, EpisodeLimits, Members, Tool};
use crate::http::error::Problem;
use crate::http::fields::Fields;
use crate::http::strict;
use crate::units::{Count, Effort, EpisodeId, Preference, Tokens};

pub(super) use foreign::{TOTALS, limit};
pub(super) use members::cost;
use run::NamedTools;
pub(super) use run::{named, of_metadata, tool_calls};

/// What says something of budgets behind a model's name.
const SUFFIX: &str = "the suffix of model";

/// How the names of headers begin that are the extension object's members.
const HEADERS: &str = "x-budget-";

/// The extension object's members.
const KNOWN: [&str; 9] = [
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
struct Called {
    thinking: &'static str,
    solution: &'static str,
    cost: &'static str,
    deadline: &'static str,
    depth: &'static str,
}

const IN_BODY: Called = Called {
    thinking: "budget.thinking_tokens",
    solution: "budget.solution_tokens",
    cost: "budget.cost_usd",
    deadline: "budget.deadline_ms",
    depth: "budget.effort",
};

const IN_HEADERS: Called = Called {
    thinking: "x-budget-thinking-tokens",
    solution: "x-budget-solution-tokens",
    cost: "x-budget-cost-usd",
    deadline: "x-budget-deadline-ms",
    depth: "x-budget-effort",
};

/// The effort words and what they mean.
pub(crate) type Efforts = BTreeMap<String, Effort>;

/// What is said about budgets where there is no thinking to speak of: the extension object and its headers.
pub(super) fn plain(fields: &mut Fields, headers: &HeaderMap) -> Result<Budget, Problem> {
    let efforts = Efforts::new();
    let mut dialects = Dialects::of_texts(&efforts);
    if let Some(budget) = fields.fields("budget")? {
        dialects.extension(budget, &IN_BODY)?;
    }
    dialects.headers(headers)?;
    Ok(dialects.finish())
}

/// The run that is named, and its limits, where nothing else can be said about budgets.
pub(super) fn of_run(
    fields: &mut Fields,
    headers: &HeaderMap,
    extra: &serde_json::Map<String, Value>,
) -> Result<(Option<EpisodeId>, EpisodeLimits), Problem> {
    let other = |name: &str, known: &str| {
        Problem::invalid(Some(name), format!("is not known here; of budgets only {known} is"))
    };
    let is_other = |name: &str| name.starts_with(HEADERS) && name != "x-budget-episode";
    if let Some(name) = headers.keys().map(HeaderName::as_str).find(|name| is_other(name)) {
        return Err(other(name, "x-budget-episode"));
    }
    let efforts = Efforts::new();
    let mut dialects = Dialects::of_texts(&efforts);
    if let Some(budget) = fields.fields("budget")? {
        if let Some(name) = budget.names().iter().find(|name| *name != "episode") {
            return Err(other(&budget.name(name), "budget.episode").code("unknown_parameter"));
        }
        dialects.extension(budget, &IN_BODY)?;
    }
    dialects.headers(headers)?;
    dialects.episode(of_metadata(extra)?);
    let Budget { episode, run, .. } = dialects.finish();
    if episode.is_none() && !run.is_empty() {
        return Err(Problem::missing("budget.episode.id", "the name of the run that these limits are of"));
    }
    Ok((episode, run))
}

/// Collects what is said about budgets.
#[derive(Debug)]
pub(super) struct Dialects<'a> {
    efforts: &'a Efforts,
    budget: Budget,
    /// The tools that are limited by name.
    tools: Vec<NamedTools>,
    /// False where the caller wants no thoughts shown.
    pub(super) thoughts: bool,
    /// True where it wants them back all the same, unread, as what their provider signed.
    pub(super) sealed: bool,
}

/// A header that is an object.
fn object(name: &str, text: &str) -> Result<Value, Problem> {
    let wrong = |_| Problem::invalid(Some(name), "must be a JSON object, each key once");
    strict::object(text.as_bytes()).map(Value::Object).map_err(wrong)
}

/// Lowers what was said; says whether that is what holds from now on.
fn least<T: PartialOrd>(said: &mut Option<T>, now: Option<T>) -> bool {
    let Some(now) = now.filter(|now| said.as_ref().is_none_or(|said| now < said)) else { return false };
    *said = Some(now);
    true
}

impl<'a> Dialects<'a> {
    /// Those of chat completions.
    pub(super) fn of_chat(efforts: &'a Efforts) -> Dialects<'a> {
        Dialects::of(efforts, Members::default())
    }

    /// Those of completions.
    fn of_texts(efforts: &'a Efforts) -> Dialects<'a> {
        let (solution, total, prompt) = ("max_tokens", "max_tokens", "prompt");
        Dialects::of(efforts, Members { solution, total, prompt, ..Members::default() })
    }

    /// Those of Messages.
    pub(super) fn of_messages(efforts: &'a Efforts) -> Dialects<'a> {
        let (thinking, depth) = ("thinking.budget_tokens", "output_config.effort");
        let (total, form) = ("max_tokens", "output_config.format");
        Dialects::of(efforts, Members { thinking, total, depth, form, ..Members::default() })
    }

    /// Those of Responses.
    pub(super) fn of_responses(efforts: &'a Efforts) -> Dialects<'a> {
        let (total, depth, prompt) = ("max_output_tokens", "reasoning.effort", "input");
        Dialects::of(efforts, Members { total, depth, prompt, form: "text.format", ..Members::default() })
    }

    fn of(efforts: &'a Efforts, members: Members) -> Dialects<'a> {
        let (budget, tools) = (Budget { members, ..Budget::default() }, Vec::new());
        Dialects { efforts, budget, tools, thoughts: true, sealed: false }
    }

    pub(super) fn finish(self) -> Budget {
        self.budget
    }

    /// The same, for a request with these tools.
    ///
    /// # Errors
    /// 400 where calls of another tool are limited.
    pub(super) fn finish_for(self, tools: &[Tool]) -> Result<Budget, Problem> {
        self.tools.iter().try_for_each(|named| named.check(tools))?;
        Ok(self.budget)
    }

    /// The members of a chat completion's body.
    pub(super) fn body(&mut self, fields: &mut Fields) -> Result<(), Problem> {
        self.word("reasoning_effort", fields.text("reasoning_effort")?)?;
        self.thinking("thinking_token_budget", fields.whole("thinking_token_budget")?);
        self.calls(fields)?;
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
        if fields.flag("include_reasoning")? == Some(false) {
            self.thoughts = false;
        }
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget, &IN_BODY),
            None => Ok(()),
        }
    }

    /// The members of a Messages body: `max_tokens` is there always, and holds thought and answer.
    pub(super) fn messages(&mut self, fields: &mut Fields) -> Result<(), Problem> {
        self.total(fields, "max_tokens")?;
        if self.budget.total.is_none() {
            return Err(Problem::invalid(Some("max_tokens"), "is missing; it holds thought and answer")
                .code(super::fields::MISSING));
        }
        self.foreign_totals(fields)?;
        self.calls(fields)?;
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
    pub(super) fn responses(&mut self, fields: &mut Fields) -> Result<(), Problem> {
        self.total(fields, "max_output_tokens")?;
        self.foreign_totals(fields)?;
        self.foreign_thinking(fields)?;
        // OpenAI counts calls of its own tools; here there are none, so it is those of the caller's in this one answer.
        self.calls(fields)?;
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget, &IN_BODY),
            None => Ok(()),
        }
    }

    /// `X-Budget-Thinking-Tokens: 200` and its like, for clients without an extra body; and `X-Episode-Id`.
    pub(super) fn headers(&mut self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut members = serde_json::Map::new();
        for (name, value) in headers {
            let Some(member) = name.as_str().strip_prefix(HEADERS) else { continue };
            let text =
                value.to_str().map_err(|_| Problem::invalid(Some(name.as_str()), "must be plain text"))?;
            let member = member.replace('-', "_");
            let value = match member.as_str() {
                "cost_usd" => Value::from(text),
                // A name may look like a number; only the object with limits is JSON.
                "episode" if !text.starts_with('{') => Value::from(text),
                _ if text.starts_with('{') => object(name.as_str(), text)?,
                _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
            };
            if members.insert(member, value).is_some() {
                return Err(Problem::invalid(Some(name.as_str()), "is there twice; send it once"));
            }
        }
        self.extension(Fields::of_headers(HEADERS, members), &IN_HEADERS)?;
        self.run(run::of_header(headers)?);
        Ok(())
    }

    /// The most tool calls of one answer (`max_tool_calls`).
    pub(super) fn calls(&mut self, fields: &mut Fields) -> Result<(), Problem> {
        least(&mut self.budget.calls, fields.whole("max_tool_calls")?.map(Count));
        Ok(())
    }

    /// What is said of the whole run. The first name holds, and every limit.
    fn run(&mut self, said: run::Said) {
        self.budget.episode = self.budget.episode.take().or(said.episode);
        self.budget.run.lower(&said.limits);
        self.tools.extend(said.named);
    }

    /// The run's name where only the request's metadata have it.
    pub(super) fn episode(&mut self, name: Option<EpisodeId>) {
        self.run(run::Said { episode: name, ..run::Said::default() });
    }

    /// `auto:low` or `reasoner:t=200`; gives back the name without it.
    pub(super) fn suffix(&mut self, model: &str) -> Result<String, Problem> {
        let Some((name, suffix)) = model.rsplit_once(':') else { return Ok(model.to_owned()) };
        if let Some(tokens) = suffix.strip_prefix("t=") {
            let tokens = tokens.parse().map_err(|_| {
                Problem::invalid(
                    Some("model"),
                    "the suffix t= must be followed by a number of thinking tokens",
                )
            })?;
            self.thinking(SUFFIX, Some(tokens));
        } else if self.efforts.contains_key(suffix) {
            self.word(SUFFIX, Some(suffix.to_owned()))?;
        } else {
            // Names of models may have colons themselves.
            return Ok(model.to_owned());
        }
        Ok(name.to_owned())
    }

    fn thinking(&mut self, member: &'static str, tokens: Option<u64>) {
        if least(&mut self.budget.thinking, tokens.map(Tokens)) {
            self.budget.members.thinking = member;
        }
    }

    fn total(&mut self, fields: &mut Fields, key: &'static str) -> Result<(), Problem> {
        let tokens = fields.whole(key)?;
        if tokens == Some(0) {
            return Err(Problem::invalid(Some(key), "must be at least 1"));
        }
        if least(&mut self.budget.total, tokens.map(Tokens)) {
            self.budget.members.total = key;
        }
        Ok(())
    }

    /// An effort word.
    pub(super) fn word(&mut self, param: &'static str, word: Option<String>) -> Result<(), Problem> {
        let Some(word) = word else { return Ok(()) };
        let effort = self.effort(param, &word)?;
        self.depth(param, Depth { effort, word: Some(word) });
        Ok(())
    }

    /// What an effort word stands for.
    ///
    /// # Errors
    /// 400 where it is not one, also of a word that another one overrides.
    pub(super) fn effort(&self, param: &str, word: &str) -> Result<Effort, Problem> {
        self.efforts.get(word).copied().ok_or_else(|| {
            let known = self.efforts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            Problem::invalid(Some(param), format!("must be one of {known}"))
        })
    }

    fn depth(&mut self, member: &'static str, depth: Depth) {
        if self.budget.depth.as_ref().is_none_or(|said| depth.effort < said.effort) {
            self.budget.depth = Some(depth);
            self.budget.members.depth = member;
        }
    }

    /// `OpenRouter`'s `reasoning`.
    pub(super) fn reasoning(&mut self, mut fields: Fields) -> Result<(), Problem> {
        self.word("reasoning.effort", fields.text("effort")?)?;
        self.thinking("reasoning.max_tokens", fields.whole("max_tokens")?);
        if fields.flag("enabled")? == Some(false) {
            self.thinking("reasoning.enabled", Some(0));
        }
        if fields.flag("exclude")? == Some(true) {
            self.thoughts = false;
        }
        fields.end()
    }

    /// Anthropic's `thinking`.
    fn anthropic(&mut self, mut fields: Fields) -> Result<(), Problem> {
        match fields.text("type")?.as_deref() {
            Some("enabled" | "adaptive") => {
                self.thinking("thinking.budget_tokens", fields.whole("budget_tokens")?);
            }
            Some("disabled") => self.thinking("thinking.type", Some(0)),
            _ => {
                return Err(Problem::invalid(Some("thinking.type"), "must be enabled, adaptive or disabled"));
            }
        }
        match fields.text("display")?.as_deref() {
            None | Some("summarized") => {}
            // Models here write no updates on what they think, so nothing is left of it.
            Some("omitted" | "updates") => (self.thoughts, self.sealed) = (false, true),
            Some(_) => {
                let must = "must be summarized, omitted or updates";
                return Err(Problem::invalid(Some("thinking.display"), must));
            }
        }
        fields.end()
    }

    /// Our own extension object.
    fn extension(&mut self, mut fields: Fields, called: &Called) -> Result<(), Problem> {
        self.thinking(called.thinking, fields.whole("thinking_tokens")?);
        let budget = &mut self.budget;
        if least(&mut budget.solution, members::solution(&mut fields)?) {
            budget.members.solution = called.solution;
        }
        if least(&mut budget.cost, cost(&mut fields)?) {
            budget.members.cost = called.cost;
        }
        if least(&mut budget.deadline, members::deadline(&mut fields)?) {
            budget.members.deadline = called.deadline;
        }
        let effort = fields.number("effort", 0.0, Effort::MAX)?;
        if let Some(effort) = effort.and_then(|number| Effort::try_from(number).ok()) {
            self.depth(called.depth, Depth { effort, word: None });
        }
        let preference = fields.number("preference", 0.0, 1.0)?;
        least(&mut self.budget.preference, preference.and_then(|number| Preference::try_from(number).ok()));
        self.run(run::read(&mut fields)?);
        fields.end_knowing(&KNOWN)
    }
}
