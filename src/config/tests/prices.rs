//! What a model costs.

use stint_types::catalog::BilledCall;
use stint_types::units::Tokens;

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
