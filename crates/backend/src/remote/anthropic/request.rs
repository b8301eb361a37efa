//! Translates a call to a request of the Messages API.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::remote::begun_answer;
use crate::remote::caller_options::{
    FunctionDeclaration, OpenAiToolChoice, disables_parallel_tools, end_user, insert_present, refuse_bias,
};
use crate::remote::forced_tool;
use crate::remote::form_instruction;
use crate::remote::wire::{self, decimal};
use crate::{BackendCall, Failure, GenerationPart, UnsupportedFeature};
use stint_prompt::token_bound;
use stint_types::catalog::Model;
use stint_types::chat::{CacheTtl, EffortChanges, Request, Tool};
use stint_types::units::Tokens;

use super::answer_form::{ClaudeForm, StrictTools};
use super::conversation::{self, turns};
use super::{AnthropicThinking, AnthropicThinkingOff, BUDGET_MIN, Settings};
use super::{additions, caching, output_config};

/// Instructions that hold until the user's next turn.
const BETA_TURN_SCOPED: &str = "mid-conversation-system-clear-at-2026-08-21";
/// Tools that are withdrawn and offered in the middle of a conversation.
const BETA_TOOL_CHANGES: &str = "mid-conversation-tool-changes-2026-07-01";
/// What is to come of a thought that is bound to another conversation.
const BETA_BINDING: &str = "thinking-binding-controls-2026-08-01";
/// What a whole task may take.
const BETA_TASK_BUDGET: &str = "task-budgets-2026-03-13";

/// How deep to think, from a message on.
const BETA_EFFORTS: &str = "mid-conversation-output-config-2026-07-01";

/// The words that it knows for that.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Hardly any text has fewer bytes to a token.
const BYTES_PER_TOKEN: u64 = 2;

/// How much a call may think, and write altogether.
#[derive(Debug, Clone)]
struct AnthropicThinkingPlan {
    /// `thinking`, where the model is to think.
    thinking: Option<Value>,
    /// `output_config.effort`.
    word: Option<String>,
    /// `max_tokens`.
    max_tokens: Tokens,
}

/// The body of the call.
pub(super) fn body(settings: &Settings, call: &BackendCall) -> Result<Value, Failure> {
    refuse_bias(&call.request)?;
    let form = ClaudeForm::of(settings, &call.request)?;
    match &form {
        ClaudeForm::Asked(words) => {
            write_body(settings, &form_instruction::instructed(call, words.clone()), &form)
        }
        ClaudeForm::Text | ClaudeForm::Held(..) => write_body(settings, call, &form),
    }
}

fn write_body(settings: &Settings, call: &BackendCall, form: &ClaudeForm) -> Result<Value, Failure> {
    let request = &*call.request;
    let choice = OpenAiToolChoice::of(request)?;
    let AnthropicThinkingPlan { thinking, word, max_tokens: most } =
        thinking_plan(settings, call, choice.as_ref())?;
    let thinks = thinking.is_some()
        || (settings.thinking_off == AnthropicThinkingOff::Never
            && settings.thinking != AnthropicThinking::Never);
    let told = thinking.or_else(|| thinking_off(settings));
    // Who thinks between calls all the same has its thoughts back.
    let gives_back = thinks
        || (settings.thinking_off == AnthropicThinkingOff::BetweenTools
            && settings.thinking != AnthropicThinking::Never);
    let changes = effort_changes(settings, request, word.as_deref());
    let word = changes.map_or(word, |changes| changes.whole.clone());
    let changes = changes.map_or(&[][..], |changes| &changes.changes);
    let (system, messages) = turns(settings, call, gives_back, changes)?;
    let told = if gives_back { with_binding(settings, request, told) } else { told };
    let mut body = Map::new();
    insert_present(
        &mut body,
        [
            ("model", Some(json!(settings.model))),
            ("max_tokens", Some(json!(limit(settings, call, most)))),
            ("stream", Some(json!(true))),
            ("system", system),
            ("messages", Some(messages)),
            ("thinking", told),
            ("output_config", output_config::write(settings, request, word, form)),
            ("stop_sequences", stops(request)),
            ("metadata", end_user(request).map(|id| json!({"user_id": id}))),
            ("tools", tools(settings, request, form)),
            ("tool_choice", tool_choice(settings, request, choice)),
        ],
    );
    sampling(settings, request, thinks, &mut body);
    let mut body = Value::Object(body);
    if request.cache_ttl() == CacheTtl::Hour {
        wire::extend_hour_marks(&mut body);
    }
    // Where the caller marks what is to be kept, nothing else is.
    if caching::is_kept(settings, request) && request.cache_breakpoints().next().is_none() {
        caching::mark(&mut body);
    }
    Ok(body)
}

