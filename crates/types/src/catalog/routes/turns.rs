//! How many turns a route allows an episode of an agent.

use crate::units::Count;

/// How many turns a route allows a run of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TurnRule {
    /// As many as the caller's own limits allow.
    #[default]
    Free,
    /// As many as such tasks usually take, which is learned.
    Learned,
    /// So many.
    Fixed(Count),
}
