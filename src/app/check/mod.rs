//! `stint check`: the configuration, the model files that it names, and with `--connect` the upstreams.

mod connect;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use crate::config::{self, ModelConfig, ModelSource, Settings};

use super::auto_trials;
use super::config_snapshot::calibration;
use super::error::{ModelError, error_chain};
use super::output::{VerbResult, print_line};
use super::{certificates, engines, open_files, recipe_ranges};

/// What is checked beside the configuration and its files.
#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Ask every upstream for its models, which costs nothing: is it reachable, does it accept the key, does it have them.
    #[arg(long)]
    connect: bool,
}

pub(super) fn check(file: Option<&Path>, options: &CheckOptions) -> VerbResult {
    let settings = config::load(file, &config::environment)?;
    let unusable = unusable(&settings);
    let is_right = unusable.is_empty() || settings.skips_unusable;
    if is_right {
        let models = settings.catalog.models.keys().map(|name| &**name).collect::<Vec<_>>().join(", ");
        print_line(&format!("the configuration is right; it serves {models} on {}", settings.http.listen));
    }
    for (model, error) in &unusable {
        print_line(&format!("  but {model} cannot be served: {}", error_chain(error)));
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

/// The local models whose files the engine cannot use. Whether the device has room for them is found out at the start.
fn unusable(settings: &Settings) -> Vec<(Arc<str>, ModelError)> {
    let models = settings.backends.iter().flat_map(|backend| &backend.models);
    let examined = models.filter_map(|model| match &model.source {
        ModelSource::File(path, manner) => Some((model.name.clone(), engines::examine(path, manner).err()?)),
        _ => None,
    });
    examined.collect()
}
