//! Members that are not ours: those of other servers that bill, route, cache or reach elsewhere are known here and
//! refused or left out by name; a slip in one that speaks of budgets is named; and all others are carried, within
//! bounds, for the models whose backends take them.

use serde_json::{Map, Value, json};

use stint_types::chat::MemberPhase;
use stint_types::units::nearest_within;

use super::error::{ApiError, codes};
use super::fields::Fields;

/// So many members may be carried,
const COUNT_MAX: usize = 64;
/// of so many bytes together, written as JSON,
const BYTES_MAX: usize = 256 << 10;
/// nested so deep.
const DEPTH_MAX: usize = 32;

/// What is taken and goes nowhere: where a server computes, what it keeps in memory and what it tells beside an answer are
/// the operator's business, and the gateway's own; and what some Copilots by mistake send to others than GitHub (`snippy`).
const LEFT_OUT: &[&str] = &[
    "cache_prompt",
    "id_slot",
    "slot_id",
    "n_cache_reuse",
    "n_keep",
    "n_discard",
    "keep_alive",
    "num_ctx",
    "num_keep",
    "num_batch",
    "num_gpu",
    "main_gpu",
    "num_thread",
    "numa",
    "low_vram",
    "f16_kv",
    "use_mmap",
    "use_mlock",
    "request_id",
    "rid",
    "route",
    "timings_per_token",
    "return_progress",
    "return_tokens",
    "return_token_ids",
    "return_tokens_as_token_ids",
    "response_fields",
    "stream_interval",
    "snippy",
    "prediction",
    "prompt_cache_retention",
    "prompt_cache_options",
    "usage",
];

/// Beside the conversation nobody counts them, and nobody looks at where they are.
const MEDIA: &str = "is not offered: send images and sound as parts of a message, which says what is in it";

/// What is refused unless it says nothing, each with what to do instead.
const REFUSED: &[(&str, &str)] = &[
    (
        "extra_body",
        "is how SDKs take members that they do not know: send its contents beside model and messages",
    ),
    ("extra_headers", "is how SDKs take headers: send them as headers"),
    ("extra_query", "is how SDKs take a query: there is none here"),
    ("options", "is how Ollama's own API has it: send what is in it beside model and messages"),
    ("use_beam_search", "is not offered: several answers would be billed for one"),
    ("n_cmpl", "is not offered: several answers would be billed for one; n is how many are wanted"),
    (
        "num_return_sequences",
        "is not offered: several answers would be billed for one; n is how many are wanted",
    ),
    ("ignore_eos", "is not offered: an answer ends when the model ends it"),
    ("priority", "is the operator's to say; a request that can wait sends the header Priority: u=4"),
    ("plugins", "is not offered: nothing searches or reads files here; give the model a tool of yours"),
    ("web_search", "is not offered: nothing searches here; give the model a tool of yours"),
    ("enable_search", "is not offered: nothing searches here; give the model a tool of yours"),
    ("search_options", "is not offered: nothing searches here; give the model a tool of yours"),
    ("search_parameters", "is not offered: nothing searches here; give the model a tool of yours"),
    (
        "provider",
        "is not offered: the operator says where models are served; ask for another model or a route",
    ),
    ("models", "is not offered: name one model, or a route, whose models take over from one another"),
    ("fallbacks", "is not offered: name a route, whose models take over from one another"),
    ("transforms", "is not offered: nothing is left out of what you send; shorten messages yourself"),
    (
        "truncate_prompt_tokens",
        "is not offered: nothing is left out of what you send; shorten messages yourself",
    ),
    ("background", "is not offered: an answer is only given to the call that waits for it; use stream"),
    ("deferred", "is not offered: an answer is only given to the call that waits for it; use stream"),
    ("prompt_logprobs", "is not offered: only the answer's tokens have logprobs here"),
    ("echo", "is not offered: the prompt is not sent back"),
    (
        "continue_final_message",
        "is for /v1/chat/completions; /v1/messages goes on with a last message of the assistant's by itself",
    ),
    ("kv_transfer_params", "is not offered: the operator says where a cache is"),
    ("mm_processor_kwargs", "is not offered: the operator says how closely images are looked at"),
    ("media_io_kwargs", "is not offered: the operator says how closely images are looked at"),
    ("image", MEDIA),
    ("images", MEDIA),
    ("image_url", MEDIA),
    ("image_urls", MEDIA),
    ("image_data", MEDIA),
    ("audio_url", MEDIA),
    ("audio_data", MEDIA),
    ("video_url", MEDIA),
    ("video_data", MEDIA),
    ("videos", MEDIA),
    ("multi_modal_data", MEDIA),
    ("t_max_predict_ms", "is not known here; budget.deadline_ms says when the answer must be there"),
];