/// The caller's changes of how deep to think, where they are sent as they stand: what is said of the whole stays the same then, and
/// so does what is cached of it. Where another word is planned than the caller's last one, that is said of the whole.
fn effort_changes<'r>(
    settings: &Settings,
    request: &'r Request,
    planned: Option<&str>,
) -> Option<&'r EffortChanges> {
    let said = &request.effort_changes;
    let mut words = said.changes.iter().map(|change| &change.word).chain(&said.whole);
    let is_taken = settings.rules.late_efforts && !said.changes.is_empty() && said.last() == planned;
    (is_taken && words.all(|word| EFFORTS.contains(&word.as_str()))).then_some(said)
}

/// The features before their release that a body makes use of.
pub(super) fn betas(body: &Value) -> Vec<&'static str> {
    let messages = || body["messages"].as_array().into_iter().flatten();
    let mut instructions = messages().filter(|message| message["role"] == "system");
    let is_change = |block: &Value| matches!(block["type"].as_str(), Some("tool_removal" | "tool_addition"));
    let changes =
        |message: &Value| message["content"].as_array().is_some_and(|all| all.iter().any(is_change));
    [
        (BETA_TURN_SCOPED, messages().any(|message| message.get("clear_at").is_some())),
        (BETA_TOOL_CHANGES, instructions.any(changes)),
        (BETA_BINDING, body.pointer("/thinking/block_binding").is_some()),
        (BETA_EFFORTS, messages().any(|message| message.get("output_config").is_some())),
        (BETA_TASK_BUDGET, body.pointer("/output_config/task_budget").is_some()),
    ]
    .into_iter()
    .filter_map(|(beta, is_used)| is_used.then_some(beta))
    .chain(known_tool_betas(body))
    .collect()
}

/// The features that tools need which its models know by themselves.
fn known_tool_betas(body: &Value) -> impl Iterator<Item = &'static str> {
    let tools = body["tools"].as_array().into_iter().flatten();
    let kinds: BTreeSet<&str> = tools.filter_map(|tool| tool["type"].as_str()).collect();
    let is_used = move |ends: &[&str]| kinds.iter().any(|kind| ends.iter().any(|end| kind.ends_with(end)));
    [
        ("computer-use-2024-10-22", is_used(&["_20241022"])),
        ("computer-use-2025-01-24", is_used(&["computer_20250124"])),
        ("computer-use-2025-11-24", is_used(&["computer_20251124"])),
        ("context-management-2025-06-27", is_used(&["memory_20250818"])),
    ]
    .into_iter()
    .filter_map(|(beta, is_used)| is_used.then_some(beta))
}

