//! The task that sends what has ended, in batches. It is the only one that waits for a collector.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use stint_types::metrics::Metrics;
use stint_types::tasks::Tasks;

use super::collector::{CollectorError, connect};
use super::live_trace::EndedTrace;
use super::settings::Settings;
use super::spans::spans_of;
use super::tracer::Tracer;

/// How many traces go out at once.
const BATCH_MAX: usize = 64;

/// How long the first of a batch waits for others.
const GATHER_MAX: Duration = Duration::from_secs(1);

/// How long the end of the process waits for what is left.
const FLUSH_MAX: Duration = Duration::from_secs(3);

/// Begins to send traces. What has ended by the time that `tasks` stop is sent before the task ends.
///
/// # Errors
/// When the settings describe no collector that can be spoken to.
pub fn open(tasks: &Tasks, metrics: Arc<Metrics>, settings: &Settings) -> Result<Tracer, CollectorError> {
    let exporter = connect(settings)?;
    let (sender, ended) = mpsc::channel(settings.queue_max);
    let work = Worker {
        exporter,
        ended,
        batch: Vec::new(),
        metrics: metrics.clone(),
        timeout: settings.timeout,
        is_failing: false,
    };
    tasks.spawn(work.run(tasks.clone()));
    Ok(Tracer::new(settings.sampler, settings.propagates, sender, metrics))
}

struct Worker {
    exporter: SpanExporter,
    ended: mpsc::Receiver<EndedTrace>,
    /// What goes out next.
    batch: Vec<EndedTrace>,
    metrics: Arc<Metrics>,
    timeout: Duration,
    /// An outage is one line of the log.
    is_failing: bool,
}

impl Worker {
    async fn run(mut self, tasks: Tasks) {
        let stopping = tasks.stopping();
        tokio::pin!(stopping);
        loop {
            let is_open = tokio::select! {
                biased;
                () = &mut stopping => break,
                is_open = self.gather() => is_open,
            };
            let sending = self.send();
            tokio::pin!(sending);
            tokio::select! {
                biased;
                () = &mut sending => {}
                () = &mut stopping => {
                    let _ = timeout(FLUSH_MAX, sending).await;
                    break;
                }
            }
            if !is_open {
                return;
            }
        }
        let _ = timeout(FLUSH_MAX, self.flush()).await;
    }

    /// Gathers the next batch; false when there will be no more. Dropping it loses nothing.
    async fn gather(&mut self) -> bool {
        let mut until = None;
        while self.batch.len() < BATCH_MAX {
            let next = match until {
                None => Ok(self.ended.recv().await),
                Some(until) => timeout_at(until, self.ended.recv()).await,
            };
            match next {
                Ok(Some(ended)) => self.batch.push(ended),
                Ok(None) => return false,
                Err(_) => break,
            }
            until.get_or_insert_with(|| Instant::now() + GATHER_MAX);
        }
        true
    }

    /// Sends what is left.
    async fn flush(&mut self) {
        loop {
            while let (true, Ok(next)) = (self.batch.len() < BATCH_MAX, self.ended.try_recv()) {
                self.batch.push(next);
            }
            if self.batch.is_empty() {
                return;
            }
            self.send().await;
        }
    }

    async fn send(&mut self) {
        let batch = std::mem::take(&mut self.batch);
        if batch.is_empty() {
            return;
        }
        let traces = u64::try_from(batch.len()).unwrap_or(u64::MAX);
        let spans = batch.iter().flat_map(spans_of).collect();
        let sent = timeout(self.timeout, self.exporter.export(spans)).await;
        let failure = match sent {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("it did not answer in time".to_owned()),
        };
        let outcome = if failure.is_none() { "sent" } else { "failed" };
        self.metrics.traces.total.with_label_values(&[outcome]).inc_by(traces);
        if let Some(why) = failure.as_deref().filter(|_| !self.is_failing) {
            tracing::warn!(why, "the collector takes no traces; they are dropped until it does");
        } else if failure.is_none() && self.is_failing {
            tracing::info!("the collector takes traces again");
        }
        self.is_failing = failure.is_some();
    }
}
