//! `stint serve`: build, run, drain.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{self, Settings};

use super::build::{BuildError, RunningServer, build};
use super::command::fail;
use super::log;
use super::reload::ConfigSource;

/// How long the ledger may take to write its last settlements after the last answer.
const LEDGER_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a configuration that is being read at the end, or a model that is being loaded, may take until it is left behind:
/// whoever reads a file that does not come cannot be called off.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(3);

/// How long connections that are cut off may take to settle what they used.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn serve(file: Option<&Path>) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error),
    };
    // Whoever changes the configuration may say so at any time: from here on it does not kill.
    let hangups = runtime.block_on(async { signal(SignalKind::hangup()) });
    let hangups = match hangups.map_err(BuildError::Signals) {
        Ok(hangups) => hangups,
        Err(error) => return fail(&error),
    };
    let settings = match config::load(file, &config::environment) {
        Ok(settings) => settings,
        Err(mistakes) => return fail(&mistakes),
    };
    let dial = log::start(&settings.log);
    settings.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let file = file.map(Path::to_owned);
    let origin = ConfigSource {
        load: Arc::new(move || config::load_again(file.as_deref(), &config::environment)),
        on_applied: Box::new(move |settings| dial.apply(&settings.log)),
    };
    let ended = runtime.block_on(run(settings, origin, hangups));
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => fail(&error),
    }
}

/// Runs until a signal, then drains; says whether all that was used is written down.
async fn run(settings: Settings, origin: ConfigSource, mut hangups: Signal) -> Result<bool, BuildError> {
    let app = build(settings, origin).await?;
    for address in app.addresses() {
        tracing::info!("listening on http://{address}");
    }
    let invitation = app.example_request();
    tracing::info!(models = %app.model_names(), open = app.is_open(), "ready");
    // Whoever was answered may send a signal: from the first answer on it must not kill.
    let mut ends = ShutdownSignals::new().map_err(BuildError::Signals)?;
    let running = app.start();
    if let Some(invitation) = invitation {
        tracing::info!("try it: {invitation}");
    }
    let in_terminal = io::stderr().is_terminal();
    loop {
        tokio::select! {
            () = ends.next() => break,
            Some(()) = hangups.recv() => {
                // The signal also comes from a terminal that was closed, and means the end then.
                if in_terminal && !io::stderr().is_terminal() {
                    break;
                }
                running.reloads.request_reload();
            }
        }
    }
    // Hangups go unheard from here on.
    let drain = running.settings().http.drain;
    Ok(stop(&running, drain, ends).await)
}

/// SIGTERM and SIGINT, which do not kill from here on.
struct ShutdownSignals {
    term: Signal,
    interrupt: Signal,
}

impl ShutdownSignals {
    fn new() -> io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// New requests are refused, those that run may finish until the deadline or a second signal. What is cut off then
/// is settled all the same; only what could not be written down is a bad end.
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
    running.ledger_tasks.stop();
    let written = running.ledger_tasks.drain(LEDGER_DRAIN_TIMEOUT).await;
    if !written {
        tracing::error!(
            "the ledger could not write its last settlements; they are posted at the next start, or by another replica"
        );
    }
    running.stop_engines();
    drained && written
}
