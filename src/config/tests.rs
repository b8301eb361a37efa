//! What an operator sees of the configuration.

mod agents;
mod catalogue;
mod keys;
mod kinds;
mod learn;
mod resilience;
mod routes;
mod unthought;

use std::io::Write;
use std::time::Duration;

use super::*;
use crate::catalog::{BilledCall, Capability, EnforcementClass};
use crate::storage;
use crate::units::{Money, Tokens};

const COMPLETE: &str = include_str!("../../config/stint.toml");
/// A model file that there is.
const REASONER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/models/reasoner.gguf");
const MINIMAL: &str = include_str!("../../config/minimal.toml");

fn env(name: &str) -> Option<String> {
    match name {
        "HOME" => Some("/home/alice".to_owned()),
        "OPENAI_API_KEY" | "ANTHROPIC_API_KEY" | "GEMINI_API_KEY" => Some("sk-secret".to_owned()),
        "STINT_ADMIN_TOKEN" => Some("sk-secret-of-the-admin".to_owned()),
        "EMPTY" => Some("  ".to_owned()),
        "SHORT" => Some("guess-me".to_owned()),
        _ => None,
    }
}

fn kept_in(settings: &Settings) -> &Path {
    match &settings.storage {
        storage::Settings::Sqlite(settings) => &settings.path,
        storage::Settings::Memory => Path::new(":memory:"),
        storage::Settings::Postgres(_) => Path::new("a server"),
    }
}

fn load_text(text: &str) -> Result<Settings, ConfigErrors> {
    load_with(text, &env)
}

fn load_with(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, ConfigErrors> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    load(Some(file.path()), env)
}

/// The mistakes of a text, each as the operator reads it.
fn check(text: &str, expected: &[&str]) {
    let mistakes = load_text(text).map(drop).unwrap_err();
    let list: Vec<String> = mistakes.errors.iter().map(ToString::to_string).collect();
    assert_eq!(list, expected, "{text}");
}

/// The examples of the complete file, with their `#` taken away.
fn with_examples() -> String {
    let taken = COMPLETE.lines().map(|line| match line.strip_prefix('#') {
        Some(example)
            if example.starts_with(|first: char| first.is_ascii_lowercase() || "[] {".contains(first))
                && !example.starts_with(" ") =>
        {
            example
        }
        Some(example) if example.starts_with("  {") => example,
        _ => line,
    });
    taken.collect::<Vec<_>>().join("\n").replace("models/qwen3-0.6b-q8_0.gguf", REASONER)
}

/// What a catalogue's file says, for an upstream's model of that name.
fn known(file: &str, base_url: &str, name: &str) -> crate::catalog::Model {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("own.toml"), file).unwrap();
    let text = format!(
        "[catalog]\nfile = \"own.toml\"\n[[backend]]\nbase_url = \"{base_url}\"\nmodels = [\"{name}\"]\n"
    );
    std::fs::write(folder.path().join("stint.toml"), text).unwrap();
    let settings = load(Some(&folder.path().join("stint.toml")), &env).unwrap();
    settings.catalog.models[name].as_ref().clone()
}

const CATALOGUE: &str = r#"
version = "2026-11-21"
[[model]]
match = ["big-1*"]
context = 100000
price_input = "2"
price_output = "8"
price_cache_read = "0.2"
long_context = { above = 50000, price_input = "4", price_output = "12" }
hosts = ["example.com"]
[[model]]
match = ["big-*"]
context = 50000
thinking_max = 4096
efforts = [{ word = "low", usual = 100 }]
"#;

#[test]
fn what_is_known_of_a_model_holds_where_nothing_else_is_said() {
    let model = known(CATALOGUE, "https://api.example.com/v1", "big-1-mini");
    assert_eq!(
        (model.context, model.thinking_max),
        (Tokens(100_000), Tokens(4096)),
        "more letters count for more"
    );
    let tariff = model.tariff.unwrap();
    assert_eq!(tariff.rates.cache_read.per_million_tokens, "0.2".parse().unwrap());
    let (above, long) = tariff.long.unwrap();
    assert_eq!((above, long.cache_read.per_million_tokens), (Tokens(50_000), "0.4".parse().unwrap()));
    let elsewhere = known(CATALOGUE, "https://example.com.evil.net/v1", "big-1-mini");
    assert_eq!((elsewhere.context, elsewhere.tariff), (Tokens(50_000), None), "prices belong to a host");
    assert!(!known(CATALOGUE, "https://api.example.com/v1", "small").knows_context());
}

