//! What stands between those who log and standard error: a bounded queue and a thread of its own. A pipe that nobody reads and a
//! disk that is full hold up no request. Lines that there is no room for are dropped and counted.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// How many lines may wait.
const LINES_MAX: usize = 1024;

/// How long lines are gathered after some were written, so that a busy gateway wakes the thread and writes once for many of them.
const PAUSE: Duration = Duration::from_millis(10);

/// How long the end waits for lines that are not written yet.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The lines that were dropped. A process has one log, as it has one standard error.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// How many lines of the log were dropped so far.
pub(in crate::app) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

enum LogEntry {
    Line(Vec<u8>),
    /// Everything before it is written.
    Flush(SyncSender<()>),
}

/// The writing end. Clones share it.
#[derive(Clone)]
pub(in crate::app) struct LogQueue(SyncSender<LogEntry>);

impl LogQueue {
    /// Starts the thread that writes.
    ///
    /// # Errors
    /// Where the system has no thread for it.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<LogQueue> {
        let (sender, entries) = sync_channel(LINES_MAX);
        thread::Builder::new().name("log".to_owned()).spawn(move || write_all(&entries, out))?;
        Ok(LogQueue(sender))
    }

    /// Waits until what was logged is written, for a bounded time.
    pub(in crate::app) fn flush(&self) {
        let (tell, told) = sync_channel(1);
        if self.0.try_send(LogEntry::Flush(tell)).is_ok() {
            // Who does not take the last lines of a log does not hold up the end.
            let _ = told.recv_timeout(FLUSH_TIMEOUT);
        }
    }
}

/// One call is one line.
impl Write for LogQueue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.0.try_send(LogEntry::Line(line.to_vec())).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogQueue {
    type Writer = LogQueue;

    fn make_writer(&self) -> LogQueue {
        self.clone()
    }
}

/// Writes until nobody logs any more.
fn write_all(entries: &Receiver<LogEntry>, mut out: impl Write) {
    let mut batch = LogBatch::default();
    while let Ok(first) = entries.recv() {
        batch.add(first);
        entries.try_iter().take(LINES_MAX).for_each(|entry| batch.add(entry));
        batch.write(&mut out);
        thread::sleep(PAUSE);
    }
}

/// Lines that are written together.
#[derive(Default)]
struct LogBatch {
    bytes: Vec<u8>,
    lines: u64,
    /// Who waits until they are written.
    waiting: Vec<SyncSender<()>>,
}

impl LogBatch {
    fn add(&mut self, entry: LogEntry) {
        match entry {
            LogEntry::Line(line) => {
                self.bytes.extend_from_slice(&line);
                self.lines += 1;
            }
            LogEntry::Flush(tell) => self.waiting.push(tell),
        }
    }

    fn write(&mut self, out: &mut impl Write) {
        if out.write_all(&self.bytes).is_err() {
            DROPPED.fetch_add(self.lines, Ordering::Relaxed);
        }
        self.bytes.clear();
        self.lines = 0;
        self.waiting.drain(..).for_each(|tell| {
            let _ = tell.send(());
        });
    }
}
