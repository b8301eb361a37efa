//! The commands: `decide routing --data FOLDER`, and so on; `decide all` runs every one.

#![expect(clippy::print_stderr, reason = "a tool that prints")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use decide::routing::own::Own;
use decide::{abilities, free, judged, lengths, online, plot, prior_report, routing, unseen};

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
    /// Fits the prior that ships, and writes it with its report.
    Train(Training),
    /// Fits what ships of lengths alone.
    Lengths(Training),
    /// Fits the scale of abilities on the catalogue, and writes it with its report.
    Abilities(Scoring),
    /// Fits how success at free answers is foretold, and writes it with its report.
    Free(FreeFitting),
    /// Learning from one answer at a time, against other policies.
    Online(Folders),
    /// Holding a budget.
    Pacing(Folders),
    /// Routing after some answers were judged.
    Judged(Folders),
    /// How long a model thinks that nobody has seen.
    Unseen(Folders),
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

#[derive(Debug, Args)]
struct Training {
    /// Where the data is.
    #[arg(long, default_value = "../shared/data")]
    data: PathBuf,
    /// Where the prior and its report go.
    #[arg(long, default_value = "crates/decide/src/estimate")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct Scoring {
    /// The catalogue.
    #[arg(long, default_value = "config/models.toml")]
    catalogue: PathBuf,
    /// Where the scale and its report go.
    #[arg(long, default_value = "crates/decide/src/estimate/ability")]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct FreeFitting {
    #[command(flatten)]
    training: Training,
    /// The catalogue.
    #[arg(long, default_value = "config/models.toml")]
    catalogue: PathBuf,
}

fn main() -> ExitCode {
    let done = match Command::parse().part {
        Part::All(folders) => routed(&folders)
            .and_then(|()| learned(&folders, true, true))
            .and_then(|()| judged(&folders))
            .and_then(|()| never_seen(&folders)),
        Part::Routing(folders) => routed(&folders),
        Part::Online(folders) => learned(&folders, true, false),
        Part::Pacing(folders) => learned(&folders, false, true),
        Part::Judged(folders) => judged(&folders),
        Part::Unseen(folders) => never_seen(&folders),
        Part::Train(training) => trained(&training),
        Part::Lengths(training) => measured_lengths(&training),
        Part::Abilities(scoring) => scaled(&scoring),
        Part::Free(fitting) => freed(&fitting),
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
    let report = routing::run(&folders.data, &[&Own::new()?])?;
    std::fs::create_dir_all(&folders.results)?;
    std::fs::write(folders.results.join("routing.md"), report.to_string())?;
    report.curves.iter().try_for_each(|figure| drawn(&folders.results, figure))
}

fn trained(training: &Training) -> Result<(), Box<dyn Error>> {
    let (prior, report) = prior_report::make(&training.data)?;
    std::fs::write(training.out.join("prior.bin"), prior)?;
    std::fs::write(training.out.join("prior.md"), report)?;
    measured_lengths(training)
}

fn measured_lengths(training: &Training) -> Result<(), Box<dyn Error>> {
    let (weights, report) = lengths::make(&training.data)?;
    std::fs::write(training.out.join("lengths.bin"), weights)?;
    Ok(std::fs::write(training.out.join("lengths.md"), report)?)
}

fn scaled(scoring: &Scoring) -> Result<(), Box<dyn Error>> {
    let models = abilities::read(&scoring.catalogue)?;
    let scale = abilities::fit(&models);
    std::fs::write(scoring.out.join("fitted.rs"), abilities::constants(&scale))?;
    Ok(std::fs::write(scoring.out.join("fitted.md"), abilities::report(&scale, &models))?)
}

fn freed(fitting: &FreeFitting) -> Result<(), Box<dyn Error>> {
    let (constants, report) = free::make(&fitting.training.data, &fitting.catalogue)?;
    std::fs::write(fitting.training.out.join("free_answer_fitted.rs"), constants)?;
    Ok(std::fs::write(fitting.training.out.join("free_answer.md"), report)?)
}

fn learned(folders: &Folders, online: bool, pacing: bool) -> Result<(), Box<dyn Error>> {
    let arenas = online::arenas(&folders.data)?;
    let written = |name: &str, report: online::Report| -> Result<(), Box<dyn Error>> {
        std::fs::create_dir_all(&folders.results)?;
        std::fs::write(folders.results.join(name), report.text)?;
        let mut pictures = report.pictures.into_iter();
        Ok(pictures.try_for_each(|(file, svg)| std::fs::write(folders.results.join(file), svg))?)
    };
    if online {
        written("online.md", online::online(&arenas))?;
    }
    if pacing {
        written("pacing.md", online::pacing(&arenas))?;
    }
    Ok(())
}

fn judged(folders: &Folders) -> Result<(), Box<dyn Error>> {
    let report = judged::report(&folders.data)?;
    std::fs::create_dir_all(&folders.results)?;
    Ok(std::fs::write(folders.results.join("judged.md"), report)?)
}

fn never_seen(folders: &Folders) -> Result<(), Box<dyn Error>> {
    let report = unseen::report(&folders.data)?;
    std::fs::create_dir_all(&folders.results)?;
    Ok(std::fs::write(folders.results.join("unseen.md"), report)?)
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
