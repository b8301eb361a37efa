//! `stint init`: writes a first configuration for what serves models on this machine, or where it is told to look.
//!
//! What it writes is read back as `stint serve` would read it before it stays.

mod found_server;
mod write_config;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;

use crate::config;

use super::output::{VerbResult, print_line};
use super::whole_file::write_whole_file;

use found_server::{FoundServer, LookError, look};
use write_config::{config_text, listen_address};

/// Where servers of models listen unless they are told otherwise: Ollama, vLLM, llama.cpp, `SGLang`, LM Studio.
const USUAL_PORTS: [u16; 5] = [11434, 8000, 8080, 30000, 1234];
/// What the API of a Stint is at, unless it is told otherwise, and others where that is taken.
const OWN_PORTS: std::ops::RangeInclusive<u16> = 8080..=8099;
/// How long one may take to say what it has.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Where to look, and where to write.
#[derive(Debug, Args)]
pub(super) struct InitOptions {
    /// A model server, like `http://10.0.0.7:8000`; repeat it for each. Without it the usual ports of this machine are tried.
    #[arg(long, value_name = "URL")]
    server: Vec<String>,
    /// Where to write it, unless --config says so.
    #[arg(long, value_name = "PATH", default_value = "stint.toml")]
    to: PathBuf,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
}

/// Why no configuration was written.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error("{0} is there already: --force writes over it, and --to writes elsewhere")]
    Exists(PathBuf),
    #[error("{0} has no server of models that can be used")]
    Named(String, #[source] LookError),
    #[error("no HTTP client can be made")]
    Client(#[from] reqwest::Error),
    #[error("{0} cannot be written")]
    Write(PathBuf, #[source] io::Error),
    #[error(
        "the configuration that was made is not valid, which is a defect of Stint; please report it:\n{0}"
    )]
    Wrong(config::ConfigErrors),
}

pub(super) fn init(file: Option<&Path>, options: &InitOptions) -> VerbResult {
    let path = file.unwrap_or(&options.to);
    if path.exists() && !options.force {
        return Err(InitError::Exists(path.to_owned()).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let servers = runtime.block_on(find(&options.server))?;
    let port = free_port(&servers);
    let text = config_text(&servers, port);
    write_checked(path, &text)?;
    for server in &servers {
        print_line(&format!("found {} at {}: {}", server.kind, server.base, server.models.join(", ")));
    }
    if servers.is_empty() {
        print_line(
            "no server of models was found on the usual ports: the embedded model serves, which knows arithmetic alone",
        );
    }
    let shown = path.display();
    print_line(&format!(
        "wrote {shown}; `stint serve --config {shown}` serves it on {}",
        listen_address(port)
    ));
    Ok(ExitCode::SUCCESS)
}

/// What is served at the places that are named, all of which must be there; else at the usual ones.
async fn find(named: &[String]) -> Result<Vec<FoundServer>, InitError> {
    let client = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build()?;
    if named.is_empty() {
        let bases: Vec<String> = USUAL_PORTS.iter().map(|port| format!("http://127.0.0.1:{port}")).collect();
        let looked = join_all(bases.iter().map(|base| look(&client, base))).await;
        return Ok(looked.into_iter().filter_map(Result::ok).collect());
    }
    let looked = join_all(named.iter().map(|base| look(&client, base))).await;
    let all = named.iter().zip(looked);
    all.map(|(base, found)| found.map_err(|error| InitError::Named(base.clone(), error))).collect()
}

/// The first of our ports that nobody listens on.
fn free_port(servers: &[FoundServer]) -> u16 {
    let is_free = |port: &u16| {
        let taken = format!(":{port}");
        !servers.iter().any(|server| server.base.ends_with(&taken))
            && TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok()
    };
    OWN_PORTS.into_iter().find(is_free).unwrap_or(*OWN_PORTS.start())
}

/// Writes a text that is read back as a configuration first.
fn write_checked(path: &Path, text: &str) -> Result<(), InitError> {
    let beside = path.with_extension("toml.init");
    let failed = |error| InitError::Write(path.to_owned(), error);
    std::fs::write(&beside, text).map_err(failed)?;
    let checked = config::load(Some(&beside), &|name| match name {
        // What the environment would change is not in question.
        "STINT_CONFIG" | "STINT_LISTEN" | "STINT_FIRST_KEY" => None,
        name => config::environment(name),
    });
    let written = match checked {
        Ok(_) => write_whole_file(path, text).map_err(failed),
        Err(mistakes) => Err(InitError::Wrong(mistakes)),
    };
    // The answer matters more than what is left of the way to it.
    let _ = std::fs::remove_file(&beside);
    written
}
