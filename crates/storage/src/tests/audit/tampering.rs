//! If anybody changes the data behind the ledger's back, a verification reports it.

use super::fixture::BooksFixture;
use super::keep_books;

async fn check(fixture: BooksFixture, sql: &'static str, told: &str) {
    keep_books(&*fixture.journal().await).await;
    fixture.tamper(sql).await;
    let report = fixture.verify().await;
    let is_told = report.differences.iter().any(|difference| difference.contains(told));
    assert!(is_told, "{told:?} is not among {:#?} after {sql}", report.differences);
}

async fn check_found(sql: &'static str, told: &str) {
    for fixture in BooksFixture::both() {
        check(fixture, sql, told).await;
    }
}

#[tokio::test]
async fn a_change_to_a_row_of_any_kind_is_found() {
    check_found("UPDATE reservations SET price_output = 1 WHERE admitted_at = 1000000", "the hash of seal 1")
        .await;
    check_found("UPDATE reservations SET end_user = 'x' WHERE admitted_at = 2000001", "the hash of seal 2")
        .await;
    check_found("UPDATE reservations SET account = 'acme/bob' WHERE admitted_at = 3000000", "the account of")
        .await;
    check_found("UPDATE extensions SET model = 'x'", "the hash of seal 1").await;
    check_found("UPDATE meterings SET thinking = 9", "the hash of seal 2").await;
    check_found("UPDATE resolutions SET outcome = 'x' WHERE number = 2", "the hash of seal 1").await;
    check_found("UPDATE resolutions SET money = 21 WHERE number = 3", "a rollup of seal 2").await;
    check_found("UPDATE resolutions SET money = 21 WHERE number = 3", "a balance").await;
    check_found("UPDATE resolutions SET money = 90 WHERE number = 5", "the overrun of resolution 5").await;
    check_found(
        "UPDATE resolutions SET how = 'voided' WHERE number = 5",
        "the voided charge of resolution 5",
    )
    .await;
    check_found("UPDATE resolutions SET how = 'x' WHERE number = 5", "a row cannot be read").await;
    check(
        BooksFixture::file(),
        "UPDATE seals SET hash = zeroblob(32) WHERE number = 1",
        "the hash of seal 2",
    )
    .await;
    check(
        BooksFixture::server(),
        "UPDATE seals SET hash = decode(repeat('00', 32), 'hex') WHERE number = 1",
        "the hash of seal 2",
    )
    .await;
    check_found("UPDATE seals SET sealed_at = 9 WHERE number = 2", "the hash of seal 2").await;
    check_found("UPDATE rollups SET money = money + 1 WHERE seal = 1", "a rollup of seal 1").await;
    check_found("UPDATE rollups SET solution = 0 WHERE seal = 2", "a rollup of seal 2").await;
    let told = "a rollup of seal 1: all time, account acme/alice";
    check_found("UPDATE rollups SET money = money + 1 WHERE seal = 1 AND span = 0", told).await;
    check_found("UPDATE rollups SET money = money + 1 WHERE seal = 1 AND span = 0", " dollars, ").await;
    check_found("UPDATE rollups SET thinking = 1 WHERE seal = 2 AND span = 0", "a balance:").await;
}

#[tokio::test]
async fn a_raise_of_a_run_without_its_entry_is_found() {
    let run = "INSERT INTO episodes (account, id, limits, context, ended, steps, used_at) VALUES \
               ('acme', 'r', '{\"cost\":9,\"raised\":{\"cost\":5,\"tools\":{\"x\":1},\"raises\":1}}', 0, 'open', 0, 1)";
    check_found(run, "the run acme r is raised by something else").await;
    let other = "INSERT INTO episodes (account, id, limits, context, ended, steps, used_at) VALUES \
                 ('acme', 'r', '{\"cost\":9}', 0, 'open', 0, 1); \
                 INSERT INTO episode_raises VALUES ('acme', 'r', 1, 1, 0, 0, 0, 0, '{\"x\":2}', 0)";
    check_found(other, "the run acme r is raised by something else").await;
}

