//! What the shipped catalogue knows of single models and families, and where its entries say that they are from.

use crate::config::ModelSource;
use stint_backend::remote::CallerHeaderRules;
use stint_backend::remote::openai::{ChatScope, EffortMember, Settings};
use stint_prompt::tool_calls::ToolCallSyntax;
use stint_types::catalog::{Capability, ConversationRules, Model};
use stint_types::units::Tokens;

use super::load_text;

const SHIPPED: &str = include_str!("../../../config/models.toml");

fn model(backend: &str, model: &str) -> Model {
    let text = format!("[[backend]]\n{backend}\n[[backend.model]]\nname = 'm'\n{model}\n");
    load_text(&text).unwrap().catalog.models["m"].as_ref().clone()
}

#[test]
fn the_catalogue_tells_what_a_going_conversation_with_a_claude_model_may_hold() {
    let rules = |name: &str| {
        let own = "kind = 'anthropic'\napi_key_env = 'OPENAI_API_KEY'";
        model(own, &format!("upstream = '{name}'")).conversation
    };
    let all = ConversationRules {
        thoughts_bound: true,
        task_budget_min: Some(Tokens(20_000)),
        late_instructions: true,
        late_tools: true,
        late_efforts: true,
        allowed_tools: false,
        cache_breakpoints: false,
        refuses_forced_tools: true,
        cache_min: Some(Tokens(512)),
    };
    for name in ["claude-fable-5-2", "claude-mythos-5-1", "claude-opus-5-5", "claude-sonnet-5-5"] {
        assert_eq!(rules(name), all, "{name}");
    }
    let unbound = ConversationRules { thoughts_bound: false, refuses_forced_tools: false, ..all };
    assert_eq!(rules("claude-opus-5"), unbound);
    let unbound = ConversationRules { late_efforts: false, ..unbound };
    assert_eq!(rules("claude-fable-5"), unbound);
    let haiku = ConversationRules { thoughts_bound: true, cache_min: None, ..unbound };
    assert_eq!(rules("claude-haiku-5-5"), haiku);
    let only_cached = ConversationRules { cache_min: Some(Tokens(1024)), ..ConversationRules::default() };
    assert_eq!(rules("claude-sonnet-5"), only_cached);
    assert_eq!(rules("claude-haiku-4-5").cache_min, Some(Tokens(4096)));
}

#[test]
fn a_model_that_always_thinks_and_reports_no_chances_of_tokens_then_has_none_on_any_server() {
    let has = |name: &str| {
        let own = "kind = 'openai'\nbase_url = 'http://127.0.0.1:9/v1'";
        model(own, &format!("upstream = '{name}'")).has_capability(Capability::Logprobs)
    };
    assert!(!has("gpt-5-mini"));
    assert!(has("gpt-5.1"), "at the effort none it reports them");
    assert!(has("gpt-4.1") && has("my-own"));
}

#[test]
fn an_operator_says_otherwise_of_a_conversation_than_the_catalogue() {
    let own = "kind = 'anthropic'\napi_key_env = 'OPENAI_API_KEY'";
    let said = "upstream = 'claude-opus-5-5'\nthoughts_bound = false\ntask_budget_min = 50000";
    let rules = model(own, said).conversation;
    assert!(!rules.thoughts_bound && rules.late_tools);
    assert_eq!(rules.task_budget_min, Some(Tokens(50_000)));
}

#[test]
fn every_entry_says_what_it_is_from_and_when_somebody_looked_there_last() {
    let file: toml::Table = toml::from_str(SHIPPED).unwrap();
    let version: jiff::civil::Date = file["version"].as_str().unwrap().parse().unwrap();
    for entry in file["model"].as_array().unwrap() {
        let text = |key: &str| entry.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        assert!(!text("source").is_empty(), "{entry}");
        let checked: jiff::civil::Date = text("checked").parse().unwrap_or_else(|_| panic!("{entry}"));
        assert!(checked <= version, "{entry}");
    }
}

