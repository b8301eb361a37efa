//! What is known about models, and the plain data that one step of a request hands to the next.
//!
//! Only data with invariants; what is done with it stands above.

mod allowance;
mod calibration;
mod capability;
mod demand;
mod length;
mod market;
mod model;
mod odds;
mod offer;
mod opinion;
mod outcome;
mod tariff;
mod vote;

pub use allowance::{Allowance, Left, Purse};
pub use calibration::{Calibration, Domain, Feature, Features, ModelCalibration};
pub use capability::{Capability, Class, Needs, Service};
pub use demand::{Demand, ModelDemand, TaskClass};
pub use length::{Held, LogNormal};
pub use market::{Conditions, Market};
pub use model::{Catalog, EffortLevel, HandOff, Model, Route};
pub use odds::{Odds, Outlook};
pub use offer::{Contender, Offer, Plan, WorstCase};
pub use opinion::{Checker, Probe, Verifier};
pub use outcome::{Ended, SolutionEnded, Spent};
pub use tariff::{Billed, Prices, Rates, Tariff};
pub use vote::{Compare, Poll, Scatter, Vote};
