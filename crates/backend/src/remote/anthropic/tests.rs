use serde_json::{Value, json};

use crate::remote::{self, CachePolicy, Caching, CallerHeaderRules, Connections, golden};
use crate::{Backend, Fault, GenerationPart};
use stint_types::catalog::ConversationRules;
use stint_types::chat::VendorHeaders;
use stint_types::units::{Price, Tokens};

use super::*;

fn settings(fixture: &Value) -> Settings {
    let settings = &fixture["settings"];
    Settings {
        model: "upstream-model".to_owned(),
        name: "m".into(),
        thinking: match settings["thinking"].as_str() {
            Some("never") => AnthropicThinking::Never,
            Some("adaptive") => AnthropicThinking::Adaptive,
            _ => AnthropicThinking::Budget,
        },
        thinking_off: match settings["off"].as_str() {
            Some("disabled") => AnthropicThinkingOff::Disabled,
            Some("between_tools") => AnthropicThinkingOff::BetweenTools,
            Some("never") => AnthropicThinkingOff::Never,
            _ => AnthropicThinkingOff::Omitted,
        },
        asks_for_thoughts: settings["asks_for_thoughts"] == true,
        sampling: settings["sampling"] != false,
        cache: CachePolicy {
            caching: if settings["caches"] == true { Caching::Always } else { Caching::Never },
            ..CachePolicy::default()
        },
        rules: ConversationRules {
            refuses_forced_tools: settings["refuses_forced_tools"] == true,
            task_budget_min: settings["task_budget_min"].as_u64().map(Tokens),
            thoughts_bound: settings["thoughts_bound"] == true,
            late_instructions: settings["late_instructions"] == true,
            late_tools: settings["late_tools"] == true,
            late_efforts: settings["late_efforts"] == true,
            ..ConversationRules::default()
        },
        price_output: settings["price_output"]
            .as_str()
            .map(|usd| Price { per_million_tokens: usd.parse().unwrap() }),
        output_max: settings["output_max"].as_u64().map(Tokens),
        context: settings["context"].as_u64().map(Tokens),
        thought_so_far: "So far:".to_owned(),
        answer_now: "Answer now.".to_owned(),
        ..Settings::default()
    }
}

#[test]
fn requests_are_written_as_the_fixtures_say() {
    golden::check("anthropic", "request", |fixture| {
        let provider = AnthropicMessages { settings: settings(fixture) };
        golden::sent(&provider, &golden::call(fixture, golden::part(fixture)))
    });
}

#[test]
fn streams_are_read_as_the_fixtures_say() {
    golden::check("anthropic", "stream", |fixture| {
        let reader = events::AnthropicReader::new(golden::signer("m"), CallIds::with_seed(7));
        golden::pieces(reader, &fixture["events"])
    });
}

#[test]
fn blocks_that_are_begun_without_end_are_refused() {
    let mut reader = events::AnthropicReader::new(golden::signer("m"), CallIds::with_seed(7));
    let mut pieces = std::collections::VecDeque::new();
    let mut begins = |index: usize| {
        let block = json!({"type": "redacted_thinking", "data": "x"});
        let event = json!({"type": "content_block_start", "index": index, "content_block": block});
        reader.read(event.to_string().as_bytes(), &mut pieces).is_ok()
    };
    assert!((0..events::OPEN_MAX).all(&mut begins) && begins(7), "the last has the place of another");
    assert!(!begins(events::OPEN_MAX));
}

#[tokio::test]
async fn a_call_that_it_has_no_words_for_is_refused_before_anything_is_sent() {
    let client =
        remote::Settings { base_url: "http://127.0.0.1:9/v1".to_owned(), ..remote::Settings::default() };
    let upstream =
        AnthropicBackend::new(&Connections::default(), Settings { client, ..Settings::default() }).unwrap();
    let fixture = json!({"messages": [{"role": "user", "content": ["hi"]}]});
    let part = GenerationPart::Whole { thinking: Tokens(1023), solution: Tokens(8) };
    let failure = upstream.generate(golden::call(&fixture, part)).await.err().unwrap();
    assert_eq!((failure.fault, failure.unsent), (Fault::Caller, true));
}

/// What a thought comes out as, for a model that is told to think like that and a part of a generation.
fn thought_of(thinking: AnthropicThinking, part: GenerationPart) -> Value {
    let settings = Settings { thinking, name: "m".into(), ..Settings::default() };
    let reader = AnthropicMessages { settings }.reader(&golden::call(&json!({"messages": []}), part));
    let begins = json!({"type": "content_block_start", "index": 0,
                        "content_block": {"type": "thinking", "thinking": "", "signature": ""}});
    let more = json!({"type": "content_block_delta", "index": 0,
                      "delta": {"type": "thinking_delta", "thinking": "hm"}});
    golden::pieces(reader, &json!([begins, more]))[0].clone()
}

