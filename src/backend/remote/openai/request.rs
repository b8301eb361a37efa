//! Our call as the JSON of a dialect.

use serde_json::{Map, Value, json};

use super::conversation;
use super::dialect::{BudgetMember, Dialect, EffortMember, Resume, Switch, UsageMember, Word};
use super::{Settings, text};
use crate::backend::remote::Sent;
use crate::backend::remote::asked::passed;
use crate::backend::remote::wire::{self, decimal};
use crate::backend::{Call, Failure, Lack, Part, Thought};
use crate::catalog::{Class, Model};
use crate::chat::{Keep, Request, Tool};
use crate::units::Tokens;

/// Members that are ours to set, whatever the caller passed through.
const OURS: [&str; 7] =
    ["model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"];

/// What is to be sent for a part, in the dialect's terms but not yet in its words.
struct Ask<'c> {
    path: &'static str,
    messages: Vec<Value>,
    /// The most that is to be written, where that is said.
    limit: Option<Tokens>,
    thinks: Thinks<'c>,
    /// True where the last message is to be gone on with.
    goes_on: bool,
    /// True where the caller's stop texts may be looked for by the upstream: it would find them in a thought, too.
    stops: bool,
}

/// What is said of thinking.
enum Thinks<'c> {
    /// A word, or nothing.
    Effort(Option<&'c str>),
    /// That it is to think.
    On,
    /// That it is not to.
    Off,
    /// That it is to think so much.
    Within(Tokens),
}

/// What is sent for a call.
pub(super) fn write(settings: &Settings, call: &Call) -> Result<Sent, Failure> {
    if let Some(text) = call.request.raw() {
        return raw(settings, call, &text);
    }
    let ask = ask(settings, call)?;
    let path = ask.path.into();
    let mut body = body(settings, call, ask)?;
    if settings.dialect.marks && call.request.keep() == Keep::Hour {
        wire::hours_first(&mut body);
    }
    Ok(Sent { path, body })
}

/// How a text goes on, in one go.
fn raw(settings: &Settings, call: &Call, text: &str) -> Result<Sent, Failure> {
    let tokens = match &call.part {
        Part::Total { tokens, .. } => *tokens,
        Part::Whole { solution, .. } | Part::Solution { solution, .. } => *solution,
        Part::Thought { .. } => {
            return Err(Failure::incapable(Lack::Thinking, "there is no thought in how a text goes on"));
        }
    };
    let path = settings.dialect.beside("completions").into();
    Ok(Sent { path, body: text::body(&settings.model, call, text, tokens) })
}

/// What is told of a limit that nobody states: what is left of a context that is not known is no number to send.
fn untold(limit: Tokens) -> Tokens {
    let is_guess = limit > Tokens(Model::CONTEXT_UNKNOWN.0 / 2);
    if is_guess { Model::TOLD_MAX } else { limit }
}

fn ask<'c>(settings: &Settings, call: &'c Call) -> Result<Ask<'c>, Failure> {
    let dialect = &settings.dialect;
    let messages = conversation::plain(settings, &call.request.messages);
    let ask = |limit, thinks| {
        let is_told = call.tells_limit || call.holds_thought();
        let untold = dialect.needs_limit.then(|| untold(limit));
        let limit = if is_told { Some(limit) } else { untold };
        Ask { path: dialect.path, messages, limit, thinks, goes_on: false, stops: false }
    };
    Ok(match &call.part {
        Part::Total { effort, tokens } => {
            Ask { stops: true, ..ask(*tokens, Thinks::Effort(effort.as_deref())) }
        }
        Part::Whole { thinking: Tokens::ZERO, solution } => ask(*solution, Thinks::Off),
        Part::Whole { thinking, solution } => {
            let together = *thinking + *solution + settings.closing;
            let limit = if dialect.limit_has_thought { together } else { *solution };
            ask(limit, Thinks::Within(*thinking + settings.opening))
        }
        Part::Thought { thinking, .. } if call.class == Class::Continue => {
            if dialect.resume == Resume::Never || !dialect.limit_has_thought {
                return Err(Failure::incapable(Lack::Thinking, "this model's thoughts cannot be resumed"));
            }
            ask(*thinking, Thinks::On)
        }
        Part::Thought { thinking, solution } => {
            let limit = if dialect.limit_has_thought { *thinking + *solution } else { *solution };
            ask(limit, Thinks::On)
        }
        Part::Solution { thought, answer, solution } => {
            // Who has no other way to be kept from thinking has a word for the least of it.
            let least = call.effort_least.as_deref().filter(|_| dialect.switch == Switch::Never);
            let thinks = if least.is_some() { Thinks::Effort(least) } else { Thinks::Off };
            let ask = ask(*solution, thinks);
            after(settings, call, ask, thought, answer)?
        }
    })
}

