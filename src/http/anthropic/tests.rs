use axum::http::HeaderMap;
use serde_json::{Value, json};

use crate::http::signed;
use stint_types::chat::{
    CacheTtl, ContentPart, EffortChange, EffortChanges, Role, SignedThought, SigningDomain, ThoughtSigner,
};
use stint_types::units::Tokens;

use super::*;

fn read_json(body: &Value) -> Result<(Request, AnthropicDeliveryOptions), ApiError> {
    read(body.as_object().unwrap().clone(), &HeaderMap::new(), &EffortTable::new())
}

fn asked(messages: &Value, more: &Value) -> Request {
    let mut body = json!({ "model": "m", "max_tokens": 100, "messages": messages });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    read_json(&body).unwrap_or_else(|problem| panic!("{}", problem.message())).0
}

fn check_refused(more: &Value, says: &str) {
    let mut body =
        json!({ "model": "m", "max_tokens": 100, "messages": [{ "role": "user", "content": "hi" }] });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let problem = read_json(&body).expect_err(says);
    assert!(problem.message().starts_with(says), "{}", problem.message());
}

#[test]
fn results_of_tools_become_messages_of_their_own_in_order() {
    let request = asked(
        &json!([
            { "role": "user", "content": "find it" },
            { "role": "assistant", "content": [
                { "type": "text", "text": "looking" },
                { "type": "tool_use", "id": "t1", "name": "search", "input": { "q": 1 } },
                { "type": "tool_use", "id": "t2", "name": "search", "input": {} },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "t1", "content": "cat", "is_error": true },
                { "type": "tool_result", "tool_use_id": "t2",
                  "content": [{ "type": "tool_reference", "tool_name": "CronList" }] },
                { "type": "text", "text": "go on", "cache_control": { "type": "ephemeral" } },
            ]},
        ]),
        &json!({ "system": [{ "type": "text", "text": "Be brief." }] }),
    );
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::User]);
    assert_eq!(request.messages[2].tool_calls[0].arguments, r#"{"q":1}"#);
    assert_eq!(request.messages[3].plain_text(), "Error: cat");
    assert_eq!((request.messages[3].is_error, request.messages[4].is_error), (true, false));
    assert_eq!(request.messages[4].tool_call_id.as_deref(), Some("t2"));
    assert_eq!(request.messages[4].plain_text(), "tool: CronList\n");
    assert_eq!(
        request.messages[5].content,
        [ContentPart::Text("go on".into()), ContentPart::CacheBreakpoint(CacheTtl::Minutes)]
    );
}

#[test]
fn thoughts_come_back_with_what_was_signed_of_them_byte_for_byte() {
    let signer = ThoughtSigner { model: "sonnet".into(), domain: SigningDomain(7) };
    let one = SignedThought { signer, block: r#"{"type":"thinking", "signature":"E=="}"#.into() };
    let request = asked(
        &json!([
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "hm", "signature": signed::seal(&one) },
                { "type": "redacted_thinking", "data": signed::seal(&one) },
                { "type": "thinking", "thinking": "!", "signature": "of another" },
            ]},
        ]),
        &json!({}),
    );
    assert_eq!(request.messages[1].thought.as_deref(), Some("hm!"));
    assert_eq!(request.messages[1].signed, [one.clone(), one]);
}