/// The member that this API cannot do without: never more than the provider takes, and where nobody states a limit no more than
/// is likely left of the context, since beyond that older models refuse.
fn limit(settings: &Settings, call: &BackendCall, most: Tokens) -> Tokens {
    let most = most.min(settings.output_max.unwrap_or(Tokens::MAX));
    match settings.context {
        Some(context) if !call.tells_limit => {
            let prompt = token_bound::prompt_tokens(&call.request, &settings.client.images);
            let prompt = Tokens(prompt.0 / BYTES_PER_TOKEN);
            most.min(context.saturating_sub(prompt)).max(Tokens(1))
        }
        // How much an unknown model writes is a guess; the guess does not restrict a caller that states a limit.
        None if !call.tells_limit && settings.output_max.is_none() => most.min(Model::TOLD_MAX),
        _ => most,
    }
}

/// The body of a question how many tokens the prompt has: what the model reads, and nothing of how it is to answer.
pub(super) fn count_body(settings: &Settings, request: &Arc<Request>) -> Result<Value, Failure> {
    let mut body = body(settings, &BackendCall::for_counting(request))?;
    if let Some(members) = body.as_object_mut() {
        let binds = |value: &Value| value.get("block_binding").is_some();
        members.retain(|name, value| {
            let is_read = ["model", "system", "messages", "tools", "tool_choice"].contains(&&**name);
            is_read || (name == "thinking" && binds(value))
        });
    }
    Ok(body)
}

/// What is to come of a thought that stands behind another beginning than it was thought behind. That is the last resort: a
/// request is the one before it with more at its end, unless its caller changed what it said.
fn with_binding(settings: &Settings, request: &Request, told: Option<Value>) -> Option<Value> {
    let signer = settings.signer();
    let sends_back = || request.messages.iter().any(|message| message.signed_by(&signer).next().is_some());
    if !(settings.rules.thoughts_bound && sends_back()) {
        return told;
    }
    // Who is told nothing thinks as it sees fit, and is told so for the member's sake.
    let is_adaptive = settings.thinking == AnthropicThinking::Adaptive;
    let mut thinking = told.or_else(|| is_adaptive.then(|| adaptive(settings)))?;
    if matches!(thinking["type"].as_str(), Some("adaptive" | "enabled")) {
        thinking["block_binding"] = json!({"prefix_mismatch_behavior": "drop_block"});
    }
    Some(thinking)
}

/// `thinking`, where the model is not to think.
fn thinking_off(settings: &Settings) -> Option<Value> {
    match settings.thinking_off {
        AnthropicThinkingOff::Disabled => Some(json!({"type": "disabled"})),
        AnthropicThinkingOff::BetweenTools => Some(json!({"type": "between_tools"})),
        AnthropicThinkingOff::Omitted | AnthropicThinkingOff::Never => None,
    }
}

fn cannot_think(why: &str) -> Failure {
    Failure::incapable(UnsupportedFeature::Thinking, why)
}

