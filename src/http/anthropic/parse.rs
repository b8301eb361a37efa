//! Reads the members of a Messages request, all but budgets, into the canonical request.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::http::budget::{self, BudgetParser};
use crate::http::cache_control;
use crate::http::error::{ApiError, codes};
use crate::http::fields::{self, Fields, STOP_BYTES_MAX};
use crate::http::{hosted_tools, tool_choice};
use stint_types::chat::{EffortChanges, Request, Role, SamplingOptions, SchemaRules, Tool};
use stint_types::units::EpisodeId;

use super::budget::read_task_budget;
use super::conversation::{self, EffortOverride};

/// The most bytes of a tool's name.
const TOOL_NAME_MAX: usize = 128;

/// The members that are not about budgets; those were taken before.
pub(super) fn request(
    fields: &mut Fields,
    budgets: &mut BudgetParser,
    model: String,
) -> Result<Request, ApiError> {
    let (mut messages, efforts) = conversation::read(fields)?;
    cache_control::take_from_request(fields, &mut messages)?;
    check_unsupported(fields)?;
    let (response_format, effort_changes) = output_config(fields, budgets, efforts)?;
    let tools = tools(fields)?;
    let (tool_choice, one_by_one) = tool_choice(fields)?;
    tool_choice.as_ref().map_or(Ok(()), |choice| tool_choice::check(choice, &tools))?;
    let mut extra = Map::new();
    let (user, episode) = metadata(fields)?;
    budgets.name_episode(episode);
    if let Some(user) = user {
        extra.insert("user".into(), user.into());
    }
    if one_by_one {
        extra.insert("parallel_tool_calls".into(), false.into());
    }
    Ok(Request {
        sampling: sampling(fields)?,
        tools,
        tool_choice,
        response_format,
        schema_rules: SchemaRules::Anthropic,
        effort_changes,
        extra,
        continues_last: messages.last().is_some_and(|message| message.role == Role::Assistant),
        ..Request::new(model, messages)
    })
}

fn sampling(fields: &mut Fields) -> Result<SamplingOptions, ApiError> {
    let top_k = fields.integer("top_k")?;
    Ok(SamplingOptions {
        temperature: fields.fraction("temperature", 1.0)?,
        top_p: fields.fraction("top_p", 1.0)?,
        top_k: top_k.map(|k| u32::try_from(k).unwrap_or(u32::MAX)),
        seed: None,
        stop: stop(fields)?,
    })
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let wrong = || {
        let must = format!("must be a list of up to 16 strings, each of {STOP_BYTES_MAX} bytes at most");
        ApiError::invalid(Some("stop_sequences"), must)
    };
    let list = fields.list("stop_sequences")?.unwrap_or_default();
    if list.len() > 16 {
        return Err(wrong());
    }
    fields::stop_texts(&list).ok_or_else(wrong)
}

/// What newer SDKs know and is not offered, each with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("mcp_servers", "is not offered: servers of tools run elsewhere; leave it out"),
    ("container", "is not offered: containers run elsewhere; leave it out"),
    ("compaction", "is not offered: ask for a summary as for any other answer"),
    ("fallbacks", "is not offered: name a route, whose models take over from one another"),
    ("fallback_credit_token", "is not offered; leave it out"),
    ("billing_policy", "is not offered: the key says who is billed; leave it out"),
    ("inference_geo", "is not offered: the operator says where models run; leave it out"),
    ("diagnostics", "is not offered; leave it out"),
];

/// What changes the bill or keeps something, and is not offered.
fn check_unsupported(fields: &mut Fields) -> Result<(), ApiError> {
    if !matches!(fields.text("service_tier")?.as_deref(), None | Some("auto" | "standard_only")) {
        return Err(ApiError::invalid(Some("service_tier"), "may only be auto or standard_only here"));
    }
    if !matches!(fields.text("speed")?.as_deref(), None | Some("standard")) {
        return Err(ApiError::invalid(Some("speed"), "may only be standard here"));
    }
    context_management(fields)?;
    let is_there = |value: &Value| *value != json!([]) && *value != json!({});
    for &(param, why) in REFUSED {
        if fields.take(param).is_some_and(|value| is_there(&value)) {
            return Err(ApiError::invalid(Some(param), why));
        }
    }
    // The SDK's tool runner asks for one by itself, and by this code knows to go on without.
    if fields.take("thread").is_some() {
        let why = "is not offered: conversations of messages are not kept; send all of it as messages";
        return Err(ApiError::invalid(Some("thread"), why).with_code(codes::THREAD_UNSUPPORTED_REQUEST));
    }
    Ok(())
}