/// What chat completions take themselves, refused where another API has it unless it says nothing: raw in what is sent to a model it
/// would be billed and not bounded, or be asked for and not come back.
const CHAT_ALONE: &[(&str, &str)] = &[
    ("n", "is for /v1/chat/completions: one answer is given here"),
    ("best_of", "is for /v1/completions: one answer is given here"),
    ("functions", "is not offered: it is the older name of tools; send those"),
    ("function_call", "is not offered: it is the older name of tool_choice; send that"),
    ("web_search_options", "is not offered: nothing searches here; give the model a tool of yours"),
    ("audio", "is not offered: answers are text"),
    ("modalities", "may only be [\"text\"] here: answers are text"),
    ("moderation", "is not offered; leave it out"),
    ("store", "is not offered here: /v1/responses keeps answers"),
    ("stop", "is for /v1/chat/completions; /v1/messages has stop_sequences, /v1/responses has none"),
    (
        "response_format",
        "is for /v1/chat/completions; send output_config.format to /v1/messages, text.format to /v1/responses",
    ),
    (
        "logprobs",
        "is for /v1/chat/completions; /v1/responses has include: [\"message.output_text.logprobs\"]",
    ),
    ("top_logprobs", "is for /v1/chat/completions and /v1/responses"),
];

/// What must not go anywhere: addresses, credentials, files and code of the caller's; and what other APIs call the
/// conversation and what the gateway sets itself.
const FORBIDDEN: &[&str] = &[
    "base_url",
    "api_base",
    "api_key",
    "api_version",
    "organization",
    "headers",
    "webhook",
    "webhook_url",
    "callback_url",
    "file",
    "model_path",
    "mmproj",
    "lora",
    "lora_path",
    "lora_request",
    "chat_template",
    "logits_processors",
    "logit_processors",
    "custom_logit_processor",
    "bootstrap_host",
    "bootstrap_port",
    "bootstrap_room",
    "session_params",
    "add_generation_prompt",
    "messages",
    "prompt",
    "prompt_embeds",
    "prompt_token_ids",
    "input",
    "input_ids",
    "input_embeds",
    "instructions",
    "system",
    "contents",
    "suffix",
    "prefix",
    "partial",
];

/// What fills a chat template.
const TEMPLATE: &str = "chat_template_kwargs";
/// What its renderer takes for options of its own: another template, and what is made of the text.
const TEMPLATE_OPTIONS: &[&str] = &[
    "chat_template",
    "conversation",
    "messages",
    "tokenize",
    "tokenizer_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "padding",
    "truncation",
    "max_length",
    "return_tensors",
    "return_dict",
    "return_assistant_tokens_mask",
];

/// The members that speak of budgets: a slip in one of them would spend what was meant to be saved.
const BUDGETS: [&str; 18] = [
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "max_tool_calls",
    "n_predict",
    "num_predict",
    "reasoning_effort",
    "reasoning",
    "include_reasoning",
    "thinking",
    "thinking_token_budget",
    "thinking_budget",
    "thinking_budget_tokens",
    "enable_thinking",
    "budget",
    "metadata",
    "service_tier",
];

/// Members of our own object that stand beside it.
const MISPLACED_MEMBERS: [(&str, &str); 4] = [
    ("thinking_tokens", "budget.thinking_tokens"),
    ("solution_tokens", "budget.solution_tokens"),
    ("cost_usd", "budget.cost_usd"),
    ("deadline_ms", "budget.deadline_ms"),
];

