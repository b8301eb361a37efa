//! `stint check`: the configuration, the model files that it names, and with `--connect` the upstreams.

mod connect;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::config::{self, ModelConfig, Settings};

use super::auto_trials;
use super::config_snapshot::calibration;
use super::error::{ModelError, error_chain};
use super::local_model_report::LocalModelReport;
use super::output::{VerbResult, print_line};
use super::{certificates, engines, ledger_place, open_files, recipe_ranges};

/// What is checked beside the configuration and its files.
#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Ask every upstream for its models, which costs nothing: is it reachable, does it accept the key, does it have them.
    #[arg(long)]
    connect: bool,
}

pub(super) fn check(file: Option<&Path>, options: &CheckOptions) -> VerbResult {
    let settings = config::load_to_serve(file, &config::environment)?;
    let ExaminedModels { usable, unusable } = examine_models(&settings);
    let misplaced = ledger_place::problem(&settings.storage);
    let is_right = misplaced.is_none() && (unusable.is_empty() || settings.skips_unusable);
    if is_right {
        let models = settings.catalog.models.keys().map(|name| &**name).collect::<Vec<_>>().join(", ");
        print_line(&format!("the configuration is right; it serves {models} on {}", settings.http.listen));
    }
    misplaced.iter().for_each(|problem| print_line(&format!("  but {problem}")));
    for (model, error) in &unusable {
        print_line(&format!("  but {model} cannot be served: {}", error_chain(error)));
    }
    for (model, report) in &usable {
        report.notes.iter().for_each(|note| print_line(&format!("  but of {model}: {note}")));
    }
    settings.warnings.iter().for_each(|warning| print_line(&format!("  but {warning}")));
    open_files::shortage(&settings).iter().for_each(|warning| print_line(&format!("  but {warning}")));
    certificates::describe(&settings).iter().for_each(|line| print_line(&format!("  {line}")));
    let recipes = recipe_ranges::lines(&settings.catalog, &calibration(&settings)?, |_| ());
    recipes.iter().for_each(|line| print_line(&format!("  {line}")));
    for model in settings.backends.iter().flat_map(|backend| &backend.models) {
        measured(model).iter().for_each(|line| print_line(line));
    }
    if let Some(notice) = auto_trials::notice(&settings.catalog) {
        print_line(&notice);
    }
    let is_reached = !options.connect || connect::check_all(&settings);
    Ok(if is_right && is_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was measured of a model, in a line.
fn measured(model: &ModelConfig) -> Option<String> {
    let record = model.curve.as_ref()?;
    let owner = if record.model == model.name { String::new() } else { format!(" (as {})", record.model) };
    let (tasks, day) = (record.tasks, &record.measured);
    Some(format!("the curve of {} was measured on {tasks} tasks at {day}{owner}", model.name))
}

/// The local models that the engine can run and those that it cannot, as far as that is told without a device.
#[derive(Default)]
struct ExaminedModels {
    usable: Vec<(Arc<str>, LocalModelReport)>,
    unusable: Vec<(Arc<str>, ModelError)>,
}

/// What stays loaded comes first: the others have what is left of the memory.
fn examine_models(settings: &Settings) -> ExaminedModels {
    let (mut examined, mut memory_taken) = (ExaminedModels::default(), 0);
    let models = || settings.backends.iter().flat_map(|backend| &backend.models);
    for stays in [true, false] {
        for model in models().filter(|model| model.source.stays_loaded() == stays) {
            match engines::examine(&model.source, &settings.engine, memory_taken) {
                Some(Ok(report)) => {
                    memory_taken += if stays { report.memory } else { 0 };
                    examined.usable.push((model.name.clone(), report));
                }
                Some(Err(error)) => examined.unusable.push((model.name.clone(), error)),
                None => {}
            }
        }
    }
    examined
}
