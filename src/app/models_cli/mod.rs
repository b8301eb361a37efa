//! `stint models`: what is in a model file, and fetching one.

mod download;
mod human_bytes;
mod inspect;
mod package_index;
mod pull;
mod source;
mod wheel;

use clap::Subcommand;

use super::output::VerbResult;

/// What to do with model files.
#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// Print what a GGUF file holds: family, formats, context, chat template, tool syntax, and the memory that it takes.
    Inspect(inspect::InspectOptions),
    /// Fetch a model file: by its address, by its place on a hub (OWNER/REPOSITORY/FILE.gguf), or "smollm2", a small chat model.
    Pull(pull::PullOptions),
}

pub(super) fn run(command: &ModelsCommand) -> VerbResult {
    match command {
        ModelsCommand::Inspect(options) => inspect::inspect(options),
        ModelsCommand::Pull(options) => pull::pull(options),
    }
}
