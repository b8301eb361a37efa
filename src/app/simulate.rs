//! `stint simulate`: a scenario in virtual time, under several policies, as a table, as JSON and as pictures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use crate::config::{self, ConfigErrors};
use stint_lab::simulate::{
    RequestTrace, Scenario, ScenarioError, SimulationConfig as How, SimulationPolicy, SimulationReport,
    TraceError, plots, simulate,
};

use super::output::{VerbResult, print_line};

/// What to simulate.
#[derive(Debug, Args)]
pub(super) struct SimulateOptions {
    /// The scenario; without one, the world that ships with the binary.
    scenario: Option<PathBuf>,
    /// The seed of all random draws, in place of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// How many requests arrive, in place of the scenario's.
    #[arg(long, value_name = "N")]
    requests: Option<u64>,
    /// The policies, separated by commas. Default: all.
    #[arg(long, value_delimiter = ',')]
    policies: Vec<SimulationPolicy>,
    /// A decision log, whose requests replace the scenario's; give the configuration that served them.
    #[arg(long, value_name = "LOG")]
    trace: Option<PathBuf>,
    /// A folder for report.json and the pictures.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Check every limit after every event, which is slow.
    #[arg(long)]
    audit: bool,
}

/// Why nothing was simulated, or nothing written.
#[derive(Debug, thiserror::Error)]
enum SimulateError {
    #[error("{0} cannot be read or written")]
    File(PathBuf, #[source] std::io::Error),
    #[error("there is nothing to simulate")]
    Scenario(#[from] ScenarioError),
    #[error("the record cannot be followed")]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Configuration(#[from] ConfigErrors),
    #[error("the report cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

pub(super) fn run(config: Option<&Path>, options: &SimulateOptions) -> VerbResult {
    let began = Instant::now();
    let report = report(config, options)?;
    let took = began.elapsed().as_secs_f64();
    print_line(&report.table());
    print_line(&format!("\n{took:.1} s for {} worlds", report.policies.len()));
    Ok(ExitCode::SUCCESS)
}

fn report(config: Option<&Path>, options: &SimulateOptions) -> Result<SimulationReport, SimulateError> {
    let mut scenario = match &options.scenario {
        None => Scenario::built_in()?,
        Some(path) => Scenario::parse(&text(path)?)?,
    };
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    scenario.requests = options.requests.unwrap_or(scenario.requests);
    let how = How { policies: options.policies.clone(), audit: options.audit };
    let trace = match &options.trace {
        None => None,
        Some(path) => Some(RequestTrace::parse(&text(path)?)?),
    };
    let report = match config {
        None => simulate(scenario, None, trace, &how)?,
        Some(file) => {
            let settings = config::load_offline(Some(file), &config::environment)?;
            simulate(scenario, Some((&settings.catalog, &settings.terms)), trace, &how)?
        }
    };
    if let Some(folder) = &options.out {
        write(folder, &report)?;
    }
    Ok(report)
}

fn text(path: &Path) -> Result<String, SimulateError> {
    fs::read_to_string(path).map_err(|cause| SimulateError::File(path.to_owned(), cause))
}

fn write(folder: &Path, report: &SimulationReport) -> Result<(), SimulateError> {
    let failed = |path: PathBuf| move |cause| SimulateError::File(path, cause);
    fs::create_dir_all(folder).map_err(failed(folder.to_owned()))?;
    let json = folder.join("report.json");
    fs::write(&json, serde_json::to_string_pretty(report)?).map_err(failed(json))?;
    for (name, chart) in plots(report) {
        let path = folder.join(name);
        fs::write(&path, chart.svg()).map_err(failed(path))?;
    }
    Ok(())
}
