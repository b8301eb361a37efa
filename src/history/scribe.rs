//! The thread that writes the decision log. Lines reach it through a bounded channel; what it cannot take is dropped and
//! counted, and nobody waits for the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::{Line, Log, LogSettings};

/// Lines that may wait for the disk.
const LINES_MAX: usize = 4096;
/// How often a failing disk is spoken of.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Hears of lines that are lost, and how many.
pub type ScribeObserver = Arc<dyn Fn(u64) + Send + Sync>;

/// The way to the log.
pub struct Scribe {
    lines: mpsc::Sender<Line>,
    ended: oneshot::Receiver<()>,
    lost: ScribeObserver,
}

impl Scribe {
    /// Starts the thread. Where the log cannot be opened, that is said once, and tried again as lines come.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub fn start(settings: LogSettings, lost: ScribeObserver) -> std::io::Result<Scribe> {
        let (lines, arrived) = mpsc::channel(LINES_MAX);
        let (end, ended) = oneshot::channel();
        let mut desk = Desk { settings, log: None, complained: None, lost: lost.clone() };
        desk.open();
        std::thread::Builder::new().name("decision-log".to_owned()).spawn(move || {
            desk.write(arrived);
            let _ = end.send(());
        })?;
        Ok(Scribe { lines, ended, lost })
    }

    /// Gives it a line to write.
    pub fn write(&self, line: Line) {
        if self.lines.try_send(line).is_err() {
            (self.lost)(1);
        }
    }

    /// Waits until all is written that it was given, for so long at most.
    pub async fn close(self, patience: Duration) {
        drop(self.lines);
        let _ = tokio::time::timeout(patience, self.ended).await;
    }
}

/// The thread's own.
struct Desk {
    settings: LogSettings,
    log: Option<Log>,
    complained: Option<Instant>,
    lost: ScribeObserver,
}

impl Desk {
    fn write(mut self, mut arrived: mpsc::Receiver<Line>) {
        while let Some(line) = arrived.blocking_recv() {
            // Every line is made of numbers, words and lists of them: it can be written as JSON.
            let Ok(text) = serde_json::to_string(&line) else { continue };
            self.open();
            let written = self.log.as_mut().map(|log| log.append(&text));
            match written {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    self.complain(&error);
                    (self.lost)(1);
                }
                None => (self.lost)(1),
            }
        }
    }

    fn open(&mut self) {
        let is_soon = self.complained.is_some_and(|at| at.elapsed() < COMPLAIN_EVERY);
        if self.log.is_some() || is_soon {
            return;
        }
        match Log::open(self.settings.clone()) {
            Ok(log) => self.log = Some(log),
            Err(error) => self.complain(&error),
        }
    }

    fn complain(&mut self, error: &std::io::Error) {
        if self.complained.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) {
            let path = self.settings.path.display();
            tracing::error!(%path, %error, "the decision log cannot be written; its lines are dropped");
            self.complained = Some(Instant::now());
        }
    }
}
