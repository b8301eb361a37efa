//! TOML values as the types that settings are made of.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use toml::de::{DeInteger, DeValue};

use stint_types::units::{Money, Timestamp, Tokens};

use super::diagnostic::ValueError;
use super::shape::ValueShape;

/// What can stand to the right of an equals sign.
pub(in crate::config) trait FromValue: Sized {
    /// The value, or why it is none.
    fn from_value(value: &DeValue<'_>) -> Result<Self, ValueError>;

    /// What such values look like.
    fn shape() -> ValueShape;
}

/// A value that a range can be asked of.
pub(in crate::config) trait Bounded: FromValue + PartialOrd + Copy {
    /// As it is written in the file.
    fn shown(self) -> String;
}

/// A count of bytes, written `65536`, `"64KiB"` or `"32MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::config) struct ByteSize(pub(in crate::config) usize);

/// A text that may be empty.
pub(in crate::config) struct AnyText(pub(in crate::config) String);

impl FromValue for AnyText {
    fn from_value(value: &DeValue<'_>) -> Result<AnyText, ValueError> {
        match value.as_str() {
            Some(text) => Ok(AnyText(text.to_owned())),
            None => Err(wrong_kind(value, "text", "put it in quotes")),
        }
    }

    fn shape() -> ValueShape {
        ValueShape::AnyText
    }
}

impl FromValue for String {
    fn from_value(value: &DeValue<'_>) -> Result<String, ValueError> {
        match value.as_str() {
            Some("") => Err(ValueError::new("an empty text", "write something, or leave the key out")),
            Some(text) => Ok(text.to_owned()),
            None => Err(wrong_kind(value, "text", "put it in quotes")),
        }
    }

    fn shape() -> ValueShape {
        ValueShape::Text
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &DeValue<'_>) -> Result<Option<T>, ValueError> {
        T::from_value(value).map(Some)
    }

    fn shape() -> ValueShape {
        T::shape()
    }
}

impl FromValue for bool {
    fn from_value(value: &DeValue<'_>) -> Result<bool, ValueError> {
        value.as_bool().ok_or_else(|| wrong_kind(value, "a yes or no", "write true or false, without quotes"))
    }

    fn shape() -> ValueShape {
        ValueShape::Flag
    }
}

impl FromValue for f64 {
    fn from_value(value: &DeValue<'_>) -> Result<f64, ValueError> {
        let digits = match value {
            // Its digits alone do not tell that a number is written in another base than ten.
            DeValue::Integer(number) => parsed(number).map(|number| number.to_string()).unwrap_or_default(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => return Err(wrong_kind(value, "a number", "write it without quotes, like 0.5")),
        };
        match digits.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(ValueError::new("not a finite number", "write it like 0.5")),
        }
    }

    fn shape() -> ValueShape {
        ValueShape::Number
    }
}

impl FromValue for u64 {
    fn from_value(value: &DeValue<'_>) -> Result<u64, ValueError> {
        integer(value)
    }

    fn shape() -> ValueShape {
        ValueShape::Integer
    }
}

impl FromValue for u32 {
    fn from_value(value: &DeValue<'_>) -> Result<u32, ValueError> {
        integer(value)
    }

    fn shape() -> ValueShape {
        ValueShape::Integer
    }
}

impl FromValue for usize {
    fn from_value(value: &DeValue<'_>) -> Result<usize, ValueError> {
        integer(value)
    }

    fn shape() -> ValueShape {
        ValueShape::Integer
    }
}

impl FromValue for Tokens {
    fn from_value(value: &DeValue<'_>) -> Result<Tokens, ValueError> {
        integer(value).map(Tokens)
    }

