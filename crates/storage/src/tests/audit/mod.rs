//! Sealing, verifying, backing up and restoring, in both databases.

mod fixture;
mod importing;
mod sealing;
mod tampering;

use std::collections::BTreeMap;

use crate::{Archive, StorageError, restore};
use stint_ledger::conformance::{amounts, dispatched, resolved};
use stint_ledger::{
    Amounts, DispatchEntry, ExtensionEntry, GroupBy, Journal, JournalEntry, Ledger, MeterEntry, ModelSpend,
    RequestScope, ResolutionKind, Settings, UsageQuery, UsageSums,
};
use stint_types::chat::ToolCounts;
use stint_types::tasks::Tasks;
use stint_types::tenant::AccountTerms;
use stint_types::units::{AccountId, Count, Money, Timestamp, Tokens};

use super::{detail, patiently, reserve};
use fixture::BooksFixture;

/// Two sealed days of two requests, one request that is not sealed, and one that is open; each with an extension and
/// a metering.
async fn keep_books(journal: &dyn Journal) {
    for day in 0..3 {
        for number in 0..2 {
            let row = dispatched("acme/alice", 1_000_000 * (day + 1) + number, amounts(50, 60));
            let row = if number == 1 { step(row) } else { row };
            let more = amounts(7, 0);
            let extended = JournalEntry::Extended(ExtensionEntry { id: row.id, step: 1, more, model: None });
            let metered =
                JournalEntry::Metered(MeterEntry { id: row.id, step: 1, spent: amounts(3, 3), at: None });
            let mut end = resolved(
                &row,
                ResolutionKind::Settled,
                Amounts { tool_calls: row.held.tool_calls, ..amounts(20, 10) },
            );
            (end.detail.tools, end.detail.tools_cost) = (row.tools.clone(), row.tools_cost);
            end.detail.parts.add(&"judge".into(), judged());
            let end = JournalEntry::Resolved(end);
            let begun = [JournalEntry::Dispatched(row), extended, metered];
            journal.append(&begun).await.unwrap();
            if (day, number) != (2, 1) {
                journal.append(&[end]).await.unwrap();
            }
        }
        if day < 2 {
            journal.seal(Timestamp(day)).await.unwrap();
        }
    }
}

/// What another model took of each.
fn judged() -> ModelSpend {
    ModelSpend { money: Money(6), thinking: Tokens(2), prompt: Tokens(30), ..ModelSpend::default() }
}

/// The same as a step of a run, with two tool calls.
fn step(row: DispatchEntry) -> DispatchEntry {
    let mut tools = ToolCounts::default();
    tools.add(&"search".into(), Count(2));
    let about = RequestScope { episode: Some("run".parse().unwrap()), ..row.about };
    let held = Amounts { tool_calls: Count(2), ..row.held };
    DispatchEntry { about, held, tools, tools_cost: Money(4), ..row }
}

/// LB-24: what is read at a start is what all entries come to.
#[tokio::test]
async fn books_that_were_kept_are_right() {
    for fixture in BooksFixture::both() {
        keep_books(&*fixture.journal().await).await;
        let report = fixture.verify().await;
        assert_eq!(report.differences, Vec::<String>::new());
        assert_eq!((report.resolutions, report.sealed, report.seals, report.open), (5, 4, 2, 1));
        assert_eq!(report.spent, Money(100));
    }
}

/// As every end of a step has it whose tools nothing limits.
#[tokio::test]
async fn calls_that_nothing_limits_are_set_aside_by_nobody_and_no_overrun() {
    for fixture in BooksFixture::both() {
        let journal = fixture.journal().await;
        for (at, overrun) in [(1, Count::ZERO), (2, Count(3)), (3, Count(2))] {
            let row = dispatched("acme/alice", at, amounts(50, 60));
            let mut end =
                resolved(&row, ResolutionKind::Settled, Amounts { tool_calls: Count(3), ..amounts(20, 10) });
            end.overrun.tool_calls = overrun;
            journal.append(&[JournalEntry::Dispatched(row), JournalEntry::Resolved(end)]).await.unwrap();
        }
        let differences = fixture.verify().await.differences;
        assert_eq!(differences.len(), 1, "none or all of them: {differences:?}");
        assert!(differences[0].contains("the overrun"), "{differences:?}");
    }
}