/// `context_management`: thoughts that are to be kept are kept, as all is that is sent; nothing is cleared.
fn context_management(fields: &mut Fields) -> Result<(), ApiError> {
    let Some(mut management) = fields.fields("context_management")? else { return Ok(()) };
    let name = management.full_name("edits");
    let edits = management.list("edits")?.unwrap_or_default();
    let keeps = |edit: &Value| edit["type"] == "clear_thinking_20251015" && edit["keep"] == "all";
    match edits.iter().position(|edit| !keeps(edit)) {
        None => management.finish(),
        Some(at) => {
            let why = "is not offered: nothing is left out of what you send; shorten messages yourself";
            Err(ApiError::invalid(Some(&format!("{name}[{at}]")), why))
        }
    }
}

/// `output_config`: how deep to think, unless the conversation says otherwise, and the form of the answer.
fn output_config(
    fields: &mut Fields,
    budgets: &mut BudgetParser,
    efforts: Vec<EffortOverride>,
) -> Result<(Option<Value>, EffortChanges), ApiError> {
    // Where it stood before it was a member of that.
    let format = fields.fields("output_format")?.map(schema).transpose()?;
    let mut output = fields.fields("output_config")?;
    let whole = output.as_mut().map(|output| output.text("effort")).transpose()?.flatten();
    if let Some(word) = &whole {
        budgets.effort("output_config.effort", word)?;
    }
    for EffortOverride { name, change } in &efforts {
        budgets.effort(name, &change.word)?;
    }
    let changes = EffortChanges { whole, changes: efforts.into_iter().map(|it| it.change).collect() };
    // Of several the last holds, however deep the others.
    budgets.effort_word("output_config.effort", changes.last().map(str::to_owned))?;
    let Some(mut output) = output else { return Ok((format, changes)) };
    if let Some(task) = output.fields("task_budget")? {
        budgets.task(read_task_budget(task)?);
    }
    let format = output.fields("format")?.map(schema).transpose()?.or(format);
    output.finish()?;
    Ok((format, changes))
}

fn schema(mut format: Fields) -> Result<Value, ApiError> {
    if format.text("type")?.as_deref() != Some("json_schema") {
        return Err(ApiError::invalid(Some(&format.full_name("type")), "must be json_schema"));
    }
    let name = format.full_name("schema");
    let schema = format.take("schema").filter(Value::is_object);
    let schema = schema.ok_or_else(|| ApiError::invalid(Some(&name), "must be an object"))?;
    format.finish()?;
    let named = json!({ "name": "answer", "schema": schema, "strict": true });
    Ok(json!({ "type": "json_schema", "json_schema": named }))
}

/// Whom the request is for, and the episode that it belongs to.
fn metadata(fields: &mut Fields) -> Result<(Option<String>, Option<EpisodeId>), ApiError> {
    let Some(mut metadata) = fields.fields("metadata")? else { return Ok((None, None)) };
    let user = metadata.text("user_id")?;
    let name = metadata.full_name("episode_id");
    let episode =
        metadata.text("episode_id")?.map(|episode| budget::parse_episode_id(&name, &episode)).transpose()?;
    metadata.finish()?;
    Ok((user, episode))
}

fn tools(fields: &mut Fields) -> Result<Vec<Tool>, ApiError> {
    let list = fields.list("tools")?.unwrap_or_default();
    let mut tools: Vec<Tool> = Vec::new();
    let mut names = BTreeSet::new();
    for (at, tool) in list.into_iter().enumerate() {
        let tool = read_tool(&format!("tools[{at}]"), tool)?;
        if !names.insert(tool.name.clone()) {
            let why = format!("is {:?}, as another tool's is; each needs a name of its own", tool.name);
            return Err(ApiError::invalid(Some(&format!("tools[{at}].name")), why));
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// Anthropic's own rule for names.
fn check_tool_name(param: &str, name: &str) -> Result<(), ApiError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=TOOL_NAME_MAX).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(());
    }
    let must = format!("must be 1 to {TOOL_NAME_MAX} letters, digits, _ and -");
    Err(ApiError::invalid(Some(param), must))
}

