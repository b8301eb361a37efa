//! Values that a statement may have. `None` is NULL.

use stint_types::tenant::KeyId;
use stint_types::units::{AccountId, ConversationId, Count, EpisodeId, Money, RequestId, Timestamp, Tokens};

/// A value of one of the types that both databases have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    Int(Option<i64>),
    Real(Option<f64>),
    Bool(Option<bool>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

/// What can be bound to a statement.
pub(crate) trait ToSqlValue {
    /// NULL has a type too.
    const NULL: SqlValue;

    /// The value as a database has it.
    fn to_sql(self) -> SqlValue;
}

impl<T: ToSqlValue> ToSqlValue for Option<T> {
    const NULL: SqlValue = T::NULL;

    fn to_sql(self) -> SqlValue {
        self.map_or(T::NULL, T::to_sql)
    }
}

/// What `$to` makes of a value is what is bound.
macro_rules! bound_as {
    ($variant:ident: $($kind:ty => $to:expr),* $(,)?) => {$(
        impl ToSqlValue for $kind {
            const NULL: SqlValue = SqlValue::$variant(None);

            fn to_sql(self) -> SqlValue {
                let convert: fn($kind) -> _ = $to;
                SqlValue::$variant(Some(convert(self)))
            }
        }
    )*};
}

bound_as!(Int:
    i64 => |value| value,
    u32 => i64::from,
    u64 => to_column,
    usize => to_column,
    Timestamp => |value| value.0,
    Money => |value| to_column(value.0),
    Tokens => |value| to_column(value.0),
    Count => |value| to_column(value.0),
);
bound_as!(Real: f64 => |value| value);
bound_as!(Bool: bool => |value| value);
bound_as!(Text:
    String => |value| value,
    &str => str::to_owned,
    &AccountId => |value| value.as_str().to_owned(),
    &EpisodeId => |value| value.as_str().to_owned(),
    KeyId => |value| value.to_string(),
);
bound_as!(Bytes:
    Vec<u8> => |value| value,
    &[u8] => <[u8]>::to_vec,
    RequestId => |value| value.as_bytes().to_vec(),
    ConversationId => |value| value.as_bytes().to_vec(),
);

/// The ledger keeps amounts far below the greatest number of a column. A greater one is as good as the greatest.
pub(crate) fn to_column(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// The columns that are read as numbers without a sign hold nothing below zero.
pub(crate) fn from_column(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