#[tokio::test]
async fn the_books_are_sealed_once_a_day() {
    const DAY: i64 = 24 * 3600 * 1000;
    for fixture in BooksFixture::both() {
        let (tasks, now) = (Tasks::default(), Timestamp(500 * DAY - 1));
        let terms = [AccountTerms::unlimited(AccountId::new("anonymous"))];
        let (journal, observer) = (fixture.journal().await, std::sync::Arc::new(()));
        let ledger = Ledger::open(&tasks, journal, observer, Settings::default(), &terms, now).await.unwrap();
        assert_eq!(ledger.seal_daily(now).await.unwrap(), [], "nothing is not sealed");
        for (now, seals) in [(now, 1), (now, 0), (Timestamp(500 * DAY), 1), (Timestamp(501 * DAY - 1), 0)] {
            let mut reservation = reserve(&ledger, 10);
            reservation.dispatch().await.unwrap();
            let settling = reservation.settle(Money(3), Tokens(1), detail());
            assert!(settling.wait_durable(std::time::Duration::from_secs(60)).await.is_recorded());
            assert_eq!(ledger.seal_daily(now).await.unwrap().len(), seals, "{now}");
        }
        assert!(fixture.verify().await.is_right());
    }
}

#[tokio::test]
async fn the_books_can_be_read_and_copied_beside_who_writes_them() {
    for fixture in BooksFixture::both() {
        let journal = fixture.journal().await;
        keep_books(&*journal).await;
        let mut archive = fixture.archive().await;
        assert!(archive.verify().await.unwrap().is_right());
        let row = dispatched("acme/alice", 9_000_000, amounts(50, 60));
        journal.append(&[JournalEntry::Dispatched(row)]).await.unwrap();
        assert_eq!(archive.verify().await.unwrap().open, 2, "it sees what is committed meanwhile");
        let copy = fixture.path("copy");
        let report = archive.back_up(&copy).await.unwrap();
        assert_eq!(report, archive.verify().await.unwrap());
        let refused = archive.back_up(&copy).await.unwrap_err();
        assert!(refused.to_string().contains("there is no such file"), "{refused}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[tokio::test]
async fn a_backup_is_restored_where_nothing_stands() {
    for (fixture, elsewhere) in BooksFixture::both().into_iter().zip(BooksFixture::both()) {
        let copy = fixture.path("copy");
        keep_books(&*fixture.journal().await).await;
        fixture.archive().await.back_up(&copy).await.unwrap();
        let told = Archive::open(&elsewhere.settings()).await.unwrap_err().to_string();
        assert!(told.starts_with("there are no books at"), "{told}");
        let restored = restore(&copy, &elsewhere.settings(), false).await.unwrap();
        assert_eq!((restored.aside, restored.report.resolutions), (None, 5));
        assert_eq!(restored.report, fixture.verify().await);
        let journal = elsewhere.journal().await;
        assert_eq!(journal.balances().await.unwrap()[0].spent.money, Money(100));
        journal.seal(Timestamp(9)).await.unwrap().expect("the fifth is sealed here");
        keep_books(&*journal).await;
        assert_eq!(elsewhere.verify().await.differences, Vec::<String>::new());
        if elsewhere.is_server() {
            let refused = restore(&copy, &elsewhere.settings(), false).await.unwrap_err().to_string();
            assert!(refused.contains("is not empty"), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_file_that_stands_there_is_moved_aside_and_a_database_is_not() {
    let (file, server) = (BooksFixture::file(), BooksFixture::server());
    for fixture in [&file, &server] {
        keep_books(&*fixture.journal().await).await;
        fixture.archive().await.back_up(&fixture.path("copy")).await.unwrap();
    }
    let journal = file.journal().await;
    let refused = restore(&file.path("copy"), &file.settings(), true).await.unwrap_err().to_string();
    assert!(refused.starts_with("another stint process"), "{refused}");
    journal.append(&[JournalEntry::Dispatched(dispatched("later", 1, amounts(1, 1)))]).await.unwrap();
    drop(journal);
    let refused = patiently(async || match restore(&file.path("copy"), &file.settings(), false).await {
        Err(StorageError::Exists(path)) => Ok(path),
        other => other.map(|restored| restored.aside.unwrap_or_default()),
    });
    assert_eq!(refused.await, file.path("stint.db"), "it is there already");
    let restored = patiently(async || restore(&file.path("copy"), &file.settings(), true).await).await;
    let aside = super::open(&restored.aside.unwrap()).await;
    assert_eq!(aside.unresolved().await.unwrap().len(), 2);
    assert_eq!(file.journal().await.unresolved().await.unwrap().len(), 1);

    let before = server.verify().await;
    let refused = restore(&server.path("copy"), &server.settings(), true).await.unwrap_err().to_string();
    assert!(refused.contains("is not empty"), "{refused}");
    assert_eq!(server.verify().await, before);
}

#[tokio::test]
async fn a_backup_that_is_wrong_is_not_restored() {
    for (fixture, nowhere) in BooksFixture::both().into_iter().zip(BooksFixture::both()) {
        let copy = fixture.path("copy");
        keep_books(&*fixture.journal().await).await;
        fixture.tamper("UPDATE resolutions SET money = 1 WHERE number = 1").await;
        assert!(!fixture.archive().await.back_up(&copy).await.unwrap().is_right());
        let refused = restore(&copy, &nowhere.settings(), false).await.unwrap_err().to_string();
        assert!(refused.contains("its books are wrong"), "{refused}");
        let told = Archive::open(&nowhere.settings()).await.unwrap_err().to_string();
        assert!(told.starts_with("there are no books at"), "nothing is left of an attempt: {told}");
        let mut half = std::fs::read(&copy).unwrap();
        half.truncate(half.len() / 2);
        for broken in [&half[..], b"something else entirely"] {
            std::fs::write(&copy, broken).unwrap();
            let refused = restore(&copy, &nowhere.settings(), false).await.unwrap_err().to_string();
            let is_named = refused.contains("is no whole database");
            assert!(is_named || fixture.is_server(), "the disk has nothing to do with it: {refused}");
        }
        fixture.archive().await.back_up(&fixture.path("other")).await.unwrap();
    }
}

/// What a backup onto a full disk leaves. `SQLite` takes it for a database without tables, whose books would be right.
#[tokio::test]
async fn an_empty_file_is_not_restored() {
    let nowhere = BooksFixture::file();
    let empty = nowhere.path("empty");
    std::fs::write(&empty, b"").unwrap();
    let refused = restore(&empty, &nowhere.settings(), true).await.unwrap_err().to_string();
    assert!(refused.contains("holds no books"), "{refused}");
    let told = Archive::open(&nowhere.settings()).await.unwrap_err().to_string();
    assert!(told.starts_with("there are no books at"), "nothing is left of an attempt: {told}");
}

#[tokio::test]
async fn a_backup_of_something_else_is_not_restored() {
    let (fixture, nowhere) = (BooksFixture::server(), BooksFixture::server());
    let copy = fixture.path("copy");
    keep_books(&*fixture.journal().await).await;
    fixture.archive().await.back_up(&copy).await.unwrap();
    let in_schema = nowhere.in_schema("elsewhere").await;
    let refused = restore(&copy, &in_schema, false).await.unwrap_err().to_string();
    assert!(refused.contains("holds no books"), "{refused}");
    let told = Archive::open(&in_schema).await.unwrap_err().to_string();
    assert!(told.starts_with("there are no books at"), "{told}");
}

#[tokio::test]
async fn an_export_shows_every_resolution_and_comes_to_the_balances() {
    for fixture in BooksFixture::both() {
        keep_books(&*fixture.journal().await).await;
        let (mut sums, mut numbers) = (UsageSums::default(), Vec::new());
        let mut archive = fixture.archive().await;
        let shown = archive.each(|record| {
            sums.add(&record.resolved);
            numbers.push(record.number);
            assert_eq!(record.held().money, Money(57));
            Ok(())
        });
        shown.await.unwrap();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(used(&mut archive, false).await, [("".to_owned(), sums)]);
    }
}

async fn used(archive: &mut Archive, model: bool) -> Vec<(String, UsageSums)> {
    let by = GroupBy { model, ..GroupBy::default() };
    let (from, to) = (Timestamp(i64::MIN), Timestamp(i64::MAX));
    let query = UsageQuery { account: None, from, to, by, after: None, limit: 10 };
    let used = archive.usage(&query).await.unwrap();
    used.into_iter().map(|usage| (usage.group.model.to_string(), usage.sums)).collect()
}

/// By model, what an export shows, what use comes to, sealed or not, and what is restored from a backup are the same.
#[tokio::test]
async fn parts_are_the_same_wherever_they_are_read() {
    for (fixture, elsewhere) in BooksFixture::both().into_iter().zip(BooksFixture::both()) {
        let journal = fixture.journal().await;
        keep_books(&*journal).await;
        let mut archive = fixture.archive().await;
        let mut shares = BTreeMap::<String, UsageSums>::new();
        let shown = archive.each(|record| {
            for (model, share) in record.resolved.shares() {
                *shares.entry(model.unwrap().to_string()).or_default() += share;
            }
            Ok(())
        });
        shown.await.unwrap();
        let shares: Vec<_> = shares.into_iter().collect();
        let money: Vec<_> = shares.iter().map(|(model, sums)| (model.as_str(), sums.spent.money.0)).collect();
        assert_eq!(money, [("judge", 5 * 6), ("reasoner", 5 * 14)]);
        assert_eq!(used(&mut archive, true).await, shares);
        journal.seal(Timestamp(9)).await.unwrap().unwrap();
        assert_eq!(used(&mut archive, true).await, shares);
        assert_eq!(archive.verify().await.unwrap().differences, Vec::<String>::new());
        archive.back_up(&fixture.path("copy")).await.unwrap();
        restore(&fixture.path("copy"), &elsewhere.settings(), false).await.unwrap();
        assert_eq!(used(&mut elsewhere.archive().await, true).await, shares);
    }
}
