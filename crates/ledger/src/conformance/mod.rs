//! The conformance tests that every journal must pass.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod entries;
mod episodes;
mod fixtures;
pub mod model;
mod sealed;
mod sums;

use crate::{AccountId, GroupBy, Journal, MemoryJournal, UsageGroup, UsageQuery};
use stint_types::units::Timestamp;

pub(crate) use fixtures::{NOW, detail, money, thinking, worst};
pub use fixtures::{amounts, dispatched, resolved};
pub use sealed::Sealed;

/// Whatever can be asked of it, the journal answers as a plain list of the same entries does.
pub async fn answers_as(journal: &dyn Journal, plain: &MemoryJournal, moments: &[Timestamp]) {
    assert_eq!(journal.balances().await.unwrap(), plain.balances().await.unwrap());
    let mut starts = moments.to_vec();
    starts.sort();
    assert_eq!(journal.spend_between(&starts).await.unwrap(), plain.spend_between(&starts).await.unwrap());
    for &from in moments {
        assert_eq!(
            journal.spend_since(from).await.unwrap(),
            plain.spend_since(from).await.unwrap(),
            "since {from:?}"
        );
        for (number, &to) in moments.iter().enumerate() {
            let by = GroupBy {
                day: number.is_multiple_of(2),
                key: number % 4 < 2,
                model: number.is_multiple_of(3),
            };
            let account = (number % 3 == 1).then(|| AccountId::new("org0"));
            let after =
                (number % 5 == 4).then(|| UsageGroup { key: "org0/team1".into(), ..UsageGroup::default() });
            let query = UsageQuery { account, from, to, by, after, limit: 2 + number };
            let (is, should) = (journal.usage(&query).await.unwrap(), plain.usage(&query).await.unwrap());
            assert_eq!(is, should, "{query:?}");
        }
    }
}

/// Runs the whole suite on an empty journal.
pub async fn conforms(journal: &dyn Journal) {
    entries::an_empty_journal_has_nothing(journal).await;
    entries::an_open_reservation_comes_back_as_it_was(journal).await;
    entries::extensions_add_up_once_each(journal).await;
    entries::the_first_resolution_stands(journal).await;
    entries::a_batch_is_taken_whole_or_not_at_all(journal).await;
    sums::sums_are_by_account_and_time_of_admission(journal).await;
    sums::sums_tell_quarters_of_an_hour_apart(journal).await;
    sums::sums_tell_models_users_and_tags_apart(journal).await;
    entries::the_last_metering_counts(journal).await;
    episodes::a_step_comes_back_with_its_run_and_its_tool_calls(journal).await;
    sums::what_other_models_took_is_booked_under_them(journal).await;
    entries::a_large_batch_is_one_commit(journal).await;
}
