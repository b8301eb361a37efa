//! Checkpoints beside the writer: what was committed is moved from the log (`-wal`) into the file by a connection of its own, so
//! that a commit does not wait until the disk has it all.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{Connection, SqliteConnection};
use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::sql::{SqlConnection, Statement};

/// Commits between two checkpoints. One writes some ten pages under load.
const COMMITS_EVERY: u32 = 128;
/// The writer does it itself once so many pages are in the log, 32 MiB: the log begins anew only when all of it is in the file, and
/// while there is always a newer commit, only the writer finds that moment.
pub(super) const LOG_PAGES_MAX: &str = "8192";

/// The connection that does it, and when it is due.
#[derive(Debug)]
pub(super) struct BackgroundCheckpoints {
    connection: Mutex<SqliteConnection>,
    commits: AtomicU32,
    due: Notify,
}

impl BackgroundCheckpoints {
    pub(super) fn new(connection: SqliteConnection) -> BackgroundCheckpoints {
        BackgroundCheckpoints {
            connection: Mutex::new(connection),
            commits: AtomicU32::new(0),
            due: Notify::new(),
        }
    }

    /// Counts a commit.
    pub(super) fn committed(&self) {
        if self.commits.fetch_add(1, Ordering::Relaxed) % COMMITS_EVERY == COMMITS_EVERY - 1 {
            self.due.notify_one();
        }
    }

    /// Keeps the log short until then. What fails is left to the writer, whose commits say what is wrong with a disk.
    pub(super) async fn run(&self, until: impl Future<Output = ()>) {
        let mut until = pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return,
                () = self.due.notified() => {}
            }
            let checkpoint = Statement::new("PRAGMA wal_checkpoint(PASSIVE)");
            let _ = self.connection.lock().await.fetch_optional(checkpoint).await;
        }
    }

    /// Waits for the one that runs, and lets none begin until the guard is dropped.
    pub(super) async fn pause(&self) -> MutexGuard<'_, SqliteConnection> {
        self.connection.lock().await
    }

    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        self.connection.into_inner().close().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::database::Sqlite;
    use super::*;
    use crate::{SqliteSettings, Synchronous};
    use stint_types::tasks::Tasks;

    #[tokio::test]
    async fn what_was_committed_is_soon_in_the_file_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stint.db");
        let settings = SqliteSettings { path: path.clone(), synchronous: Synchronous::Normal };
        let database = Arc::new(Sqlite::open(&settings).await.unwrap());
        let (running, tasks) = (database.clone(), Tasks::default());
        let until = tasks.stopping();
        tasks.spawn(async move { running.run_checkpoints(until).await });
        database.checkpoint().await.unwrap();
        let length = || std::fs::metadata(&path).unwrap().len();
        let before = length();
        for number in 0..COMMITS_EVERY {
            let insert = "INSERT INTO learned (replica, saved_at, has_left, state) VALUES (?, 1, 0, ?)";
            let insert = Statement::new(insert).bind(format!("{number}").as_str()).bind("x".repeat(4000));
            database.write_together(vec![insert]).await.unwrap();
        }
        let moved = before + 64 * 4096;
        for _ in 0..1000 {
            if length() > moved {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(length() > moved, "{before} bytes, then {}", length());
        tasks.stop();
        database.checkpoint().await.unwrap();
    }
}