/// Refuses and leaves out what is known by name. The members that are ours were taken before.
///
/// # Errors
/// 400 that names the member and the remedy.
fn reject_known(fields: &mut Fields) -> Result<(), ApiError> {
    refuse(fields, REFUSED)?;
    fields.take_all(LEFT_OUT);
    for &param in FORBIDDEN {
        if fields.take(param).is_some() {
            return Err(ApiError::invalid(Some(param), "is not known here; leave it out")
                .with_code(codes::UNKNOWN_PARAMETER));
        }
    }
    Ok(())
}

/// Refuses what stands among the arguments of a template and is none: servers hand all of them to what renders it.
fn reject_template_options(fields: &Fields) -> Result<(), ApiError> {
    let arguments = fields.peek(TEMPLATE).and_then(Value::as_object);
    match arguments.and_then(|given| TEMPLATE_OPTIONS.iter().find(|name| given.contains_key(**name))) {
        None => Ok(()),
        Some(name) => {
            let why = "is no argument of a template, and not known here; leave it out";
            Err(ApiError::invalid(Some(&format!("{TEMPLATE}.{name}")), why)
                .with_code(codes::UNKNOWN_PARAMETER))
        }
    }
}

/// Refuses what is for chat completions, where another API has it.
///
/// # Errors
/// 400 that names the member and the remedy.
pub(super) fn reject_chat_members(fields: &mut Fields) -> Result<(), ApiError> {
    refuse(fields, CHAT_ALONE)
}

fn refuse(fields: &mut Fields, refused: &[(&str, &str)]) -> Result<(), ApiError> {
    for &(param, why) in refused {
        if fields.take(param).is_some_and(|value| !says_nothing(param, &value)) {
            return Err(ApiError::invalid(Some(param), why).with_code(codes::UNKNOWN_PARAMETER));
        }
    }
    Ok(())
}

/// Whether a member asks for no more than would be given without it.
fn says_nothing(name: &str, value: &Value) -> bool {
    let is_usual = match name {
        "n" | "best_of" | "n_cmpl" | "num_return_sequences" => *value == 1,
        "modalities" => *value == json!(["text"]),
        "response_format" => value["type"] == "text",
        "extra_body" | "mm_processor_kwargs" | "media_io_kwargs" | "kv_transfer_params" => {
            *value == json!({})
        }
        _ => false,
    };
    is_usual || matches!(value, Value::Null | Value::Bool(false)) || *value == json!([]) || *value == 0
}

/// All that is left of a message, for the models whose backends take it. Pictures and sound have parts of their own: here nobody would
/// count them, look at where they are, or judge them.
///
/// # Errors
/// 400 where a member has media, leads elsewhere, or is larger than can be carried.
pub(super) fn take_of_message(fields: &mut Fields) -> Result<Map<String, Value>, ApiError> {
    if fields.is_empty() {
        return Ok(Map::new());
    }
    let media = REFUSED.iter().filter(|(_, why)| *why == MEDIA).map(|(name, _)| *name);
    for name in media.chain(["audio", "video"]).chain(FORBIDDEN.iter().copied()) {
        if fields.take(name).is_some_and(|value| !says_nothing(name, &value)) {
            let why = if FORBIDDEN.contains(&name) { "is not known here; leave it out" } else { MEDIA };
            let named = fields.full_name(name);
            return Err(ApiError::invalid(Some(&named), why).with_code(codes::UNKNOWN_PARAMETER));
        }
    }
    let mut rest = fields.take_rest();
    rest.retain(|_, value| !value.is_null());
    bounded(&rest, |name| fields.full_name(name))?;
    Ok(rest)
}

/// All that is left, for the models whose backends take it.
///
/// # Errors
/// 400 where a member was most likely meant as another, or is larger than can be carried.
pub(super) fn take_unknown(fields: &mut Fields) -> Result<Map<String, Value>, ApiError> {
    if fields.is_empty() {
        return Ok(Map::new());
    }
    reject_known(fields)?;
    reject_template_options(fields)?;
    let mut rest = fields.take_rest();
    rest.retain(|_, value| !value.is_null());
    // Before each name is compared with all that may have been meant.
    check_count(&rest)?;
    let names = rest.iter().map(|(name, _)| name).filter(|name| !MemberPhase::is_known(name));
    if let Some((name, meant)) = names.filter_map(|name| Some((name, likely_meant(name)?))).next() {
        let what = if meant == name {
            "belongs to another API; leave it out".to_owned()
        } else {
            format!("is not known here; did you mean {meant}?")
        };
        return Err(ApiError::invalid(Some(name), what).with_code(codes::UNKNOWN_PARAMETER));
    }
    bounded(&rest, str::to_owned)?;
    Ok(rest)
}

