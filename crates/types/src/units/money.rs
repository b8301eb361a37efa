//! Money as whole nano-dollars.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANOS: u64 = 1_000_000_000;
const DECIMALS: usize = 9;

/// A whole number of nano-dollars; never a float. Written as decimal dollars (`"0.000123"`).
///
/// Sums saturate at 18 billion dollars, which every limit refuses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(pub u64);

/// Why a text is not an amount of money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not digits with at most one point.
    #[error("not a decimal amount of dollars: write it like \"0.02\"")]
    NotDecimal,
    /// Less than nothing.
    #[error("negative: it must be zero or more")]
    Negative,
    /// Finer than a nano-dollar.
    #[error("finer than a nano-dollar: use at most 9 decimals")]
    TooFine,
    /// Beyond what is counted.
    #[error("too large an amount: the most is 18446744073 dollars")]
    TooLarge,
}

impl Money {
    /// No money.
    pub const ZERO: Money = Money(0);
    /// More than any limit.
    pub const MAX: Money = Money(u64::MAX);

    /// What is left after taking `other` away, zero at least.
    #[must_use]
    pub fn saturating_sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }

    /// Dollars for statistics and metrics; a ledger never uses it.
    #[expect(clippy::cast_precision_loss, reason = "for statistics only")]
    pub fn as_dollars(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The statistic `dollars` as money, rounded up; negative and not-a-number are nothing.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float cast saturates")]
    pub fn from_dollars_up(dollars: f64) -> Money {
        Money((dollars * 1e9).ceil() as u64)
    }
}

impl FromStr for Money {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Money, MoneyError> {
        if text.starts_with('-') {
            return Err(MoneyError::Negative);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !digits(whole) || !digits(fraction) {
            return Err(MoneyError::NotDecimal);
        }
        let significant = fraction.trim_end_matches('0');
        if significant.len() > DECIMALS {
            return Err(MoneyError::TooFine);
        }
        let number = |part: &str| {
            part.bytes().try_fold(0u64, |n, b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')))
        };
        let dollars = number(whole).and_then(|n| n.checked_mul(NANOS)).ok_or(MoneyError::TooLarge)?;
        let nanos = number(&format!("{significant:0<DECIMALS$}")).ok_or(MoneyError::TooLarge)?;
        dollars.checked_add(nanos).map(Money).ok_or(MoneyError::TooLarge)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, nanos) = (self.0 / NANOS, self.0 % NANOS);
        if nanos == 0 {
            return write!(f, "{dollars}");
        }
        let (mut digits, mut rest) = ([b'0'; DECIMALS], nanos);
        for digit in digits.iter_mut().rev() {
            *digit += u8::try_from(rest % 10).unwrap_or_default();
            rest /= 10;
        }
        let fraction = std::str::from_utf8(&digits).unwrap_or_default();
        write!(f, "{dollars}.{}", fraction.trim_end_matches('0'))
    }
}

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From decimal text, or from a JSON or TOML whole number of dollars.
impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Money;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount of dollars as text, like \"0.02\"")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Money, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_u64<E: serde::de::Error>(self, dollars: u64) -> Result<Money, E> {
                dollars.checked_mul(NANOS).map(Money).ok_or_else(|| E::custom(MoneyError::TooLarge))
            }
            fn visit_i64<E: serde::de::Error>(self, dollars: i64) -> Result<Money, E> {
                let dollars = u64::try_from(dollars).map_err(|_| E::custom(MoneyError::Negative))?;
                self.visit_u64(dollars)
            }
            fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Money, E> {
                Err(E::custom("write fractions of a dollar as text, like \"0.02\": a float is not exact"))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl Add for Money {
    type Output = Money;
    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Money) {
        *self = *self + other;
    }
}

impl Mul<u64> for Money {
    type Output = Money;
    fn mul(self, times: u64) -> Money {
        Money(self.0.saturating_mul(times))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Money>>(amounts: I) -> Money {
        amounts.fold(Money::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u64, MoneyError>) {
        assert_eq!(text.parse::<Money>(), expected.map(Money), "{text}");
    }

    /// CF-07: no price is negative or no number.
    #[test]
    fn decimal_text_is_read_exactly() {
        check("0.000000001", Ok(1));
        check("20", Ok(20 * NANOS));
        check(".5", Ok(NANOS / 2));
        check("3.2500000000000", Ok(3_250_000_000));
        check("0.0000000001", Err(MoneyError::TooFine));
        check("-1", Err(MoneyError::Negative));
        check("1e3", Err(MoneyError::NotDecimal));
        check(".", Err(MoneyError::NotDecimal));
        check("18446744074", Err(MoneyError::TooLarge));
    }

    #[test]
    fn money_reads_back_what_it_prints() {
        for nanos in [0, 1, 10, 123_000, NANOS, NANOS + 1, u64::MAX] {
            check(&Money(nanos).to_string(), Ok(nanos));
        }
    }
}
