//! Translates a call to the JSON of a dialect.

use serde_json::{Map, Value, json};

use crate::remote::caller_options::{
    OpenAiResponseFormat, OpenAiToolChoice, PENALTIES, allowed_tools, has_files, passed_member,
    refuse_file_urls,
};
use crate::remote::wire::{self, decimal};
use crate::remote::{UpstreamRequest, forced_tool, form_instruction, strict_schema};
use crate::{BackendCall, Failure, GenerationPart, Thought, UnsupportedFeature};
use stint_types::catalog::{EnforcementClass, Model};
use stint_types::chat::{CacheTtl, RawPrompt, Request, Tool};
use stint_types::units::Tokens;

use super::dialect::{
    BudgetMember, Dialect, EffortMember, MemberWord, ResumeMethod, ThinkingSwitch, UsageMember,
};
use super::{Settings, completions, conversation, prefill};

/// Members that are ours to set, whatever the caller passed through.
const GATEWAY_MEMBERS: [&str; 7] =
    ["model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"];

/// What is to be sent for a part, in the dialect's terms but not yet in its words.
struct DialectRequest<'c> {
    path: &'static str,
    messages: Vec<Value>,
    /// The most that may be written, if it is limited.
    limit: Option<Tokens>,
    thinking: ThinkingMode<'c>,
    /// True if the last message is to be continued.
    is_continuation: bool,
    /// True if the caller's stop texts may be looked for by the upstream: it would find them in a thought, too.
    sends_stops: bool,
}

/// What is sent about thinking.
enum ThinkingMode<'c> {
    /// A word, or nothing.
    Effort(Option<&'c str>),
    /// That it is to think.
    On,
    /// That it is not to.
    Off,
    /// That it is to think so much.
    Budget(Tokens),
}

/// What is sent for a call.
pub(super) fn write(settings: &Settings, call: &BackendCall) -> Result<UpstreamRequest, Failure> {
    if let Some(prompt) = call.request.raw_prompt() {
        return text_request(settings, call, &prompt);
    }
    if !settings.dialect.takes_file_urls {
        refuse_file_urls(&call.request)?;
    }
    let told = told_schema(settings, call);
    let call = told.as_ref().unwrap_or(call);
    let ask = with_forced_tool(settings, call, dialect_request(settings, call)?)?;
    let beside = settings.dialect.resume.path().filter(|_| call.request.continues_last);
    let path = beside.unwrap_or(ask.path);
    let mut body = body(settings, call, ask)?;
    if settings.marks_instructions(&call.request) {
        conversation::mark_instructions(&mut body["messages"]);
    }
    if settings.dialect.passes_cache_marks && call.request.cache_ttl() == CacheTtl::Hour {
        wire::extend_hour_marks(&mut body);
    }
    if let Some(engine) = settings.dialect.pdf_engine.filter(|_| has_files(&call.request)) {
        body["plugins"] = json!([{"id": "file-parser", "pdf": {"engine": engine}}]);
    }
    Ok(UpstreamRequest::new(path, body))
}

/// The same call with its schema in words, where the answer cannot be held to it.
fn told_schema(settings: &Settings, call: &BackendCall) -> Option<BackendCall> {
    match OpenAiResponseFormat::of(&call.request) {
        Ok(OpenAiResponseFormat::Schema(named)) if !settings.schemas => {
            Some(form_instruction::instructed(call, form_instruction::schema(&named["schema"])))
        }
        _ => None,
    }
}

/// The form of the answer that it is held to.
fn response_format(settings: &Settings, request: &Request) -> Option<Value> {
    let format = strict_schema::response_format(request)?;
    let is_told = format["type"] == "json_schema" && !settings.schemas;
    Some(if is_told { json!({"type": "json_object"}) } else { format })
}

/// How a text goes on, in one go.
fn text_request(
    settings: &Settings,
    call: &BackendCall,
    prompt: &RawPrompt,
) -> Result<UpstreamRequest, Failure> {
    if matches!(prompt, RawPrompt::Ids(_)) && !settings.dialect.prompt_ids {
        let why = "this model goes on from a text, and takes no token ids";
        return Err(Failure::incapable(UnsupportedFeature::Prompt, why));
    }
    let tokens = match &call.part {
        GenerationPart::Total { tokens, .. } => *tokens,
        GenerationPart::Whole { solution, .. } | GenerationPart::Solution { solution, .. } => *solution,
        GenerationPart::Thought { .. } => {
            return Err(Failure::incapable(
                UnsupportedFeature::Thinking,
                "there is no thought in how a text goes on",
            ));
        }
    };
    let path = settings.dialect.sibling_path("completions");
    Ok(UpstreamRequest::new(path, completions::body(settings, call, prompt, tokens)))
}

