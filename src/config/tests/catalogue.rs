//! What the shipped catalogue knows, and what is made of it where nobody says a price.

use std::fmt::Write as _;

use crate::config::{ModelSource, Settings};
use stint_types::catalog::{
    AbilityGuess, EFFORT_SHARES, EFFORT_WORDS, ImageRule, ImageTokens, Model, Service, Tariff, effort_rank,
};
use stint_types::chat::ReasoningEffort;
use stint_types::units::{Effort, Money, Tokens};

use super::{check, load_text};

const SHIPPED: &str = include_str!("../../../config/models.toml");

/// Where the shipped file's hosts are, each with the kind of backend that speaks to it.
const HOSTS: [(&str, &str); 9] = [
    ("api.openai.com", "openai"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gemini"),
    ("api.deepseek.com", "deepseek"),
    ("aliyuncs.com", "dashscope"),
    ("api.x.ai", "xai"),
    ("api.mistral.ai", "mistral"),
    ("api.moonshot.ai", "openai"),
    ("api.z.ai", "openai"),
];

/// Every name that the shipped file is about, with the kinds and the host that it is about it at.
fn told() -> Vec<(String, Vec<String>, String)> {
    let file: toml::Table = toml::from_str(SHIPPED).unwrap();
    let texts = |entry: &toml::Table, key: &str| -> Vec<String> {
        let list = entry.get(key).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        list.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let entries = file["model"].as_array().unwrap().iter().map(|entry| entry.as_table().unwrap());
    // Abilities stand apart where a model's other facts are told at its provider's own host, and what images cost does.
    let apart = [
        "match",
        "kinds",
        "hosts",
        "source",
        "checked",
        "thinking_off",
        "omit",
        "omit_thinking",
        "thought_missing",
        "thoughts_back",
        "switch_as",
        "classes",
        "start_tag",
        "end_tag",
        "hand_off",
        "ability",
        "scores_thinking",
        "scores_plain",
        "image_tokens",
        "image_tokens_max",
        "thoughts_bound",
        "task_budget_min",
        "late_efforts",
        "late_instructions",
        "late_tools",
        "allowed_tools",
        "cache_breakpoints",
        "refuses_forced_tools",
        "cache_min",
    ];
    let entries = entries.filter(|entry| entry.keys().any(|key| !apart.contains(&&**key)));
    let of = |entry: &toml::Table| {
        let host = texts(entry, "hosts").first().cloned();
        let mut kinds = texts(entry, "kinds");
        kinds.retain(|kind| kind != "local");
        if kinds.is_empty() {
            let at = HOSTS.iter().find(|(at, _)| Some(*at) == host.as_deref());
            kinds.push(at.map_or("openai", |(_, kind)| kind).to_owned());
            // What is said of families is said for those who serve them.
            let is_family = !entry.contains_key("context") && !entry.contains_key("kinds");
            let tells_thoughts = entry.contains_key("thinking_usual") || entry.contains_key("thinking_max");
            kinds.extend((host.is_none() && is_family && tells_thoughts).then(|| "vllm".to_owned()));
        }
        let host = host.unwrap_or_else(|| "serves.example".to_owned());
        let patterns = texts(entry, "match");
        patterns
            .into_iter()
            .map(move |pattern| (pattern.replace('*', ""), kinds.clone(), host.clone()))
            .collect::<Vec<_>>()
    };
    entries.flat_map(of).collect()
}

/// Every model of the shipped file as `m0`, `m1`, …, and what each is.
fn shipped_models() -> (Settings, Vec<String>) {
    let mut text = String::from("[engine]\nembedded = false\n");
    let mut names = Vec::new();
    for (upstream, kinds, host) in told() {
        for kind in kinds {
            let (number, address) = (names.len(), if kind == "gemini" { "v1beta" } else { "v1" });
            let _ = writeln!(
                text,
                "[[backend]]\nname = 'b{number}'\nkind = '{kind}'\nbase_url = 'https://{host}/{address}'"
            );
            let _ = writeln!(text, "[[backend.model]]\nname = 'm{number}'\nupstream = '{upstream}'");
            names.push(format!("{upstream} at {host} by {kind}"));
        }
    }
    // A llama.cpp server is asked for no name.
    let settings = load_text(&text.replace("kind = 'llamacpp'", "kind = 'vllm'")).unwrap();
    (settings, names)
}

#[test]
fn every_chat_model_of_the_catalogue_has_its_limit_its_ability_and_its_usual_thoughts() {
    let (settings, names) = shipped_models();
    let mut lacking = Vec::new();
    for (number, about) in names.iter().enumerate() {
        let model = &settings.catalog.models[format!("m{number}").as_str()];
        let served =
            settings.backends.iter().flat_map(|backend| &backend.models).find(|one| one.name == model.name);
        if !model.services.contains(&Service::Chat) {
            continue;
        }
        let lacks = [
            ("output_max", model.output_max.is_none()),
            ("ability", served.unwrap().ability.is_none() || is_told_by_nothing(model)),
            ("usual thoughts", model.thinking_max > Tokens::ZERO && model.thought_usual().is_none()),
        ];
        lacking.extend(lacks.iter().filter(|(_, lacks)| *lacks).map(|(what, _)| format!("{about}: {what}")));
    }
    assert!(names.len() > 300, "{}", names.len());
    assert!(lacking.is_empty(), "{}", lacking.join("\n"));
}

#[test]
fn more_effort_never_asks_a_model_of_the_catalogue_for_less_and_none_for_more_than_was_stated() {
    let (settings, names) = shipped_models();
    let mut scales = 0;
    for (number, about) in names.iter().enumerate() {
        let model = &settings.catalog.models[format!("m{number}").as_str()];
        let place = |(word, share): (&str, f64)| {
            let effort = Effort::try_from(share).unwrap();
            model.effort_place(&ReasoningEffort { effort, word: Some(word.to_owned()) })
        };
        let places = EFFORT_WORDS.into_iter().zip(EFFORT_SHARES).map(place);
        let places: Vec<usize> = places.flatten().collect();
        assert!(places.is_sorted(), "{about}: {places:?}");
        let is_whole = places.len() == EFFORT_WORDS.len() || model.efforts.is_empty();
        assert!(is_whole, "{about}: {places:?}");
        for (stated, place) in places.iter().enumerate() {
            let sent = &model.efforts[*place].word;
            assert!(effort_rank(sent) <= Some(stated) || *place == 0, "{about}: {sent} for {stated}");
        }
        scales += usize::from(!places.is_empty());
    }
    assert!(scales > 50, "{scales}");
}

/// True if neither scores nor a family tell how able it is.
fn is_told_by_nothing(model: &Model) -> bool {
    matches!(model.ability_guess, Some(AbilityGuess::Nothing | AbilityGuess::Size))
}

/// The model `m` of a backend with these lines.
fn images(name: &str, section: &str) -> ImageTokens {
    let backend =
        "[engine]\nembedded = false\n[[backend]]\nkind = 'openai'\nbase_url = 'https://serves.example/v1'";
    let text = format!("{backend}\n[[backend.model]]\nname = '{name}'\n{section}");
    let settings = load_text(&text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let model = &settings.backends[0].models[0];
    match model.source.at_deployment(&model.deployments[0]) {
        ModelSource::OpenAi(upstream) => upstream.client.images,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_model_counts_images_by_its_own_providers_rule() {
    let most = |name: &str| images(name, "").max.0;
    let cases = [
        ("gpt-4o", 1445),
        ("openai/gpt-4o-mini-2024-07-18", 48_169),
        ("gpt-4.1-nano", 3779),
        ("gpt-5", 1190),
        ("gpt-5-2025-08-07", 1190),
        ("gpt-5-mini", 2489),
        ("gpt-5-codex", 2500),
        ("gpt-5.5-pro", 16_200),
        ("gpt-6.2-sol", 36_000),
        ("gpt-7", 48_600),
        ("claude-opus-4-5-20251101", 1600),
        ("claude-opus-4-8", 4800),
        ("gemini-2.5-pro", 6192),
        ("gemini-3.8-flash", 2240),
        ("nobody-knows-me", 65_536),
    ];
    for (name, expected) in cases {
        assert_eq!(most(name), expected, "{name}");
    }
}

#[test]
fn where_only_the_most_is_stated_each_image_counts_so() {
    let said = images("gpt-4o", "image_tokens_max = 49152");
    assert_eq!(said, ImageTokens { max: Tokens(49_152), rule: None });
    let rule = images("mine", "image_tokens = { rule = 'crops', tile = 300 }");
    assert_eq!(rule, ImageTokens { rule: Some(ImageRule::Crops { tile: 300 }), ..ImageTokens::default() });
    let unfinished = "[[backend]]\nkind = 'openai'\n[[backend.model]]\nname = 'm'\nimage_tokens = { rule = 'tiles', base = 1 }";
    let mistakes = load_text(unfinished).map(drop).unwrap_err().to_string();
    assert!(mistakes.contains("tile"), "{mistakes}");
}

fn model(backend: &str, model: &str) -> Model {
    let text = format!("[[backend]]\n{backend}\n[[backend.model]]\nname = 'm'\n{model}\n");
    load_text(&text).unwrap().catalog.models["m"].as_ref().clone()
}

fn list(tariff: Option<Tariff>) -> Option<[String; 2]> {
    let list = tariff?.rates.list;
    Some([list.input, list.output].map(|price| price.per_million_tokens.to_string()))
}

#[test]
fn a_model_without_a_price_is_weighed_at_what_its_name_costs_elsewhere() {
    let elsewhere = "base_url = 'https://resells.example/v1'";
    for (upstream, input, output) in [
        ("gpt-5-mini", "0.25", "2"),
        ("openai/gpt-5.1", "1.25", "10"),
        ("anthropic/claude-sonnet-4.5", "3", "15"),
        ("google/gemini-2.5-flash", "0.3", "2.5"),
    ] {
        let model = model(elsewhere, &format!("upstream = '{upstream}'"));
        assert_eq!(model.tariff, None, "{upstream}");
        assert_eq!(list(model.reference), Some([input.to_owned(), output.to_owned()]), "{upstream}");
    }
}

#[test]
fn ones_own_models_are_weighed_at_own_price_and_those_of_providers_at_none() {
    let own = |backend: &str| list(model(backend, "").reference);
    let usual = Some(["0.05".to_owned(), "0.2".to_owned()]);
    assert_eq!(own("kind = 'vllm'\nbase_url = 'http://10.0.0.7/v1'"), usual);
    assert_eq!(own("base_url = 'http://10.0.0.7/v1'"), usual);
    assert_eq!(own("base_url = 'https://api.groq.com/openai/v1'\napi_key_env = 'OPENAI_API_KEY'"), None);
    assert_eq!(own("kind = 'openrouter'\napi_key_env = 'OPENAI_API_KEY'"), None);
    let stated = "[catalog]\nown_price = { input = '0.5', output = '2' }\n[[backend]]\nbase_url = 'http://10.0.0.7/v1'\nmodels = ['m']\n";
    let settings = load_text(stated).unwrap();
    assert_eq!(list(settings.catalog.models["m"].reference), Some(["0.5".to_owned(), "2".to_owned()]));
    check(
        "[catalog]\nown_price = { input = '0.5', outptu = '2' }\n",
        &["line 2: catalog.own_price.outptu: unknown key; did you mean output?"],
    );
}

/// CF-07: nothing is free unless the operator says so.
#[test]
fn a_price_of_zero_is_a_price() {
    let free = model("base_url = 'http://10.0.0.7/v1'", "price_input = '0'\nprice_output = '0'");
    assert_eq!(
        free.planning_tariff().map(|tariff| tariff.rates.list.output.per_million_tokens),
        Some(Money::ZERO)
    );
}

#[test]
fn the_check_says_at_what_a_model_is_weighed_and_which_is_left_out() {
    let text = "[[backend]]\nname = 'a'\nbase_url = 'http://10.0.0.7/v1'\nmodels = ['gpt-5-mini', 'mine']\n\
                [[backend]]\nkind = 'openrouter'\napi_key_env = 'OPENAI_API_KEY'\nmodels = ['some/thing']\n";
    let warnings: Vec<String> = load_text(text).unwrap().warnings.iter().map(ToString::to_string).collect();
    let said = warnings.join("\n");
    assert!(said.contains("gpt-5-mini is weighed at 0.25 and 2 dollars"), "{said}");
    assert!(said.contains("mine is weighed at 0.05 and 0.2 dollars"), "{said}");
    assert!(said.contains("no price is known of some/thing, not even by name"), "{said}");
}