/// The answer after a thought.
fn after<'c>(
    settings: &Settings,
    call: &Call,
    ask: Ask<'c>,
    thought: &Thought,
    answer: &str,
) -> Result<Ask<'c>, Failure> {
    let messages = &call.request.messages;
    if !resumes(settings, call) {
        let thinks = !thought.text.is_empty();
        let messages = if thinks { conversation::turned(settings, messages, thought) } else { ask.messages };
        return Ok(Ask { messages, ..ask });
    }
    let dialect = &settings.dialect;
    let thinks = match dialect.resume {
        Resume::PrefixReasoning => Thinks::On,
        // Who cannot turn it off needs no words for that: the thought is closed.
        Resume::FinalMessage if dialect.switch == Switch::Never => Thinks::Effort(None),
        Resume::FinalMessage | Resume::PrefixPart => Thinks::Off,
        Resume::Never => {
            return Err(Failure::incapable(Lack::Thinking, "this model's thoughts cannot be resumed"));
        }
    };
    let messages = conversation::resumed(settings, messages, thought, answer);
    let path = dialect.resume.path().unwrap_or(dialect.path);
    Ok(Ask { path, messages, thinks, goes_on: true, ..ask })
}

/// True where the call goes on from a thought, rather than asking anew: a thought that is none needs no closing where
/// thinking can be turned off.
pub(super) fn resumes(settings: &Settings, call: &Call) -> bool {
    let dialect = &settings.dialect;
    match &call.part {
        Part::Solution { thought, answer, .. } if call.class == Class::Continue => {
            let none = thought.text.is_empty() && answer.is_empty();
            !none || (dialect.resume == Resume::FinalMessage && dialect.switch == Switch::Never)
        }
        _ => false,
    }
}

fn body(settings: &Settings, call: &Call, ask: Ask<'_>) -> Result<Value, Failure> {
    let Settings { dialect, model, .. } = settings;
    let mut body = members(call, dialect, ask.stops);
    let thinks = !matches!(ask.thinks, Thinks::Off);
    let unsent = |words: &[Word], body: &mut Map<String, Value>| {
        body.retain(|name, _| !words.iter().any(|it| it == name));
    };
    unsent(&dialect.omits, &mut body);
    if thinks {
        unsent(&dialect.omits_thinking, &mut body);
    }
    // Where that no tool may be called cannot be said, none is told of.
    let withheld = call.request.tool_choice.as_ref().is_some_and(|choice| choice == "none");
    if withheld && !body.contains_key("tool_choice") {
        body.remove("tools");
    }
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), ask.messages.into());
    body.insert("stream".to_owned(), json!(true));
    if let Some(limit) = ask.limit {
        body.insert(dialect.limit.word().to_owned(), json!(limit));
    }
    usage(dialect, &mut body);
    if ask.goes_on && dialect.resume == Resume::FinalMessage {
        // They exclude each other, and the latter is the usual one.
        body.insert("continue_final_message".to_owned(), json!(true));
        body.insert("add_generation_prompt".to_owned(), json!(false));
    }
    thinking(dialect, &ask.thinks, &mut body)?;
    if let Some(word) = call.effort.as_deref().filter(|_| thinks) {
        effort(dialect, word, &mut body);
    }
    Ok(Value::Object(body))
}

/// What the caller wants of the answer, in words that all dialects share.
fn members(call: &Call, dialect: &Dialect, stops: bool) -> Map<String, Value> {
    let request = &call.request;
    let extra = request.extra.iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    let mut body: Map<String, Value> = extra.map(|(name, value)| passed(name, value)).collect();
    let sampling = &request.sampling;
    // A choice's own seed, and only where the caller wants one: some upstreams refuse the member. Theirs is a
    // signed number.
    let seed = sampling.seed.map(|_| json!(call.seed & i64::MAX.cast_unsigned()));
    let optional = [
        ("temperature", sampling.temperature.map(decimal)),
        ("top_p", sampling.top_p.map(decimal)),
        ("top_k", sampling.top_k.map(|k| json!(k))),
        (dialect.seed.unwrap_or_default(), seed.filter(|_| dialect.seed.is_some())),
        ("stop", (stops && !sampling.stop.is_empty()).then(|| json!(sampling.stop))),
        ("tools", tools(dialect, request)),
        ("tool_choice", request.tool_choice.clone()),
        ("response_format", request.response_format.clone()),
        ("logprobs", request.logprobs.map(|_| json!(true))),
        ("top_logprobs", request.logprobs.filter(|count| *count > 0).map(|count| json!(count))),
    ];
    body.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    body
}