#[tokio::test]
async fn a_change_to_the_log_of_admins_is_found() {
    for fixture in BooksFixture::both() {
        keep_books(&*fixture.journal().await).await;
        fixture.keep_changes(3).await;
        let report = fixture.verify().await;
        assert_eq!((report.changes, &*report.differences), (3, &[][..]));
    }
    for (sql, told) in [
        ("UPDATE admin_changes SET who = 'x' WHERE number = 2", "change 2 is not as it was written"),
        ("UPDATE admin_changes SET new_value = NULL WHERE number = 1", "change 1 is not as it was written"),
        ("DELETE FROM admin_changes WHERE number = 2", "change 2 is not there"),
        ("DELETE FROM admin_changes WHERE number = 3", "end with 2, and there were others"),
        ("UPDATE admin_changes_head SET number = 2", "end with 3, and there were others"),
    ] {
        for fixture in BooksFixture::both() {
            fixture.keep_changes(3).await;
            check(fixture, sql, told).await;
        }
    }
}

#[tokio::test]
async fn a_row_that_is_missing_is_found() {
    check_found("DELETE FROM reservations WHERE admitted_at = 3000000", "has no reservation").await;
    check_found("DELETE FROM extensions", "the hash of seal 1").await;
    check_found("DELETE FROM meterings", "the hash of seal 1").await;
    check_found("DELETE FROM resolutions WHERE number = 2", "the number of resolutions of seal 1: 2").await;
    check_found("DELETE FROM seals WHERE number = 1", "the number of seal 2").await;
    check_found("DELETE FROM rollups WHERE seal = 2", "a rollup of seal 2").await;
    check_found("DELETE FROM rollups WHERE seal = 1 AND span = 86400000", "a rollup of seal 1").await;
}

#[tokio::test]
async fn an_open_reservation_that_is_missing_or_out_of_place_is_found() {
    let file = async |sql, told| check(BooksFixture::file(), sql, told).await;
    let server = async |sql, told| check(BooksFixture::server(), sql, told).await;
    file(
        "DELETE FROM reservations WHERE admitted_at = 3000001",
        "is among the open reservations and is none",
    )
    .await;
    server("DELETE FROM reservations WHERE admitted_at = 3000001", "there is an extension of").await;
    server("DELETE FROM reservations WHERE admitted_at = 3000001", "there is a metering of").await;
    file("DELETE FROM resolutions WHERE number = 5", "neither a resolution nor a place").await;
    server(
        "INSERT INTO replicas (name, expires_at, is_over) VALUES ('x', now(), TRUE); \
         UPDATE reservations SET epoch = 1 WHERE admitted_at < 3000001; DELETE FROM resolutions WHERE number = 5",
        "has no resolution, though all was posted",
    )
    .await;
    file("DELETE FROM open_reservations", "neither a resolution nor a place").await;
    file(
        "INSERT INTO open_reservations SELECT reservation FROM resolutions LIMIT 1",
        "is among the open reservations and is resolved",
    )
    .await;
}

#[tokio::test]
async fn a_row_that_is_there_twice_is_found() {
    check(
        BooksFixture::file(),
        "CREATE TABLE copy AS SELECT * FROM resolutions; \
         INSERT INTO copy SELECT number + 5, reservation, how, account, model, end_user, tag, admitted_at, resolved_at, \
             money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, \
             solution, other, outcome, episode, tools, tools_cost, turns FROM copy WHERE number = 5; \
         DROP TABLE resolutions; ALTER TABLE copy RENAME TO resolutions; \
         CREATE INDEX resolutions_by_admission ON resolutions (admitted_at)",
        "is resolved more than once",
    )
    .await;
    check(
        BooksFixture::server(),
        "INSERT INTO resolutions (reservation, how, account, model, end_user, tag, admitted_at, resolved_at, \
             money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, \
             solution, other, outcome) \
         SELECT reservation, how, account, model, end_user, tag, admitted_at, resolved_at, \
             money, thinking, tool_calls, overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, \
             solution, other, outcome FROM resolutions WHERE number = 5",
        "is resolved more than once",
    )
    .await;
}