#[test]
fn what_ships_knows_the_usual_models_at_their_own_hosts() {
    let known = |host: &str, name: &str| {
        let model = format!("[[backend.model]]\nname = \"{name}\"\n");
        let text = format!("[[backend]]\nbase_url = \"https://{host}/v1\"\n{model}");
        load_text(&text).unwrap().catalog.models[name].as_ref().clone()
    };
    let check = |host: &str, name: &str, context: u64, prices: [&str; 2], efforts: &[&str]| {
        let model = known(host, name);
        let list = model.tariff.unwrap().rates.list;
        let prices: [Money; 2] = prices.map(|price| price.parse().unwrap());
        assert_eq!([list.input.per_million_tokens, list.output.per_million_tokens], prices, "{name}");
        let words: Vec<&str> = model.efforts.iter().map(|level| level.word.as_str()).collect();
        assert_eq!((model.context, &words[..]), (Tokens(context), efforts), "{name}");
        assert_eq!(known("example.com", name).tariff, None, "{name} has a price only at its own host");
        model
    };
    check("api.openai.com", "gpt-5-mini", 400_000, ["0.25", "2"], &["minimal", "low", "medium", "high"]);
    let codex = ["low", "medium", "high"];
    check("api.openai.com", "gpt-5.1-codex-mini", 400_000, ["0.25", "2"], &codex);
    let sonnet = check("api.anthropic.com", "claude-sonnet-4-5-20250929", 200_000, ["3", "15"], &[]);
    assert_eq!((sonnet.thinking_min, sonnet.thinks_always), (Tokens(1024), false));
    let always = ["low", "medium", "high", "xhigh", "max"];
    assert!(check("api.anthropic.com", "claude-sonnet-5-5", 1_000_000, ["2", "10"], &always).thinks_always);
    let google = "generativelanguage.googleapis.com";
    let pro = check(google, "gemini-2.5-pro", 1_048_576, ["1.25", "10"], &["low", "medium", "high"]);
    assert_eq!(pro.thinking_max, Tokens(32_768));
    assert_eq!(pro.tariff.unwrap().long.unwrap().0, Tokens(200_000));
    check("api.deepseek.com", "deepseek-chat", 1_000_000, ["0.30", "1.20"], &[]);
}

#[test]
fn a_catalogue_with_a_mistake_is_refused_by_its_own_name_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.toml");
    std::fs::write(&path, "version = \"1\"\n[[model]]\nmatch = [\"x\"]\nprice_inptu = \"1\"\n").unwrap();
    std::fs::write(folder.path().join("stint.toml"), "[catalog]\nfile = \"own.toml\"\n").unwrap();
    let mistakes = load(Some(&folder.path().join("stint.toml")), &env).map(drop).unwrap_err();
    assert_eq!(mistakes.source, path.display().to_string());
    assert_eq!(
        mistakes.errors[0].to_string(),
        "line 4: model.price_inptu: unknown key; did you mean price_input?"
    );
}

#[test]
fn what_was_found_out_goes_before_the_catalogue_and_after_the_operator() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("own.toml", CATALOGUE);
    write("learned.toml", "version = \"1\"\n[[model]]\nmatch = [\"big-2\", \"big-3\"]\ncontext = 7000\n");
    let model = "[[backend.model]]\nname = \"big-3\"\ncontext = 8000\n";
    let text = format!(
        "[catalog]\nfile = \"own.toml\"\nlearned = \"learned.toml\"\n[[backend]]\nbase_url = \"http://h\"\nmodels = [\"big-2\"]\n{model}"
    );
    write("stint.toml", &text);
    let settings = load(Some(&folder.path().join("stint.toml")), &env).unwrap();
    let context = |name: &str| settings.catalog.models[name].context;
    assert_eq!((context("big-2"), context("big-3")), (Tokens(7000), Tokens(8000)));
}

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
    assert_eq!(settings.admin.as_ref().unwrap().token.reveal(), "sk-secret-of-the-admin");
    assert!(!format!("{settings:?}").contains("sk-secret"), "a secret shows itself");
}

