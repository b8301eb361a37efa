//! What a model's ability is guessed from.

use std::fmt;
use std::sync::Arc;

/// From what the ability of a model is guessed, where nobody states it and no score of it was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbilityGuess {
    /// From the models that share this part of their name.
    Family(Arc<str>),
    /// From the number of its parameters, which its name tells.
    Size,
    /// From nothing: it is taken for a usual model.
    Nothing,
}

impl fmt::Display for AbilityGuess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AbilityGuess::Family(family) => write!(f, "from other {family} models"),
            AbilityGuess::Size => f.write_str("from the parameters in its name"),
            AbilityGuess::Nothing => f.write_str("as a usual model's"),
        }
    }
}
