//! Logs what happens to a local model: that it was loaded or let go, that its engine failed, and that it runs again.

use std::sync::Arc;
use std::time::Duration;

use stint_engine::{EngineEvent, EngineListener, UnloadReason};

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
        EngineEvent::Loaded { took, device, memory } => tracing::info!(
            model,
            device = %device.name,
            driver = %device.driver,
            memory_mb = memory / 1_000_000,
            took = seconds(*took),
            "loaded"
        ),
        EngineEvent::LoadFailed { error, wait } => tracing::error!(
            model,
            %error,
            "it could not be loaded; the next request after {} tries again",
            seconds(*wait)
        ),
        EngineEvent::Unloaded { reason: UnloadReason::Idle } => {
            tracing::info!(model, "let go: nobody has used it for its `keep_alive`");
        }
        EngineEvent::Unloaded { reason: UnloadReason::Room } => {
            tracing::info!(model, "let go: another model needs its memory");
        }
        EngineEvent::Restarted { outage } => {
            tracing::info!(model, "the engine runs again, after {}", seconds(*outage));
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
