//! Judging another policy by what was logged under the one that ran.
//!
//! Only what was chosen has an outcome. A policy that would have chosen otherwise is judged by the requests on which it
//! agrees with the draw that was made, each weighed by how likely either was to choose so, and by what was predicted for
//! the rest. Where the two agree too seldom there is nothing to conclude, and that is what is said.

mod estimate;
mod gather;
mod policy;
mod report;
#[cfg(test)]
mod tests;

pub use estimate::{Interval, PolicyMeasure};
pub use gather::{LogCollector, LoggedRequest};
pub use policy::ReplayPolicy;
pub use report::{Conclusion, ReplayReport, evaluate};