#[test]
fn entries_that_nobody_looked_after_for_some_days_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("models.toml");
    let entries = "[[model]]\nmatch = ['old']\nsource = 'a page'\nchecked = '2026-08-01'\n\
                   [[model]]\nmatch = ['new']\nsource = 'a page'\nchecked = '2026-11-01'\n";
    let run = |text: &str, days: &str| {
        std::fs::write(&file, text).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/models-age.py");
        let mut command = std::process::Command::new("python3");
        command.args([script, days, "--today", "2026-11-23", "--file"]).arg(&file);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (code, said) = run(entries, "90");
    assert_eq!(code, Some(0));
    assert!(said.starts_with("2026-08-01   114 days  old  (a page)\n1 of 2 entries"), "{said}");
    assert!(run(entries, "20").1.contains("new"));
    assert_eq!(run("[[model]]\nmatch = ['untold']\n", "90").0, Some(1));
}

#[test]
fn the_catalogue_knows_the_models_of_november() {
    let price = |backend: &str, name: &str| {
        let tariff = model(backend, &format!("upstream = '{name}'")).tariff.unwrap().rates;
        let list = [tariff.list.input, tariff.list.output, tariff.cache_read];
        list.map(|price| price.per_million_tokens.to_string())
    };
    let anthropic = "kind = 'anthropic'\napi_key_env = 'OPENAI_API_KEY'";
    assert_eq!(price(anthropic, "claude-fable-5-2"), ["8", "40", "0.2"]);
    assert_eq!(price(anthropic, "claude-mythos-5-2"), ["8", "40", "0.2"]);
    assert_eq!(price(anthropic, "claude-mythos-5-1"), ["10", "50", "0.25"]);
    assert_eq!(price(anthropic, "claude-fable-5"), ["10", "50", "1"]);
    let openai = "base_url = 'https://api.openai.com/v1'\napi_key_env = 'OPENAI_API_KEY'";
    assert_eq!(price(openai, "gpt-6.2-astra"), ["8", "40", "8"]);
    let kimi = "base_url = 'https://api.moonshot.ai/v1'\napi_key_env = 'OPENAI_API_KEY'";
    assert_eq!(price(kimi, "kimi-k3"), ["3", "15", "0.3"]);
}

#[test]
fn the_words_of_effort_are_those_of_each_model() {
    let words = |backend: &str, name: &str| {
        let model = model(backend, &format!("upstream = '{name}'"));
        model.efforts.iter().map(|level| level.word.clone()).collect::<Vec<_>>().join(" ")
    };
    let key = |kind: &str| format!("kind = '{kind}'\napi_key_env = 'OPENAI_API_KEY'");
    assert_eq!(words(&key("anthropic"), "claude-sonnet-5"), "none low medium high xhigh max");
    assert_eq!(words(&key("anthropic"), "claude-sonnet-5-5"), "none low medium high xhigh max");
    assert_eq!(words(&key("anthropic"), "claude-opus-5-5"), "low medium high xhigh max");
    assert_eq!(words(&key("gemini"), "gemini-3.5-flash-lite"), "minimal low medium high");
    assert_eq!(words(&key("gemini"), "gemini-3.5-flash"), "low medium high");
    assert_eq!(words(&key("xai"), "grok-4.6"), "low medium high xhigh");
    assert_eq!(words(&key("xai"), "grok-4.5"), "low medium high");
    assert_eq!(words("kind = 'vllm'\nbase_url = 'http://10.0.0.7/v1'", "glm-5.3"), "low high max");
}

#[test]
fn deepseeks_flash_reads_images_and_its_pro_does_not() {
    let deepseek = "kind = 'deepseek'\napi_key_env = 'OPENAI_API_KEY'";
    let sees =
        |name: &str| model(deepseek, &format!("upstream = '{name}'")).has_capability(Capability::Images);
    assert!(sees("deepseek-flash") && sees("deepseek-v4-flash") && !sees("deepseek-v4-pro"));
}

