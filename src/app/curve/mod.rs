//! `stint curve MODEL --tasks FILE`: measures on the operator's own tasks how often a model is right under rising thinking
//! budgets, and writes what plans go by from then on.
//!
//! The running server is asked, as any caller asks it: so every answer is planned, reserved, held to its budget and settled
//! as all others are. What was asked and answered is in a journal beside the tasks, so that a run goes on where it ended.

mod journal;
mod measure;
mod report;
mod server;
mod task;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::config::{self, Settings};
use stint_decide::estimate::{self, CurveTrial, curve_points, fit_measured_curve};
use stint_types::catalog::{Calibration, CurveRecord, ModelDemand};
use stint_types::units::{Money, Timestamp, Tokens};

use super::config_snapshot;
use super::error::BuildError;
use super::local_listener::{LocalListenerError, server_client};
use super::output::{VerbResult, print_line};

use journal::{CurveJournal, CurveJournalError};
use measure::{CurvePlan, MeasureEnd, MeasureError, measure};
use report::ReportError;
use server::{CurveServer, ServerError};
use task::{Task, TaskError};

/// What is measured, and within which limits.
#[derive(Debug, Args)]
pub(super) struct CurveOptions {
    /// The model, by the name that callers use.
    model: String,
    /// JSON Lines: {"prompt" or "messages", "answer" (and "compare": number, choice, exact, json) or "check"}.
    #[arg(long, value_name = "FILE")]
    tasks: PathBuf,
    /// The thinking budgets, separated by commas. Default: 0, then doubling until hardly a thought is cut.
    #[arg(long, value_delimiter = ',', value_name = "TOKENS")]
    budgets: Vec<u64>,
    /// How many answers to each task under each budget.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    samples: u32,
    /// The most that all of it may cost, in dollars, earlier runs included; required if the model has a price.
    #[arg(long, value_name = "USD")]
    budget_usd: Option<Money>,
    /// How many answers to request at once.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    at_once: u8,
    /// The temperature. Default: the model's own.
    #[arg(long)]
    temperature: Option<f64>,
    /// The journal's file, if it should not be beside the tasks.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// The folder for the curve and its picture. Default: that of the tasks.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The server's address, if it is not the one in this configuration.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Print the curve as JSON, in place of the table.
    #[arg(long)]
    json: bool,
}