#[test]
fn every_known_key_is_in_the_complete_file() {
    let mut unknown = String::new();
    let sections =
        ["server", "admin", "gateway", "idempotency", "responses", "ledger", "resilience", "alerts", "log"];
    for section in sections.into_iter().chain(["engine", "keys"]) {
        unknown += &format!("[{section}]\n??? = 1\n");
    }
    unknown += "[[route]]\nname = 'r'\n??? = 1\nvote.??? = 1\nverifier.??? = 1\nprobe.??? = 1\n[[key]]\n??? = 1\nlimits = [{ ??? = 1 }]\n[[account]]\n??? = 1\n";
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
    for key in keys.into_iter().filter(|key| !matches!(*key, "api_key" | "token")) {
        assert!(COMPLETE.contains(&format!("{key} = ")) || COMPLETE.contains(&format!("{key}]")), "{key}");
    }
}

#[test]
fn a_ledger_on_a_server_is_named_by_a_variable_or_a_file_and_shows_no_password() {
    let env = |name: &str| match name {
        "DATABASE_URL" => Some("postgres://stint:pa55@db/stint\n".to_owned()),
        name => env(name),
    };
    let settings = load_with("[ledger]\nurl_env = 'DATABASE_URL'\n", &env).unwrap();
    assert!(matches!(settings.storage, storage::Settings::Postgres(_)));
    assert!(!format!("{settings:?}").contains("pa55"));
    check(
        "[ledger]\nurl_env = 'DATABASE_URL'\n",
        &["line 2: ledger.url_env: DATABASE_URL is not set; export it before starting"],
    );
    check(
        "[ledger]\nurl = 'postgres://stint:pa55@db/stint'\n",
        &[
            "line 2: ledger.url: a secret in the configuration; put it into an environment variable or a file \
         and name that: url_env or url_file",
        ],
    );
    let both = load_with("[ledger]\npath = 'a.db'\nurl_env = 'DATABASE_URL'\n", &env).unwrap_err();
    assert_eq!(
        both.errors[0].to_string(),
        "line 2: ledger.path: a second place for the ledger; take it out, or the url"
    );
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
fn what_still_runs_is_not_forgotten() {
    let text = |keep| format!("[gateway]\ntime_max = '1h'\n[idempotency]\nkeep = '{keep}'\n");
    check(
        &text("10m"),
        &[
            "line 4: idempotency.keep: shorter than a request may run; write at least time_max of [gateway], or \"0s\" to \
           switch idempotency off",
        ],
    );
    for keep in ["1h", "0s"] {
        load_text(&text(keep)).unwrap();
    }
}

#[test]
fn a_backend_of_an_unknown_kind_shows_its_other_mistakes() {
    check(
        "[[backend]]\nkind = 'opnai'\nbase_url = 'nowhere'\nidle_timeut = '5s'\nfile = 'x'\n[[backend.model]]\n\
         name = 'm'\nprice_input = '1'\nhand_off = 'x'\ncontxt = 1\n[[key]]\nname = 'a'\nmodels = ['m']\n",
        &[
            "line 2: backend.kind: \"opnai\" is unknown; did you mean \"openai\"?",
            "line 3: backend.base_url: not a URL: relative URL without a base; write it like \"https://api.example.com/v1\"",
            "line 4: backend.idle_timeut: unknown key; did you mean idle_timeout?",
            "line 6: backend.model.price_output: missing beside the other price; a price of \"0\" is a price",
            "line 9: backend.model.hand_off: does not close the thought; write \"</think>\" where the thought is to end",
            "line 10: backend.model.contxt: unknown key; did you mean context?",
            "line 11: key.hash: missing; write what `stint keys new` printed, \"sha256:…\"; the key itself stays with its owner",
        ],
    );
    check(
        "[[backend]]\nkind = 'gguf'\nfile = 3\nmodels = ['m']\n",
        &[
            "line 2: backend.kind: \"gguf\" is unknown; write \"openai\" or \"anthropic\" or \"gemini\" or \"responses\" or \"llamacpp\" or \"vllm\" or \"sglang\" or \"ollama\" or \"deepseek\" or \"dashscope\" or \"openrouter\" or \"mistral\" or \"xai\" or \"local\"",
            "line 3: backend.file: a whole number in place of text; put it in quotes",
        ],
    );
}

#[test]
fn every_mistake_is_reported_at_once_with_its_line_and_its_remedy() {
    let text = "[server]\nlisten = 'here'\nheders_max = 10\ndrain = 5\n\n[[backend]]\nkind = 'bedrock'\nfoo = 1\n\n\
                [[key]]\nname = 'alice'\n";
    check(
        text,
        &[
            "line 2: server.listen: not an address to listen on; write an address and a port, like \
             \"127.0.0.1:8080\" or \"[::1]:8080\"",
            "line 3: server.heders_max: unknown key; did you mean headers_max?",
            "line 4: server.drain: a whole number in place of a time; write it with its unit, like \"10s\" or \
             \"500ms\"",
            "line 7: backend.kind: \"bedrock\" is unknown; write \"openai\" or \"anthropic\" or \"gemini\" or \"responses\" or \"llamacpp\" or \"vllm\" or \"sglang\" or \"ollama\" or \"deepseek\" or \"dashscope\" or \"openrouter\" or \"mistral\" or \"xai\" or \"local\"",
            "line 10: key.hash: missing; write what `stint keys new` printed, \"sha256:…\"; the key itself stays with \
             its owner",
        ],
    );
}

#[test]
fn a_text_that_is_not_toml_says_where() {
    let mistakes = load_text("[server]\nlisten = 127.0.0.1\n").map(drop).unwrap_err();
    assert_eq!(mistakes.errors[0].line, Some(2), "{mistakes}");
    check("[log]\nfilter = 'info'\nfilter = 'warn'\n", &["line 3: filter: stands twice; write it once"]);
}

#[test]
fn a_secret_in_the_file_is_refused() {
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key = 'sk-1'\n",
        &[
            "line 4: backend.api_key: a secret in the configuration; put it into an environment variable or a file \
           and name that: api_key_env or api_key_file",
        ],
    );
    check(
        "[[backend]]\nbase_url = 'https://api.example.com/v1'\nmodels = ['m']\napi_key_env = 'OTHER_KEY'\n",
        &["line 4: backend.api_key_env: OTHER_KEY is not set; export it before starting"],
    );
}

