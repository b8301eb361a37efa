//! The files that ship as examples.

use std::time::Duration;

use stint_types::units::{Money, Tokens};

use super::*;

/// CF-01: without a word only this machine is served.
#[test]
fn without_a_file_the_embedded_model_serves_on_loopback() {
    let settings = load(None, &env).unwrap();
    assert_eq!(settings.http.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.backends.len(), 1);
    assert!(matches!(settings.backends[0].models[0].source, ModelSource::Embedded(_)));
    assert!(settings.catalog.models["reasoner"].tariff.is_some());
    assert!(settings.catalog.routes.contains_key("auto"));
    assert_eq!(kept_in(&settings), Path::new("/home/alice/.local/share/stint/ledger.db"));
    assert!(settings.tenants.is_empty());
}

#[test]
fn the_complete_file_as_it_stands_changes_nothing() {
    let (complete, none) = (load_text(COMPLETE).unwrap(), load(None, &env).unwrap());
    let complete = Settings { is_written: none.is_written, ..complete };
    assert_eq!(format!("{complete:#?}"), format!("{none:#?}"));
}

#[test]
fn every_example_in_the_complete_file_works() {
    let settings = load_text(&with_examples()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let names: Vec<&str> = settings.catalog.models.keys().map(AsRef::as_ref).collect();
    let all = [
        "claude-sonnet-4-5",
        "deepseek-chat",
        "gemini-2.5-flash",
        "gpt-4.1-mini",
        "gpt-5",
        "gpt-5-mini",
        "qwen3-0.6b",
        "qwen3-14b",
        "qwen3-32b",
        "qwen3-8b",
        "reasoner",
    ];
    assert_eq!(names, all);
    assert_eq!(settings.catalog.models["gpt-5-mini"].efforts.len(), 4);
    let limits: Vec<_> =
        settings.terms.iter().map(|terms| (terms.account.as_str(), terms.limits.len())).collect();
    assert_eq!(limits, [("acme", 1), ("acme/research", 1), ("acme/research/alice", 8)]);
    let alice = &settings.tenants[0];
    assert_eq!(alice.account.as_str(), "acme/research/alice");
    assert_eq!((alice.access.models.len(), alice.access.routes.len()), (2, 2));
    assert!(alice.expires.is_some());
    let issuer = &settings.issuers[0];
    assert_eq!((issuer.tree.as_str(), issuer.profiles.len(), issuer.required.len()), ("staff", 2, 1));
    assert_eq!(settings.admin.as_ref().unwrap().token.reveal(), "sk-secret-of-the-admin");
    assert!(!format!("{settings:?}").contains("sk-secret"), "a secret shows itself");
}

/// The complete file with its examples, where lines that end in a mark stay or go.
fn without_marked(is_marked: impl Fn(&str) -> bool) -> String {
    let text = with_examples();
    let lines = text.lines().map(|line| if is_marked(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_marked_as_a_default_holds_without_its_line() {
    let is_marked = |line: &str| line.ends_with("# default");
    assert!(with_examples().lines().filter(|line| is_marked(line)).count() > 40, "the marks are not found");
    let with = load_text(&with_examples()).unwrap();
    let without = Settings { is_written: with.is_written, ..load_text(&without_marked(is_marked)).unwrap() };
    assert_eq!(format!("{without:#?}"), format!("{with:#?}"));
}

#[test]
fn what_is_marked_as_required_is_missed() {
    let text = with_examples();
    let required: Vec<&str> = text.lines().filter(|line| line.ends_with("# required")).collect();
    assert!(required.len() > 10, "the marks are not found");
    for line in required {
        assert!(load_text(&text.replacen(line, "", 1)).is_err(), "{line}");
    }
}

/// What a table in braces is by its rows, beside what it must have.
#[test]
fn what_the_rows_of_a_table_call_a_default_holds_without_it() {
    let all = describe();
    let around = "[[backend]]\nbase_url = 'http://127.0.0.1:1'\nmodels = ['m', 'n']\n[[route]]\nname = 'r'\nmodels = ['m', 'n']\n";
    for (table, must, beside) in [
        ("vote", "", ""),
        ("verifier", "url = 'http://127.0.0.1:2'", ""),
        ("probe", "model = 'm'", ""),
        ("canary", "model = 'n'", "recipe = 'canary'"),
    ] {
        let section = format!("route.{table}");
        let own = all.iter().filter(|setting| setting.section == section);
        let stated = own.filter_map(|setting| match (&setting.name, &setting.default) {
            (Some(name), Some(DefaultDescription::Value(value))) => Some(format!("{name} = {value}")),
            _ => None,
        });
        let stated: Vec<String> = stated.collect();
        assert!(!stated.is_empty(), "{table}");
        let settings = |inside: &[String]| {
            let inside = inside.iter().map(String::as_str).chain((!must.is_empty()).then_some(must));
            let inside = inside.collect::<Vec<_>>().join(", ");
            format!("{:#?}", load_text(&format!("{around}{beside}\n{table} = {{ {inside} }}\n")).unwrap())
        };
        assert_eq!(settings(&stated), settings(&[]), "{table}");
    }
}

#[test]
fn every_known_key_is_in_the_complete_file() {
    let mut unknown = String::new();
    let sections = [
        "server",
        "admin",
        "gateway",
        "idempotency",
        "responses",
        "ledger",
        "resilience",
        "alerts",
        "log",
        "traces",
    ];
    for section in sections.into_iter().chain(["engine", "keys", "server.tls"]) {
        unknown += &format!("[{section}]\n??? = 1\n");
    }
    unknown += "[[route]]\nname = 'r'\n??? = 1\nvote.??? = 1\nverifier.??? = 1\nprobe.??? = 1\n[[route]]\nname = 's'\nmodels = ['reasoner', 'reasoner']\nrecipe = 'canary'\ncanary.??? = 1\n[[key]]\n??? = 1\nlimits = [{ ??? = 1 }]\n[[account]]\n??? = 1\n[[issuer]]\n??? = 1\n[[issuer.profile]]\n??? = 1\n[[guardrail]]\n??? = 1\n";
    for kind in ["openai", "llamacpp", "vllm", "local", "anthropic", "gemini", "responses"] {
        unknown += &format!("[[backend]]\nkind = '{kind}'\n??? = 1\n[[backend.model]]\n??? = 1\n");
        if kind != "local" {
            unknown += "[[backend.deployment]]\n??? = 1\n";
        }
    }
    let mistakes = load_text(&unknown.replace("???", "zzzzzzzzz")).map(drop).unwrap_err();
    let known = mistakes.errors.iter().filter_map(|mistake| mistake.remedy.split_once("known here: "));
    let keys: Vec<&str> = known.flat_map(|(_, keys)| keys.split(", ")).collect();
    assert!(keys.len() > 50, "{mistakes}");
    // Literal secrets are known only to be refused.
    for key in keys.into_iter().filter(|key| !matches!(*key, "api_key" | "token" | "headers" | "secret")) {
        assert!(COMPLETE.contains(&format!("{key} = ")) || COMPLETE.contains(&format!("{key}]")), "{key}");
    }
}

#[test]
fn three_lines_serve_an_upstream() {
    assert_eq!(MINIMAL.lines().count(), 3);
    let settings = load_text(MINIMAL).unwrap();
    let ModelSource::OpenAi(upstream) = &settings.backends[1].models[0].source else {
        panic!("{settings:?}");
    };
    assert_eq!(upstream.model, "some-model");
    assert_eq!(upstream.client.base_url, "http://127.0.0.1:8000/v1");
    assert!(settings.catalog.models["some-model"].tariff.is_none());
}

#[test]
fn what_is_said_is_what_holds() {
    let text = "[server]\ndrain = '5s'\nbody_max = '1MiB'\n[engine]\nembedded = false\n[thinking.efforts]\nlow = 0.2\n\
                tiny = 0.01\n[[backend]]\nkind = 'llamacpp'\nbase_url = 'http://127.0.0.1:1'\n[[backend.model]]\n\
                name = 'm'\nthinking_max = 100\nprice_input = '0.5'\nprice_output = 1\n";
    let settings = load_text(text).unwrap();
    assert_eq!(settings.http.drain, Duration::from_secs(5));
    assert_eq!(settings.http.body_max, 1 << 20);
    let effort = |word: &str| format!("{:?}", settings.http.efforts[word].get());
    assert_eq!([effort("low"), effort("tiny"), effort("high")], ["0.2", "0.01", "1.0"]);
    assert_eq!(settings.backends.len(), 1);
    let model = &settings.catalog.models["m"];
    assert_eq!(model.thinking_max, Tokens(100));
    assert_eq!(model.tariff.unwrap().rates.list.output.per_million_tokens, Money(1_000_000_000));
}
