//! What a model costs.

use crate::config::is_other_catalogue;
use stint_backend::remote::price_list::ListedPrice;
use stint_types::catalog::{BilledCall, Tariff};
use stint_types::units::{Money, Tokens};

use super::*;

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
fn openrouters_prices_are_written_as_a_catalogue_that_counts_for_less_than_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let environment = |name: &str| (name == "STINT_LEDGER").then(|| ":memory:".to_owned());
    let load = || load(Some(&folder.path().join("stint.toml")), &environment).unwrap();
    let config = |catalog: &str| {
        format!(
            "[engine]\nembedded = false\n[catalog]\nopenrouter_file = 'kept.toml'\n{catalog}\n[[backend]]\nkind = 'openrouter'\n\
             base_url = 'http://127.0.0.1:9/v1'\nmodels = ['a/b:free', 'a/c']\n"
        )
    };
    write("stint.toml", &config(""));
    let prices = load().openrouter.unwrap();
    assert_eq!((prices.host.as_str(), prices.every.as_secs()), ("127.0.0.1", 6 * 3600));
    let model = |name: &str, cost: u64| ListedPrice {
        name: name.to_owned(),
        input: Money(cost),
        output: Money(2 * cost),
        cache_read: Some(Money(cost / 10)),
        cache_write: None,
        call: Money(5),
        context: Some(Tokens(3)),
    };
    let text = prices.catalogue(&[model("a/b:free", 0), model("a/c", 1_000_000_010)], "2026-11-23");
    write("kept.toml", &text);
    let tariff = |name: &str| load().catalog.models[name].tariff.unwrap();
    assert_eq!(tariff("a/b:free").rates.list.input.per_million_tokens, Money::ZERO);
    let paid = tariff("a/c");
    assert_eq!(paid.rates.list.output.per_million_tokens, Money(2_000_000_020));
    assert_eq!((paid.rates.cache_read.per_million_tokens, paid.call), (Money(100_000_001), Money(5)));
    assert!(load().warnings.iter().all(|warning| !warning.what.contains("not used")));
    let later = prices.catalogue(&[model("a/b:free", 0), model("a/c", 1_000_000_010)], "2026-11-24");
    assert!(!is_other_catalogue(&text, &later), "another day alone is no other price");
    assert!(is_other_catalogue(&text, &prices.catalogue(&[model("a/c", 7)], "2026-11-23")));
    let own = "version = '1'\n[[model]]\nmatch = ['a/c']\nprice_input = '9'\nprice_output = '9'\n";
    write("own.toml", own);
    write("stint.toml", &config("file = 'own.toml'"));
    assert_eq!(tariff("a/c").rates.list.input.per_million_tokens, Money(9_000_000_000));
    write("stint.toml", &config("openrouter_prices = false"));
    assert!(load().openrouter.is_none() && load().catalog.models["a/c"].tariff.is_none());
}

/// SC-09: prices come from files, and from a list only where the operator names one.
#[test]
fn nobody_is_asked_for_prices_where_no_backend_is_openrouter() {
    let text = "[catalog]\nopenrouter_file = 'kept.toml'\n[[backend]]\nbase_url = 'https://api.deepseek.com/v1'\napi_key_env = 'OPENAI_API_KEY'\nmodels = ['m']\n";
    assert_eq!(load_text(text).unwrap().openrouter, None);
    let text = "[catalog]\nopenrouter_file = 'kept.toml'\n[engine]\nembedded = false\n[[backend]]\nkind = 'openai'\nbase_url = 'https://openrouter.ai/api/v1'\napi_key_env = 'OPENAI_API_KEY'\nmodels = ['m']\n";
    assert_eq!(load_text(text).unwrap().openrouter.unwrap().host, "openrouter.ai");
}

