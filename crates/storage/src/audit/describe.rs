//! What the books say, in words for the report of their differences.

use std::fmt::Write as _;

use crate::journal::RollupKey;
use stint_ledger::{AccountId, Amounts, RequestScope, RollupSpan, UsageSums};
use stint_types::units::{EpisodeId, Money, Timestamp, Tokens};

/// Something that may differ.
pub(super) trait Describe {
    /// What it is, in words.
    fn describe(&self) -> String;
}

macro_rules! as_printed {
    ($($kind:ty),*) => {$(
        impl Describe for $kind {
            fn describe(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

as_printed!(i64, usize, String, AccountId, Timestamp);

impl Describe for Money {
    fn describe(&self) -> String {
        format!("{self} dollars")
    }
}

impl Describe for Option<EpisodeId> {
    fn describe(&self) -> String {
        self.as_ref().map_or("none".to_owned(), ToString::to_string)
    }
}

impl Describe for Amounts {
    fn describe(&self) -> String {
        let Amounts { money, thinking, requests, tool_calls } = self;
        format!("{money} dollars, {thinking} thinking tokens, {requests} requests, {tool_calls} tool calls")
    }
}

/// Those that are none go without saying.
impl Describe for UsageSums {
    fn describe(&self) -> String {
        let UsageSums { spent, overrun, settled, prompt, overhead, solution, other } = self;
        let mut words = format!("{}, {settled} of them settled", spent.describe());
        if *overrun > Money::ZERO {
            let _ = write!(words, ", {overrun} dollars more than reserved");
        }
        let tokens = [(prompt, "prompt"), (overhead, "overhead"), (solution, "solution"), (other, "other")];
        for (tokens, what) in tokens.into_iter().filter(|(tokens, _)| **tokens > Tokens::ZERO) {
            let _ = write!(words, ", {tokens} {what} tokens");
        }
        words
    }
}

/// A balance: over all time.
impl Describe for (AccountId, RequestScope) {
    fn describe(&self) -> String {
        let (account, RequestScope { model, user, tag, episode, .. }) = self;
        let mut words = format!("account {account}");
        let episode = episode.as_ref().map(ToString::to_string);
        let parts = [
            ("model", model.as_deref()),
            ("user", user.as_deref()),
            ("tag", tag.as_deref()),
            ("run", episode.as_deref()),
        ];
        for (what, name) in parts.into_iter().filter_map(|(what, name)| Some((what, name?))) {
            // Callers choose users and tags.
            let _ = write!(words, ", {what} {name:?}");
        }
        words
    }
}

/// A rollup: how long its time is, when that began, and what it is of.
impl Describe for RollupKey {
    fn describe(&self) -> String {
        let RollupKey { length, start, account, about, part_of } = self;
        let time = match *length {
            length if length == RollupSpan::Quarter.length() => format!("quarter of an hour from {start}"),
            length if length == RollupSpan::Day.length() => format!("day from {start}"),
            length if length == RollupSpan::All.length() => "all time".to_owned(),
            length => format!("{length} ms from {start}"),
        };
        let of = part_of.as_ref().map(|model| format!(", part of what {model} answered")).unwrap_or_default();
        format!("{time}, {}{of}", (account.clone(), about.clone()).describe())
    }
}