/// The member of budgets that was most likely meant: it belongs into ours, one or two letters differ, or the words are
/// joined otherwise.
fn likely_meant(name: &str) -> Option<&'static str> {
    if let Some((_, whole)) = MISPLACED_MEMBERS.iter().find(|(inner, _)| *inner == name) {
        return Some(whole);
    }
    let plain = |name: &str| name.replace(['_', '-'], "").to_ascii_lowercase();
    let slips = if name.len() < 8 { 1 } else { 2 };
    BUDGETS
        .into_iter()
        .find(|known| plain(known) == plain(name))
        .or_else(|| nearest_within(name, BUDGETS, slips))
}

fn check_count(members: &Map<String, Value>) -> Result<(), ApiError> {
    if members.len() > COUNT_MAX {
        let what = format!("{} members are not known here; {COUNT_MAX} can be carried", members.len());
        return Err(ApiError::invalid(None, what).with_code(codes::UNKNOWN_PARAMETER));
    }
    Ok(())
}

/// `path` says how an error names a member.
fn bounded(members: &Map<String, Value>, path: impl Fn(&str) -> String) -> Result<(), ApiError> {
    check_count(members)?;
    if let Some((name, _)) = members.iter().find(|(_, value)| is_deeper(value, DEPTH_MAX)) {
        let what = format!("is nested deeper than {DEPTH_MAX} levels, more than can be passed on");
        return Err(ApiError::invalid(Some(&path(name)), what));
    }
    let bytes = |(name, value): (&String, &Value)| name.len() + value.to_string().len();
    let mut all = 0;
    for member in members {
        all += bytes(member);
        if all > BYTES_MAX {
            let what = format!("makes what is to be passed on larger than {BYTES_MAX} bytes: shorten it");
            return Err(ApiError::invalid(Some(&path(member.0)), what));
        }
    }
    Ok(())
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(members) => levels == 0 || members.values().any(|member| is_deeper(member, levels - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Vec<String>, String> {
        let Value::Object(members) = body.clone() else { panic!("{body}") };
        let mut fields = Fields::from_body(members);
        let rest = reject_chat_members(&mut fields).and_then(|()| take_unknown(&mut fields));
        rest.map(|rest| rest.keys().cloned().collect()).map_err(|problem| problem.message().to_owned())
    }

    #[test]
    fn what_is_not_known_is_carried_and_what_says_nothing_is_left_out() {
        let body = json!({ "min_p": 0.05, "min_tokens": 3, "surprise": {}, "cache_prompt": true, "keep_alive": "5m",
            "snippy": { "enabled": false }, "priority": 0, "plugins": [], "ignore_eos": false, "top_a": null, "n": 1, "store": false,
            "n_cmpl": 1, "num_return_sequences": 1, "mm_processor_kwargs": {},
            "modalities": ["text"], "response_format": { "type": "text" }, "prediction": { "type": "content" } });
        assert_eq!(read(&body), Ok(["min_p", "min_tokens", "surprise"].map(str::to_owned).to_vec()));
    }

    /// IN-08: members that lead elsewhere are obeyed by nobody.
    #[test]
    fn what_bills_routes_or_reaches_elsewhere_is_refused_by_name() {
        for (name, value) in [
            ("extra_body", json!({ "min_p": 0.05 })),
            ("options", json!({ "num_predict": 3 })),
            ("ignore_eos", json!(true)),
            ("use_beam_search", json!(true)),
            ("priority", json!(-5)),
            ("plugins", json!([{ "id": "web" }])),
            ("provider", json!({ "order": ["x"] })),
            ("models", json!(["a"])),
            ("transforms", json!(["middle-out"])),
            ("api_base", json!("http://x")),
            ("chat_template", json!("{{ 7*7 }}")),
            ("bootstrap_host", json!("169.254.169.254")),
            ("session_params", json!({ "id": "another's" })),
            ("prompt_embeds", json!("AAAA")),
            ("n_cmpl", json!(8)),
            ("mm_processor_kwargs", json!({ "max_pixels": 1_000_000_000 })),
            ("n", json!(2)),
            ("best_of", json!(5)),
            ("web_search_options", json!({})),
            ("functions", json!([{ "name": "f" }])),
            ("audio", json!({ "voice": "alloy" })),
            ("store", json!(true)),
            ("stop", json!(["x"])),
            ("images", json!(["https://169.254.169.254/x"])),
            ("image_data", json!("file:///etc/passwd")),
            ("multi_modal_data", json!({ "image": "x" })),
            ("logprobs", json!(true)),
        ] {
            let refused = read(&json!({ name: value })).unwrap_err();
            assert!(refused.starts_with(&format!("{name} is ")), "{refused}");
        }
    }

    /// IN-08: another template would be run, or other messages be read than those that were counted and judged.
    #[test]
    fn options_of_a_templates_renderer_are_no_arguments_of_it() {
        for name in ["chat_template", "tokenize", "messages", "continue_final_message"] {
            let refused =
                read(&json!({ "chat_template_kwargs": { "language": "de", name: true } })).unwrap_err();
            assert!(refused.starts_with(&format!("chat_template_kwargs.{name} is no argument")), "{refused}");
        }
        let given = json!({ "chat_template_kwargs": { "language": "de", "builtin_tools": [] } });
        assert_eq!(read(&given), Ok(vec!["chat_template_kwargs".to_owned()]));
    }

    #[test]
    fn of_a_message_what_is_not_known_is_carried_and_media_are_refused_by_their_path() {
        let read = |message: Value| {
            let mut fields = Fields::from_value("messages[1]", message).unwrap();
            take_of_message(&mut fields).map(Value::Object).map_err(|problem| problem.message().to_owned())
        };
        let carried = json!({ "mood": ["calm"], "nothing": null, "images": [] });
        assert_eq!(read(carried), Ok(json!({ "mood": ["calm"] })));
        for name in
            ["images", "image_url", "video_data", "multi_modal_data", "audio", "chat_template", "file"]
        {
            let refused = read(json!({ name: ["http://169.254.169.254/x"] })).unwrap_err();
            assert!(refused.starts_with(&format!("messages[1].{name} is ")), "{refused}");
        }
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        assert!(read(json!({ "x": deep })).unwrap_err().starts_with("messages[1].x is nested deeper"));
    }

    #[test]
    fn a_slip_in_what_speaks_of_budgets_is_named_and_others_are_carried() {
        for (slip, meant) in [
            ("thinking_token_budgt", "thinking_token_budget"),
            ("reasoning_efort", "reasoning_effort"),
            ("max_token", "max_tokens"),
            ("maxTokens", "max_tokens"),
            ("reasoningEffort", "reasoning_effort"),
            ("budgets", "budget"),
            ("thinking_tokens", "budget.thinking_tokens"),
        ] {
            let told = format!("{slip} is not known here; did you mean {meant}?");
            assert_eq!(read(&json!({ slip: 1 })), Err(told));
        }
        for other in ["min_tokens", "min_p", "top_a", "thinking_mode", "temprature", "gadget"] {
            assert_eq!(read(&json!({ other: 1 })), Ok(vec![other.to_owned()]));
        }
    }

    /// IN-08: what is carried for an upstream is bounded.
    #[test]
    fn what_is_carried_has_bounds() {
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        assert!(read(&json!({ "x": deep })).unwrap_err().contains("nested deeper than 32"));
        assert!(read(&json!({ "x": "y".repeat(300_000) })).unwrap_err().contains("larger than 262144 bytes"));
        let many: Map<String, Value> = (0..70).map(|at| (format!("x{at}"), json!(1))).collect();
        assert!(read(&Value::Object(many)).unwrap_err().contains("70 members"));
    }
}
