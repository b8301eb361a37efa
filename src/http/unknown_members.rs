//! Members that are not ours: those of other servers that bill, route, cache or reach elsewhere are known here and
//! refused or left out by name; a slip in one that speaks of budgets is named; and all others are carried, within
//! bounds, for the models whose backends take them.

mod known_names;
mod member_case;

use serde_json::{Map, Value, json};

use stint_types::chat::MemberPhase;
use stint_types::units::nearest_within;

use super::error::{ApiError, codes};
use super::fields::Fields;

use known_names::{BUDGETS, CHAT_ALONE, FORBIDDEN, LEFT_OUT, MEDIA, MISPLACED_MEMBERS, NESTED, REFUSED};

/// So many members may be carried,
const COUNT_MAX: usize = 64;
/// of so many bytes together, written as JSON,
const BYTES_MAX: usize = 256 << 10;
/// nested so deep.
const DEPTH_MAX: usize = 32;

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

/// Refuses what stands among the arguments of a template, or of an engine, and is none: servers hand all of them to what renders or
/// computes it.
fn reject_nested(fields: &Fields) -> Result<(), ApiError> {
    for (member, refused, why) in NESTED {
        let given = fields.peek(member).and_then(Value::as_object);
        if let Some(name) = given.and_then(|given| refused.iter().find(|name| given.contains_key(**name))) {
            return Err(
                ApiError::invalid(Some(&format!("{member}.{name}")), why).with_code(codes::UNKNOWN_PARAMETER)
            );
        }
    }
    Ok(())
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
        "modality" => *value == "text" || *value == json!(["text"]),
        "response_format" => value["type"] == "text",
        "extra_body"
        | "mm_processor_kwargs"
        | "media_io_kwargs"
        | "kv_transfer_params"
        | "ec_transfer_params" => *value == json!({}),
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
    reject_other_case(&rest, |name| fields.full_name(name))?;
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
    reject_nested(fields)?;
    let mut rest = fields.take_rest();
    rest.retain(|_, value| !value.is_null());
    // Before each name is compared with all that may have been meant.
    check_count(&rest)?;
    reject_other_case(&rest, str::to_owned)?;
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

/// Refuses a member that differs from one that servers read in its case alone: some would take it for that one. `path` says how an
/// error names a member.
fn reject_other_case(members: &Map<String, Value>, path: impl Fn(&str) -> String) -> Result<(), ApiError> {
    let meant = |name: &String| member_case::folded(name).filter(|meant| has_meaning(meant));
    match members.keys().find_map(|name| Some((name, meant(name)?))) {
        None => Ok(()),
        Some((name, meant)) => {
            let what = format!("is not known here; did you mean {meant}?");
            Err(ApiError::invalid(Some(&path(name)), what).with_code(codes::UNKNOWN_PARAMETER))
        }
    }
}

/// Whether a name has a meaning, here or at servers.
fn has_meaning(name: &str) -> bool {
    let is_refused = REFUSED.iter().chain(CHAT_ALONE).any(|(known, _)| *known == name);
    is_refused
        || LEFT_OUT.contains(&name)
        || FORBIDDEN.contains(&name)
        || BUDGETS.contains(&name)
        || member_case::is_read(name)
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
            "modalities": ["text"], "modality": "text", "response_format": { "type": "text" }, "prediction": { "type": "content" } });
        assert_eq!(read(&body), Ok(["min_p", "min_tokens", "surprise"].map(str::to_owned).to_vec()));
    }

    /// IN-08: members that lead elsewhere are obeyed by nobody.
    #[test]
    fn what_bills_routes_or_reaches_elsewhere_is_refused_by_name() {
        for (name, value) in [
            ("extra_body", json!({ "min_p": 0.05 })),
            ("options", json!({ "num_predict": 3 })),
            ("ignore_eos", json!(true)),
            ("ban_eos_token", json!(true)),
            ("use_beam_search", json!(true)),
            ("priority", json!(-5)),
            ("plugins", json!([{ "id": "web" }])),
            ("provider", json!({ "order": ["x"] })),
            ("models", json!(["a"])),
            ("transforms", json!(["middle-out"])),
            ("api_base", json!("http://x")),
            ("custom_llm_provider", json!("openai")),
            ("num_retries", json!(9)),
            ("chat_template", json!("{{ 7*7 }}")),
            ("instruction_template_str", json!("{{ 7*7 }}")),
            ("adapters", json!("someone/adapter")),
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
            ("modality", json!("image")),
            ("logprobs", json!(true)),
        ] {
            let refused = read(&json!({ name: value })).unwrap_err();
            assert!(refused.starts_with(&format!("{name} is ")), "{refused}");
        }
    }

    /// IN-08: another template would be run, or other messages be read than those that were counted and judged.
    #[test]
    fn options_of_a_templates_renderer_are_no_arguments_of_it() {
        for name in ["chat_template", "tokenize", "messages", "tools", "continue_final_message"] {
            let refused =
                read(&json!({ "chat_template_kwargs": { "language": "de", name: true } })).unwrap_err();
            assert!(refused.starts_with(&format!("chat_template_kwargs.{name} is no argument")), "{refused}");
        }
        let refused = read(&json!({ "vllm_xargs": { "kv_transfer_params": "x" } })).unwrap_err();
        assert!(refused.starts_with("vllm_xargs.kv_transfer_params is not offered"), "{refused}");
        assert!(read(&json!({ "vllm_xargs": { "ngram_size": 30 } })).is_ok());
        let refused = read(&json!({ "nvext": { "token_data": [1, 2] } })).unwrap_err();
        assert!(refused.starts_with("nvext.token_data is not offered"), "{refused}");
        assert!(read(&json!({ "nvext": { "guided_regex": "a+" } })).is_ok());
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

    /// Servers written in Go read names whatever their case.
    #[test]
    fn another_case_of_a_known_name_is_not_carried() {
        for (name, meant) in [
            ("Model", "model"),
            ("MESSAGES", "messages"),
            ("me\u{17f}\u{17f}age\u{17f}", "messages"),
            ("Stream", "stream"),
            ("N", "n"),
            ("Tools", "tools"),
            ("Options", "options"),
            ("Keep_Alive", "keep_alive"),
            ("Lora", "lora"),
            ("Previous_Response_Id", "previous_response_id"),
            ("MCP_servers", "mcp_servers"),
            ("kv_Transfer_Params", "kv_transfer_params"),
        ] {
            let told = format!("{name} is not known here; did you mean {meant}?");
            assert_eq!(read(&json!({ name: "other" })), Err(told));
        }
        assert_eq!(read(&json!({ "safetySettings": [1] })), Ok(vec!["safetySettings".to_owned()]));
        let mut fields = Fields::from_value("messages[0]", json!({ "Content": "other" })).unwrap();
        let refused = take_of_message(&mut fields).unwrap_err();
        assert_eq!(refused.message(), "messages[0].Content is not known here; did you mean content?");
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