/// What is told of a limit that nobody states: what is left of a context that is not known is no number to send.
fn untold(limit: Tokens) -> Tokens {
    let is_guess = limit > Tokens(Model::CONTEXT_UNKNOWN.0 / 2);
    if is_guess { Model::TOLD_MAX } else { limit }
}

fn dialect_request<'c>(settings: &Settings, call: &'c BackendCall) -> Result<DialectRequest<'c>, Failure> {
    let dialect = &settings.dialect;
    let messages = conversation::plain_messages(settings, &call.request.messages);
    let ask = |limit, thinks| {
        let is_told = call.tells_limit || call.limits_thought_alone();
        let untold = dialect.needs_limit.then(|| untold(limit));
        let limit = if is_told { Some(limit) } else { untold };
        DialectRequest {
            path: dialect.path,
            messages,
            limit,
            thinking: thinks,
            is_continuation: false,
            sends_stops: false,
        }
    };
    Ok(match &call.part {
        GenerationPart::Total { effort, tokens } => {
            DialectRequest { sends_stops: true, ..ask(*tokens, ThinkingMode::Effort(effort.as_deref())) }
        }
        GenerationPart::Whole { thinking: Tokens::ZERO, solution } => ask(*solution, ThinkingMode::Off),
        GenerationPart::Whole { thinking, solution } => {
            let together = *thinking + *solution + settings.closing_tokens;
            let limit = if dialect.limit_includes_thought { together } else { *solution };
            ask(limit, ThinkingMode::Budget(*thinking + settings.opening_tokens))
        }
        GenerationPart::Thought { thinking, .. } if call.class == EnforcementClass::Continue => {
            if dialect.resume == ResumeMethod::Never || !dialect.limit_includes_thought {
                return Err(Failure::incapable(
                    UnsupportedFeature::Thinking,
                    "this model's thoughts cannot be resumed",
                ));
            }
            ask(*thinking, ThinkingMode::On)
        }
        GenerationPart::Thought { thinking, solution } => {
            let limit = if dialect.limit_includes_thought { *thinking + *solution } else { *solution };
            ask(limit, ThinkingMode::On)
        }
        GenerationPart::Solution { thought, answer, solution } => {
            // Who has no other way to be kept from thinking has a word for the least of it.
            let least = call.effort_least.as_deref().filter(|_| dialect.switch == ThinkingSwitch::Never);
            let thinks = if least.is_some() { ThinkingMode::Effort(least) } else { ThinkingMode::Off };
            let ask = ask(*solution, thinks);
            solution_request(settings, call, ask, thought, answer)?
        }
    })
}

/// The same without a thought, where none goes with the tool that must be called.
fn with_forced_tool<'c>(
    settings: &Settings,
    call: &BackendCall,
    ask: DialectRequest<'c>,
) -> Result<DialectRequest<'c>, Failure> {
    if !settings.forces_unthought(&call.request) {
        return Ok(ask);
    }
    if !settings.turns_off() {
        return Err(Failure::incapable(UnsupportedFeature::Choice, forced_tool::ALWAYS_THINKS));
    }
    Ok(DialectRequest { thinking: ThinkingMode::Off, ..ask })
}

/// The answer after a thought.
fn solution_request<'c>(
    settings: &Settings,
    call: &BackendCall,
    ask: DialectRequest<'c>,
    thought: &Thought,
    answer: &str,
) -> Result<DialectRequest<'c>, Failure> {
    let messages = &call.request.messages;
    if !resumes(settings, call) {
        let thinks = !thought.text.is_empty();
        let messages =
            if thinks { conversation::new_turn_messages(settings, messages, thought) } else { ask.messages };
        return Ok(DialectRequest { messages, ..ask });
    }
    let dialect = &settings.dialect;
    let thinks = match dialect.resume {
        ResumeMethod::PrefixReasoning => ThinkingMode::On,
        // Who cannot turn it off needs no words for that: the thought is closed.
        ResumeMethod::FinalMessage if dialect.switch == ThinkingSwitch::Never => ThinkingMode::Effort(None),
        ResumeMethod::FinalMessage | ResumeMethod::PrefixPart => ThinkingMode::Off,
        ResumeMethod::Never => {
            return Err(Failure::incapable(
                UnsupportedFeature::Thinking,
                "this model's thoughts cannot be resumed",
            ));
        }
    };
    let (messages, begun) = prefill::split(&call.request);
    let messages =
        conversation::resumed_messages(settings, messages, thought, &[begun.as_str(), answer].concat());
    let path = dialect.resume.path().unwrap_or(dialect.path);
    Ok(DialectRequest { path, messages, thinking: thinks, is_continuation: true, ..ask })
}