#[tokio::test]
async fn a_run_or_a_tool_call_that_was_changed_is_found() {
    check_found("UPDATE resolutions SET turns = 0 WHERE number = 2", "resolution 2").await;
    check_found("UPDATE resolutions SET turns = 0; UPDATE reservations SET turns = 0", "the hash of seal 1")
        .await;
    check_found("UPDATE resolutions SET episode = 'other' WHERE number = 2", "the run of resolution 2").await;
    check_found("UPDATE resolutions SET tools = '{\"browse\":1}' WHERE number = 2", "the hash of seal 1")
        .await;
    check_found("UPDATE resolutions SET tools_cost = 3 WHERE number = 2", "the hash of seal 1").await;
    check_found("UPDATE reservations SET tools_cost = 3 WHERE admitted_at = 1000001", "the hash of seal 1")
        .await;
    check_found(
        "UPDATE resolutions SET tools = '{\"search\":9}' WHERE number = 4",
        "the tool calls of resolution 4",
    )
    .await;
    check_found("UPDATE resolutions SET tools = '{' WHERE number = 4", "a row cannot be read").await;
}

#[tokio::test]
async fn a_part_that_was_changed_moved_taken_away_or_put_there_is_found() {
    check_found("UPDATE resolution_parts SET money = money - 1", "the hash of seal 1").await;
    check_found("UPDATE resolution_parts SET prompt = 31", "a rollup of seal 2").await;
    check_found("UPDATE resolution_parts SET model = 'other'", "the hash of seal 2").await;
    check_found("DELETE FROM resolution_parts", "the hash of seal 1").await;
    let told = "judge\", part of what reasoner answered is not there";
    check_found("DELETE FROM rollups WHERE part_of IS NOT NULL AND seal = 1 AND span = 0", told).await;
    check_found(
        "UPDATE rollups SET money = 1 WHERE part_of IS NOT NULL AND span = 900000",
        "a rollup of seal 1",
    )
    .await;
    let told = "the parts of resolution 5";
    check_found("UPDATE resolution_parts SET money = 21", told).await;
    check_found("UPDATE resolution_parts SET thinking = 11", told).await;
    check_found("UPDATE resolution_parts SET model = 'reasoner'", told).await;
    check_found(
        "INSERT INTO resolution_parts SELECT id, 'x', 1, 1, 1, 1, 1, 1 FROM reservations WHERE admitted_at = 3000001",
        "there is a part of",
    )
    .await;
    check_found("UPDATE resolution_parts SET other = -1", "a part of").await;
}

#[tokio::test]
async fn a_negative_amount_is_found() {
    check_found("UPDATE reservations SET money = -1 WHERE admitted_at = 3000001", "has a negative amount")
        .await;
    check_found("UPDATE extensions SET thinking = -1", "an extension of").await;
    check_found("UPDATE meterings SET money = -1", "a metering of").await;
    check_found("UPDATE resolutions SET prompt = -1 WHERE number = 5", "the resolution of").await;
}

#[tokio::test]
async fn entries_and_seals_are_not_changed_by_accident() {
    for fixture in BooksFixture::both() {
        keep_books(&*fixture.journal().await).await;
        for table in ["reservations", "extensions", "meterings", "resolutions", "resolution_parts", "seals"] {
            let column = if table == "seals" { "sealed_at" } else { "money" };
            for sql in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET {column} = 1")] {
                let refused = fixture.refusal(sql).await;
                assert!(refused.contains("immutable"), "{table}: {refused}");
            }
        }
    }
}
