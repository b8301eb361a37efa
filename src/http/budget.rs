//! Budgets in, in every dialect that callers already speak; where several speak, the least wins.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::Value;

use crate::chat::{Budget, Depth};
use crate::http::error::Problem;
use crate::http::fields::Fields;
use crate::units::{Count, Effort, Money, Preference, Tokens};

/// The effort words and what they mean.
pub(crate) type Efforts = BTreeMap<String, Effort>;

/// What is said about budgets where there is no thinking to speak of: the extension object and its headers.
pub(super) fn plain(fields: &mut Fields, headers: &HeaderMap) -> Result<Budget, Problem> {
    let efforts = Efforts::new();
    let mut dialects = Dialects::new(&efforts);
    if let Some(budget) = fields.fields("budget")? {
        dialects.extension(budget)?;
    }
    dialects.headers(headers)?;
    Ok(dialects.finish())
}

/// Collects what is said about budgets.
#[derive(Debug)]
pub(super) struct Dialects<'a> {
    efforts: &'a Efforts,
    budget: Budget,
    /// False where the caller wants no thoughts shown.
    pub(super) thoughts: bool,
}

fn least<T: PartialOrd>(said: &mut Option<T>, now: Option<T>) {
    if let Some(now) = now
        && said.as_ref().is_none_or(|said| now < *said)
    {
        *said = Some(now);
    }
}