/// True if the call goes on from a thought, rather than asking again: a thought that is none needs no closing where
/// thinking can be turned off.
pub(super) fn resumes(settings: &Settings, call: &BackendCall) -> bool {
    let dialect = &settings.dialect;
    match &call.part {
        GenerationPart::Solution { thought, answer, .. } if call.class == EnforcementClass::Continue => {
            let none = thought.text.is_empty() && answer.is_empty();
            !none || (dialect.resume == ResumeMethod::FinalMessage && dialect.switch == ThinkingSwitch::Never)
        }
        _ => false,
    }
}

fn body(settings: &Settings, call: &BackendCall, ask: DialectRequest<'_>) -> Result<Value, Failure> {
    let Settings { dialect, model, .. } = settings;
    let mut body = members(call, settings, ask.sends_stops);
    let thinks = !matches!(ask.thinking, ThinkingMode::Off | ThinkingMode::Effort(Some("none")));
    refuse_logprobs(dialect, call, thinks)?;
    let unsent = |words: &[MemberWord], body: &mut Map<String, Value>| {
        body.retain(|name, _| !words.iter().any(|it| it == name));
    };
    unsent(&dialect.omits, &mut body);
    if thinks {
        unsent(&dialect.omits_thinking, &mut body);
    }
    // If the dialect cannot forbid tool calls, no tools are declared. Where they are used up they stay declared at first, so that
    // the prompt begins as before: calls do not pass, whether or not the model was told, and it is asked again if it makes some.
    let are_used_up = !call.request.withheld_tools.is_empty();
    let is_forbidden = call.request.tool_choice.as_ref().is_some_and(|choice| choice == "none");
    if is_forbidden && !are_used_up && !body.contains_key("tool_choice") {
        body.remove("tools");
    }
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), ask.messages.into());
    body.insert("stream".to_owned(), json!(!call.whole));
    if let Some(limit) = ask.limit {
        body.insert(dialect.limit.as_str().to_owned(), json!(limit));
    }
    if !call.whole {
        usage(dialect, &mut body);
    }
    if ask.is_continuation && dialect.resume == ResumeMethod::FinalMessage {
        prefill::continue_final_message(&mut body);
    } else if call.request.continues_last && !ask.is_continuation {
        prefill::mark(dialect, &mut body)?;
    }
    thinking(dialect, &ask.thinking, &mut body)?;
    if let Some(word) = call.effort.as_deref().filter(|_| thinks) {
        effort(dialect, word, &mut body);
    }
    Ok(Value::Object(body))
}

/// Refuses chances of tokens where the upstream reports none. Of a thought alone nobody wants them.
fn refuse_logprobs(dialect: &Dialect, call: &BackendCall, thinks: bool) -> Result<(), Failure> {
    let is_omitted = |words: &[MemberWord]| words.iter().any(|word| word == "logprobs");
    let lacks = is_omitted(&dialect.omits) || (thinks && is_omitted(&dialect.omits_thinking));
    if !lacks || call.request.logprobs.is_none() || matches!(call.part, GenerationPart::Thought { .. }) {
        return Ok(());
    }
    Err(Failure::incapable(
        UnsupportedFeature::Logprobs,
        "this model reports no log-probabilities while it thinks: turn that off, as reasoning_effort \"none\" does where it can \
         be, or ask another model",
    ))
}