/// What the part means here, as far as the request lets the model think.
fn thinking_plan(
    settings: &Settings,
    call: &BackendCall,
    choice: Option<&OpenAiToolChoice>,
) -> Result<AnthropicThinkingPlan, Failure> {
    let quiet = |most| AnthropicThinkingPlan { thinking: None, word: None, max_tokens: most };
    let thinks = may_think(settings, &call.request, choice)?;
    Ok(match &call.part {
        GenerationPart::Whole { solution, .. } if !thinks => quiet(*solution),
        GenerationPart::Whole { thinking: Tokens::ZERO, solution } => {
            refuse_if_always_thinking(settings)?;
            quiet(*solution)
        }
        GenerationPart::Whole { thinking, solution } => match settings.thinking {
            AnthropicThinking::Budget if *thinking >= BUDGET_MIN => AnthropicThinkingPlan {
                thinking: Some(budget(settings, *thinking)),
                word: None,
                max_tokens: *thinking + *solution,
            },
            AnthropicThinking::Budget => {
                return Err(cannot_think("this model thinks 1024 tokens at least, or none"));
            }
            AnthropicThinking::Adaptive => {
                return Err(cannot_think("this model takes no budget for its thinking"));
            }
            AnthropicThinking::Never => quiet(*solution),
        },
        GenerationPart::Thought { thinking, solution } => {
            let most = *thinking + *solution;
            match settings.thinking {
                AnthropicThinking::Adaptive if thinks => {
                    AnthropicThinkingPlan { thinking: Some(adaptive(settings)), word: None, max_tokens: most }
                }
                // It is cut from outside, so it may be given more; but no limit may lie below the least budget.
                AnthropicThinking::Budget if thinks && most > BUDGET_MIN => {
                    let thinking = Some(budget(settings, (*thinking).max(BUDGET_MIN)));
                    AnthropicThinkingPlan { thinking, word: None, max_tokens: most }
                }
                _ => quiet(*solution),
            }
        }
        GenerationPart::Solution { answer, .. } if !answer.is_empty() && !settings.goes_on() => {
            return Err(cannot_think("this model cannot go on with an answer"));
        }
        GenerationPart::Solution { solution, .. } => {
            refuse_if_always_thinking(settings)?;
            quiet(*solution)
        }
        GenerationPart::Total { effort, tokens } => match (settings.thinking, effort.as_deref()) {
            (AnthropicThinking::Adaptive, Some(word)) if thinks && word != "none" => AnthropicThinkingPlan {
                thinking: Some(adaptive(settings)),
                word: Some(word.to_owned()),
                max_tokens: *tokens,
            },
            (AnthropicThinking::Adaptive, None | Some("none")) | (_, None) => quiet(*tokens),
            (AnthropicThinking::Adaptive, word) => {
                AnthropicThinkingPlan { word: word.map(str::to_owned), ..quiet(*tokens) }
            }
            _ => return Err(cannot_think("this model takes no effort")),
        },
    })
}

/// Why a model that is given budgets cannot think for a request that it takes, so that no room need be kept for a thought.
pub(super) fn thinking_ruled_out(settings: &Settings, request: &Request) -> Option<&'static str> {
    let choice = OpenAiToolChoice::of(request).ok()?;
    let is_off = matches!(may_think(settings, request, choice.as_ref()), Ok(false));
    if settings.thinking != AnthropicThinking::Budget || !is_off {
        return None;
    }
    Some(match choice {
        Some(choice) if choice.is_forced() => forced_tool::NO_THOUGHT,
        _ if request.ends_with_assistant() => begun_answer::NO_THOUGHT,
        _ => "the turn with the last tool calls came back without its signed thought",
    })
}

/// Whether thinking can be on at all. A forced tool rules it out; and in a run with tools a thought that has a budget
/// must have been there from the beginning of the turn.
fn may_think(
    settings: &Settings,
    request: &Request,
    choice: Option<&OpenAiToolChoice>,
) -> Result<bool, Failure> {
    let forced = choice.is_some_and(OpenAiToolChoice::is_forced) && !request.tools.is_empty();
    if forced && settings.rules.refuses_forced_tools {
        return Err(Failure::incapable(
            UnsupportedFeature::Choice,
            "no tool can be forced on this model: leave it the choice with tool_choice \"auto\", or ask another model",
        ));
    }
    if forced
        && settings.thinking_off == AnthropicThinkingOff::Never
        && settings.thinking != AnthropicThinking::Never
    {
        return Err(Failure::incapable(UnsupportedFeature::Choice, forced_tool::ALWAYS_THINKS));
    }
    let interrupted =
        settings.thinking == AnthropicThinking::Budget && conversation::is_unsigned(settings, request);
    // With the beginning of an answer no thought comes before it.
    let is_begun = request.ends_with_assistant() && settings.goes_on();
    Ok(settings.thinking != AnthropicThinking::Never && !forced && !interrupted && !is_begun)
}

fn refuse_if_always_thinking(settings: &Settings) -> Result<(), Failure> {
    match settings.thinking_off {
        AnthropicThinkingOff::Never if settings.thinking != AnthropicThinking::Never => {
            Err(Failure::incapable(UnsupportedFeature::Thinking, "this model cannot be kept from thinking"))
        }
        _ => Ok(()),
    }
}