/// A tool of the caller's, as OpenAI declares it, which is how the canonical request has it.
fn read_tool(path: &str, tool: Value) -> Result<Tool, ApiError> {
    let mut fields = Fields::from_value(path, tool)?;
    match fields.text("type")?.as_deref() {
        None | Some("custom") => {}
        Some(kind) if is_run_by_callers(kind) => return known_tool(fields, kind),
        Some(search) if search.starts_with("tool_search_tool_") => {
            let must = "must be \"custom\": no tools are searched for at the provider; leave this one out, and the model gets all tools \
                        at once, those with `defer_loading` too";
            return Err(ApiError::invalid(Some(&fields.full_name("type")), must));
        }
        Some(kind) => {
            let must =
                "must be \"custom\", or one that you run (bash_…, text_editor_…, memory_…, computer_…)";
            return Err(ApiError::invalid(
                Some(&fields.full_name("type")),
                hosted_tools::not_offered(must, kind),
            ));
        }
    }
    let name = fields.require("name")?;
    check_tool_name(&fields.full_name("name"), &name)?;
    let schema = fields.full_name("input_schema");
    let parameters = fields.take("input_schema").filter(Value::is_object);
    let parameters = parameters.ok_or_else(|| ApiError::invalid(Some(&schema), "must be an object"))?;
    let mut function = Map::new();
    function.insert("name".into(), name.clone().into());
    if let Some(description) = fields.text("description")? {
        function.insert("description".into(), description.into());
    }
    function.insert("parameters".into(), parameters);
    if fields.boolean("strict")? == Some(true) {
        function.insert("strict".into(), true.into());
    }
    let marked = cache_control::take(&mut fields)?;
    let members = anthropic_members(&mut fields)?;
    check_callers(&mut fields)?;
    // Here models get all tools at once.
    fields.take_all(&["defer_loading"]);
    fields.finish()?;
    let declaration = json!({ "type": "function", "function": function });
    Ok(Tool { cache_breakpoint: marked, anthropic_members: members, ..Tool::new(name, declaration) })
}

/// The beginnings of tools that Claude knows by itself, and callers run.
const RUN_BY_CALLERS: [&str; 4] = ["bash_", "text_editor_", "memory_", "computer_"];

fn is_run_by_callers(kind: &str) -> bool {
    let mut dates = RUN_BY_CALLERS.iter().filter_map(|start| kind.strip_prefix(*start));
    dates.any(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A tool that Claude knows by itself, and the caller runs: it goes on as it was written.
fn known_tool(mut fields: Fields, kind: &str) -> Result<Tool, ApiError> {
    let name = fields.require("name")?;
    check_tool_name(&fields.full_name("name"), &name)?;
    let marked = cache_control::take(&mut fields)?;
    check_callers(&mut fields)?;
    fields.take_all(&["defer_loading"]);
    let mut members = Map::new();
    members.insert("type".into(), kind.into());
    members.extend(fields.take_rest());
    let function = json!({ "name": name, "parameters": { "type": "object" } });
    let declaration = json!({ "type": "function", "function": function });
    Ok(Tool {
        cache_breakpoint: marked,
        anthropic_members: Some(members.into()),
        ..Tool::new(name, declaration)
    })
}

/// What only Claude gets of a tool: examples of its input, and whether that is streamed as it is written.
fn anthropic_members(fields: &mut Fields) -> Result<Option<Value>, ApiError> {
    let mut members = Map::new();
    if let Some(examples) = fields.list("input_examples")?.filter(|examples| !examples.is_empty()) {
        members.insert("input_examples".into(), examples.into());
    }
    if fields.boolean("eager_input_streaming")? == Some(true) {
        members.insert("eager_input_streaming".into(), true.into());
    }
    Ok((!members.is_empty()).then_some(Value::Object(members)))
}

/// A tool that only code may call is not offered to a model: it would call it itself.
fn check_callers(fields: &mut Fields) -> Result<(), ApiError> {
    let name = fields.full_name("allowed_callers");
    let callers = fields.list("allowed_callers")?.unwrap_or_default();
    if callers.is_empty() || callers.iter().any(|caller| caller == "direct") {
        return Ok(());
    }
    let must =
        "must have \"direct\": no code runs here that could call a tool; add it, or leave the tool out";
    Err(ApiError::invalid(Some(&name), must))
}

/// The choice, and whether only one tool may be called at a time.
fn tool_choice(fields: &mut Fields) -> Result<(Option<Value>, bool), ApiError> {
    let Some(mut choice) = fields.fields("tool_choice")? else { return Ok((None, false)) };
    let one_by_one = choice.boolean("disable_parallel_tool_use")? == Some(true);
    let canonical = match choice.text("type")?.as_deref() {
        Some("auto") => json!("auto"),
        Some("any") => json!("required"),
        Some("none") => json!("none"),
        Some("tool") => json!({ "type": "function", "function": { "name": choice.require("name")? } }),
        _ => {
            let must = "must be auto, any, tool or none";
            return Err(ApiError::invalid(Some(&choice.full_name("type")), must));
        }
    };
    choice.finish()?;
    Ok((Some(canonical), one_by_one))
}
