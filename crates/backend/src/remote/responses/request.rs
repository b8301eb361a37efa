//! Translates a call to a request for a response.

use serde_json::{Map, Value, json};

use crate::remote::begun_answer;
use crate::remote::caller_options::{
    FunctionDeclaration, OpenAiResponseFormat, OpenAiToolChoice, allowed_tools, insert_present,
    passed_member, refuse_bias,
};
use crate::remote::strict_schema;
use crate::remote::wire::decimal;
use crate::{BackendCall, Failure, UnsupportedFeature};
use stint_types::chat::{Request, Tool};
use stint_types::units::Tokens;

use super::{Settings, custom_tools, input};

/// The least limit that is taken. A smaller one is held by who asks.
pub const LIMIT_MIN: Tokens = Tokens(16);

/// Members that mean the same there.
const PASSED: [&str; 5] =
    ["metadata", "parallel_tool_calls", "prompt_cache_key", "safety_identifier", "user"];

/// The body of the call.
pub(super) fn body(
    settings: &Settings,
    call: &BackendCall,
    effort: Option<&str>,
    tokens: Tokens,
) -> Result<Value, Failure> {
    let request = &*call.request;
    refuse_bias(request)?;
    if request.continues_last {
        return Err(begun_answer::cannot_continue());
    }
    if request.logprobs.is_some() {
        let why = "this model reports no log-probabilities over Responses: ask another model";
        return Err(Failure::incapable(UnsupportedFeature::Logprobs, why));
    }
    let limit = call.stated_limit(tokens.max(LIMIT_MIN));
    let (instructions, input) = input::instructions_and_items(settings, request)?;
    let extra = PASSED.iter().filter_map(|name| request.extra.get_key_value(*name));
    let mut body: Map<String, Value> = extra.map(|(name, value)| passed_member(name, value)).collect();
    let encrypted = || json!(["reasoning.encrypted_content"]);
    let sampled = |value: Option<f32>| value.filter(|_| !settings.can_reason).map(decimal);
    insert_present(
        &mut body,
        [
            ("model", Some(json!(settings.model))),
            ("instructions", (!instructions.is_empty()).then(|| json!(instructions))),
            ("input", Some(input)),
            ("stream", Some(json!(true))),
            ("store", Some(json!(false))),
            ("include", settings.can_reason.then(encrypted)),
            ("reasoning", reasoning(settings, effort)),
            ("max_output_tokens", limit.map(|limit| json!(limit))),
            ("temperature", sampled(request.sampling.temperature)),
            ("top_p", sampled(request.sampling.top_p)),
            ("text", text(request)?),
            ("tools", tools(request)),
            ("tool_choice", tool_choice(settings, request)?),
        ],
    );
    Ok(Value::Object(body))
}

fn reasoning(settings: &Settings, effort: Option<&str>) -> Option<Value> {
    let mut reasoning = Map::new();
    insert_present(
        &mut reasoning,
        [("effort", effort.map(|word| json!(word))), ("summary", settings.summaries.then(|| json!("auto")))],
    );
    (settings.can_reason && !reasoning.is_empty()).then_some(Value::Object(reasoning))
}

fn text(request: &Request) -> Result<Option<Value>, Failure> {
    let format = match OpenAiResponseFormat::of(request)? {
        OpenAiResponseFormat::Text => None,
        OpenAiResponseFormat::Json => Some(json!({"type": "json_object"})),
        OpenAiResponseFormat::Schema(named) => {
            let format = strict_schema::response_format(request);
            let named = format.as_ref().map_or(named, |format| &format["json_schema"]);
            let mut format = named.as_object().cloned().unwrap_or_default();
            format.insert("type".to_owned(), json!("json_schema"));
            Some(Value::Object(format))
        }
    };
    let mut text = Map::new();
    insert_present(&mut text, [("format", format), ("verbosity", request.extra.get("verbosity").cloned())]);
    Ok((!text.is_empty()).then_some(Value::Object(text)))
}

/// A function is held to its schema there unless it is said otherwise; with chat completions it is the other way.
fn tools(request: &Request) -> Option<Value> {
    let declare = |function: FunctionDeclaration<'_>| {
        let mut tool = Map::new();
        insert_present(
            &mut tool,
            [
                ("type", Some(json!("function"))),
                ("name", Some(json!(function.name))),
                ("description", function.description.map(|text| json!(text))),
                ("parameters", Some(function.parameters)),
                ("strict", Some(json!(function.strict))),
            ],
        );
        Value::Object(tool)
    };
    let tool = |tool: &Tool| {
        custom_tools::declaration(tool).unwrap_or_else(|| {
            let declaration = strict_schema::declaration(request, tool);
            declare(FunctionDeclaration::of(&Tool { declaration, ..tool.clone() }))
        })
    };
    let tools = || request.tools.iter().map(tool).collect();
    (!request.tools.is_empty()).then(tools)
}

fn tool_choice(settings: &Settings, request: &Request) -> Result<Option<Value>, Failure> {
    let choice = OpenAiToolChoice::of(request)?.filter(|_| !request.tools.is_empty());
    let custom = custom_tools::names(request);
    let named = |name: &str| {
        let kind = if custom.contains(name) { "custom" } else { "function" };
        json!({"type": kind, "name": name})
    };
    let narrowed = allowed_tools(request, choice.as_ref()).filter(|_| settings.rules.allowed_tools);
    if let Some((mode, names)) = narrowed {
        let tools: Vec<Value> = names.map(named).collect();
        return Ok(Some(json!({"type": "allowed_tools", "mode": mode, "tools": tools})));
    }
    Ok(choice.map(|choice| match choice {
        OpenAiToolChoice::Auto => json!("auto"),
        OpenAiToolChoice::None => json!("none"),
        OpenAiToolChoice::Any => json!("required"),
        OpenAiToolChoice::Named(name) => named(&name),
    }))
}