/// As Claude Code writes them when it reads a PDF file, and as others write texts.
#[test]
fn documents_are_files_or_texts_wherever_they_stand() {
    let pdf = json!({ "type": "document", "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBERi0x" } });
    let source = json!({ "type": "text", "media_type": "text/plain", "data": "The grass is green." });
    let text = json!({ "type": "document", "title": "Grass", "context": "A fact.", "source": source, "citations": { "enabled": true } });
    let inner = json!({ "type": "document", "source": { "type": "content", "content": [{ "type": "text", "text": "a" }] } });
    let there = json!({ "type": "document", "title": "a.pdf", "source": { "type": "url", "url": "https://example.com/a" } });
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": [pdf] });
    let request = asked(
        &json!([
            { "role": "user", "content": [text, inner, there] },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "Read", "input": {} }] },
            { "role": "user", "content": [result] },
        ]),
        &json!({}),
    );
    let said = |text: &str| ContentPart::Text(text.to_owned());
    let file = |file: Value| ContentPart::Other(json!({ "type": "file", "file": file }));
    let elsewhere = file(json!({ "filename": "a.pdf", "file_url": "https://example.com/a" }));
    let texts = ["A fact.\n\n", "Grass\n\n", "The grass is green.\n\n", "a\n\n"].map(said);
    assert_eq!(request.messages[0].content, [&texts[..], &[elsewhere]].concat());
    let read = json!({ "filename": "document.pdf", "file_data": "data:application/pdf;base64,JVBERi0x" });
    assert_eq!(request.messages[2].content, [file(read)]);
    let source = json!({ "type": "url", "url": "data:text/plain;base64,AAAA" });
    let no_pdf = json!({ "role": "user", "content": [{ "type": "document", "source": source }] });
    check_refused(
        &json!({ "messages": [no_pdf] }),
        "messages[0].content[0].source.url must be a PDF file in base64",
    );
}

#[test]
fn an_effort_that_changes_among_the_messages_keeps_its_place() {
    let efforts = EffortTable::from(
        [("low", 0.25), ("high", 1.0)].map(|(word, share)| (word.to_owned(), share.try_into().unwrap())),
    );
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": "found" });
    let body = json!({ "model": "m", "max_tokens": 9, "system": "Be brief.", "output_config": { "effort": "high" }, "messages": [
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "a", "name": "f", "input": {} }] },
        { "role": "user", "content": [result, { "type": "text", "text": "and now?" }] },
        { "role": "system", "content": [], "output_config": { "effort": "low" } },
        { "role": "assistant", "content": "So." },
        { "role": "user", "content": "sure?" },
    ] });
    let (request, _) =
        read(body.as_object().unwrap().clone(), &HeaderMap::new(), &efforts).unwrap_or_else(|_| panic!());
    let change = EffortChange { after: 5, word: "low".to_owned() };
    assert_eq!(
        request.effort_changes,
        EffortChanges { whole: Some("high".to_owned()), changes: vec![change] }
    );
    assert_eq!(request.messages[5].plain_text(), "So.");
}

#[test]
fn the_last_effort_that_a_conversation_says_holds() {
    let efforts = EffortTable::from(
        [("low", 0.25), ("high", 1.0)].map(|(word, share)| (word.to_owned(), share.try_into().unwrap())),
    );
    let depth = |messages: Value| {
        let body = json!({ "model": "m", "max_tokens": 9, "output_config": { "effort": "low" }, "messages": messages });
        let (request, _) = read(body.as_object().unwrap().clone(), &HeaderMap::new(), &efforts)?;
        Ok::<_, ApiError>((request.budget.reasoning_effort.unwrap().word, request.messages.len()))
    };
    let user = || json!({ "role": "user", "content": "hi" });
    let system = |config: Value| json!({ "role": "system", "content": [], "output_config": config });
    let said = |word: &str, messages: usize| (Some(word.to_owned()), messages);
    let high = || json!({ "effort": "high" });
    assert_eq!(depth(json!([user()])).unwrap(), said("low", 1));
    assert_eq!(depth(json!([user(), system(high())])).unwrap(), said("high", 1));
    assert_eq!(depth(json!([system(high()), user(), system(json!({}))])).unwrap(), said("high", 1));
    assert_eq!(
        depth(json!([system(high()), user(), system(json!({ "effort": "low" }))])).unwrap(),
        said("low", 1)
    );
    let refused =
        |message: Value| depth(json!([user(), message])).expect_err("is refused").message().to_owned();
    assert!(refused(json!({ "role": "system", "content": [] })).starts_with("messages[1].content is empty"));
    let mine = json!({ "role": "user", "content": "x", "output_config": high() });
    assert!(refused(mine).starts_with("messages[1].output_config is not known here"));
    assert!(
        refused(system(json!({ "format": {} }))).starts_with("messages[1].output_config.format is not known")
    );
    let bogus = system(json!({ "effort": "bogus" }));
    assert!(refused(bogus.clone()).starts_with("messages[1].output_config.effort must be one of high, low"));
    let overridden = depth(json!([user(), bogus, system(high())])).expect_err("is refused");
    assert!(overridden.message().starts_with("messages[1].output_config.effort must be one of"));
}