impl<'a> Dialects<'a> {
    pub(super) fn new(efforts: &'a Efforts) -> Dialects<'a> {
        Dialects { efforts, budget: Budget::default(), thoughts: true }
    }

    pub(super) fn finish(self) -> Budget {
        self.budget
    }

    /// The members of a chat completion's body.
    pub(super) fn body(&mut self, fields: &mut Fields) -> Result<(), Problem> {
        self.word("reasoning_effort", fields.text("reasoning_effort")?)?;
        self.thinking(fields.whole("thinking_token_budget")?);
        self.total(fields, "max_completion_tokens")?;
        self.total(fields, "max_tokens")?;
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
            Some(budget) => self.extension(budget),
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
        // Whoever does not ask for thinking does not look for thoughts; how much is thought is still the plan's.
        self.thoughts = false;
        if let Some(thinking) = fields.fields("thinking")? {
            self.thoughts = true;
            self.anthropic(thinking)?;
        }
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget),
            None => Ok(()),
        }
    }

    /// The members of a Responses body, all but `reasoning`.
    pub(super) fn responses(&mut self, fields: &mut Fields) -> Result<(), Problem> {
        self.total(fields, "max_output_tokens")?;
        // OpenAI counts calls of its own tools; here there are none, so it is those of the caller's in this one answer.
        least(&mut self.budget.calls, fields.whole("max_tool_calls")?.map(Count));
        match fields.fields("budget")? {
            Some(budget) => self.extension(budget),
            None => Ok(()),
        }
    }

    /// `X-Budget-Thinking-Tokens: 200` and its like, for clients without an extra body.
    pub(super) fn headers(&mut self, headers: &HeaderMap) -> Result<(), Problem> {
        let mut members = serde_json::Map::new();
        for (name, value) in headers {
            let Some(member) = name.as_str().strip_prefix("x-budget-") else { continue };
            let text =
                value.to_str().map_err(|_| Problem::invalid(Some(name.as_str()), "must be plain text"))?;
            let member = member.replace('-', "_");
            let value = match member.as_str() {
                "cost_usd" => Value::from(text),
                _ => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
            };
            if members.insert(member, value).is_some() {
                return Err(Problem::invalid(Some(name.as_str()), "is there twice; send it once"));
            }
        }
        self.extension(Fields::of("budget", Value::Object(members))?)
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
            self.thinking(Some(tokens));
        } else if self.efforts.contains_key(suffix) {
            self.word("model", Some(suffix.to_owned()))?;
        } else {
            // Names of models may have colons themselves.
            return Ok(model.to_owned());
        }
        Ok(name.to_owned())
    }

    fn thinking(&mut self, tokens: Option<u64>) {
        least(&mut self.budget.thinking, tokens.map(Tokens));
    }

    fn total(&mut self, fields: &mut Fields, key: &str) -> Result<(), Problem> {
        let tokens = fields.whole(key)?;
        if tokens == Some(0) {
            return Err(Problem::invalid(Some(key), "must be at least 1"));
        }
        least(&mut self.budget.total, tokens.map(Tokens));
        Ok(())
    }

    /// An effort word.
    pub(super) fn word(&mut self, param: &str, word: Option<String>) -> Result<(), Problem> {
        let Some(word) = word else { return Ok(()) };
        let Some(&effort) = self.efforts.get(&word) else {
            let known = self.efforts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(Problem::invalid(Some(param), format!("must be one of {known}")));
        };
        self.depth(Depth { effort, word: Some(word) });
        Ok(())
    }

    fn depth(&mut self, depth: Depth) {
        if self.budget.depth.as_ref().is_none_or(|said| depth.effort < said.effort) {
            self.budget.depth = Some(depth);
        }
    }

    /// `OpenRouter`'s `reasoning`.
    pub(super) fn reasoning(&mut self, mut fields: Fields) -> Result<(), Problem> {
        let name = fields.name("effort");
        self.word(&name, fields.text("effort")?)?;
        self.thinking(fields.whole("max_tokens")?);
        if fields.flag("enabled")? == Some(false) {
            self.thinking(Some(0));
        }
        if fields.flag("exclude")? == Some(true) {
            self.thoughts = false;
        }
        fields.end()
    }

    /// Anthropic's `thinking`.
    fn anthropic(&mut self, mut fields: Fields) -> Result<(), Problem> {
        match fields.text("type")?.as_deref() {
            Some("enabled" | "adaptive") => self.thinking(fields.whole("budget_tokens")?),
            Some("disabled") => self.thinking(Some(0)),
            _ => {
                return Err(Problem::invalid(Some("thinking.type"), "must be enabled, adaptive or disabled"));
            }
        }
        match fields.text("display")?.as_deref() {
            None | Some("summarized") => {}
            Some("omitted") => self.thoughts = false,
            Some(_) => {
                return Err(Problem::invalid(Some("thinking.display"), "must be summarized or omitted"));
            }
        }
        fields.end()
    }

    /// Our own extension object.
    fn extension(&mut self, mut fields: Fields) -> Result<(), Problem> {
        self.thinking(fields.whole("thinking_tokens")?);
        least(&mut self.budget.solution, solution(&mut fields)?);
        least(&mut self.budget.cost, cost(&mut fields)?);
        least(&mut self.budget.deadline, deadline(&mut fields)?);
        let effort = fields.number("effort", 0.0, Effort::MAX)?;
        if let Some(effort) = effort.and_then(|number| Effort::try_from(number).ok()) {
            self.depth(Depth { effort, word: None });
        }
        let preference = fields.number("preference", 0.0, 1.0)?;
        least(&mut self.budget.preference, preference.and_then(|number| Preference::try_from(number).ok()));
        for later in ["tool_calls", "turns", "episode"] {
            if fields.take(later).is_some() {
                let name = fields.name(later);
                return Err(Problem::invalid(
                    Some(&name),
                    "is not enforced yet, so it is refused rather than ignored",
                ));
            }
        }
        fields.end()
    }
}

fn solution(fields: &mut Fields) -> Result<Option<Tokens>, Problem> {
    match fields.whole("solution_tokens")? {
        Some(0) => Err(Problem::invalid(Some(&fields.name("solution_tokens")), "must be at least 1")),
        tokens => Ok(tokens.map(Tokens)),
    }
}

fn deadline(fields: &mut Fields) -> Result<Option<Duration>, Problem> {
    match fields.whole("deadline_ms")? {
        Some(0) => Err(Problem::invalid(Some(&fields.name("deadline_ms")), "must be at least 1")),
        ms => Ok(ms.map(Duration::from_millis)),
    }
}

/// Decimal text, which is exact; a JSON number counts as the shortest decimal that reads back as the same float.
fn cost(fields: &mut Fields) -> Result<Option<Money>, Problem> {
    let name = fields.name("cost_usd");
    let text = match fields.take("cost_usd") {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(Value::Number(number)) => match number.as_f64() {
            // JSON prints small floats with an exponent, Rust never does.
            Some(float) if number.is_f64() => float.to_string(),
            _ => number.to_string(),
        },
        Some(_) => return Err(Problem::invalid(Some(&name), "must be dollars as text, like \"0.02\"")),
    };
    text.parse().map(Some).map_err(|error| Problem::invalid(Some(&name), format!("is {error}")))
}
