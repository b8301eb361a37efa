//! `stint config`: what holds and where each value comes from; and what may be written, for editors.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::config::{self, EffectiveValue};

use super::output::{VerbResult, align_columns, print_line};

/// What is done with the configuration.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print every setting in force and where it comes from: a line of the file, the environment, or the default. No secret
    /// is printed; the file only names them.
    Show(ShowOptions),
    /// Print the JSON schema of the configuration, by which editors complete and check it: put `#:schema stint.schema.json` into the
    /// file's first line, where that is what was printed.
    Schema,
}

/// What is shown.
#[derive(Debug, Args)]
pub(super) struct ShowOptions {
    /// Only what differs from the defaults.
    #[arg(long)]
    changed: bool,
}

pub(super) fn run(file: Option<&Path>, verb: &ConfigCommand) -> VerbResult {
    match verb {
        ConfigCommand::Show(options) => show(file, options),
        ConfigCommand::Schema => {
            print_line(&format!("{:#}", config::json_schema()));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn show(file: Option<&Path>, options: &ShowOptions) -> VerbResult {
    let named = file.map(Path::to_owned).or_else(|| config::environment("STINT_CONFIG").map(PathBuf::from));
    // Every mistake is reported, as elsewhere; what is shown is right.
    config::load_offline(file, &config::environment)?;
    let values = config::effective(named.as_deref(), &config::environment)?;
    let shown = values.iter().filter(|value| !options.changed || value.is_changed());
    let row = |value: &EffectiveValue| [value.key.clone(), value.value.clone(), value.origin.to_string()];
    let rows: Vec<[String; 3]> = shown.map(row).collect();
    if rows.is_empty() {
        print_line("nothing differs from the defaults");
    } else {
        print_line(&align_columns(&rows, 3));
    }
    Ok(ExitCode::SUCCESS)
}