#[test]
fn a_thinking_budget_is_one_that_anthropic_takes() {
    let thinks = |tokens: u64, most: u64| json!({ "max_tokens": most, "thinking": { "type": "enabled", "budget_tokens": tokens } });
    check_refused(&thinks(1023, 4000), "thinking.budget_tokens must be at least 1024");
    check_refused(&thinks(0, 4000), "thinking.budget_tokens must be at least 1024");
    check_refused(&thinks(2000, 2000), "thinking.budget_tokens must be below max_tokens");
    let messages = json!([{ "role": "user", "content": "hi" }]);
    assert_eq!(asked(&messages, &thinks(1024, 1025)).budget.thinking, Some(Tokens(1024)));
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-beta", "a, interleaved-thinking-2025-05-14".parse().unwrap());
    let mut body = thinks(4000, 2000);
    (body["model"], body["messages"]) = (json!("m"), messages);
    assert!(read(body.as_object().unwrap().clone(), &headers, &EffortTable::new()).is_ok());
}

#[test]
fn tools_choices_and_forms_are_those_of_the_canonical_request() {
    let request = asked(
        &json!([{ "role": "user", "content": "hi" }]),
        &json!({
            "tools": [{ "name": "f", "description": "d", "input_schema": { "type": "object" } }],
            "tool_choice": { "type": "any", "disable_parallel_tool_use": true },
            "max_tokens": 2000, "thinking": { "type": "enabled", "budget_tokens": 1040 },
            "stop_sequences": ["x"], "metadata": { "user_id": "u" },
            "output_config": { "format": { "type": "json_schema", "schema": { "type": "object" } } },
        }),
    );
    let function = json!({ "name": "f", "description": "d", "parameters": { "type": "object" } });
    assert_eq!(request.tools[0].declaration, json!({ "type": "function", "function": function }));
    assert_eq!(request.tool_choice, Some(json!("required")));
    assert_eq!(request.extra["parallel_tool_calls"], false);
    assert_eq!(request.extra["user"], "u");
    assert_eq!(request.sampling.stop, ["x"]);
    assert_eq!((request.budget.thinking, request.budget.total), (Some(Tokens(1040)), Some(Tokens(2000))));
    assert_eq!(request.response_format.unwrap()["json_schema"]["schema"]["type"], "object");
}

#[test]
fn what_only_claude_takes_of_a_tool_is_kept_for_it() {
    let examples = json!([{ "q": "a cat" }]);
    let tools = json!([
        { "name": "f", "input_schema": {}, "input_examples": examples, "eager_input_streaming": true },
        { "name": "g", "input_schema": {}, "input_examples": [], "eager_input_streaming": false,
          "allowed_callers": ["direct", "code_execution_20260120"], "defer_loading": true },
    ]);
    let request = asked(&json!([{ "role": "user", "content": "hi" }]), &json!({ "tools": tools }));
    let members = json!({ "input_examples": examples, "eager_input_streaming": true });
    assert_eq!(request.tools[0].anthropic_members, Some(members));
    assert_eq!(request.tools[1].anthropic_members, None);
    let plain = json!({ "type": "function", "function": { "name": "f", "parameters": {} } });
    assert_eq!(request.tools[0].declaration, plain, "others do not get them");
}

#[test]
fn a_tool_that_claude_knows_and_the_caller_runs_goes_on_as_it_is() {
    let screen = json!({ "type": "computer_20250124", "name": "computer", "display_width_px": 800 });
    let tools = json!({ "tools": [{ "type": "bash_20250124", "name": "bash" }, screen] });
    let request = asked(&json!([{ "role": "user", "content": "hi" }]), &tools);
    let kinds: Vec<_> = request.tools.iter().map(|tool| (&*tool.name, tool.anthropic_type())).collect();
    assert_eq!(kinds, [("bash", Some("bash_20250124")), ("computer", Some("computer_20250124"))]);
    assert_eq!(request.tools[1].anthropic_members.as_ref().unwrap()["display_width_px"], 800);
}

