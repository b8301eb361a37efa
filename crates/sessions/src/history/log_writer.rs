//! The thread that writes the decision log. Lines reach it through a bounded channel; what it cannot take is dropped and
//! counted, and nobody waits for the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use stint_types::catalog::Verdict;

use super::{DecisionLogFile, DecisionLogLine, DecisionLogSettings, WritableRecord};

/// Lines that may wait for the disk.
const LINES_MAX: usize = 4096;
/// Lines that wait are written together, up to about so many bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// How often a failing disk is spoken of.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Is called with the number of lines that were lost.
pub type LogLossObserver = Arc<dyn Fn(u64) + Send + Sync>;

/// What becomes a line of the log.
#[derive(Debug)]
pub enum DecisionLogEntry {
    /// The record of a request.
    Record(Arc<WritableRecord>),
    /// A verdict on an answer.
    Verdict(Verdict),
}

/// The way to the log.
pub struct DecisionLogWriter {
    lines: mpsc::Sender<DecisionLogEntry>,
    ended: oneshot::Receiver<()>,
    on_loss: LogLossObserver,
}

impl DecisionLogWriter {
    /// Starts the thread. If the log cannot be opened, that is logged once, and tried again as lines come.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(settings: DecisionLogSettings, lost: LogLossObserver) -> std::io::Result<DecisionLogWriter> {
        let (lines, arrived) = mpsc::channel(LINES_MAX);
        let (end, ended) = oneshot::channel();
        let mut desk = DecisionLogWorker { settings, log: None, last_complaint: None, on_loss: lost.clone() };
        desk.open();
        std::thread::Builder::new().name("decision-log".to_owned()).spawn(move || {
            desk.write(arrived);
            let _ = end.send(());
        })?;
        Ok(DecisionLogWriter { lines, ended, on_loss: lost })
    }

    /// Gives it a line to write.
    pub fn write(&self, entry: DecisionLogEntry) {
        if self.lines.try_send(entry).is_err() {
            (self.on_loss)(1);
        }
    }

    /// Waits until all is written that it was given, for so long at most.
    pub async fn close(self, patience: Duration) {
        drop(self.lines);
        let _ = tokio::time::timeout(patience, self.ended).await;
    }
}

/// Lines that are written by one call of the system.
#[derive(Debug, Default)]
struct Batch {
    text: Vec<u8>,
    lines: u64,
}

impl Batch {
    fn push(&mut self, entry: DecisionLogEntry) {
        match entry {
            DecisionLogEntry::Record(record) => record.write_log_line(&mut self.text),
            DecisionLogEntry::Verdict(verdict) => {
                // It is made of numbers and words: it can be written as JSON.
                let line = serde_json::to_vec(&DecisionLogLine::from_verdict(verdict)).unwrap_or_default();
                self.text.extend_from_slice(&line);
                self.text.push(b'\n');
            }
        }
        self.lines += 1;
    }

    fn clear(&mut self) {
        self.text.clear();
        self.lines = 0;
    }
}

/// The thread's own.
struct DecisionLogWorker {
    settings: DecisionLogSettings,
    log: Option<DecisionLogFile>,
    last_complaint: Option<Instant>,
    on_loss: LogLossObserver,
}

impl DecisionLogWorker {
    fn write(mut self, mut arrived: mpsc::Receiver<DecisionLogEntry>) {
        let mut batch = Batch::default();
        while let Some(line) = arrived.blocking_recv() {
            batch.push(line);
            while batch.text.len() < BATCH_BYTES
                && let Ok(line) = arrived.try_recv()
            {
                batch.push(line);
            }
            self.append(&batch);
            batch.clear();
        }
    }

    fn append(&mut self, batch: &Batch) {
        self.open();
        match self.log.as_mut().map(|log| log.append(&batch.text)) {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                self.complain(&error);
                (self.on_loss)(batch.lines);
            }
            None => (self.on_loss)(batch.lines),
        }
    }

    fn open(&mut self) {
        let is_soon = self.last_complaint.is_some_and(|at| at.elapsed() < COMPLAIN_EVERY);
        if self.log.is_some() || is_soon {
            return;
        }
        match DecisionLogFile::open(self.settings.clone()) {
            Ok(log) => self.log = Some(log),
            Err(error) => self.complain(&error),
        }
    }

    fn complain(&mut self, error: &std::io::Error) {
        if self.last_complaint.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            let path = self.settings.path.display();
            tracing::error!(%path, %error, "the decision log cannot be written; its lines are dropped");
            self.last_complaint = Some(Instant::now());
        }
    }
}
