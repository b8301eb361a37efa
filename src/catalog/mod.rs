//! What is known about models, and the plain data that one step of a request hands to the next.
//!
//! Only data with invariants; what is done with it stands above.

mod allowance;
mod calibration;
mod capability;
mod demand;
mod market;
mod model;
mod offer;
mod outcome;

pub use allowance::{Allowance, Left};
pub use calibration::{Calibration, Feature, Features, ModelCalibration};
pub use capability::{Capability, Class, Needs};
pub use demand::{Demand, LogNormal, ModelDemand, TaskClass};
pub use market::{Conditions, Market};
pub use model::{Catalog, EffortLevel, HandOff, Model, Prices, Route};
pub use offer::{Offer, Plan, WorstCase};
pub use outcome::{Ended, Outcome, SolutionEnded, Spent};
