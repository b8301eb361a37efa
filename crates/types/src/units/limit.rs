//! The name of a limit, as refusals and allowances show it.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AccountId, EpisodeId, Window};

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nano-dollars.
    Money,
    /// Thinking tokens.
    Thinking,
    /// Requests.
    Requests,
    /// Tool calls.
    ToolCalls,
    /// Requests at once; no window counts them.
    Concurrency,
}

/// Whose limit it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// The caller's own, for this one request.
    Request,
    /// The key's.
    Key,
    /// An account's that the key belongs to.
    Account(AccountId),
    /// That of the run of an agent which the request is a step of.
    Episode,
}

/// Which part of an account's requests a limit is about.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Facet {
    /// All of them.
    #[default]
    Whole,
    /// Those that one model serves.
    Model(Arc<str>),
    /// Those of one end user, as the caller names them.
    User(Arc<str>),
    /// Those with one tag.
    Tag(Arc<str>),
    /// The steps of one run of an agent.
    Episode(EpisodeId),
    /// The calls of one tool in one run of an agent.
    Tool(EpisodeId, Arc<str>),
}

/// Which limit it is: `key money month`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Whose limit.
    pub holder: Holder,
    /// Which of their requests it is about.
    pub facet: Facet,
    /// What it counts.
    pub unit: Unit,
    /// Over what time; without meaning for requests at once.
    pub window: Window,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Unit; 5] =
        [Unit::Money, Unit::Thinking, Unit::Requests, Unit::ToolCalls, Unit::Concurrency];

    /// The word for it, in the name of a limit and in configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Unit::Money => "money",
            Unit::Thinking => "thinking",
            Unit::Requests => "requests",
            Unit::ToolCalls => "tool_calls",
            Unit::Concurrency => "concurrency",
        }
    }
}

impl Limit {
    /// A key's limit on all its requests.
    pub fn of_key(unit: Unit, window: Window) -> Limit {
        Limit { holder: Holder::Key, facet: Facet::Whole, unit, window }
    }

    /// Its name without names of accounts, models, users and tags: one of few, for the labels of metrics.
    pub fn kind(&self) -> String {
        let holder = match self.holder {
            Holder::Request => "request",
            Holder::Key => "key",
            Holder::Account(_) => "account",
            Holder::Episode => "episode",
        };
        let facet = match self.facet {
            Facet::Whole => "",
            Facet::Model(_) => " of model",
            Facet::User(_) => " of user",
            Facet::Tag(_) => " of tag",
            Facet::Episode(_) => "",
            Facet::Tool(..) => " of tool",
        };
        format!("{holder} {}{facet}", self.measure())
    }

    /// True if what it refuses may be asked again within moments: a rate, not a budget.
    pub fn is_rate(&self) -> bool {
        self.unit == Unit::Concurrency || self.window == Window::Minute
    }

    fn measure(&self) -> String {
        match self.unit {
            // A run has no windows, and its requests are its turns.
            Unit::Requests if self.holder == Holder::Episode => "turns".to_owned(),
            unit if self.holder == Holder::Episode => unit.as_str().to_owned(),
            Unit::Concurrency => self.unit.as_str().to_owned(),
            unit => format!("{} {}", unit.as_str(), self.window),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Holder::Request => f.write_str("request")?,
            Holder::Key => f.write_str("key")?,
            Holder::Account(account) => write!(f, "account {account}")?,
            Holder::Episode => f.write_str("episode")?,
        }
        write!(f, " {}", self.measure())?;
        match &self.facet {
            Facet::Whole | Facet::Episode(_) => Ok(()),
            Facet::Model(name) => write!(f, " of model {name}"),
            Facet::User(name) if name.is_empty() => f.write_str(" of unnamed users"),
            Facet::User(name) => write!(f, " of user {name}"),
            Facet::Tag(name) => write!(f, " of tag {name}"),
            Facet::Tool(_, name) => write!(f, " of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_whose_it_is_and_its_kind_does_not() {
        let check = |holder, facet, unit, name: &str, kind: &str| {
            let limit = Limit { holder, facet, unit, window: Window::Month };
            assert_eq!((limit.to_string().as_str(), limit.kind().as_str()), (name, kind));
        };
        check(Holder::Key, Facet::Whole, Unit::Money, "key money month", "key money month");
        let account = Holder::Account(AccountId::new("acme/research"));
        let model = Facet::Model("gpt".into());
        let name = "account acme/research thinking month of model gpt";
        check(account, model, Unit::Thinking, name, "account thinking month of model");
        check(Holder::Key, Facet::Whole, Unit::Concurrency, "key concurrency", "key concurrency");
        let run = || "run-1".parse().unwrap();
        check(Holder::Episode, Facet::Episode(run()), Unit::Money, "episode money", "episode money");
        check(Holder::Episode, Facet::Episode(run()), Unit::Requests, "episode turns", "episode turns");
        let search = Facet::Tool(run(), "search".into());
        let kind = "episode tool_calls of tool";
        check(Holder::Episode, search, Unit::ToolCalls, "episode tool_calls of search", kind);
        let nobody = Facet::User("".into());
        check(
            Holder::Key,
            nobody,
            Unit::Requests,
            "key requests month of unnamed users",
            "key requests month of user",
        );
    }
}
