//! Our call as a request for `generateContent`.

use serde_json::{Map, Value, json};

use super::contents::contents;
use super::{Settings, Thinking};
use crate::backend::remote::asked::{Choice, Form, Function, add};
use crate::backend::remote::wire::decimal;
use crate::backend::{Call, Failure, Lack, Part};
use crate::catalog::Class;
use crate::chat::{Message, Request, Role};
use crate::units::Tokens;

/// The most stop texts that are taken.
const STOPS_MAX: usize = 5;

/// The body of the call.
pub(super) fn body(settings: &Settings, call: &Call) -> Result<Value, Failure> {
    let request = &*call.request;
    let mut body = Map::new();
    add(
        &mut body,
        [
            ("systemInstruction", system(request)),
            ("contents", Some(contents(settings, request)?)),
            ("tools", tools(request)),
            ("toolConfig", choice(request)?),
            ("generationConfig", Some(generation(settings, call)?)),
        ],
    );
    Ok(Value::Object(body))
}

fn system(request: &Request) -> Option<Value> {
    let system = request.messages.iter().filter(|message| message.role == Role::System).map(Message::plain);
    let system: Vec<String> = system.filter(|text| !text.is_empty()).collect();
    (!system.is_empty()).then(|| json!({"parts": [{"text": system.join("\n\n")}]}))
}

fn generation(settings: &Settings, call: &Call) -> Result<Value, Failure> {
    let request = &*call.request;
    let (thinking, most) = effort(settings, &call.part)?;
    let (kind, schema) = form(request)?;
    let sampling = &request.sampling;
    // `execute` sees to all of them anyway.
    let stops: Vec<&String> = sampling.stop.iter().take(STOPS_MAX).collect();
    let (presence, frequency) = penalties(request)?;
    let mut generation = Map::new();
    add(
        &mut generation,
        [
            ("maxOutputTokens", call.told(most).map(|most| json!(most))),
            ("thinkingConfig", thinking),
            ("temperature", sampling.temperature.map(decimal)),
            ("topP", sampling.top_p.map(decimal)),
            ("topK", sampling.top_k.map(|k| json!(k))),
            // A choice's own seed, and only where the caller wants one. Theirs has 32 bits and a sign.
            ("seed", sampling.seed.map(|_| json!(call.seed & u64::from(i32::MAX.cast_unsigned())))),
            ("stopSequences", (!stops.is_empty()).then(|| json!(stops))),
            ("responseMimeType", kind.map(|kind| json!(kind))),
            ("responseJsonSchema", schema),
            ("presencePenalty", presence),
            ("frequencyPenalty", frequency),
        ],
    );
    Ok(Value::Object(generation))
}

/// `thinkingConfig`, with a budget or a level and never both, and the limit of everything written.
fn effort(settings: &Settings, part: &Part) -> Result<(Option<Value>, Tokens), Failure> {
    match (part, settings.thinking) {
        (Part::Whole { solution, .. }, Thinking::Never) => Ok((None, *solution)),
        (Part::Whole { thinking: Tokens::ZERO, solution }, Thinking::Budget) => {
            Ok((Some(json!({"thinkingBudget": 0})), *solution))
        }
        (Part::Whole { thinking, solution }, Thinking::Budget) => {
            // The budget is a target: what goes beyond it may not eat the answer.
            let most = Class::native_most(*thinking) + *solution;
            Ok((Some(shown(settings, json!({"thinkingBudget": thinking}))), most))
        }
        (Part::Whole { .. }, Thinking::Level) => {
            Err(Failure::incapable(Lack::Thinking, "this model takes no budget for its thinking"))
        }
        (Part::Total { effort: Some(word), tokens }, Thinking::Level) => {
            Ok((Some(shown(settings, json!({"thinkingLevel": word}))), *tokens))
        }
        (Part::Total { effort: None, tokens }, Thinking::Level) => {
            Ok((settings.summaries.then(|| shown(settings, json!({}))), *tokens))
        }
        (Part::Total { effort: None, tokens }, Thinking::Never | Thinking::Budget) => Ok((None, *tokens)),
        (Part::Total { effort: Some(_), .. }, _) => {
            Err(Failure::incapable(Lack::Thinking, "this model takes no effort"))
        }
        (Part::Thought { .. } | Part::Solution { .. }, _) => {
            Err(Failure::incapable(Lack::Thinking, "this model only makes whole answers"))
        }
    }
}

fn shown(settings: &Settings, mut thinking: Value) -> Value {
    if settings.summaries {
        thinking["includeThoughts"] = json!(true);
    }
    thinking
}

fn form(request: &Request) -> Result<(Option<&'static str>, Option<Value>), Failure> {
    let json = Some("application/json");
    Ok(match Form::of(request)? {
        Form::Text => (None, None),
        Form::Json => (json, None),
        Form::Schema(named) => (json, Some(named["schema"].clone())),
    })
}

/// Penalties for presence and for frequency, where they change something.
fn penalties(request: &Request) -> Result<(Option<Value>, Option<Value>), Failure> {
    let extra = |name: &str| request.extra.get(name).filter(|value| !value.is_null());
    if extra("logit_bias").and_then(Value::as_object).is_some_and(|bias| !bias.is_empty()) {
        return Err(Failure::incapable(Lack::Penalties, "this model takes no logit_bias"));
    }
    let penalty = |name| extra(name).filter(|value| value.as_f64() != Some(0.0)).cloned();
    Ok((penalty("presence_penalty"), penalty("frequency_penalty")))
}

fn tools(request: &Request) -> Option<Value> {
    let declare = |function: Function<'_>| {
        let mut tool = Map::new();
        add(
            &mut tool,
            [
                ("name", Some(json!(function.name))),
                ("description", function.description.map(|text| json!(text))),
                ("parametersJsonSchema", Some(function.parameters)),
            ],
        );
        Value::Object(tool)
    };
    let tools = || request.tools.iter().map(Function::of).map(declare).collect::<Vec<_>>();
    (!request.tools.is_empty()).then(|| json!([{"functionDeclarations": tools()}]))
}

fn choice(request: &Request) -> Result<Option<Value>, Failure> {
    let config = match Choice::of(request)? {
        _ if request.tools.is_empty() => return Ok(None),
        None => return Ok(None),
        Some(Choice::Auto) => json!({"mode": "AUTO"}),
        Some(Choice::None) => json!({"mode": "NONE"}),
        Some(Choice::Any) => json!({"mode": "ANY"}),
        Some(Choice::Named(name)) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Ok(Some(json!({"functionCallingConfig": config})))
}