    fn shape() -> ValueShape {
        ValueShape::Integer
    }
}

impl FromValue for ByteSize {
    fn from_value(value: &DeValue<'_>) -> Result<ByteSize, ValueError> {
        let Some(text) = value.as_str() else { return integer(value).map(ByteSize) };
        let (digits, unit) = match text.strip_suffix("KiB") {
            Some(digits) => (digits, 1 << 10),
            None => (text.strip_suffix("MiB").unwrap_or_default(), 1 << 20),
        };
        let count = digits.trim_end().parse::<usize>().ok().and_then(|count| count.checked_mul(unit));
        count
            .map(ByteSize)
            .ok_or_else(|| ValueError::new("not a size", "write it like \"64KiB\" or \"32MiB\""))
    }

    fn shape() -> ValueShape {
        ValueShape::Size
    }
}

impl FromValue for Duration {
    fn from_value(value: &DeValue<'_>) -> Result<Duration, ValueError> {
        let remedy = "write it with its unit, like \"10s\" or \"500ms\"";
        let text = value.as_str().ok_or_else(|| wrong_kind(value, "a time", remedy))?;
        let time = text.parse::<jiff::SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
        time.ok_or_else(|| ValueError::new("not a time", remedy))
    }

    fn shape() -> ValueShape {
        ValueShape::Time
    }
}

impl FromValue for Money {
    fn from_value(value: &DeValue<'_>) -> Result<Money, ValueError> {
        let remedy = "write dollars as text, like \"0.02\": a float is not exact";
        let digits = match value {
            DeValue::String(text) => text.as_ref(),
            DeValue::Integer(number) if number.radix() == 10 => {
                number.as_str().strip_prefix('+').unwrap_or(number.as_str())
            }
            _ => return Err(wrong_kind(value, "an amount of money", remedy)),
        };
        digits.parse::<Money>().map_err(|error| ValueError::new(error.to_string(), remedy))
    }

    fn shape() -> ValueShape {
        ValueShape::Money
    }
}

/// With an offset or a `Z`: as text, or as TOML's own kind of date.
impl FromValue for Timestamp {
    fn from_value(value: &DeValue<'_>) -> Result<Timestamp, ValueError> {
        let remedy = "write it like \"2027-01-31T12:00:00Z\"";
        let text = match value {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(moment) => moment.to_string(),
            _ => return Err(wrong_kind(value, "a moment", remedy)),
        };
        text.parse().map_err(|_| ValueError::new("not a moment", remedy))
    }

    fn shape() -> ValueShape {
        ValueShape::Moment
    }
}

/// A network, or an address alone.
impl FromValue for IpNet {
    fn from_value(value: &DeValue<'_>) -> Result<IpNet, ValueError> {
        let remedy = "write it like \"10.0.0.0/8\" or \"192.0.2.1\"";
        let text = value.as_str().ok_or_else(|| wrong_kind(value, "a network", remedy))?;
        let alone = || text.parse::<IpAddr>().ok().map(IpNet::from);
        text.parse().ok().or_else(alone).ok_or_else(|| ValueError::new("not a network", remedy))
    }

    fn shape() -> ValueShape {
        ValueShape::Network
    }
}

impl FromValue for SocketAddr {
    fn from_value(value: &DeValue<'_>) -> Result<SocketAddr, ValueError> {
        address(&String::from_value(value)?)
    }

    fn shape() -> ValueShape {
        ValueShape::Address
    }
}

impl FromValue for PathBuf {
    fn from_value(value: &DeValue<'_>) -> Result<PathBuf, ValueError> {
        String::from_value(value).map(PathBuf::from)
    }

    fn shape() -> ValueShape {
        ValueShape::Path
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: &DeValue<'_>) -> Result<Vec<T>, ValueError> {
        match value {
            DeValue::Array(items) => items.iter().map(|item| T::from_value(item.get_ref())).collect(),
            _ => Err(wrong_kind(value, "a list", "put it in square brackets")),
        }
    }