#[test]
fn there_is_room_for_one_body_at_least() {
    check(
        "[server]\nbody_max = '2MiB'\nbodies_max = '1MiB'\n",
        &[
            "line 3: server.bodies_max: less than body_max; give it room for one body at least; for several, some times body_max",
        ],
    );
    let settings = load_text("[server]\nbody_max = '512MiB'\n").unwrap();
    assert_eq!(settings.http.bodies_max, 512 << 20, "where nothing is said");
}

#[test]
fn only_loopback_is_served_without_keys() {
    let open = "[server]\nlisten = '0.0.0.0:8080'\n";
    let mistakes = load_text(open).map(drop).unwrap_err();
    assert_eq!(mistakes.errors[0].what, "0.0.0.0:8080 would be open to everyone who reaches it");
    let none = load_text(&format!("key = []\n{open}")).map(drop).unwrap_err();
    assert_eq!(none.errors[0].what, mistakes.errors[0].what, "no keys are no keys, however it is written");
    assert!(load_text(&format!("{open}[keys]\ngenerate = 'first-key'\n")).is_ok());
    let hash = format!("sha256:{}", "0".repeat(64));
    assert!(load_text(&format!("{open}[[key]]\nname = 'alice'\nhash = '{hash}'\n")).is_ok());
    let faulty = load_text(&format!("{open}[[key]]\nname = 'alice'\nhash = 'sha256:zz'\n"));
    let faulty = faulty.map(drop).unwrap_err().to_string();
    assert!(faulty.contains("key.hash") && !faulty.contains("would be open"), "{faulty}");
}

