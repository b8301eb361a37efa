//! The commands: `decide routing --data FOLDER`, and so on; `decide all` runs every one.

#![expect(clippy::print_stderr, reason = "a tool that prints")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use decide::{plot, routing};

#[derive(Debug, Parser)]
#[command(about = "Measures how Stint decides, and trains the prior that ships with it")]
struct Command {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Every measurement.
    All(Folders),
    /// Routing between models, and difficulty, on old answers.
    Routing(Folders),
}

#[derive(Debug, Args)]
struct Folders {
    /// Where the data is.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Where tables and plots go.
    #[arg(long, default_value = "load-tests/results")]
    results: PathBuf,
}

fn main() -> ExitCode {
    let done = match Command::parse().part {
        Part::All(folders) | Part::Routing(folders) => routed(&folders),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn routed(folders: &Folders) -> Result<(), Box<dyn Error>> {
    let report = routing::run(&folders.data, &[])?;
    std::fs::create_dir_all(&folders.results)?;
    std::fs::write(folders.results.join("routing.md"), report.to_string())?;
    report.curves.iter().try_for_each(|figure| drawn(&folders.results, figure))
}

fn drawn(folder: &Path, figure: &routing::Figure) -> Result<(), Box<dyn Error>> {
    let name: String = figure
        .title
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    let picture =
        plot::lines(&figure.title, "share sent to the stronger model", "share of the gain", &figure.lines);
    Ok(std::fs::write(folder.join(format!("routing-{}.svg", parts.join("-"))), picture)?)
}