#[test]
fn models_that_see_images_read_files_where_their_own_makers_apis_are_or_their_names_say_so() {
    let reads = |kind: &str, host: &str, name: &str| {
        let backend =
            format!("kind = '{kind}'\nbase_url = 'https://{host}/v1'\napi_key_env = 'OPENAI_API_KEY'");
        let lines = format!("upstream = '{name}'\ncapabilities = ['images']");
        model(&backend, &lines).has_capability(Capability::Documents)
    };
    for (kind, host, name) in [
        ("anthropic", "api.anthropic.com", "claude-sonnet-5-5"),
        ("anthropic", "resells.example", "us.anthropic.Claude-Opus-5"),
        ("gemini", "generativelanguage.googleapis.com", "gemini-2.5-flash"),
        ("responses", "api.openai.com", "o4-mini"),
        ("responses", "mine.openai.azure.com", "our-deployment"),
        ("responses", "resells.example", "gpt-6-sol"),
        ("openai", "api.openai.com", "gpt-6-sol"),
        ("openrouter", "openrouter.ai", "anthropic/claude-opus-5"),
        ("openrouter", "openrouter.ai", "google/gemini-2.5-pro"),
        ("openrouter", "openrouter.ai", "openai/gpt-6-sol"),
    ] {
        assert!(reads(kind, host, name), "{name} at {host}");
    }
    for (kind, host, name) in [
        ("anthropic", "api.deepseek.com", "deepseek-flash"),
        ("gemini", "generativelanguage.googleapis.com", "gemma-3-27b-it"),
        ("responses", "resells.example", "grok-4.6"),
        ("openai", "resells.example", "gpt-6-sol"),
        ("openrouter", "openrouter.ai", "qwen/qwen3-vl"),
        ("xai", "api.x.ai", "grok-4.6"),
    ] {
        assert!(!reads(kind, host, name), "{name} at {host}");
    }
    let stated = "kind = 'xai'\napi_key_env = 'OPENAI_API_KEY'";
    let stated = model(stated, "upstream = 'grok-4.6'\ncapabilities = ['documents']");
    assert!(stated.has_capability(Capability::Documents));
}

#[test]
fn a_familys_calls_are_read_in_the_form_in_which_it_writes_them() {
    let syntax = |name: &str| {
        let text = format!(
            "[engine]\nembedded = false\n[[backend]]\nkind = 'vllm'\nbase_url = 'http://10.0.0.7/v1'\nmodels = ['{name}']\n"
        );
        let settings = load_text(&text).unwrap();
        match &settings.backends[0].models[0].source {
            ModelSource::Vllm(upstream) => upstream.tool_syntax,
            other => panic!("{other:?}"),
        }
    };
    for name in ["Qwen/Qwen3.5-27B", "Qwen/Qwen3.6-27B", "Qwen/Qwen3.8-27B", "nvidia/Nemotron-3-Nano"] {
        assert_eq!(syntax(name), Some(ToolCallSyntax::Coder), "{name}");
    }
    assert_eq!(syntax("deepseek-ai/DeepSeek-V3.1"), Some(ToolCallSyntax::DeepSeek));
    assert_eq!(syntax("deepseek-ai/DeepSeek-V3.2"), None);
}