#[test]
fn keys_that_nobody_or_everybody_has_are_refused() {
    let nothing = hash("");
    check(
        &format!("[[key]]\nname = 'alice'\nhash = '{nothing}'\n"),
        &[
            "line 3: key.hash: the hash of nothing, not of a key; `stint keys new` makes a key and prints its hash",
        ],
    );
    let first = format!("[keys]\ngenerate = 'k'\n[[key]]\nname = 'first'\nhash = '{}'\n", hash("sk-a"));
    check(
        &first,
        &[
            "line 4: key.name: \"first\" is the name of the key that [keys] generate makes; give this one another name",
        ],
    );
    assert!(load_text(&first.replace("generate = 'k'", "")).is_ok(), "without generate the name is free");
    assert!(
        COMPLETE.contains(&format!("sha256:{}", "0".repeat(64))),
        "the example is the hash of no known key"
    );
}

fn hash(key: &str) -> String {
    crate::tenant::hash_key(key).to_string()
}

#[test]
fn the_environment_goes_before_the_file() {
    let env = |name: &str| match name {
        "STINT_LISTEN" => Some("127.0.0.1:9999".to_owned()),
        "STINT_LEDGER" => Some("/data/ledger.db".to_owned()),
        "STINT_LOG" => Some("debug".to_owned()),
        _ => None,
    };
    let settings =
        load_with("[server]\nlisten = '127.0.0.1:1'\n[ledger]\npath = 'other.db'\n", &env).unwrap();
    assert_eq!(settings.http.listen.port(), 9999);
    assert_eq!(kept_in(&settings), Path::new("/data/ledger.db"));
    assert_eq!(settings.log.filter, "debug");
}

/// Whoever only looks at what is kept needs the ledger's address, and no secret of a server's.
#[test]
fn who_serves_nobody_needs_no_secrets_for_it() {
    let text = "[admin]\ntoken_env = 'NOT_THERE'\n[[backend]]\nbase_url = 'http://127.0.0.1:1/v1'\n\
                api_key_file = '/not/there'\nmodels = ['m']\n";
    assert_eq!(load_text(text).map(drop).unwrap_err().errors.len(), 2);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let settings = load_offline(Some(file.path()), &env).unwrap();
    assert!(settings.admin.is_none());
    file.write_all(b"[ledger]\nurl_env = 'NOT_THERE'\n").unwrap();
    assert_eq!(load_offline(Some(file.path()), &env).map(drop).unwrap_err().errors.len(), 1);
}

#[test]
fn a_mistake_in_the_environment_is_named() {
    let env = |name: &str| (name == "STINT_LISTEN" || name == "HOME").then(|| "/x".to_owned());
    let mistakes = load(None, &env).map(drop).unwrap_err();
    assert!(mistakes.to_string().contains("STINT_LISTEN: not an address to listen on"), "{mistakes}");
}

#[test]
fn relative_paths_start_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stint.toml");
    std::fs::write(&file, "[ledger]\npath = 'ledger.db'\n").unwrap();
    assert_eq!(kept_in(&load(Some(&file), &env).unwrap()), folder.path().join("ledger.db"));
}

/// A server that named it could not start; who only looks at what is kept does not need it.
#[test]
fn a_local_model_s_file_must_be_one() {
    let text = |file: &str| format!("[[backend]]\nkind = 'local'\nmodels = ['m']\nfile = '{file}'\n");
    let remedy = "name the model's GGUF file, by a path that starts from this file's folder";
    let absent = "/not/there.gguf cannot be read: No such file or directory (os error 2)";
    check(&text("/not/there.gguf"), &[&format!("line 4: backend.file: {absent}; {remedy}")]);
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let other = format!("{manifest} is no GGUF file: it does not begin with GGUF");
    check(&text(manifest), &[&format!("line 4: backend.file: {other}; {remedy}")]);
    let folder = load_text(&text("/")).map(drop).unwrap_err().to_string();
    assert!(folder.contains("line 4: backend.file: / cannot be read: "), "{folder}");
    assert!(load_text(&text(REASONER)).is_ok());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text("/not/there.gguf").as_bytes()).unwrap();
    assert!(load_offline(Some(file.path()), &env).is_ok());
}

#[test]
fn a_missing_file_is_one_mistake() {
    let mistakes = load(Some(Path::new("absent.toml")), &env).map(drop).unwrap_err();
    assert!(mistakes.to_string().starts_with("1 mistake in absent.toml\n  cannot be read: "), "{mistakes}");
}