#[test]
fn what_is_wrong_is_named() {
    check_refused(&json!({ "max_tokens": null }), "max_tokens is missing");
    check_refused(&json!({ "temperature": 1.5 }), "temperature must be a number from 0 to 1");
    check_refused(&json!({ "tools": [{ "name": "f" }] }), "tools[0].input_schema must be an object");
    let search = json!({ "type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex" });
    check_refused(
        &json!({ "tools": [search] }),
        "tools[0].type must be \"custom\": no tools are searched for at the provider; leave this one out",
    );
    let hosted = json!({ "type": "web_search_20250305", "name": "web_search" });
    check_refused(&json!({ "tools": [hosted] }), "tools[0].type must be \"custom\", or one that you run");
    let by_code = json!({ "name": "f", "input_schema": {}, "allowed_callers": ["code_execution_20260120"] });
    check_refused(&json!({ "tools": [by_code] }), "tools[0].allowed_callers must have \"direct\"");
    let tool = |name: &str| json!({ "name": name, "input_schema": {} });
    check_refused(&json!({ "tools": [tool("a b")] }), "tools[0].name must be 1 to 128 letters");
    check_refused(
        &json!({ "tools": [tool("f"), tool("f")] }),
        "tools[1].name is \"f\", as another tool's is",
    );
    let chooses = |choice: Value, tools: Value| json!({ "tools": tools, "tool_choice": choice });
    check_refused(
        &chooses(json!({ "type": "any" }), json!([])),
        "tool_choice is required, and no tools are declared",
    );
    let other = json!({ "type": "tool", "name": "g" });
    check_refused(
        &chooses(other, json!([tool("f")])),
        "tool_choice names \"g\", which tools does not declare",
    );
    for member in
        ["container", "compaction", "thread", "fallbacks", "billing_policy", "diagnostics", "inference_geo"]
    {
        check_refused(&json!({ member: { "type": "x" } }), &format!("{member} is not offered"));
        read_json(&json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" }], member: null }))
            .expect("null says nothing");
    }
    check_refused(
        &json!({ "context_management": { "edits": [{ "type": "clear_tool_uses_20250919" }] } }),
        "context_management.edits[0] is not offered: nothing is left out",
    );
    check_refused(
        &json!({ "thinking": { "type": "enabled", "display": "all" } }),
        "thinking.display must be",
    );
    check_refused(
        &json!({ "thinking": { "type": "adaptive", "block_binding": { "prefix_mismatch_behavior": "keep" } } }),
        "thinking.block_binding.prefix_mismatch_behavior must be drop_block or error",
    );
    check_refused(&json!({ "service_tier": "priority" }), "service_tier may only be");
    check_refused(
        &json!({ "messages": [{ "role": "user", "content": [{ "type": "thinking", "thinking": "" }] }] }),
        "messages[0].content[0].type must be text, image, document or tool_result",
    );
}

#[test]
fn what_newer_clients_say_by_themselves_is_taken() {
    let schema = json!({ "type": "json_schema", "schema": { "type": "object" } });
    let request = asked(
        &json!([{ "role": "user", "content": "hi" }]),
        &json!({
            "context_management": { "edits": [{ "type": "clear_thinking_20251015", "keep": "all" }] },
            "metadata": { "user_id": "u" }, "service_tier": "auto", "speed": "standard", "mcp_servers": [],
            "output_format": schema, "thinking": { "type": "adaptive", "display": "updates" },
            "tools": [{ "name": "f", "input_schema": {}, "allowed_callers": ["direct"], "defer_loading": false }],
        }),
    );
    assert_eq!(request.response_format.unwrap()["json_schema"]["schema"], json!({ "type": "object" }));
}

#[test]
fn what_is_said_of_thoughts_that_do_not_fit_is_taken() {
    for binding in [
        json!({ "prefix_mismatch_behavior": "drop_block" }),
        json!({ "prefix_mismatch_behavior": "error" }),
        json!({}),
        Value::Null,
    ] {
        let thinking = json!({ "thinking": { "type": "adaptive", "block_binding": binding } });
        asked(&json!([{ "role": "user", "content": "hi" }]), &thinking);
    }
}