/// What the caller wants of the answer, in words that all dialects share.
fn members(call: &BackendCall, settings: &Settings, stops: bool) -> Map<String, Value> {
    let dialect = &settings.dialect;
    let request = &call.request;
    let is_sent = |name: &str| {
        let is_taken = settings.penalties || !PENALTIES.contains(&name);
        is_taken && !GATEWAY_MEMBERS.contains(&name) && settings.takes_gateway_metadata(name)
    };
    let extra = request.extra.iter().filter(|(name, _)| is_sent(name));
    let mut body: Map<String, Value> = extra.map(|(name, value)| passed_member(name, value)).collect();
    let sampling = &request.sampling;
    let sent_stops = &sampling.stop[..sampling.stop.len().min(dialect.stops_max)];
    // A choice's own seed, and only where the caller wants one: some upstreams refuse the member. Theirs is a
    // signed number.
    let seed = sampling.seed.map(|_| json!(call.seed & i64::MAX.cast_unsigned()));
    let optional = [
        ("temperature", sampling.temperature.map(decimal)),
        ("top_p", sampling.top_p.map(decimal)),
        ("top_k", sampling.top_k.map(|k| json!(k))),
        (dialect.seed.unwrap_or_default(), seed.filter(|_| dialect.seed.is_some())),
        ("stop", (stops && !sent_stops.is_empty()).then(|| json!(sent_stops))),
        ("tools", tools(dialect, request)),
        ("tool_choice", tool_choice(settings, request)),
        ("response_format", response_format(settings, request)),
        ("logprobs", request.logprobs.map(|_| json!(true))),
        ("top_logprobs", request.logprobs.filter(|count| *count > 0).map(|count| json!(count))),
    ];
    body.extend(optional.into_iter().filter_map(|(name, value)| value.map(|value| (name.to_owned(), value))));
    body
}

/// What the caller chose, or where some tools are withheld, and the upstream takes that, the others.
fn tool_choice(settings: &Settings, request: &Request) -> Option<Value> {
    let choice = OpenAiToolChoice::of(request).ok().flatten();
    let narrows = settings.rules.allowed_tools && choice.is_some() == request.tool_choice.is_some();
    let Some((mode, names)) = allowed_tools(request, choice.as_ref()).filter(|_| narrows) else {
        return request.tool_choice.clone();
    };
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let tools: Vec<Value> = names.map(tool).collect();
    Some(json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}))
}

fn tools(dialect: &Dialect, request: &Request) -> Option<Value> {
    let declare = |tool: &Tool| {
        let mut declaration = strict_schema::declaration(request, tool);
        if let Some(keep) = tool.cache_breakpoint.filter(|_| dialect.passes_cache_marks) {
            wire::mark_for_cache(&mut declaration, keep);
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

fn thinking(
    dialect: &Dialect,
    thinks: &ThinkingMode<'_>,
    body: &mut Map<String, Value>,
) -> Result<(), Failure> {
    match thinks {
        ThinkingMode::Effort(None) => {}
        ThinkingMode::Effort(Some(word)) => effort(dialect, word, body),
        ThinkingMode::On => switch(dialect, true, body),
        ThinkingMode::Off if !dialect.turns_off() => {
            return Err(Failure::incapable(
                UnsupportedFeature::Thinking,
                "this model cannot be kept from thinking",
            ));
        }
        ThinkingMode::Off => match (dialect.budget, &dialect.switch) {
            (Some(member), ThinkingSwitch::Never) => budget(member, Tokens::ZERO, body),
            (_, _) => switch(dialect, false, body),
        },
        ThinkingMode::Budget(tokens) => {
            let member = dialect.budget.ok_or_else(|| {
                Failure::incapable(UnsupportedFeature::Thinking, "this model takes no thinking budget")
            })?;
            // A budget turns it on by itself there, and the two words exclude each other.
            if dialect.switch != ThinkingSwitch::Reasoning {
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
        ThinkingSwitch::Template(argument) => set(body, &["chat_template_kwargs", argument], json!(on)),
        ThinkingSwitch::EnableThinking => set(body, &["enable_thinking"], json!(on)),
        ThinkingSwitch::ThinkingType => {
            set(body, &["thinking"], json!({"type": if on { "enabled" } else { "disabled" }}));
        }
        ThinkingSwitch::Reasoning => set(body, &["reasoning", "enabled"], json!(on)),
        ThinkingSwitch::Effort { on: word, off } => {
            let word = if on { word.as_ref() } else { Some(off) };
            if let Some(word) = word {
                set(body, &["reasoning_effort"], json!(word));
            }
        }
        ThinkingSwitch::Never => {}
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
