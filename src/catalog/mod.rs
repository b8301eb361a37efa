//! What is known about models, and the plain data that one step of a request hands to the next.
//!
//! Only data with invariants; what is done with it stands above.

mod allowance;
mod calibration;
mod capability;
mod decision;
mod demand;
mod landing;
mod length;
mod market;
mod members;
mod model;
mod odds;
mod offer;
mod opinion;
mod outcome;
mod prior;
mod rollout;
mod tariff;
mod turns;
mod vote;

pub use allowance::{Allowance, Left, Purse};
pub use calibration::{Calibration, Domain, Feature, Features, ModelCalibration};
pub use capability::{Capability, Class, Needs, Service};
pub use decision::{Candidate, Decision, Stakes};
pub use demand::{Demand, Measured, ModelDemand, TaskClass};
pub use landing::{ChoiceOutcome, Outcome, Source, Verdict};
pub use length::{Held, LogNormal};
pub use market::{Conditions, Market};
pub use members::{MemberRules, Treatment, UnknownMembers};
pub use model::{Catalog, EFFORT_WORDS, EffortLevel, GoesOn, HandOff, Model, Route, Specialty, effort_rank};
pub use odds::{Odds, Outlook};
pub use offer::{Contender, Further, Offer, Plan, WorstCase};
pub use opinion::{Checker, Probe, Verifier};
pub use outcome::{Ended, LimitedBy, SolutionEnded, Spent};
pub use prior::{Blend, Curve, Gram, Loadings, Prior, SURFACE, TRAITS};
pub use rollout::{Enforce, Share};
pub use tariff::{Billed, Prices, Rates, Tariff};
pub use turns::TurnRule;
pub use vote::{Compare, Poll, Scatter, Vote};
