//! A limit on what an account may spend.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::units::{Amount, Facet, Unit, Window};

/// The most of one unit that an account may spend in one window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantLimit {
    /// Over what time; [`Window::Total`] for requests at once.
    pub window: Window,
    /// How much, and of what.
    pub max: Amount,
    /// On which of its requests.
    pub scope: LimitSelector,
}

/// On which of an account's requests a limit is.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitSelector {
    /// On all of them together.
    #[default]
    All,
    /// On those that this model serves.
    Model(Arc<str>),
    /// On each end user's; those who are not named share one.
    EachUser,
    /// On those with this tag.
    Tag(Arc<str>),
}

impl TenantLimit {
    /// A limit on all requests.
    pub fn new(window: Window, max: Amount) -> TenantLimit {
        TenantLimit { window, max, scope: LimitSelector::All }
    }

    /// The same, on some of the requests.
    #[must_use]
    pub fn with_selector(self, scope: LimitSelector) -> TenantLimit {
        TenantLimit { scope, ..self }
    }
}

/// In the words of the configuration: `{ money = "20", per = "month", model = "m" }`.
impl Serialize for TenantLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut words = serializer.serialize_map(None)?;
        words.serialize_entry(self.max.unit().as_str(), &self.max)?;
        if self.max.unit() != Unit::Concurrency {
            words.serialize_entry("per", &self.window)?;
        }
        match &self.scope {
            LimitSelector::All => {}
            LimitSelector::Model(name) => words.serialize_entry("model", name)?,
            LimitSelector::EachUser => words.serialize_entry("each", "user")?,
            LimitSelector::Tag(name) => words.serialize_entry("tag", name)?,
        }
        words.end()
    }
}

impl LimitSelector {
    /// The part of an account that a request of this model, user and tag falls into, if the limit is about it.
    pub fn facet(
        &self,
        model: Option<&Arc<str>>,
        user: Option<&Arc<str>>,
        tag: Option<&Arc<str>>,
    ) -> Option<Facet> {
        match self {
            LimitSelector::All => Some(Facet::Whole),
            LimitSelector::Model(name) => (model == Some(name)).then(|| Facet::Model(name.clone())),
            LimitSelector::EachUser => Some(Facet::User(user.cloned().unwrap_or_default())),
            LimitSelector::Tag(name) => (tag == Some(name)).then(|| Facet::Tag(name.clone())),
        }
    }

    /// True for the parts of an account that a limit of this scope is on.
    pub fn covers(&self, facet: &Facet) -> bool {
        match (self, facet) {
            (LimitSelector::All, Facet::Whole) | (LimitSelector::EachUser, Facet::User(_)) => true,
            (LimitSelector::Model(one), Facet::Model(other))
            | (LimitSelector::Tag(one), Facet::Tag(other)) => one == other,
            _ => false,
        }
    }
}