#[test]
fn what_an_adaptive_model_shows_is_a_summary_and_no_count() {
    let total = || GenerationPart::Total { effort: None, tokens: Tokens(9) };
    let whole = || GenerationPart::Whole { thinking: Tokens(1024), solution: Tokens(9) };
    assert_eq!(thought_of(AnthropicThinking::Adaptive, total()), json!({"summary": "hm"}));
    assert_eq!(thought_of(AnthropicThinking::Budget, whole())["thought"], "hm");
}

#[test]
fn a_prompt_is_counted_by_what_the_model_reads_and_nothing_of_how_it_answers() {
    let provider = AnthropicMessages { settings: settings(&Value::Null) };
    let mut request =
        Request::new("m", vec![stint_types::chat::Message::text(stint_types::chat::Role::User, "hi")]);
    request.sampling.temperature = Some(0.5);
    let (sent, at) = provider.count_request(&Arc::new(request)).unwrap();
    assert_eq!((&*sent.path, at), ("messages/count_tokens", "/input_tokens"));
    let members: Vec<&String> = sent.body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["model", "messages"]);
}

/// The headers that a call has of its caller's, and its temperature.
fn passed(sampling: bool, rules: CallerHeaderRules, said: VendorHeaders) -> (Vec<String>, Value) {
    let client = remote::Settings { caller_headers: rules, ..remote::Settings::default() };
    let provider = AnthropicMessages { settings: Settings { client, sampling, ..Settings::default() } };
    let mut call = golden::call(
        &json!({"messages": [{"role": "user", "content": ["hi"]}], "temperature": 0.5}),
        GenerationPart::Whole { thinking: Tokens::ZERO, solution: Tokens(8) },
    );
    let mut request = (*call.request).clone();
    request.sampling.temperature = Some(0.5);
    request.vendor_headers = said;
    call.request = Arc::new(request);
    let sent = provider.write_request(&call).unwrap();
    let headers = sent.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    (headers, sent.body["temperature"].clone())
}

#[test]
fn a_callers_version_and_features_go_to_upstreams_that_are_to_have_them() {
    let said = || VendorHeaders {
        version: Some(VendorHeaders::VERSION),
        betas: vec!["interleaved-thinking-2025-05-14".into(), "unknown-2030-01-01".into()],
    };
    let (headers, temperature) = passed(true, CallerHeaderRules::harmless(), said());
    assert_eq!(headers, ["anthropic-version: 2026-10-21", "anthropic-beta: interleaved-thinking-2025-05-14"]);
    assert_eq!(temperature, Value::Null, "the version has no temperature");
    let (headers, temperature) = passed(true, CallerHeaderRules::default(), said());
    assert_eq!((headers, temperature), (Vec::new(), json!(0.5)));
    let older = VendorHeaders { version: Some(VendorHeaders::VERSION_WITH_SAMPLING), betas: Vec::new() };
    let (headers, temperature) = passed(false, CallerHeaderRules::harmless(), older);
    assert_eq!((headers, temperature), (vec!["anthropic-version: 2023-06-01".to_owned()], Value::Null));
}

#[test]
fn a_body_says_which_features_it_makes_use_of() {
    let withheld = json!(["f"]);
    let fixture = json!({
        "settings": {"late_instructions": true, "late_tools": true, "thinking": "adaptive"},
        "messages": [{"role": "user", "content": ["Who?", withheld, "left"]}],
        "tools": [
            {"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {"name": "g"}},
        ],
        "part": {"kind": "whole", "thinking": 0, "solution": 8},
    });
    let beta = |fixture: &Value| {
        let provider = AnthropicMessages { settings: settings(fixture) };
        let sent = provider.write_request(&golden::call(fixture, golden::part(fixture))).unwrap();
        sent.headers.into_iter().find(|(name, _)| *name == "anthropic-beta").map(|(_, value)| value)
    };
    let both = "mid-conversation-system-clear-at-2026-08-21,mid-conversation-tool-changes-2026-07-01";
    assert_eq!(beta(&fixture).as_deref(), Some(both));
    let mut older = fixture.clone();
    older["settings"] = json!({});
    assert_eq!(beta(&older), None);
}