fn budget(settings: &Settings, tokens: Tokens) -> Value {
    with_display(settings, json!({"type": "enabled", "budget_tokens": tokens}))
}

fn adaptive(settings: &Settings) -> Value {
    with_display(settings, json!({"type": "adaptive"}))
}

fn with_display(settings: &Settings, mut thinking: Value) -> Value {
    if settings.asks_for_thoughts {
        thinking["display"] = json!("summarized");
    }
    thinking
}

/// While it thinks a model takes none of these, and never two of them that say the same.
fn sampling(settings: &Settings, request: &Request, thinks: bool, body: &mut Map<String, Value>) {
    if thinks || !settings.samples(&request.vendor_headers) {
        return;
    }
    let sampling = &request.sampling;
    let temperature = sampling.temperature.map(|value| decimal(value.min(1.0)));
    let top_p = sampling.top_p.filter(|_| temperature.is_none()).map(decimal);
    insert_present(
        body,
        [("temperature", temperature), ("top_p", top_p), ("top_k", sampling.top_k.map(|k| json!(k)))],
    );
}

/// Blank ones are refused there; `execute` sees to all of them anyway.
fn stops(request: &Request) -> Option<Value> {
    let stops: Vec<&String> = request.sampling.stop.iter().filter(|text| !text.trim().is_empty()).collect();
    (!stops.is_empty()).then(|| json!(stops))
}

fn tools(settings: &Settings, request: &Request, form: &ClaudeForm) -> Option<Value> {
    let mut strict_tools = StrictTools::new(settings, request, form);
    let declare = |tool: &Tool| {
        let function = FunctionDeclaration::of(tool);
        let (schema, is_strict) = strict_tools.declare(&function);
        let mut declared = Map::new();
        // One that its models know by itself has its own schema and words.
        let is_known = tool.anthropic_type().is_some();
        insert_present(
            &mut declared,
            [
                ("name", Some(json!(function.name))),
                ("description", function.description.map(|text| json!(text))),
                ("input_schema", (!is_known).then_some(schema)),
                ("strict", is_strict.then(|| json!(true))),
            ],
        );
        let members = tool.anthropic_members.as_ref().and_then(Value::as_object);
        declared.extend(members.into_iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
        let mut declared = Value::Object(declared);
        if let Some(keep) = tool.cache_breakpoint {
            wire::mark_for_cache(&mut declared, keep);
        }
        declared
    };
    if request.tools.is_empty() {
        return previously_called_tools(request);
    }
    Some(request.tools.iter().map(declare).collect())
}

/// The tools that were called before, where the request declares none any more: what they were called with and brought must be
/// declared.
fn previously_called_tools(request: &Request) -> Option<Value> {
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    let declare = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    (!names.is_empty()).then(|| names.into_iter().map(declare).collect())
}

fn tool_choice(settings: &Settings, request: &Request, choice: Option<OpenAiToolChoice>) -> Option<Value> {
    if request.tools.is_empty() {
        return previously_called_tools(request).map(|_| json!({"type": "none"}));
    }
    let is_told = caching::is_kept(settings, request) && additions::is_told_to_answer(settings, request);
    let choice =
        if is_told { request.asked_tool_choice.is_some().then_some(OpenAiToolChoice::Auto) } else { choice };
    let one = disables_parallel_tools(request);
    let mut told = match choice {
        None if !one => return None,
        Some(OpenAiToolChoice::None) => return Some(json!({"type": "none"})),
        None | Some(OpenAiToolChoice::Auto) => json!({"type": "auto"}),
        Some(OpenAiToolChoice::Any) => json!({"type": "any"}),
        Some(OpenAiToolChoice::Named(name)) => json!({"type": "tool", "name": name}),
    };
    if one {
        told["disable_parallel_tool_use"] = json!(true);
    }
    Some(told)
}
