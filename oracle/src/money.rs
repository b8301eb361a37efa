//! Amounts of money and prices, against arithmetic in wider numbers and against the decimal text itself.

use crate::{Subject, same};

/// Why an amount is refused.
type Refused = &'static str;

/// What money can do.
trait Count {
    /// From text, in nano-dollars.
    fn read(text: &str) -> Result<u64, Refused>;
    /// From JSON.
    fn from_json(json: &str) -> Option<u64>;
    fn write(nanos: u64) -> String;
    fn cost(parts: [(u64, u64); 3]) -> u64;
    fn affords(price: u64, money: u64) -> u64;
}

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @count sound }
        $(subjects! { @count $planted })*

        /// The checks of money.
        pub const SUBJECT: Subject = Subject {
            name: "money",
            sound: check::<sound::Money>,
            planted: &[$((stringify!($planted), check::<$planted::Money>)),*],
            words: WORDS,
        };
    };
    (@count $copy:ident) => {
        impl Count for $copy::Money {
            fn read(text: &str) -> Result<u64, Refused> {
                text.parse::<$copy::Money>().map(|money| money.0).map_err(|error| match error {
                    $copy::MoneyError::NotDecimal => "not decimal",
                    $copy::MoneyError::Negative => "negative",
                    $copy::MoneyError::TooFine => "too fine",
                    $copy::MoneyError::TooLarge => "too large",
                })
            }
            fn from_json(json: &str) -> Option<u64> {
                serde_json::from_str::<$copy::Money>(json).ok().map(|money| money.0)
            }
            fn write(nanos: u64) -> String {
                $copy::Money(nanos).to_string()
            }
            fn cost(parts: [(u64, u64); 3]) -> u64 {
                let price = |nanos| $copy::Price { per_million_tokens: $copy::Money(nanos) };
                $copy::Price::cost_of_all(parts.map(|(nanos, tokens)| (price(nanos), $copy::Tokens(tokens)))).0
            }
            fn affords(price: u64, money: u64) -> u64 {
                $copy::Price { per_million_tokens: $copy::Money(price) }.affords($copy::Money(money)).0
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/money.rs"));

const WORDS: &[&[u8]] = &[
    b".",
    b"0",
    b"00000000",
    b"1",
    b"9",
    b"-",
    b"18446744073",
    b".709551615",
    b".709551616",
    b".0000000001",
    b"e3",
    b"\"",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
];

fn check<C: Count>(bytes: &[u8]) -> Result<(), String> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let read = C::read(text);
        same(&read, &slow(text), "an amount")?;
        let json = serde_json::Value::from(text).to_string();
        same(&C::from_json(&json), &read.ok(), "an amount in JSON")?;
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(text)
            && value.is_number()
        {
            let dollars = value.as_u64().and_then(|dollars| dollars.checked_mul(1_000_000_000));
            same(&C::from_json(text), &dollars, "a number in JSON")?;
        }
        if let Ok(nanos) = read {
            same(&C::read(&C::write(nanos)), &Ok(nanos), "what it writes")?;
        }
    }
    let number = |at: usize| {
        let bytes = bytes.iter().skip(at * 8).take(8);
        bytes.fold(0, |number: u64, byte| number << 8 | u64::from(*byte))
    };
    prices::<C>([0, 1, 2].map(|part| (number(2 * part), number(2 * part + 1))))
}

fn prices<C: Count>(parts: [(u64, u64); 3]) -> Result<(), String> {
    for (price, tokens) in parts {
        let alone = (u128::from(price) * u128::from(tokens)).div_ceil(1_000_000);
        same(&u128::from(C::cost([(price, tokens), (0, 0), (0, tokens)])), &at_most(alone), "a cost")?;
        let money = C::write(tokens);
        same(&C::read(&money), &Ok(tokens), &money)?;
        let affords = u128::from(C::affords(price, tokens));
        let most = (u128::from(tokens) * 1_000_000).checked_div(u128::from(price));
        same(&affords, &at_most(most.unwrap_or(u128::MAX)), "what money buys")?;
    }
    let exact = parts
        .iter()
        .try_fold(0u128, |sum, (price, tokens)| sum.checked_add(u128::from(*price) * u128::from(*tokens)));
    let exact = exact.map_or(u128::MAX, |exact| exact.div_ceil(1_000_000));
    same(&u128::from(C::cost(parts)), &at_most(exact), "a cost of parts")
}

fn at_most(number: u128) -> u128 {
    number.min(u128::from(u64::MAX))
}

/// Nano-dollars, by shifting the point of the text.
fn slow(text: &str) -> Result<u64, Refused> {
    if text.starts_with('-') {
        return Err("negative");
    }
    let is_decimal = text.chars().all(|letter| letter.is_ascii_digit() || letter == '.');
    if !is_decimal || text.matches('.').count() > 1 || !text.contains(|letter: char| letter != '.') {
        return Err("not decimal");
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return Err("too fine");
    }
    let digits = format!("{whole}{fraction:0<9}");
    let digits = digits.trim_start_matches('0');
    if digits.len() > 20 {
        return Err("too large");
    }
    let nanos: u128 = if digits.is_empty() { 0 } else { digits.parse().map_err(|_| "not decimal")? };
    u64::try_from(nanos).map_err(|_| "too large")
}
