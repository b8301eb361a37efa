//! Translates a call to a request of `generateContent`.

use serde_json::{Map, Value, json};

use crate::remote::caller_options::{
    FunctionDeclaration, OpenAiResponseFormat, OpenAiToolChoice, allowed_tools, insert_present, refuse_bias,
    refuse_media_in_instructions,
};
use crate::remote::wire::decimal;
use crate::{BackendCall, Failure, GenerationPart, UnsupportedFeature};
use stint_types::catalog::EnforcementClass;
use stint_types::chat::{Message, Request, Role};
use stint_types::units::Tokens;

use super::contents::contents;
use super::{GeminiThinking, Settings};

/// The most stop texts that are taken.
const STOPS_MAX: usize = 5;

/// The body of the call.
pub(super) fn body(settings: &Settings, call: &BackendCall) -> Result<Value, Failure> {
    let request = &*call.request;
    refuse_media_in_instructions(request)?;
    let mut body = Map::new();
    insert_present(
        &mut body,
        [
            ("systemInstruction", system(request)),
            ("contents", Some(contents(settings, request)?)),
            ("tools", tools(request)),
            ("toolConfig", tool_config(request)?),
            ("generationConfig", Some(generation_config(settings, call)?)),
        ],
    );
    Ok(Value::Object(body))
}

fn system(request: &Request) -> Option<Value> {
    let system =
        request.messages.iter().filter(|message| message.role == Role::System).map(Message::paragraphs);
    let system: Vec<String> = system.filter(|text| !text.is_empty()).collect();
    (!system.is_empty()).then(|| json!({"parts": [{"text": system.join("\n\n")}]}))
}

fn generation_config(settings: &Settings, call: &BackendCall) -> Result<Value, Failure> {
    let request = &*call.request;
    let (thinking, most) = thinking_config(settings, &call.part)?;
    let (kind, schema) = response_format(request)?;
    let sampling = &request.sampling;
    // `execute` sees to all of them anyway.
    let stops: Vec<&String> = sampling.stop.iter().take(STOPS_MAX).collect();
    refuse_bias(request)?;
    let penalty = |name: &str| penalty(settings, request, name);
    let mut generation = Map::new();
    insert_present(
        &mut generation,
        [
            ("maxOutputTokens", call.stated_limit(most).map(|most| json!(most))),
            ("thinkingConfig", thinking),
            ("temperature", sampling.temperature.map(decimal)),
            ("topP", sampling.top_p.map(decimal)),
            ("topK", sampling.top_k.map(|k| json!(k))),
            // A choice's own seed, and only where the caller wants one. Theirs has 32 bits and a sign.
            ("seed", sampling.seed.map(|_| json!(call.seed & u64::from(i32::MAX.cast_unsigned())))),
            ("stopSequences", (!stops.is_empty()).then(|| json!(stops))),
            ("responseMimeType", kind.map(|kind| json!(kind))),
            ("responseJsonSchema", schema),
            ("presencePenalty", penalty("presence_penalty")),
            ("frequencyPenalty", penalty("frequency_penalty")),
        ],
    );
    Ok(Value::Object(generation))
}

/// `thinkingConfig`, with a budget or a level and never both, and the limit of everything written.
fn thinking_config(settings: &Settings, part: &GenerationPart) -> Result<(Option<Value>, Tokens), Failure> {
    match (part, settings.thinking) {
        (GenerationPart::Whole { solution, .. }, GeminiThinking::Never) => Ok((None, *solution)),
        (GenerationPart::Whole { thinking: Tokens::ZERO, solution }, GeminiThinking::Budget) => {
            Ok((Some(json!({"thinkingBudget": 0})), *solution))
        }
        (GenerationPart::Whole { thinking, solution }, GeminiThinking::Budget) => {
            // The budget is a target: what goes beyond it may not eat the answer.
            let most = EnforcementClass::native_max(*thinking) + *solution;
            Ok((Some(with_thoughts(settings, json!({"thinkingBudget": thinking}))), most))
        }
        (GenerationPart::Whole { .. }, GeminiThinking::Level) => Err(Failure::incapable(
            UnsupportedFeature::Thinking,
            "this model takes no budget for its thinking",
        )),
        (GenerationPart::Total { effort: Some(word), tokens }, GeminiThinking::Level) => {
            Ok((Some(with_thoughts(settings, json!({"thinkingLevel": word}))), *tokens))
        }
        (GenerationPart::Total { effort: None, tokens }, GeminiThinking::Level) => {
            Ok((settings.summaries.then(|| with_thoughts(settings, json!({}))), *tokens))
        }
        (GenerationPart::Total { effort: None, tokens }, GeminiThinking::Never | GeminiThinking::Budget) => {
            Ok((None, *tokens))
        }
        (GenerationPart::Total { effort: Some(_), .. }, _) => {
            Err(Failure::incapable(UnsupportedFeature::Thinking, "this model takes no effort"))
        }
        (GenerationPart::Thought { .. } | GenerationPart::Solution { .. }, _) => {
            Err(Failure::incapable(UnsupportedFeature::Thinking, "this model only makes whole answers"))
        }
    }
}

fn with_thoughts(settings: &Settings, mut thinking: Value) -> Value {
    if settings.summaries {
        thinking["includeThoughts"] = json!(true);
    }
    thinking
}

fn response_format(request: &Request) -> Result<(Option<&'static str>, Option<Value>), Failure> {
    let json = Some("application/json");
    Ok(match OpenAiResponseFormat::of(request)? {
        OpenAiResponseFormat::Text => (None, None),
        OpenAiResponseFormat::Json => (json, None),
        OpenAiResponseFormat::Schema(named) => (json, Some(named["schema"].clone())),
    })
}

/// A penalty, where it changes something and is taken.
fn penalty(settings: &Settings, request: &Request, name: &str) -> Option<Value> {
    let stated = request.extra.get(name).filter(|_| settings.penalties);
    stated.filter(|value| value.as_f64().is_some_and(|penalty| penalty != 0.0)).cloned()
}

fn tools(request: &Request) -> Option<Value> {
    let declare = |function: FunctionDeclaration<'_>| {
        let mut tool = Map::new();
        insert_present(
            &mut tool,
            [
                ("name", Some(json!(function.name))),
                ("description", function.description.map(|text| json!(text))),
                ("parametersJsonSchema", Some(function.parameters)),
            ],
        );
        Value::Object(tool)
    };
    let tools = || request.tools.iter().map(FunctionDeclaration::of).map(declare).collect::<Vec<_>>();
    (!request.tools.is_empty()).then(|| json!([{"functionDeclarations": tools()}]))
}

fn tool_config(request: &Request) -> Result<Option<Value>, Failure> {
    let choice = OpenAiToolChoice::of(request)?;
    // A list of names is taken where a call is forced, and nowhere else.
    let names = allowed_tools(request, choice.as_ref()).map(|(_, names)| names.collect::<Vec<_>>());
    let config = match choice {
        _ if request.tools.is_empty() => return Ok(None),
        None => return Ok(None),
        Some(OpenAiToolChoice::Auto) => json!({"mode": "AUTO"}),
        Some(OpenAiToolChoice::None) => json!({"mode": "NONE"}),
        Some(OpenAiToolChoice::Any) if let Some(names) = names => {
            json!({"mode": "ANY", "allowedFunctionNames": names})
        }
        Some(OpenAiToolChoice::Any) => json!({"mode": "ANY"}),
        Some(OpenAiToolChoice::Named(name)) => json!({"mode": "ANY", "allowedFunctionNames": [name]}),
    };
    Ok(Some(json!({"functionCallingConfig": config})))
}
