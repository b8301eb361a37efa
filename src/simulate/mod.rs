//! A world in virtual time around the real plan, ledger and learning: what a policy would come to, before it does.
//!
//! Requests arrive, wait, are thought about and answered as a scenario says, and all luck follows from a seed: two policies
//! meet the same requests with the same luck, and one seed yields the same bytes on every run. Only execution is made up;
//! what is predicted is corrected by `learn`, priced by `plan` and reserved and settled by the ledger's account machine.
//! It does no I/O and reads no clock.

mod agenda;
mod arrivals;
mod bank;
mod chart;
mod flight;
mod hindsight;
mod host;
mod learner;
mod moment;
mod plots;
mod policy;
mod population;
mod report;
mod scenario;
mod setting;
mod slots;
mod tally;
#[cfg(test)]
mod tests;
mod trace;
mod work;
mod world;

use crate::catalog::Catalog;
use crate::tenant::Terms;

pub use chart::{Chart, Line};
pub use plots::plots;
pub use policy::{Policy, UnknownPolicy};
pub use report::{Account, Course, Report};
pub use scenario::{
    Answerer, Arrivals, Asker, Blur, Feedback, Fixed, Limit, Scenario, ScenarioError, Turn, Work, Worth,
};
pub use tally::Faults;
pub use trace::{Trace, TraceError};

use setting::Setting;
use world::World;

/// How a scenario is run.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Who takes part; everybody where empty.
    pub policies: Vec<Policy>,
    /// True where every limit is looked at after everything that happens, which takes its time.
    pub audited: bool,
}

/// Runs a scenario under every policy, each in a world of its own with the same luck; with the models, the route `auto` and
/// the accounts of a configuration, and with the requests of a record, where there are any.
///
/// # Errors
/// When nobody answers.
pub fn simulate(
    scenario: Scenario,
    configured: Option<(&Catalog, &[Terms])>,
    trace: Option<Trace>,
    options: &Options,
) -> Result<Report, ScenarioError> {
    let setting = Setting::new(scenario, configured, trace)?;
    let policies = if options.policies.is_empty() { &Policy::ALL[..] } else { &options.policies };
    let knows = policies.contains(&Policy::Oracle);
    let prices = if knows { hindsight::prices(&setting) } else { vec![1.0; setting.tenants.len()] };
    let run = |&policy: &Policy| (policy, World::new(&setting, policy, &prices, options.audited).run());
    let tallies: Vec<_> = policies.iter().map(run).collect();
    Ok(Report::of(&setting, &tallies))
}
