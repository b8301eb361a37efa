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
mod offer;
mod outcome;
mod prior;
mod tariff;

pub use allowance::{Allowance, Left, Purse};
pub use calibration::{Calibration, Domain, Feature, Features, ModelCalibration};
pub use capability::{Capability, Class, Needs, Service};
pub use demand::{Demand, ModelDemand, TaskClass};
pub use length::LogNormal;
pub use market::{Conditions, Market};
pub use model::{Catalog, EffortLevel, HandOff, Model, Route};
pub use offer::{Offer, Plan, WorstCase};
pub use outcome::{Ended, SolutionEnded, Spent};
pub use prior::{Blend, Curve, Gram, Loadings, Prior, SURFACE, TRAITS};
pub use tariff::{Billed, Prices, Rates, Tariff};
