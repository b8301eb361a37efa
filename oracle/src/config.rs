//! The reader of the configuration's sections and values, against `toml`'s own tree of the text.
//!
//! Where the two are to differ: that tree has no whole numbers beyond 64 bits with a sign, which ours reads where a setting is as
//! large; of a key that stands twice ours goes on reading the rest, to report every mistake at once; and -0 is 0 there.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use toml::{Table, Value};

use crate::{Subject, same};

/// What was read of a document: each value or nothing, in the order of [`KEYS`]; and the mistakes, each with its line and key.
#[derive(Debug, Default)]
struct Made {
    values: Vec<Option<String>>,
    mistakes: Vec<(Option<usize>, String)>,
    /// False where the text was no document at all.
    is_read: bool,
}

/// The keys that the document may have, each of its own type.
const KEYS: [&str; 14] = [
    "flag", "count", "long", "ratio", "size", "time", "money", "address", "name", "any", "list", "within",
    "word", "part",
];

/// A reader's way from a text to what it has.
trait Read {
    fn read(text: &str) -> Made;
}

macro_rules! subjects {
    ($($planted:ident),* $(,)?) => {
        subjects! { @read sound }
        $(subjects! { @read $planted })*

        /// The reader's checks.
        pub const SUBJECT: Subject = Subject {
            name: "config",
            sound: check::<sound::document::Document<'_>>,
            planted: &[$((stringify!($planted), check::<$planted::document::Document<'_>>)),*],
            words: WORDS,
        };
    };
    (@read $copy:ident) => {
        impl Read for $copy::document::Document<'_> {
            fn read(text: &str) -> Made {
                use $copy::document::{Document, ReadContext, SecretsPolicy};
                use $copy::section::Section;
                use $copy::value::{AnyText, ByteSize};
                let files = $copy::files::ConfigFiles::default();
                let env = |_: &str| None;
                let secrets = SecretsPolicy::Optional;
                let context = ReadContext { folder: Path::new(""), env: &env, secrets, files: &files };
                let document = Document::new(text, context);
                let mut made = Made::default();
                if let Some(table) = $copy::source::parse(&document) {
                    let root = Section::root(&document, &table);
                    made.is_read = true;
                    made.values = vec![
                        root.get::<bool>("flag").map(|flag| flag.to_string()),
                        root.get::<u32>("count").map(|count| count.to_string()),
                        root.get::<u64>("long").map(|count| count.to_string()),
                        root.get::<f64>("ratio").map(|ratio| (ratio + 0.0).to_bits().to_string()),
                        root.get::<ByteSize>("size").map(|size| size.0.to_string()),
                        root.get::<Duration>("time").map(|time| time.as_nanos().to_string()),
                        root.get::<stint_types::units::Money>("money").map(|money| money.to_string()),
                        root.get::<SocketAddr>("address").map(|address| address.to_string()),
                        root.get::<String>("name"),
                        root.get::<AnyText>("any").map(|any| any.0),
                        root.get::<Vec<String>>("list").map(|list| format!("{list:?}")),
                        root.within::<u32>("within", 1..=10).map(|count| count.to_string()),
                        root.word("word", &[("on", 1), ("off", 2)]).map(|word| word.to_string()),
                        {
                            let part = root.section("part");
                            let count = part.get::<u32>("count");
                            count.map(|count| count.to_string())
                        },
                    ];
                }
                let mistakes = document.errors.into_inner();
                made.mistakes = mistakes.into_iter().map(|mistake| (mistake.line, mistake.key)).collect();
                made
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/config.rs"));

const WORDS: &[&[u8]] = &[
    b"count = ",
    b"long = ",
    b"within = ",
    b"ratio = ",
    b"flag = true\n",
    b"size = \"64KiB\"\n",
    b"size = \"MiB\"",
    b"time = \"1h 30m\"\n",
    b"money = \"0.02\"\n",
    b"money = 20\n",
    b"[part]\n",
    b"word = \"on\"\n",
    b"list = [\"a\", \"\"]\n",
    b"\n",
    b"\"",
    b"'''",
    b"0x10",
    b"1_0",
    b"-1",
    b"10",
    b"4294967296",
    b"9223372036854775808",
    b"1e400",
    b"nan",
    b".",
    b"#",
    b"other = 1\n",
];

fn check<R: Read>(bytes: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    let made = R::read(text);
    let lines = text.matches('\n').count() + 1;
    let outside = made.mistakes.iter().find(|(line, _)| line.is_some_and(|line| line == 0 || line > lines));
    same(&outside, &None, format_args!("a mistake in {lines} lines"))?;
    match text.parse::<Table>() {
        Ok(table) => agrees(&made, &table, text),
        Err(error) if error.span().and_then(|span| text.get(span)).is_some_and(is_large) => Ok(()),
        Err(error) => {
            same(&made.mistakes.is_empty(), &false, format_args!("no mistake in what is none: {error}"))
        }
    }
}

/// Whether a text is a whole number that is too large for that tree.
fn is_large(text: &str) -> bool {
    let digits = text.replace('_', "");
    let radix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(prefix, _)| digits.starts_with(prefix));
    let (digits, radix) = radix.map_or((&*digits, 10), |(prefix, radix)| (&digits[prefix.len()..], radix));
    let is_whole = !digits.is_empty()
        && digits.trim_start_matches(['+', '-']).chars().all(|digit| digit.is_digit(radix));
    is_whole && i64::from_str_radix(digits, radix).is_err()
}

fn agrees(made: &Made, table: &Table, text: &str) -> Result<(), String> {
    // Dollars are decimal, and the tree does not say how a number was written.
    let is_decimal = !["0x", "0o", "0b"].iter().any(|prefix| text.contains(prefix));
    let is_judged = |key: &str| key != "money" || is_decimal;
    same(&made.is_read, &true, "whether it is a document")?;
    for (key, value) in KEYS.iter().zip(&made.values).filter(|(key, _)| is_judged(key)) {
        same(value, &expected(key, table), key)?;
        let below = format!("{key}.");
        let is_refused = made.mistakes.iter().any(|(_, of)| of == key || of.starts_with(&below));
        let inner = table.get("part").and_then(Value::as_table).filter(|_| *key == "part");
        let is_refusable = match inner {
            Some(part) => {
                part.keys().any(|key| key != "count") || (part.contains_key("count") && value.is_none())
            }
            None => table.contains_key(*key) && value.is_none(),
        };
        same(&is_refused, &is_refusable, format_args!("whether {key} is refused"))?;
    }
    let unknown = table.keys().filter(|key| !KEYS.contains(&key.as_str()));
    for key in unknown {
        let is_refused = made.mistakes.iter().any(|(_, of)| of == key);
        same(&is_refused, &true, format_args!("whether {key:?}, which is unknown, is refused"))?;
    }
    Ok(())
}

/// What a key's value is to be read as.
fn expected(key: &str, table: &Table) -> Option<String> {
    let value = table.get(key)?;
    let text = value.as_str();
    let whole = value.as_integer();
    let count = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
    match key {
        "flag" => value.as_bool().map(|flag| flag.to_string()),
        "count" => count(whole).map(|count| count.to_string()),
        "within" => count(whole).filter(|count| (1..=10).contains(count)).map(|count| count.to_string()),
        "long" => whole.and_then(|number| u64::try_from(number).ok()).map(|count| count.to_string()),
        "ratio" => ratio(value).map(|ratio| (ratio + 0.0).to_bits().to_string()),
        "size" => size(value).map(|size| size.to_string()),
        "time" => {
            let time = text?.parse::<jiff::SignedDuration>().ok()?;
            u128::try_from(time.as_nanos()).ok().map(|nanos| nanos.to_string())
        }
        "money" => money(value),
        "address" => text?.parse::<SocketAddr>().ok().map(|address| address.to_string()),
        "name" => text.filter(|text| !text.is_empty()).map(str::to_owned),
        "any" => text.map(str::to_owned),
        "list" => list(value).map(|list| format!("{list:?}")),
        "word" => match text? {
            "on" => Some("1".to_owned()),
            "off" => Some("2".to_owned()),
            _ => None,
        },
        _ => count(value.as_table()?.get("count").and_then(Value::as_integer)).map(|count| count.to_string()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a setting that is a fraction is written as one, or is small")]
fn ratio(value: &Value) -> Option<f64> {
    let number = value.as_float().or_else(|| value.as_integer().map(|number| number as f64))?;
    number.is_finite().then_some(number)
}

fn size(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_integer() {
        return u64::try_from(number).ok();
    }
    let text = value.as_str()?;
    let (digits, unit) = [("KiB", 1 << 10), ("MiB", 1 << 20)]
        .into_iter()
        .find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, bytes)))?;
    digits.trim_end().parse::<u64>().ok()?.checked_mul(unit)
}

fn money(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        _ => return None,
    };
    text.parse::<stint_types::units::Money>().ok().map(|money| money.to_string())
}

fn list(value: &Value) -> Option<Vec<String>> {
    let text = |item: &Value| item.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    value.as_array()?.iter().map(text).collect()
}
