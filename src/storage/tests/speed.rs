//! How fast it is; run with `cargo test --release storage::tests::speed -- --ignored --nocapture`.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::tasks::Tasks;
use crate::units::{Money, Timestamp, Tokens};

use super::super::{Sqlite, SqliteJournal, SqliteSettings, Synchronous};
use super::{detail, ledger, reserve};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn reserve_dispatch_and_settle() {
    for (synchronous, callers) in [Synchronous::Full, Synchronous::Normal]
        .into_iter()
        .flat_map(|mode| [1, 16, 64, 256].map(|n| (mode, n)))
    {
        let folder = tempfile::tempdir_in(".").unwrap();
        let settings = SqliteSettings { path: folder.path().join("stint.db"), synchronous };
        let (tasks, requests) = (Tasks::default(), Tasks::default());
        let journal = SqliteJournal::new(std::sync::Arc::new(Sqlite::open(&settings).await.unwrap()));
        let ledger = ledger(&tasks, journal, Timestamp::now()).await;
        let began = Instant::now();
        for _ in 0..callers {
            let ledger = ledger.clone();
            requests.spawn(async move {
                while began.elapsed() < Duration::from_secs(2) {
                    let mut reservation = reserve(&ledger, 10);
                    reservation.dispatch().await.unwrap();
                    let settling = reservation.settle(Money(3), Tokens(1), detail());
                    assert!(settling.journalled(Duration::from_secs(60)).await.journalled);
                }
            });
        }
        assert!(requests.drain(Duration::from_secs(60)).await);
        let (settled, took) = (ledger.totals()[0].settled, began.elapsed());
        let (per_second, stats) = (u128::from(settled) * 1000 / took.as_millis(), ledger.stats());
        let batch = stats.entries / stats.commits.max(1);
        writeln!(
            std::io::stdout(),
            "{synchronous:?} {callers:>3} callers: {per_second:>6}/s, {batch} entries a commit"
        )
        .unwrap();
    }
}