#[test]
fn models_that_cannot_work_are_refused() {
    let backend = "[[backend]]\nbase_url = 'http://127.0.0.1:1'\n[[backend.model]]\nname = 'm'\n";
    let what = |model: &str| {
        let mistakes = load_text(&format!("{backend}{model}\n")).map(drop).unwrap_err();
        assert_eq!(mistakes.errors.len(), 1, "{mistakes}");
        let mistake = &mistakes.errors[0];
        format!("{}: {}", mistake.key.trim_start_matches("backend.model."), mistake.what)
    };
    assert_eq!(what("price_input = '1'"), "price_output: missing beside the other price");
    assert_eq!(what("context = 16"), "context: 16 tokens leave no room for a prompt");
    assert_eq!(what("[[backend.model]]\nname = 'm'"), "name: a second model \"m\"");
    assert_eq!(what("[[backend.model]]\nname = 'reasoner'"), "name: a second model \"reasoner\"");
    assert_eq!(what("capabilities = ['tool']"), "capabilities: \"tool\" is unknown");
    assert_eq!(
        what("thinking_max = 100\nefforts = [{ word = 'low', usual = 9 }, { word = 'high', usual = 8 }]"),
        "efforts: not in order"
    );
    assert_eq!(
        what("efforts = [{ word = 'low', usual = 9 }]"),
        "thinking_max: missing for a model with efforts"
    );
    assert_eq!(what("[[route]]\nname = 'r'\nmodels = ['reasone']"), "route.models: no model \"reasone\"");
}

#[test]
fn upstreams_take_penalties_unless_a_list_of_capabilities_says_otherwise() {
    let check = |backend: &str, list: &str, expected: bool| {
        let text = format!("[[backend]]\n{backend}\n[[backend.model]]\nname = 'm'\n{list}\n");
        let settings = load_text(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let capabilities = &settings.catalog.models["m"].capabilities;
        assert_eq!(capabilities.contains(&Capability::Penalties), expected, "{text}");
    };
    let openai = "base_url = 'http://127.0.0.1:1'";
    let (llamacpp, local) =
        (format!("kind = 'llamacpp'\n{openai}"), format!("kind = 'local'\nfile = '{REASONER}'"));
    check(openai, "", true);
    check(&llamacpp, "", true);
    check(&local, "", false);
    check(openai, "capabilities = ['tools']", false);
    check(openai, "capabilities = ['penalties']", true);
    let text = format!("[[backend]]\n{local}\n[[backend.model]]\nname = 'm'\ncapabilities = ['penalties']\n");
    let what = "the local engine takes no penalties";
    assert_eq!(load_text(&text).map(drop).unwrap_err().errors[0].what, what);
}

#[test]
fn providers_with_apis_of_their_own_are_told_to_think_in_their_own_ways() {
    let text = |kind: &str, more: &str| {
        format!("[[backend]]\nkind = '{kind}'\nbase_url = 'http://h'\n[[backend.model]]\nname = 'm'\n{more}")
    };
    let model = |kind: &str, more: &str| load_text(&text(kind, more)).unwrap().catalog.models["m"].clone();
    let budget = model("anthropic", "");
    assert_eq!(
        (&budget.classes[..], budget.thinking_min),
        (&[EnforcementClass::Native, EnforcementClass::Turn][..], Tokens(1024))
    );
    assert!(!budget.stops_billing && budget.has_capability(Capability::Tools));
    let adaptive = model("anthropic", "thinking = 'adaptive'\n");
    assert_eq!(
        (&adaptive.classes[..], adaptive.thinking_min),
        (&[EnforcementClass::Effort][..], Tokens::ZERO)
    );
    assert_eq!(
        model("anthropic", "thinking = 'adaptive'\nclasses = ['turn']").classes,
        [EnforcementClass::Turn]
    );
    assert_eq!(model("anthropic", "thinking = 'never'\n").thinking_max, Tokens::ZERO);
    assert_eq!(model("gemini", "").classes, [EnforcementClass::Native]);
    assert_eq!(model("gemini", "thinking = 'level'\n").classes, [EnforcementClass::Effort]);
    assert_eq!(model("responses", "").classes, [EnforcementClass::Effort]);
    check(
        &text("anthropic", "thinking = 'adaptive'\nclasses = ['native']\n"),
        &[
            "line 7: backend.model.classes: \"native\" does not go with how it is told to think; write another, or say it \
           by thinking = \"…\"",
        ],
    );
}

#[test]
fn what_was_found_out_of_an_adaptive_model_goes_with_how_it_is_told_to_think() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let learned = |classes: &str| {
        format!(
            "version = \"1\"\n[[model]]\nmatch = [\"claude-opus-4-8\"]\nkinds = [\"anthropic\"]\nclasses = {classes}\n"
        )
    };
    let models = "models = [\"claude-opus-4-8\"]\n";
    let backend = "[[backend]]\nkind = \"anthropic\"\nbase_url = \"http://h\"\n";
    write("stint.toml", &format!("[catalog]\nlearned = \"learned.toml\"\n{backend}{models}"));
    let classes = |learned: &str| {
        write("learned.toml", learned);
        let settings = load(Some(&folder.path().join("stint.toml")), &env).unwrap();
        settings.catalog.models["claude-opus-4-8"].classes.clone()
    };
    assert_eq!(
        classes(&learned("[\"turn\", \"effort\"]")),
        [EnforcementClass::Turn, EnforcementClass::Effort]
    );
    assert_eq!(
        classes(&learned("[\"native\", \"effort\"]")),
        [EnforcementClass::Effort],
        "it takes budgets no more"
    );
}

