//! Logs what happens to a local engine: that it failed, and that it runs again.

use std::sync::Arc;
use std::time::Duration;

use stint_engine::{EngineEvent, EngineListener};

/// What tells of the engine of a model.
pub(super) fn listener(model: Arc<str>) -> EngineListener {
    Box::new(move |event| log(&model, event))
}

fn log(model: &str, event: &EngineEvent) {
    match event {
        EngineEvent::Failed { cause, error, wait } => tracing::error!(
            model,
            cause = cause.as_str(),
            %error,
            "the engine failed; all that ran on it has ended, and it is started again in {}",
            seconds(*wait)
        ),
        EngineEvent::StartFailed { error, wait } => {
            tracing::error!(model, %error, "the engine could not be started again; the next try is in {}", seconds(*wait));
        }
        EngineEvent::Restarted { outage } => {
            tracing::info!(model, "the engine runs again, after {}", seconds(*outage));
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
