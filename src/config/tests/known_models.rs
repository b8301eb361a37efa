//! What is known of models before the operator says anything.

use stint_types::catalog::EnforcementClass;
use stint_types::units::{Money, Tokens};

use super::*;

/// What a catalogue's file says, for an upstream's model of that name.
fn known(file: &str, base_url: &str, name: &str) -> stint_types::catalog::Model {
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
