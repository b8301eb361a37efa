use serde_json::{Value, json};

use crate::remote::{self, Connections, golden};
use crate::{Backend, Fault, GenerationPart};
use stint_types::catalog::{ConversationRules, MemberRules, UnknownMembers};
use stint_types::chat::{EmbeddingInputs, EmbeddingRequest, EpisodeLimits};
use stint_types::units::Tokens;

use super::dialect::MemberWord;
use super::*;

/// The upstreams with fixtures of their own, and how they are spoken to.
fn dialects() -> [(&'static str, Dialect); 10] {
    [
        ("openai", Dialect::openai()),
        ("deepseek", Dialect::deepseek()),
        ("dashscope", Dialect::dashscope()),
        ("openrouter", Dialect::openrouter()),
        ("vllm", Dialect::vllm()),
        ("sglang", Dialect::sglang()),
        ("llamacpp-chat", Dialect::llamacpp()),
        ("mistral", Dialect::mistral()),
        ("xai", Dialect::xai()),
        ("ollama", Dialect::ollama()),
    ]
}

fn settings(dialect: &Dialect, fixture: &Value) -> Settings {
    let flag = |name: &str| fixture["settings"][name].as_bool().unwrap_or(false);
    let mut dialect = dialect.clone();
    if flag("max_tokens") {
        dialect.limit = LimitMember::MaxTokens;
    }
    if flag("thoughts_back") {
        let is_part = dialect.resume == ResumeMethod::PrefixPart;
        dialect.thought_replay =
            if is_part { ThoughtReplay::AsPart } else { ThoughtReplay::AsReceived("reasoning_content") };
    }
    if let Some(missing) = fixture["settings"]["thought_missing"].as_str() {
        let missing = missing.to_owned().into();
        dialect.thought_replay = ThoughtReplay::WithCalls { member: "reasoning_content", missing };
    }
    if flag("thinks_always") {
        dialect.switch = ThinkingSwitch::Never;
    }
    let words = |name: &str| -> Vec<MemberWord> {
        let words = fixture["settings"][name].as_array().into_iter().flatten();
        words.map(|word| word.as_str().unwrap().to_owned().into()).collect()
    };
    dialect.omits_thinking.extend(words("omit_thinking"));
    let chat = match fixture["settings"]["chat_takes"].as_str() {
        Some("unthinking_tools") => ChatScope::UnthinkingTools,
        Some("no_tools") => ChatScope::NoTools,
        Some("nothing") => ChatScope::Nothing,
        _ => ChatScope::All,
    };
    let rule = ResponsesRule { chat, efforts: words("responses_efforts"), summaries: flag("summaries") };
    Settings {
        responses: rule,
        rules: ConversationRules {
            allowed_tools: fixture["settings"]["allowed_tools"] == true,
            cache_breakpoints: fixture["settings"]["cache_breakpoints"] == true,
            refuses_forced_tools: flag("refuses_forced_tools"),
            ..ConversationRules::default()
        },
        name: "our-model".into(),
        model: "upstream-model".to_owned(),
        thinks_always: flag("ignores_its_switch"),
        dialect,
        starts_in_thinking: flag("starts_in_thinking"),
        hand_off: "\nTime is up.\n</think>\n\n".to_owned(),
        ..Settings::default()
    }
}

/// What is sent, with the path where it is not the usual one, or why nothing is.
fn sent(settings: Settings, fixture: &Value) -> Value {
    let usual = settings.dialect.path;
    let provider = ChatCompletions::new(settings);
    match provider.write_request(&golden::call(fixture, golden::part(fixture))) {
        Ok(sent) if sent.path == usual => sent.body,
        Ok(sent) => json!({"path": sent.path, "body": sent.body}),
        Err(failure) => json!({"failure": failure.message, "unsent": failure.unsent}),
    }
}

#[test]
fn one_that_always_thinks_takes_no_turn_with_its_thoughts_off() {
    let turns = |dialect: Dialect, thinks_always| {
        ChatCompletions::new(Settings { dialect, thinks_always, ..Settings::default() }).turns()
    };
    assert_eq!(turns(Dialect::dashscope(), false), Turns::Always);
    assert_eq!(turns(Dialect::dashscope(), true), Turns::Never);
    assert_eq!(turns(Dialect::openrouter(), true), Turns::ByWord);
}

#[test]
fn requests_are_written_as_the_fixtures_say() {
    for (provider, dialect) in dialects() {
        golden::check(provider, "request", |fixture| sent(settings(&dialect, fixture), fixture));
    }
}

#[test]
fn streams_are_read_as_the_fixtures_say() {
    for (provider, dialect) in dialects() {
        golden::check(provider, "stream", |fixture| {
            let part = if fixture["part"].is_null() {
                GenerationPart::Total { effort: None, tokens: Tokens(64) }
            } else {
                golden::part(fixture)
            };
            let settings = settings(&dialect, fixture);
            golden::pieces(
                events::OpenAiChatReader::new(
                    &settings,
                    settings.signer(),
                    &golden::call(fixture, part),
                    &ImplicitThought::default(),
                ),
                &fixture["events"],
            )
        });
    }
}

#[tokio::test]
async fn a_part_that_it_cannot_make_is_refused_before_anything_is_sent() {
    let settings = Settings {
        client: remote::Settings {
            base_url: "http://127.0.0.1:9/v1".to_owned(),
            ..remote::Settings::default()
        },
        ..Settings::default()
    };
    let upstream = OpenAiBackend::new(&Connections::default(), settings).unwrap();
    let call = golden::call(&json!({}), GenerationPart::Thought { thinking: Tokens(1), solution: Tokens(8) });
    let failure = upstream.generate(call).await.err().unwrap();
    assert_eq!((failure.fault, failure.unsent), (Fault::Caller, true));
}

/// OpenAI refuses `metadata` of what it may not store; a server that takes any member gets it.
#[test]
fn tags_stay_here_where_a_provider_would_refuse_them() {
    for (unknown, is_sent) in [(UnknownMembers::Refuse, false), (UnknownMembers::Pass, true)] {
        let fixture = json!({
            "messages": [{ "role": "user", "content": ["hi"] }],
            "part": { "kind": "total", "tokens": 300 },
            "extra": { "metadata": { "tag": "batch" }, "parallel_tool_calls": false },
        });
        let mut settings = settings(&Dialect::openai(), &fixture);
        settings.client.members = MemberRules { unknown, ..MemberRules::default() };
        let body = sent(settings.clone(), &fixture);
        assert_eq!(
            (body["metadata"].is_object(), &body["parallel_tool_calls"]),
            (is_sent, &json!(false)),
            "{unknown:?}"
        );
        let ask = EmbeddingRequest {
            model: "m".to_owned(),
            episode: None,
            episode_limits: EpisodeLimits::default(),
            inputs: EmbeddingInputs::Texts(vec!["hi".to_owned()]),
            extra: golden::call(&fixture, golden::part(&fixture)).request.extra.clone(),
            unknown_members: serde_json::Map::new(),
        };
        let sent = ChatCompletions::new(settings).embed(&ask).unwrap();
        assert_eq!(
            (sent.body["metadata"].is_object(), &sent.body["parallel_tool_calls"]),
            (is_sent, &json!(false))
        );
    }
}
