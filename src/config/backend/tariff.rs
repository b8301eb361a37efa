//! What a model costs: `price_…`, `long_context` for prompts beyond some length, and `off_peak` for some hours.

use crate::config::reader::Section;
use stint_types::catalog::{OffPeak, Prices, Rates, Tariff};
use stint_types::units::{Money, Price, Tokens};

use super::kind::BackendKind;

/// Takes the prices of a section in place of what was known; where it names the two list prices, all that was known is
/// forgotten, so that no price of another time stays beside them.
pub(super) fn apply(section: &Section<'_>, kind: BackendKind, tariff: &mut Option<Tariff>) {
    if let Some(list) = list_prices(section) {
        let mut plain = Tariff::plain(list);
        plain.rates.cache_write = cache_write_price(kind, list.input, QUARTER_MORE);
        plain.rates.cache_hour = cache_write_price(kind, list.input, TWICE);
        *tariff = Some(plain);
    }
    let extra = [
        "price_cache_read",
        "price_cache_write",
        "price_cache_write_hour",
        "price_call",
        "long_context",
        "off_peak",
    ];
    let Some(tariff) = tariff else {
        if let Some(key) = extra.into_iter().find(|key| section.has(key)) {
            section.reject(key, "beside no list prices", "write price_input and price_output too");
        }
        return;
    };
    apply_cache_prices(section, kind, &mut tariff.rates);
    section.set("price_call", &mut tariff.call);
    if section.has("long_context") {
        tariff.long = long_context(&section.section("long_context"), kind, tariff.rates);
    }
    if section.has("off_peak") {
        tariff.off_peak = off_peak(&section.section("off_peak"));
    }
}

/// What is taken outside the hours of the provider's peak.
fn off_peak(section: &Section<'_>) -> Option<OffPeak> {
    let percent = section.within("percent", 0..=100_u32);
    let weekends = section.get_or("weekends", false);
    if percent.is_none() && !section.has("percent") {
        section.reject("percent", "missing", "write what is taken then, in hundredths of the prices above");
    }
    let hours =
        section.require::<Vec<u32>>("peak_hours", "write the hours of the peak in UTC, like [1, 2, 3]")?;
    if hours.is_empty() || hours.iter().any(|hour| *hour > 23) {
        section.reject("peak_hours", "must name hours from 0 to 23", "write the hours of the peak in UTC");
        return None;
    }
    let peak_hours = hours.into_iter().fold(0, |all, hour| all | 1 << hour);
    Some(OffPeak { percent: u8::try_from(percent?).ok()?, peak_hours, weekends })
}

/// What is put into the cache costs so many fourths of the list price at those who are sent the callers' marks, for some
/// minutes and for an hour.
const QUARTER_MORE: u64 = 5;
const TWICE: u64 = 8;

/// What is put into the cache where nothing is said of it, which must be known before a marked prompt goes there.
fn cache_write_price(kind: BackendKind, list: Price, fourths: u64) -> Price {
    let price = |fourths| Price { per_million_tokens: Money(fourths) };
    if kind.takes_cache_control() { scaled(list, price(4), price(fourths)) } else { list }
}

/// Both list prices, or none.
fn list_prices(section: &Section<'_>) -> Option<Prices> {
    let (input, output) = (price(section, "price_input"), price(section, "price_output"));
    let missing = match (section.has("price_input"), section.has("price_output")) {
        (true, false) => "price_output",
        (false, true) => "price_input",
        _ => return Some(Prices { input: input?, output: output? }),
    };
    section.reject(missing, "missing beside the other price", "a price of \"0\" is a price");
    None
}

/// Applies the configured cache prices. If only the price for some minutes is configured, an hour costs at least as much. A
/// backend that is sent no cache marks may still be asked for an hour; then all that it cached counts as kept that long.
fn apply_cache_prices(section: &Section<'_>, kind: BackendKind, rates: &mut Rates) {
    rates.cache_read = price(section, "price_cache_read").unwrap_or(rates.cache_read);
    if let Some(write) = price(section, "price_cache_write") {
        rates.cache_write = write;
        rates.cache_hour = if kind.takes_cache_control() { rates.cache_hour.max(write) } else { write };
    }
    rates.cache_hour = price(section, "price_cache_write_hour").unwrap_or(rates.cache_hour);
}

/// What holds for long prompts: list prices of their own, and what they do not say of caches is as for short ones, in
/// proportion.
fn long_context(section: &Section<'_>, kind: BackendKind, short: Rates) -> Option<(Tokens, Rates)> {
    let above = section.require::<Tokens>("above", "write from how many prompt tokens on, like 200000");
    let list = list_prices(section);
    if list.is_none() && !section.has("price_input") {
        section.reject("price_input", "missing", "write what a million tokens of a long prompt cost");
    }
    let list = list?;
    let mut rates = Rates {
        cache_read: scaled(short.cache_read, short.list.input, list.input),
        cache_write: scaled(short.cache_write, short.list.input, list.input),
        cache_hour: scaled(short.cache_hour, short.list.input, list.input),
        list,
    };
    apply_cache_prices(section, kind, &mut rates);
    Some((above?, rates))
}

/// `price · to / from`, rounded up.
fn scaled(price: Price, from: Price, to: Price) -> Price {
    let (price, from, to) = (price.per_million_tokens.0, from.per_million_tokens.0, to.per_million_tokens.0);
    if from == 0 {
        return Price { per_million_tokens: Money(to) };
    }
    let exact = (u128::from(price) * u128::from(to)).div_ceil(u128::from(from));
    Price { per_million_tokens: Money(u64::try_from(exact).unwrap_or(u64::MAX)) }
}

/// Dollars for a million tokens.
fn price(section: &Section<'_>, key: &'static str) -> Option<Price> {
    section.get::<Money>(key).map(|per_million_tokens| Price { per_million_tokens })
}