/// Why nothing was measured, or nothing written.
#[derive(Debug, thiserror::Error)]
enum CurveError {
    #[error("{0} cannot be read")]
    File(PathBuf, #[source] std::io::Error),
    #[error("{0} cannot be used")]
    Tasks(PathBuf, #[source] TaskError),
    #[error("{0} cannot be used as the journal")]
    Journal(PathBuf, #[source] CurveJournalError),
    #[error("{0} has a price: say by --budget-usd how much may be spent")]
    Priced(String),
    #[error("no thought was measured: --budgets has none above 0, or the model does not think")]
    Unthought,
    #[error("it was not measured to the end; run it again to go on")]
    Measure(#[from] MeasureError),
    #[error(transparent)]
    Listener(#[from] LocalListenerError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Estimate(#[from] BuildError),
    #[error(transparent)]
    Report(#[from] ReportError),
}

pub(super) fn curve(file: Option<&Path>, options: &CurveOptions) -> VerbResult {
    let settings = config::load_offline(file, &config::environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let measurement = runtime.block_on(run(&settings, options))?;
    let is_whole = measurement.end == MeasureEnd::Whole;
    let record = measurement.record(&options.model);
    let written = match &record {
        Some(record) => Some(report::write(&folder(options), record).map_err(CurveError::from)?),
        None if is_whole => return Err(CurveError::Unthought.into()),
        None => None,
    };
    if options.json {
        print_line(&serde_json::to_string_pretty(&record)?);
    } else {
        let table = report::table(&curve_points(&measurement.trials));
        print_line(&format!("\n{table}\n\n{} dollars spent at most", measurement.spent));
        if let Some([toml, ..]) = &written {
            let path = toml.display();
            print_line(&format!("written to {path}; curve = \"…\" in its [[backend.model]] names it"));
        }
        if !is_whole {
            print_line(
                "stopped: another answer might cost more than is left; a larger --budget-usd goes on from here",
            );
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was measured by now, and what that cost.
struct Measurement {
    trials: Vec<CurveTrial>,
    tasks: u32,
    end: MeasureEnd,
    spent: Money,
}

/// Measures what is missing, and says what it comes to.
async fn run(settings: &Settings, options: &CurveOptions) -> Result<Measurement, CurveError> {
    let text = fs::read_to_string(&options.tasks);
    let text = text.map_err(|cause| CurveError::File(options.tasks.clone(), cause))?;
    let tasks = task::parse(&text).map_err(|cause| CurveError::Tasks(options.tasks.clone(), cause))?;
    let (client, base) = server_client(settings, options.url.as_deref(), server::TIMEOUT)?;
    let server = CurveServer::new(client, base, &options.model, options.temperature);
    let served = server.model().await?;
    if served.is_priced && options.budget_usd.is_none() {
        return Err(CurveError::Priced(options.model.clone()));
    }
    let path = options.state.clone().unwrap_or_else(|| journal_path(options));
    let journal = CurveJournal::open(&path, &options.model);
    let mut journal = journal.map_err(|cause| CurveError::Journal(path, cause))?;
    let mut budgets: Vec<Tokens> = options.budgets.iter().copied().map(Tokens).collect();
    budgets.sort_unstable();
    let plan = CurvePlan {
        tasks,
        budgets,
        thinking_max: served.thinking_max,
        samples: options.samples,
        at_once: usize::from(options.at_once),
        money_max: options.budget_usd.filter(|_| served.is_priced),
    };
    let end = measure(&plan, &server, &mut journal).await?;
    let predicted = predicted(&config_snapshot::calibration(settings)?, &options.model, &plan.tasks);
    Ok(Measurement {
        trials: trials(&predicted, &journal),
        tasks: u32::try_from(predicted.len()).unwrap_or(u32::MAX),
        end,
        spent: journal.spent_at_most(),
    })
}

/// What was predicted of each task beforehand, by its key. A curve that was measured before is no prediction.
fn predicted(calibration: &Calibration, model: &str, tasks: &[Task]) -> BTreeMap<String, ModelDemand> {
    let calibration = Calibration { curves: BTreeMap::new(), ..calibration.clone() };
    let name: Arc<str> = model.into();
    let demand = |task: &Task| {
        let prompts = BTreeMap::from([(name.clone(), Tokens::ZERO)]);
        let mut demand = estimate::estimate(&task.request(model), &prompts, &calibration);
        Some((task.key.clone(), demand.models.remove(&name)?))
    };
    tasks.iter().filter_map(demand).collect()
}

/// The answers to these tasks, with what was predicted of each.
fn trials(predicted: &BTreeMap<String, ModelDemand>, journal: &CurveJournal) -> Vec<CurveTrial> {
    let trials = journal.answers().iter().filter_map(|(id, answer)| {
        Some(CurveTrial {
            budget: id.budget,
            thought: answer.thought,
            is_cut: answer.is_cut,
            solution: answer.solution,
            right: answer.right,
            cost: answer.cost.as_dollars(),
            predicted: predicted.get(&id.task)?.clone(),
        })
    });
    trials.collect()
}

impl Measurement {
    /// What it comes to; nothing where no thought was measured. A budget that the money ended early counts once half of its
    /// answers are there.
    fn record(&self, model: &str) -> Option<CurveRecord> {
        let points = curve_points(&self.trials);
        let most = points.iter().map(|point| point.answers).max().unwrap_or(0);
        let is_told = |trial: &&CurveTrial| {
            points.iter().any(|point| point.budget == trial.budget && point.answers * 2 >= most)
        };
        let trials: Vec<CurveTrial> = self.trials.iter().filter(is_told).cloned().collect();
        let curve = fit_measured_curve(&trials)?;
        let measured = Timestamp::now().to_string().chars().take(10).collect();
        Some(CurveRecord { model: model.into(), measured, tasks: self.tasks, curve, points })
    }
}

fn folder(options: &CurveOptions) -> PathBuf {
    options.out.clone().unwrap_or_else(|| options.tasks.parent().unwrap_or(Path::new("")).to_owned())
}

/// Beside the tasks, by the model's name.
fn journal_path(options: &CurveOptions) -> PathBuf {
    let name = options.tasks.file_name().unwrap_or_default().to_string_lossy();
    options.tasks.with_file_name(format!("{name}.{}.journal", report::file_name(&options.model)))
}
