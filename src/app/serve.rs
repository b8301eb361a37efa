//! `stint serve`: build, run, drain.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::config::{self, Settings};
use stint_types::tasks::Tasks;

use super::auto_trials;
use super::build::{RunningServer, build};
use super::error::{BuildError, error_chain};
use super::log;
use super::open_files;
use super::output::VerbResult;
use super::reload::ConfigSource;
use super::signals::{ReloadSignals, ShutdownSignals};

/// How long the ledger may take to write its last settlements after the last answer.
const LEDGER_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the books may take to be left in one file.
const CHECKPOINT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the end waits for a reload that still reads a file or loads a model: blocking work cannot be cancelled.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// How long connections that are cut off may take to settle what they used.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(2);
/// How long who asked during the end may take to get an answer, and then to be cut off.
const LISTENER_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn serve(file: Option<&Path>) -> VerbResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // SIGHUP asks for a reload. From here on it does not kill the process.
    let hangups = runtime.block_on(async { ReloadSignals::new() }).map_err(BuildError::Signals)?;
    let settings = config::load_to_serve(file, &config::environment)?;
    let (log, logged) = log::start(&settings.log)?;
    settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    open_files::raise_limit();
    if let Some(shortage) = open_files::shortage(&settings) {
        tracing::warn!("{shortage}");
    }
    if let Some(notice) = auto_trials::notice(&settings.catalog) {
        tracing::info!("{notice}");
    }
    let file = file.map(Path::to_owned);
    let source = ConfigSource {
        load: Arc::new(move || config::load_again(file.as_deref(), &config::environment)),
        on_applied: Box::new(move |settings| log.apply(&settings.log)),
    };
    let ended = runtime.block_on(run(settings, source, hangups));
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    logged.flush();
    Ok(if ended? { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs until a signal, then drains. False if a settlement could not be written.
async fn run(
    settings: Settings,
    source: ConfigSource,
    mut hangups: ReloadSignals,
) -> Result<bool, BuildError> {
    let app = build(settings, source).await?;
    for url in app.urls() {
        tracing::info!("listening on {url}");
    }
    let example = app.example_request();
    tracing::info!(models = %app.model_names(), open = app.is_open(), "ready");
    // From the first answer on, a signal must not kill the process.
    let mut ends = ShutdownSignals::new().map_err(BuildError::Signals)?;
    let running = app.start();
    if let Some(example) = example {
        tracing::info!("try it: {example}");
    }
    let in_terminal = io::stderr().is_terminal();
    loop {
        tokio::select! {
            () = ends.next() => break,
            Some(()) = hangups.next() => {
                // The signal also comes from a terminal that was closed, and means the end then.
                if in_terminal && !io::stderr().is_terminal() {
                    break;
                }
                running.reloads.request_reload();
            }
        }
    }
    // From here on SIGHUP is ignored.
    let drain = running.settings().http.drain;
    Ok(stop(&running, drain, ends).await)
}

/// Refuses new requests and lets running ones finish until the deadline or a second signal. What is cut off then is settled
/// all the same. Until then health, metrics and the admin API answer. False if a settlement could not be written.
async fn stop(running: &RunningServer, drain: Duration, mut ends: ShutdownSignals) -> bool {
    tracing::info!(tasks = running.request_tasks.running(), ?drain, "stopping; answers that run may finish");
    running.request_tasks.stop();
    let mut drained = tokio::select! {
        drained = running.request_tasks.drain(drain) => drained,
        () = ends.next() => false,
    };
    if !drained {
        tracing::warn!(
            left = running.request_tasks.running(),
            "not everything ended in time; it is cut off and settled"
        );
        running.request_tasks.force_stop();
        drained = running.request_tasks.drain(CUT_OFF_TIMEOUT).await;
        if !drained {
            tracing::error!(
                left = running.request_tasks.running(),
                "not everything that was cut off was settled"
            );
        }
    }
    close_listeners(&running.listener_tasks).await;
    running.ledger_tasks.stop();
    let written = running.ledger_tasks.drain(LEDGER_DRAIN_TIMEOUT).await;
    if !written {
        tracing::error!(
            "the ledger could not write its last settlements; they are posted at the next start, or by another replica"
        );
    }
    close_books(running).await;
    running.stop_engines();
    drained && written
}

/// Accepts nothing any more. Nothing that asks during the end is worth much waiting.
async fn close_listeners(tasks: &Tasks) {
    tasks.stop();
    if !tasks.drain(LISTENER_DRAIN_TIMEOUT).await {
        tasks.force_stop();
        // What is left then had its time, and ends with the process.
        tasks.drain(LISTENER_DRAIN_TIMEOUT).await;
    }
}

/// Leaves the books in the one file that their name says, for those who copy that.
async fn close_books(running: &RunningServer) {
    let error = match timeout(CHECKPOINT_TIMEOUT, running.database.checkpoint()).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error_chain(&error),
        Err(_) => format!("it took more than {CHECKPOINT_TIMEOUT:?}"),
    };
    tracing::warn!(
        %error,
        "some of what was booked is only in the file beside the ledger whose name ends in -wal: copy both, or use `stint ledger backup`"
    );
}