fn tools(dialect: &Dialect, request: &Request) -> Option<Value> {
    let declare = |tool: &Tool| {
        let mut declaration = tool.declaration.clone();
        if let Some(keep) = tool.marked.filter(|_| dialect.marks) {
            wire::mark(&mut declaration, keep);
        }
        declaration
    };
    (!request.tools.is_empty()).then(|| request.tools.iter().map(declare).collect())
}

fn usage(dialect: &Dialect, body: &mut Map<String, Value>) {
    let options = match dialect.usage {
        UsageMember::AtEnd | UsageMember::Timings => json!({"include_usage": true}),
        UsageMember::EachChunk => json!({"include_usage": true, "continuous_usage_stats": true}),
        UsageMember::Unasked => return,
    };
    body.insert("stream_options".to_owned(), options);
    if dialect.usage == UsageMember::Timings {
        body.insert("timings_per_token".to_owned(), json!(true));
    }
    if dialect.token_ids {
        body.insert("return_token_ids".to_owned(), json!(true));
    }
}

fn thinking(dialect: &Dialect, thinks: &Thinks<'_>, body: &mut Map<String, Value>) -> Result<(), Failure> {
    match thinks {
        Thinks::Effort(None) => {}
        Thinks::Effort(Some(word)) => effort(dialect, word, body),
        Thinks::On => switch(dialect, true, body),
        Thinks::Off if !dialect.turns_off() => {
            return Err(Failure::incapable(Lack::Thinking, "this model cannot be kept from thinking"));
        }
        Thinks::Off => match (dialect.budget, &dialect.switch) {
            (Some(member), Switch::Never) => budget(member, Tokens::ZERO, body),
            (_, _) => switch(dialect, false, body),
        },
        Thinks::Within(tokens) => {
            let member = dialect
                .budget
                .ok_or_else(|| Failure::incapable(Lack::Thinking, "this model takes no thinking budget"))?;
            // A budget turns it on by itself there, and the two words exclude each other.
            if dialect.switch != Switch::Reasoning {
                switch(dialect, true, body);
            }
            budget(member, *tokens, body);
        }
    }
    Ok(())
}

fn effort(dialect: &Dialect, word: &str, body: &mut Map<String, Value>) {
    match dialect.effort {
        EffortMember::ReasoningEffort => set(body, &["reasoning_effort"], json!(word)),
        EffortMember::Reasoning => set(body, &["reasoning", "effort"], json!(word)),
        EffortMember::Never => {}
    }
}

fn switch(dialect: &Dialect, on: bool, body: &mut Map<String, Value>) {
    match &dialect.switch {
        Switch::Template(argument) => set(body, &["chat_template_kwargs", argument], json!(on)),
        Switch::EnableThinking => set(body, &["enable_thinking"], json!(on)),
        Switch::ThinkingType => {
            set(body, &["thinking"], json!({"type": if on { "enabled" } else { "disabled" }}));
        }
        Switch::Reasoning => set(body, &["reasoning", "enabled"], json!(on)),
        Switch::Effort { on: word, off } => {
            let word = if on { word.as_ref() } else { Some(off) };
            if let Some(word) = word {
                set(body, &["reasoning_effort"], json!(word));
            }
        }
        Switch::Never => {}
    }
}

fn budget(member: BudgetMember, tokens: Tokens, body: &mut Map<String, Value>) {
    let tokens = json!(tokens);
    match member {
        BudgetMember::ThinkingTokenBudget => set(body, &["thinking_token_budget"], tokens),
        BudgetMember::CustomParams => set(body, &["custom_params", "thinking_budget"], tokens),
        BudgetMember::ThinkingBudgetTokens => set(body, &["thinking_budget_tokens"], tokens),
        BudgetMember::ThinkingBudget => set(body, &["thinking_budget"], tokens),
        BudgetMember::ReasoningMaxTokens => {
            set(body, &["reasoning", "max_tokens"], tokens);
            set(body, &["provider", "require_parameters"], json!(true));
        }
    }
}

/// Sets a member of a member, beside what the caller may have put there.
fn set(body: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [name] => drop(body.insert((*name).to_owned(), value)),
        [name, rest @ ..] => {
            let inner = body.entry((*name).to_owned()).or_insert(Value::Null);
            let mut members = inner.as_object().cloned().unwrap_or_default();
            set(&mut members, rest, value);
            *inner = Value::Object(members);
        }
    }
}
