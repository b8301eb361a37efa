//! Our call as a request for Messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::conversation::{self, turns};
use super::{Off, Settings, Thinking};
use crate::backend::remote::asked::{Choice, Form, Function, add, no_penalties, one_by_one, user};
use crate::backend::remote::wire::{self, decimal};
use crate::backend::{Call, Failure, Lack, Part};
use crate::catalog::Model;
use crate::chat::{Keep, Message, Part as ContentPart, Request, Tool};
use crate::prompt::bound;
use crate::units::Tokens;

/// The least budget of a thought.
const BUDGET_MIN: Tokens = Tokens(1024);

/// Hardly any text has fewer bytes to a token.
const BYTES_PER_TOKEN: u64 = 2;

/// How much a call may think, and write altogether.
#[derive(Debug, Clone)]
struct Effort {
    /// `thinking`, where the model is to think.
    thinking: Option<Value>,
    /// `output_config.effort`.
    word: Option<String>,
    /// `max_tokens`.
    most: Tokens,
}

/// The body of the call.
pub(super) fn body(settings: &Settings, call: &Call) -> Result<Value, Failure> {
    let request = &*call.request;
    no_penalties(request)?;
    let choice = Choice::of(request)?;
    let Effort { thinking, word, most } = effort(settings, call, choice.as_ref())?;
    let thinks = thinking.is_some() || (settings.off == Off::Never && settings.thinking != Thinking::Never);
    let told = thinking.or_else(|| (settings.off == Off::Disabled).then(|| json!({"type": "disabled"})));
    let (system, messages) = turns(settings, call, thinks)?;
    let mut body = Map::new();
    add(
        &mut body,
        [
            ("model", Some(json!(settings.model))),
            ("max_tokens", Some(json!(limit(settings, call, most)))),
            ("stream", Some(json!(true))),
            ("system", system),
            ("messages", Some(messages)),
            ("thinking", told),
            ("output_config", output(request, word)?),
            ("stop_sequences", stops(request)),
            ("metadata", user(request).map(|id| json!({"user_id": id}))),
            ("tools", tools(request)),
            ("tool_choice", tool_choice(request, choice)),
        ],
    );
    sampling(settings, request, thinks, &mut body);
    let mut body = Value::Object(body);
    if request.keep() == Keep::Hour {
        wire::hours_first(&mut body);
    }
    // Where the caller marks what is to be kept, nothing else is.
    if settings.caches && request.marks().next().is_none() {
        match before_seam(request, &mut body) {
            Some(block) => wire::mark(block, Keep::Minutes),
            None => wire::mark(&mut body, Keep::Minutes),
        }
    }
    Ok(body)
}

/// The member that this API cannot do without: never more than the provider takes, and where nobody states a limit no more than
/// is likely left of the context, since beyond that older models refuse.
fn limit(settings: &Settings, call: &Call, most: Tokens) -> Tokens {
    let most = most.min(settings.output_max.unwrap_or(Tokens::MAX));
    match settings.context {
        Some(context) if !call.tells_limit => {
            let prompt = Tokens(bound::prompt_tokens(&call.request).0 / BYTES_PER_TOKEN);
            most.min(context.saturating_sub(prompt)).max(Tokens(1))
        }
        // How much an unknown model writes is a guess; whoever states a limit is not held to it.
        None if !call.tells_limit && settings.output_max.is_none() => most.min(Model::TOLD_MAX),
        _ => most,
    }
}

/// The body of a question how many tokens the prompt has: what the model reads, and nothing of how it is to answer.
pub(super) fn counted(settings: &Settings, request: &Arc<Request>) -> Result<Value, Failure> {
    let mut body = body(settings, &Call::for_counting(request))?;
    if let Some(members) = body.as_object_mut() {
        members.retain(|name, _| ["model", "system", "messages", "tools", "tool_choice"].contains(&&**name));
    }
    Ok(body)
}