#[test]
fn what_is_taken_outside_the_peak_is_a_share_of_the_prices_and_forgotten_with_them() {
    let model = |more: &str| {
        let text = format!(
            "[[backend]]\nkind = 'deepseek'\napi_key_env = 'OPENAI_API_KEY'\n[[backend.model]]\nname = 'deepseek-flash'\n{more}\n"
        );
        load_text(&text).map(|settings| settings.catalog.models["deepseek-flash"].tariff.unwrap())
    };
    let output = |tariff: Tariff, at: &str| {
        let at = format!("2026-11-{at}:00Z").parse().unwrap();
        tariff.between(at, at).rates.list.output.per_million_tokens.to_string()
    };
    let shipped = model("").unwrap();
    assert_eq!(output(shipped, "24T03:59"), "1.2", "a Tuesday, in the peak");
    assert_eq!(output(shipped, "24T04:00"), "0.6");
    assert_eq!(output(shipped, "28T03:59"), "0.6", "a Saturday");
    let own = model("price_input = '1'\nprice_output = '4'").unwrap();
    assert_eq!(output(own, "24T04:00"), "4", "another contract has no such hours unless it is said");
    let own = "price_input = '1'\nprice_output = '4'\noff_peak = { percent = 25, peak_hours = [23] }";
    assert_eq!(output(model(own).unwrap(), "28T03:59"), "1");
    assert_eq!(output(model(own).unwrap(), "28T23:59"), "4", "weekends have a peak unless it is said");
    for (wrong, says) in [
        ("{ percent = 25, peak_hours = [24] }", "hours from 0 to 23"),
        ("{ percent = 25, peak_hours = [] }", "hours from 0 to 23"),
        ("{ peak_hours = [1] }", "percent"),
        ("{ percent = 101, peak_hours = [1] }", "percent"),
        ("{ percent = 25 }", "peak_hours"),
    ] {
        let mistakes = model(&format!("off_peak = {wrong}")).unwrap_err().to_string();
        assert!(mistakes.contains(says), "{wrong}: {mistakes}");
    }
}

#[test]
fn a_price_for_a_thousand_tokens_or_for_one_is_doubted() {
    let of = |input: &str, output: &str| {
        let text = format!(
            "[[backend]]\nbase_url = 'https://api.openai.com/v1'\napi_key_env = 'OPENAI_API_KEY'\n[[backend.model]]\n\
             name = 'gpt-5-mini'\nprice_input = '{input}'\nprice_output = '{output}'\n"
        );
        let warnings = load_text(&text).unwrap().warnings;
        let told = warnings.into_iter().map(|warning| warning.what);
        told.filter(|what| what.contains("is far from")).collect::<Vec<_>>()
    };
    for (input, output) in [("0.25", "2"), ("0", "0"), ("0.1", "1"), ("2.5", "20")] {
        assert_eq!(of(input, output), Vec::<String>::new(), "{input} {output}");
    }
    let told = "a price is far from what such models cost: gpt-5-mini has 250 and 2000, in place of about 0.25 and 2";
    assert_eq!(of("250", "2000"), [told]);
    assert_eq!(of("0.00025", "0.002").len(), 1);
    assert_eq!(of("0.25", "0.000002").len(), 1);
    let unlisted = "[[backend]]\nbase_url = 'http://127.0.0.1:1/v1'\n[[backend.model]]\nname = 'mine'\nprice_input = '15'\n\
                    price_output = '75'\n";
    let warnings = load_text(unlisted).unwrap().warnings;
    assert!(warnings.iter().all(|warning| !warning.what.contains("is far from")), "{warnings:?}");
}

/// Its electricity, or a small number to sort by.
#[test]
fn an_open_model_of_ones_own_may_cost_next_to_nothing() {
    let doubts = |base_url: &str, price: &str| {
        let text = format!(
            "[[backend]]\nkind = 'openai'\nbase_url = '{base_url}'\napi_key_env = 'OPENAI_API_KEY'\n[[backend.model]]\n\
             name = 'kimi-k2.6'\nprice_input = '{price}'\nprice_output = '{price}'\n"
        );
        let warnings = load_text(&text).unwrap().warnings;
        warnings.iter().filter(|warning| warning.what.contains("is far from")).count()
    };
    assert_eq!(doubts("http://gpu:8000/v1", "0.001"), 0);
    assert_eq!(doubts("http://gpu:8000/v1", "1000"), 1);
    assert_eq!(doubts("https://api.moonshot.ai/v1", "0.001"), 1);
}