/// How a model of that name is spoken to by chat completions, at that host.
fn chat(host: &str, name: &str) -> Settings {
    let backend =
        format!("[engine]\nembedded = false\n[[backend]]\nkind = 'openai'\nbase_url = 'https://{host}/v1'");
    let text = format!("{backend}\napi_key_env = 'OPENAI_API_KEY'\nmodels = ['{name}']\n");
    let settings = load_text(&text).unwrap();
    match &settings.backends[0].models[0].source {
        ModelSource::OpenAi(upstream) => upstream.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_openais_models_take_over_responses_alone_is_known_at_openai_and_azure() {
    let scope = |host: &str, name: &str| chat(host, name).responses.chat;
    let own = "api.openai.com";
    for name in ["gpt-6-astra", "gpt-6.1-sol", "gpt-6.2-astra", "gpt-6.2-sol"] {
        assert_eq!(scope(own, name), ChatScope::NoTools, "{name}");
        assert_eq!(chat(own, name).responses.efforts, ["max"], "{name}");
    }
    for name in ["gpt-5.6", "gpt-5.6-luna", "gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"] {
        assert_eq!(scope(own, name), ChatScope::UnthinkingTools, "{name}");
    }
    assert_eq!(scope(own, "gpt-5.5-pro"), ChatScope::Nothing);
    assert_eq!(scope(own, "gpt-5.3-codex"), ChatScope::Nothing);
    assert_eq!(scope(own, "gpt-5.5"), ChatScope::All);
    assert_eq!(scope("eu.openai.azure.com", "gpt-6-sol"), ChatScope::UnthinkingTools);
    assert_eq!(scope("resells.example", "gpt-6-sol"), ChatScope::All);
    let omits = |name: &str| chat("resells.example", name).dialect.omits_thinking.len();
    assert_eq!((omits("gpt-5.6"), omits("openai/gpt-6-sol"), omits("gpt-5.5")), (4, 4, 4));
    assert_eq!((omits("o4-mini"), omits("gpt-5.1-chat-latest"), omits("gpt-4.1")), (4, 0, 0));
    let own = "kind = 'openai'\nbase_url = 'https://api.openai.com/v1'\napi_key_env = 'OPENAI_API_KEY'";
    let output_min = |name: &str| model(own, &format!("upstream = '{name}'")).output_min;
    assert_eq!((output_min("gpt-6-sol"), output_min("gpt-5.5")), (Tokens(16), Tokens(1)));
}

#[test]
fn a_model_that_does_not_think_has_no_member_for_an_effort() {
    let effort = |name: &str| chat("api.example", name).dialect.effort;
    assert_eq!(effort("gpt-4.1"), EffortMember::Never);
    assert_eq!(effort("grok-4.20-0309-non-reasoning"), EffortMember::Never);
    assert_eq!(effort("minimax-m2"), EffortMember::Never, "it thinks always, and as long as it likes");
    for name in ["kimi-k2-thinking", "kimi-k2.5", "kimi-k2.7-code"] {
        assert_eq!(effort(name), EffortMember::Never, "{name}: its API has no word for it");
    }
    for name in ["gpt-5.1", "grok-4.20-0309-reasoning", "deepseek-r1", "of-nobody"] {
        assert_eq!(effort(name), EffortMember::ReasoningEffort, "{name}");
    }
}

#[test]
fn of_the_kimi_k2_models_some_think() {
    let thinks = |name: &str| {
        let own = "base_url = 'https://api.moonshot.ai/v1'\napi_key_env = 'OPENAI_API_KEY'";
        model(own, &format!("upstream = '{name}'")).thinking_max > Tokens::ZERO
    };
    for name in ["kimi-k2-thinking", "kimi-k2-thinking-turbo", "kimi-k2.5", "kimi-k2.6", "kimi-k2.7-code"] {
        assert!(thinks(name), "{name}");
    }
    for name in [
        "kimi-k2",
        "kimi-k2-instruct",
        "kimi-k2-instruct-0905",
        "kimi-k2-0711-preview",
        "kimi-k2-turbo-preview",
    ] {
        assert!(!thinks(name), "{name}");
    }
}

#[test]
fn callers_headers_go_to_anthropic_itself_and_elsewhere_where_the_operator_says_so() {
    let rules = |backend: &str| {
        let text = format!(
            "[engine]\nembedded = false\n[[backend]]\nkind = 'anthropic'\napi_key_env = 'OPENAI_API_KEY'\n{backend}\n\
             [[backend.model]]\nname = 'm'\nupstream = 'claude-opus-5'\n"
        );
        let config = load_text(&text).unwrap();
        let ModelSource::Anthropic(settings) = &config.backends[0].models[0].source else { panic!() };
        settings.client.caller_headers.clone()
    };
    assert_eq!(rules(""), CallerHeaderRules::harmless());
    assert_eq!(rules("base_url = 'https://proxy.example/v1'"), CallerHeaderRules::default());
    let named = "base_url = 'https://proxy.example/v1'\ncaller_version = true\ncaller_betas = ['*']";
    assert_eq!(rules(named), CallerHeaderRules { version: true, betas: vec!["*".to_owned()] });
    assert_eq!(rules("caller_betas = []"), CallerHeaderRules { version: true, betas: Vec::new() });
}