/// The last block that will be there at the next turn, where what follows it will not: the provider finds nothing again that
/// was kept further on.
fn before_seam<'b>(request: &Request, body: &'b mut Value) -> Option<&'b mut Value> {
    let has_seam = |message: &Message| message.content.contains(&ContentPart::Seam);
    if !request.messages.last().is_some_and(has_seam) {
        return None;
    }
    let turn = body["messages"].as_array_mut()?.last_mut()?;
    turn["content"].as_array_mut()?.iter_mut().rev().nth(1)
}

/// What the part means here, as far as the request lets the model think.
fn effort(settings: &Settings, call: &Call, choice: Option<&Choice>) -> Result<Effort, Failure> {
    let quiet = |most| Effort { thinking: None, word: None, most };
    let thinks = may_think(settings, &call.request, choice)?;
    Ok(match &call.part {
        Part::Whole { solution, .. } if !thinks => quiet(*solution),
        Part::Whole { thinking: Tokens::ZERO, solution } => {
            unless_it_must(settings)?;
            quiet(*solution)
        }
        Part::Whole { thinking, solution } => match settings.thinking {
            Thinking::Budget if *thinking >= BUDGET_MIN => {
                let most = *thinking + *solution;
                Effort { thinking: Some(budget(settings, *thinking)), word: None, most }
            }
            Thinking::Budget => {
                return Err(Failure::incapable(
                    Lack::Thinking,
                    "this model thinks 1024 tokens at least, or none",
                ));
            }
            Thinking::Adaptive => {
                return Err(Failure::incapable(
                    Lack::Thinking,
                    "this model takes no budget for its thinking",
                ));
            }
            Thinking::Never => quiet(*solution),
        },
        Part::Thought { thinking, solution } => {
            let most = *thinking + *solution;
            match settings.thinking {
                Thinking::Adaptive if thinks => {
                    Effort { thinking: Some(adaptive(settings)), word: None, most }
                }
                // It is cut from outside, so it may be given more; but no limit may lie below the least budget.
                Thinking::Budget if thinks && most > BUDGET_MIN => {
                    let thinking = Some(budget(settings, (*thinking).max(BUDGET_MIN)));
                    Effort { thinking, word: None, most }
                }
                _ => quiet(*solution),
            }
        }
        Part::Solution { answer, .. } if !answer.is_empty() && !settings.goes_on() => {
            return Err(Failure::incapable(Lack::Thinking, "this model cannot go on with an answer"));
        }
        Part::Solution { solution, .. } => {
            unless_it_must(settings)?;
            quiet(*solution)
        }
        Part::Total { effort, tokens } => match (settings.thinking, effort.as_deref()) {
            (Thinking::Adaptive, Some(word)) if thinks && word != "none" => {
                Effort { thinking: Some(adaptive(settings)), word: Some(word.to_owned()), most: *tokens }
            }
            (Thinking::Adaptive, None | Some("none")) | (_, None) => quiet(*tokens),
            (Thinking::Adaptive, word) => Effort { word: word.map(str::to_owned), ..quiet(*tokens) },
            _ => return Err(Failure::incapable(Lack::Thinking, "this model takes no effort")),
        },
    })
}

/// Whether thinking can be on at all. A forced tool rules it out; and in a run with tools a thought that has a budget
/// must have been there from the beginning of the turn.
fn may_think(settings: &Settings, request: &Request, choice: Option<&Choice>) -> Result<bool, Failure> {
    let forced = choice.is_some_and(Choice::forces) && !request.tools.is_empty();
    if forced && settings.off == Off::Never && settings.thinking != Thinking::Never {
        return Err(Failure::incapable(
            Lack::Choice,
            "this model always thinks, so no tool can be forced on it",
        ));
    }
    let interrupted = settings.thinking == Thinking::Budget && conversation::is_unsigned(settings, request);
    Ok(settings.thinking != Thinking::Never && !forced && !interrupted)
}

