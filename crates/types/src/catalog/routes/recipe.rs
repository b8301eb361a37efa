//! A recipe: one word of a route that stands for a set of its settings. What is written beside it counts for more.

use std::sync::Arc;

use crate::units::Chance;

/// What a route's settings stand for together, so that it can be said when they act, and whether they are any use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// Several answers to one choice, of which the most frequent is delivered.
    Vote,
    /// A cheap model first, and a dearer one where its answer is in doubt.
    Cascade,
    /// A small share of the conversations to a new model, as long as it does no worse than the others.
    Canary,
}

/// A model that is tried on a share of a route's conversations.
#[derive(Debug, Clone, PartialEq)]
pub struct Canary {
    /// The new model. It serves no other conversations of the route.
    pub model: Arc<str>,
    /// How many conversations it serves.
    pub fraction: Chance,
}

impl Recipe {
    /// Every recipe there is.
    pub const ALL: [Recipe; 3] = [Recipe::Vote, Recipe::Cascade, Recipe::Canary];

    /// The word in configuration, metrics and the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Recipe::Vote => "vote",
            Recipe::Cascade => "cascade",
            Recipe::Canary => "canary",
        }
    }
}
