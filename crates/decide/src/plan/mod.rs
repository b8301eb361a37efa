//! What a request's thinking is worth, and who does it: demand × market × allowance → offers, best first.
//!
//! Pure. For each model that can serve the request, a few thinking budgets are priced by the formulas in `terms` and
//! `expectation`, then votes and cascades of them, where the route has them, in the same terms (`candidate_pool`); what cannot be
//! reserved is never offered; `frontier` takes the best, `refine` finds the budget near it at which more thinking stops to pay,
//! and `smallest_cap` the smallest that succeeds about as often. Where a route explores, the model is drawn (`explore`), or
//! others are tried now and then (`trial`). A plan (`planner`) reserves nothing itself. A quote shows all that was priced, and
//! `sweep` what would be chosen at other worths.

mod answer_cost;
mod answer_limit;
mod best_choice;
mod bounds;
mod budgets;
mod candidate_pool;
mod deciding_limit;
mod eligible_model;
mod expectation;
mod explain;
mod explore;
mod frontier;
mod offer;
mod planner;
mod quote;
mod reason;
mod refine;
mod refusal;
mod request;
mod selection;
mod smallest_cap;
mod spend_caps;
mod success_min;
mod sweep;
mod terms;
#[cfg(test)]
mod tests;
mod trial;

pub use answer_cost::answer_cost;
pub use frontier::success_tie;
pub use planner::{POLICY, plan};
pub use quote::{Quote, quote};
pub use refusal::{PlanRefusal, RejectedBy};
pub use request::{DrawRule, Exploration, OPENING_QUANTILE, PlanRequest, StickyModel, TrialShare};
pub use selection::FALLBACKS_MAX;
pub use sweep::{WorthRange, sweep};