    fn shape() -> ValueShape {
        ValueShape::List(Box::new(T::shape()))
    }
}

impl Bounded for Duration {
    fn shown(self) -> String {
        jiff::SignedDuration::try_from(self)
            .map_or_else(|_| format!("{self:?}"), |time| format!("\"{time:#}\""))
    }
}

impl Bounded for ByteSize {
    fn shown(self) -> String {
        match self.0 {
            bytes if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("\"{}MiB\"", bytes >> 20),
            bytes if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("\"{}KiB\"", bytes >> 10),
            bytes => bytes.to_string(),
        }
    }
}

macro_rules! bounded {
    ($($number:ty),*) => {
        $(impl Bounded for $number {
            fn shown(self) -> String {
                self.to_string()
            }
        })*
    };
}
bounded!(u32, usize, f64, Tokens);

/// An address and port, from a file or the environment.
pub(in crate::config) fn address(text: &str) -> Result<SocketAddr, ValueError> {
    let remedy = "write an address and a port, like \"127.0.0.1:8080\" or \"[::1]:8080\"";
    text.parse().map_err(|_| ValueError::new("not an address to listen on", remedy))
}

/// A value of the wrong kind.
fn wrong_kind(value: &DeValue<'_>, wanted: &str, remedy: &str) -> ValueError {
    ValueError::new(format!("{} in place of {wanted}", kind_name(value)), remedy)
}

fn kind_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}

fn integer<N: TryFrom<i128> + fmt::Debug>(value: &DeValue<'_>) -> Result<N, ValueError> {
    let number = value.as_integer().ok_or_else(|| wrong_kind(value, "a whole number", "write it like 80"))?;
    let fits = parsed(number).and_then(|number| N::try_from(number).ok());
    fits.ok_or_else(|| {
        if number.as_str().starts_with('-') {
            ValueError::new("a negative number", "write 0 or more")
        } else {
            ValueError::new("too large a number", "write a smaller one")
        }
    })
}

fn parsed(number: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: FromValue + PartialEq + fmt::Debug>(text: &str, expected: Result<T, &str>) {
        let value = DeValue::parse(text).unwrap();
        let read = T::from_value(value.get_ref()).map_err(|wrong| wrong.what);
        assert_eq!(read, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn times_carry_their_unit() {
        check("\"10s\"", Ok(Duration::from_secs(10)));
        check("\"500ms\"", Ok(Duration::from_millis(500)));
        check("\"1h 30m\"", Ok(Duration::from_secs(5400)));
        check::<Duration>("10", Err("a whole number in place of a time"));
        check::<Duration>("\"-10s\"", Err("not a time"));
        check::<Duration>("\"soon\"", Err("not a time"));
    }

    #[test]
    fn sizes_are_bytes_or_carry_their_unit() {
        check("65_536", Ok(ByteSize(65_536)));
        check("\"64KiB\"", Ok(ByteSize(65_536)));
        check("\"32 MiB\"", Ok(ByteSize(32 << 20)));
        check::<ByteSize>("\"32MB\"", Err("not a size"));
        check::<ByteSize>("-1", Err("a negative number"));
    }

    #[test]
    fn money_never_passes_through_a_float() {
        check("\"0.02\"", Ok(Money(20_000_000)));
        check("20", Ok(Money(20_000_000_000)));
        check("+20", Ok(Money(20_000_000_000)));
        check::<Money>("0.02", Err("a fraction in place of an amount of money"));
    }

    #[test]
    fn a_whole_number_is_a_fraction_too_in_whatever_base_it_is_written() {
        check("0x10", Ok(16.0));
        check("-3", Ok(-3.0));
        check("2.5", Ok(2.5));
        check::<f64>("inf", Err("not a finite number"));
    }

    #[test]
    fn whole_numbers_fit_their_type() {
        check("0x10", Ok(16u32));
        check::<u32>("4_294_967_296", Err("too large a number"));
        check::<u32>("1.0", Err("a fraction in place of a whole number"));
    }

    #[test]
    fn limits_are_shown_as_they_are_written() {
        assert_eq!(Duration::from_secs(10).shown(), "\"10s\"");
        assert_eq!(ByteSize(32 << 20).shown(), "\"32MiB\"");
    }
}