fn unless_it_must(settings: &Settings) -> Result<(), Failure> {
    match settings.off {
        Off::Never if settings.thinking != Thinking::Never => {
            Err(Failure::incapable(Lack::Thinking, "this model cannot be kept from thinking"))
        }
        _ => Ok(()),
    }
}

fn budget(settings: &Settings, tokens: Tokens) -> Value {
    shown(settings, json!({"type": "enabled", "budget_tokens": tokens}))
}

fn adaptive(settings: &Settings) -> Value {
    shown(settings, json!({"type": "adaptive"}))
}

fn shown(settings: &Settings, mut thinking: Value) -> Value {
    if settings.asks_for_thoughts {
        thinking["display"] = json!("summarized");
    }
    thinking
}

/// While it thinks a model takes none of these, and never two of them that say the same.
fn sampling(settings: &Settings, request: &Request, thinks: bool, body: &mut Map<String, Value>) {
    if thinks || !settings.sampling {
        return;
    }
    let sampling = &request.sampling;
    let temperature = sampling.temperature.map(|value| decimal(value.min(1.0)));
    let top_p = sampling.top_p.filter(|_| temperature.is_none()).map(decimal);
    add(body, [("temperature", temperature), ("top_p", top_p), ("top_k", sampling.top_k.map(|k| json!(k)))]);
}

/// Blank ones are refused there; `execute` sees to all of them anyway.
fn stops(request: &Request) -> Option<Value> {
    let stops: Vec<&String> = request.sampling.stop.iter().filter(|text| !text.trim().is_empty()).collect();
    (!stops.is_empty()).then(|| json!(stops))
}

fn output(request: &Request, effort: Option<String>) -> Result<Option<Value>, Failure> {
    let mut output = Map::new();
    add(&mut output, [("effort", effort.map(Value::String))]);
    match Form::of(request)? {
        Form::Text => {}
        Form::Json => {
            return Err(Failure::incapable(
                Lack::Form,
                "this model writes JSON by a schema only: send json_schema",
            ));
        }
        Form::Schema(named) => {
            let format = json!({"type": "json_schema", "schema": named["schema"]});
            output.insert("format".to_owned(), format);
        }
    }
    Ok((!output.is_empty()).then_some(Value::Object(output)))
}

fn tools(request: &Request) -> Option<Value> {
    let declare = |tool: &Tool| {
        let function = Function::of(tool);
        let mut declared = Map::new();
        add(
            &mut declared,
            [
                ("name", Some(json!(function.name))),
                ("description", function.description.map(|text| json!(text))),
                ("input_schema", Some(function.parameters)),
                ("strict", function.strict.then(|| json!(true))),
            ],
        );
        let mut declared = Value::Object(declared);
        if let Some(keep) = tool.marked {
            wire::mark(&mut declared, keep);
        }
        declared
    };
    if request.tools.is_empty() {
        return called(request);
    }
    Some(request.tools.iter().map(declare).collect())
}

/// The tools that were called before, where the request declares none any more: what they were called with and brought must be
/// declared.
fn called(request: &Request) -> Option<Value> {
    let calls = request.messages.iter().flat_map(|message| &message.tool_calls);
    let names: BTreeSet<&str> = calls.map(|call| &*call.name).collect();
    let declare = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    (!names.is_empty()).then(|| names.into_iter().map(declare).collect())
}

fn tool_choice(request: &Request, choice: Option<Choice>) -> Option<Value> {
    if request.tools.is_empty() {
        return called(request).map(|_| json!({"type": "none"}));
    }
    let one = one_by_one(request);
    let mut told = match choice {
        None if !one => return None,
        Some(Choice::None) => return Some(json!({"type": "none"})),
        None | Some(Choice::Auto) => json!({"type": "auto"}),
        Some(Choice::Any) => json!({"type": "any"}),
        Some(Choice::Named(name)) => json!({"type": "tool", "name": name}),
    };
    if one {
        told["disable_parallel_tool_use"] = json!(true);
    }
    Some(told)
}
