//! A world in virtual time around the real plan, ledger and learning: what a policy would come to, before it does.
//!
//! Requests arrive, wait, are thought about and answered as a scenario says, and all luck follows from a seed: two policies
//! meet the same requests with the same luck, and one seed yields the same bytes on every run. Only execution is made up;
//! what is predicted is corrected by `learn`, priced by `plan` and reserved and settled by the ledger's account machine.
//! It does no I/O and reads no clock.

mod arrivals;
mod chart;
mod event_queue;
mod in_flight;
mod learner;
mod model_server;
mod oracle_prices;
mod plots;
mod policy;
mod population;
mod report;
mod scenario;
mod setup;
mod simulated_attempt;
mod simulated_ledger;
mod simulation;
mod slab;
mod tally;
#[cfg(test)]
mod tests;
mod trace;
mod virtual_time;

use stint_types::catalog::Catalog;
use stint_types::tenant::AccountTerms;

pub use chart::{Chart, ChartSeries, LineStyle};
pub use plots::plots;
pub use policy::{SimulationPolicy, UnknownPolicy};
pub use report::{PolicyResult, PolicyTimeline, SimulationReport};
pub use scenario::{
    ArrivalPattern, BaselineSettings, EstimateNoise, Feedback, Scenario, ScenarioError, ScenarioEvent,
    ScenarioLimit, ScenarioModel, ScenarioRoute, ScenarioTenant, WorkClass,
};
pub use tally::InvariantViolations;
pub use trace::{RequestTrace, TraceError};

use setup::SimulationSetup;
use simulation::Simulation;

/// How a scenario is run.
#[derive(Debug, Clone, Default)]
pub struct SimulationConfig {
    /// Who takes part; everybody where empty.
    pub policies: Vec<SimulationPolicy>,
    /// True if every limit is looked at after everything that happens, which takes its time.
    pub audit: bool,
}

/// Runs a scenario under every policy, each in a world of its own with the same luck; with the models, the route `auto` and
/// the accounts of a configuration, and with the requests of a record, where there are any.
///
/// # Errors
/// When nobody answers.
pub fn simulate(
    scenario: Scenario,
    configured: Option<(&Catalog, &[AccountTerms])>,
    trace: Option<RequestTrace>,
    options: &SimulationConfig,
) -> Result<SimulationReport, ScenarioError> {
    let setup = SimulationSetup::new(scenario, configured, trace)?;
    let policies = if options.policies.is_empty() { &SimulationPolicy::ALL[..] } else { &options.policies };
    let knows = policies.contains(&SimulationPolicy::Oracle);
    let prices = if knows { oracle_prices::prices(&setup) } else { vec![1.0; setup.tenants.len()] };
    let run =
        |&policy: &SimulationPolicy| (policy, Simulation::new(&setup, policy, &prices, options.audit).run());
    let tallies: Vec<_> = policies.iter().map(run).collect();
    Ok(SimulationReport::of(&setup, &tallies))
}