#[test]
fn what_ships_knows_how_families_of_models_think() {
    let of = |kind: &str, name: &str| {
        let text = format!("[[backend]]\nkind = '{kind}'\nbase_url = 'http://h'\nmodels = ['{name}']\n");
        load_text(&text).unwrap().catalog.models[name].clone()
    };
    for name in ["claude-sonnet-4-5-20250929", "claude-haiku-4-5", "claude-opus-4-1"] {
        assert_eq!(
            of("anthropic", name).classes,
            [EnforcementClass::Native, EnforcementClass::Turn],
            "{name}"
        );
    }
    for name in ["claude-opus-4-7", "claude-opus-5-5", "claude-sonnet-5"] {
        let model = of("anthropic", name);
        assert!(model.classes == [EnforcementClass::Effort] && !model.efforts.is_empty(), "{name}");
    }
    assert_eq!(of("gemini", "gemini-2.5-flash").classes, [EnforcementClass::Native]);
    assert!(of("gemini", "gemini-2.5-pro").thinks_always);
    assert_eq!(of("gemini", "gemini-3-pro-preview").classes, [EnforcementClass::Effort]);
}

#[test]
fn limits_say_one_unit_and_one_window() {
    let key = format!("[[key]]\nname = 'alice'\nhash = 'sha256:{}'\n", "a".repeat(64));
    let what = |limits: &str| {
        let mistakes = load_text(&format!("{key}limits = [{limits}]\n")).map(drop).unwrap_err();
        mistakes.errors.iter().map(|mistake| mistake.what.clone()).collect::<Vec<_>>()
    };
    assert_eq!(what("{ money = 0.5, per = 'day' }"), ["a fraction in place of an amount of money"]);
    assert_eq!(what("{ money = '1', thinking = 1, per = 'day' }"), ["not one limit"]);
    assert_eq!(what("{ money = '1' }"), ["missing"]);
    assert_eq!(what("{ money = '1', per = 'dya' }"), ["\"dya\" is unknown"]);
    assert_eq!(
        what("{ money = '1', per = 'day' }, { money = '2', per = 'day' }"),
        ["a second limit of money per day"]
    );
    assert_eq!(what("{ concurrency = 8, per = 'day' }"), ["without meaning for concurrency"]);
    let twice = "{ money = '1', per = 'day', tag = 'a', each = 'user' }";
    assert_eq!(what(twice), ["a limit on more than one of model, tag and each"]);
    assert!(
        load_text(&format!("{key}limits = [{{ requests = 6, per = 'minute' }}, {{ concurrency = 2 }}]\n"))
            .is_ok()
    );
}

#[test]
fn accounts_are_paths_and_stand_once() {
    let hash = "a".repeat(64);
    let load = |text: &str| {
        load_text(&text.replace("HASH", &format!("hash = 'sha256:{hash}'"))).map_err(|mistakes| {
            mistakes
                .errors
                .iter()
                .map(|mistake| format!("{}: {}", mistake.key, mistake.what))
                .collect::<Vec<_>>()
        })
    };
    let wrong = |text: &str| load(text).map(drop).unwrap_err();
    let twice = "[[account]]\nname = 'acme/bob'\n[[key]]\nname = 'bob'\naccount = 'acme'\nHASH\n";
    assert_eq!(wrong(twice), ["key.name: \"acme/bob\" stands here twice"]);
    let empty = "account.name: an account needs a name, and each part between slashes too";
    assert_eq!(wrong("[[account]]\nname = 'acme//x'\n"), [empty]);
    let zone =
        "account.time_zone: there is no time zone \"Berlin\": write it like \"Europe/Berlin\" or \"UTC\"";
    assert_eq!(wrong("[[account]]\nname = 'a'\ntime_zone = 'Berlin'\n"), [zone]);
    let share = "account.warn_at: 0 is not a share: write a whole number of percent from 1 to 100";
    assert_eq!(wrong("[[account]]\nname = 'a'\nwarn_at = 0\n"), [share]);
    let settings = load("[[key]]\nname = 'bob'\naccount = 'acme/research'\nHASH\n").unwrap();
    assert_eq!(settings.tenants[0].account.as_str(), "acme/research/bob");
}

#[test]
fn who_is_sent_marks_for_a_cache_takes_a_quarter_more_for_it_and_twice_for_an_hour_where_nothing_is_said() {
    let check = |kind: &str, more: &str, write: [&str; 2], hour: [&str; 2]| {
        let text = format!(
            "[[backend]]\nkind = '{kind}'\nbase_url = 'http://127.0.0.1:1'\n[[backend.model]]\nname = 'm'\n\
             price_input = '2'\nprice_output = '8'\n{more}\n\
             long_context = {{ above = 9, price_input = '4', price_output = '9' }}\n"
        );
        let tariff = load_text(&text).unwrap().catalog.models["m"].tariff.unwrap();
        let rates = [tariff.rates, tariff.long.unwrap().1];
        let told = rates.map(|rates| rates.cache_write.per_million_tokens);
        assert_eq!(told, write.map(|price| price.parse().unwrap()), "{kind}");
        let told = rates.map(|rates| rates.cache_hour.per_million_tokens);
        assert_eq!(told, hour.map(|price| price.parse().unwrap()), "{kind}");
    };
    for kind in ["anthropic", "openrouter"] {
        check(kind, "", ["2.5", "5"], ["4", "8"]);
        check(kind, "price_cache_write = '2'", ["2", "4"], ["4", "8"]);
        check(kind, "price_cache_write_hour = '3'", ["2.5", "5"], ["3", "6"]);
    }
    check("openai", "", ["2", "4"], ["2", "4"]);
    // What is kept for an hour is not cheaper than what is kept for minutes, where only these have a price.
    check("openai", "price_cache_write = '2.5'", ["2.5", "5"], ["2.5", "5"]);
    check("anthropic", "price_cache_write = '6'", ["6", "12"], ["6", "12"]);
    check("openai", "price_cache_write = '3'\nprice_cache_write_hour = '2'", ["3", "6"], ["2", "4"]);
}

#[test]
fn a_prompt_that_openai_keeps_costs_what_is_stated_for_that_however_long_its_caller_wants_it_kept() {
    let text = "[[backend]]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1'\n[[backend.model]]\nname = 'm'\n\
                price_input = '5'\nprice_output = '30'\nprice_cache_write = '6.25'\n";
    let tariff = load_text(text).unwrap().catalog.models["m"].tariff.unwrap();
    let million = Tokens(1_000_000);
    for cache_hour in [Tokens::ZERO, million] {
        let billed = BilledCall { input: million, cache_write: million, cache_hour, ..BilledCall::default() };
        assert_eq!(tariff.cost(&billed), "6.25".parse().unwrap());
    }
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
