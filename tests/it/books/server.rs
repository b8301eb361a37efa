//! The books in PostgreSQL, in an operator's hands.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::harness::Process;
use crate::harness::cluster::cluster;
use crate::harness::patience::until;

use super::desk::{Desk, text};
use super::{load, question};

/// What was verified, in a line of words.
fn verified(printed: &str) -> String {
    assert!(printed.contains("the books are right"), "{printed}");
    printed.lines().find(|line| line.contains("resolutions, ")).unwrap().to_owned()
}

/// CR-14, for this database: a backup that is taken while gateways write is right, and what is restored from it starts.
#[tokio::test]
async fn a_backup_of_postgres_taken_under_load_is_right_and_starts() {
    let (desk, other) = (Desk::server(), Desk::server());
    let process = Arc::new(desk.serve());
    process.ask("sk-test", &question("reasoner")).await.good();
    let stop = tokio_util::sync::CancellationToken::new();
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(load(process.clone(), stop.clone()))).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (desk, copied) = tokio::task::spawn_blocking(move || {
        let backup = &desk.path("backup.dump");
        let copied = verified(&desk.ledger(&["backup", backup]));
        assert_eq!(std::fs::metadata(backup).unwrap().permissions().mode() & 0o777, 0o600);
        verified(&desk.ledger(&["verify"]));
        assert!(desk.ledger(&["seal"]).starts_with("seal 1: "));
        verified(&desk.ledger(&["verify"]));
        assert!(desk.refused("ledger", &["backup", backup]).contains("no such file"));
        assert!(desk.refused("ledger", &["restore", backup, "--force"]).contains("is not empty"));
        (desk, copied)
    })
    .await
    .unwrap();
    stop.cancel();
    for caller in callers {
        caller.await.unwrap();
    }
    verified(&desk.ledger(&["verify"]));
    assert_eq!(verified(&other.ledger(&["restore", &desk.path("backup.dump")])), copied);
    let restored = other.serve();
    restored.ask("sk-test", &question("reasoner")).await.good();
    let is_sealed = async || other.ledger(&["verify"]).contains("; 1 seals cover");
    until("a day was missed, so it is sealed", is_sealed).await;
}

/// A gateway that outgrew its file goes on in PostgreSQL with the same books, also where it was killed with requests in flight.
#[tokio::test]
async fn the_books_of_a_file_go_on_in_postgres() {
    let (desk, server) = (Desk::file(), Desk::server());
    let process = Arc::new(desk.serve());
    let stop = tokio_util::sync::CancellationToken::new();
    for _ in 0..3 {
        process.ask("sk-test", &question("reasoner")).await.good();
    }
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(load(process.clone(), stop.clone()))).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    process.signal("KILL");
    callers.iter().for_each(tokio::task::JoinHandle::abort);
    for caller in callers {
        let _ = caller.await;
    }
    drop(process);
    let before = verified(&desk.ledger(&["verify"]));
    assert_eq!(verified(&server.ledger(&["restore", &desk.path("ledger.db")])), before);
    assert_eq!(verified(&desk.ledger(&["verify"])), before, "the file is as it was");
    let process = server.serve();
    let is_resolved = async || server.ledger(&["verify"]).contains("; 0 open");
    until("what was open is posted", is_resolved).await;
    process.ask("sk-test", &question("reasoner")).await.good();
    let shown: serde_json::Value =
        serde_json::from_str(&server.run("keys", &["show", "test", "--json"])).unwrap();
    let page = process.get("sk-test", "/v1/allowance").await.good();
    assert_eq!(shown["standing"], page["limits"]);
    let requests = |printed: &str| -> u64 { printed.split(' ').next().unwrap().parse().unwrap() };
    assert!(requests(&verified(&server.ledger(&["verify"]))) > requests(&before).max(3));
}

/// Puts a program of that name before all others; says the path.
fn put(desk: &Desk, name: &str, script: &str) -> String {
    let (folder, usual) = (desk.path("bin"), std::env::var("PATH").unwrap());
    std::fs::create_dir_all(&folder).unwrap();
    let program = format!("{folder}/{name}");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{folder}:{usual}")
}

fn backed_up(desk: &Desk, path: &str) -> String {
    let mut command: Command = desk.stint("ledger");
    text(&command.args(["backup", &desk.path("copy.dump")]).env("PATH", path).output().unwrap())
}

/// CF-06: a list of processes shows no password.
#[tokio::test]
async fn the_programs_of_postgres_are_named_where_they_are_missing_or_old_and_see_no_password_on_their_line()
{
    let desk = Desk::server();
    drop(desk.serve());
    let printed = backed_up(&desk, &desk.path("nowhere"));
    assert!(printed.contains("on Debian the package postgresql-client)"), "{printed}");
    let path = put(&desk, "pg_dump", "#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.24'\n");
    let printed = backed_up(&desk, &path);
    assert!(printed.contains("is of PostgreSQL 9, older than the server's"), "{printed}");
    let lines = desk.path("lines");
    let real = String::from_utf8(Command::new("which").arg("pg_dump").output().unwrap().stdout).unwrap();
    let script = format!("#!/bin/sh\necho \"$@\" >>{lines}\nexec {} \"$@\"\n", real.trim());
    let path = put(&desk, "pg_dump", &script);
    let printed = backed_up(&desk, &path);
    assert!(printed.contains("the books are right"), "{printed}");
    let lines = std::fs::read_to_string(lines).unwrap();
    assert!(lines.contains("--snapshot") && !lines.contains("sesame"), "{lines}");
    let cut = desk.url.clone().unwrap();
    cluster().cut(&cut);
    let printed = backed_up(&desk, &path);
    assert!(printed.contains("cannot connect to PostgreSQL") && !printed.contains("sesame"), "{printed}");
}

/// The limits of a key stand where gateways run as `/v1/allowance` says.
#[tokio::test]
async fn a_key_shows_how_its_limits_stand_in_either_database() {
    let admin = "[admin]\nlisten = \"127.0.0.1:0\"\ntoken_env = \"NOBODY_SET_THIS\"\n";
    let desk = Desk::server_with(admin);
    assert!(desk.refused("check", &[]).contains("NOBODY_SET_THIS is not set"));
    assert!(desk.refused("keys", &["show", "nobody"]).contains("--account"));
    let process = desk.folder.serve_by({
        let mut serve = desk.stint("serve");
        serve.env("NOBODY_SET_THIS", "a-token-that-is-long-enough");
        serve
    });
    process.ask("sk-test", &question("reasoner")).await.good();
    let shown = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&desk.run("keys", &[words, &["--json"]].concat())).unwrap()
    };
    let of_key = shown(&["show", "test"]);
    same_standing(&process, &of_key).await;
    // The same limits, seen from the account.
    let of_account = shown(&["show", "test", "--account"]);
    let by_account = of_key["standing"].to_string().replace("\"key money", "\"account test money");
    assert_eq!(of_account["standing"].to_string(), by_account);
    assert!(desk.run("keys", &["list"]).contains("test"));
    assert!(desk.run("usage", &[]).contains("reasoner"));
    let printed = desk.run("keys", &["show", "test"]);
    assert!(printed.contains("key money total") && printed.contains(" of 5"), "{printed}");

    let desk = Desk::file();
    let mut process = desk.serve();
    process.ask("sk-test", &question("reasoner")).await.good();
    let page = process.get("sk-test", "/v1/allowance").await.good();
    process.signal("TERM");
    process.ended();
    let shown: serde_json::Value =
        serde_json::from_str(&desk.run("keys", &["show", "test", "--json"])).unwrap();
    assert_eq!(shown["standing"], page["limits"]);
}

async fn same_standing(process: &Process, shown: &serde_json::Value) {
    let page = process.get("sk-test", "/v1/allowance").await.good();
    assert_ne!(page["limits"][0]["spent"], json!("0"));
    assert_eq!(shown["standing"], page["limits"]);
}

/// A second start finds the tables there, which is no news; where its address is taken, it ends.
#[tokio::test]
async fn a_start_on_tables_that_are_there_says_nothing_of_them() {
    let desk = Desk::server();
    let process = desk.serve();
    let address = process.base.trim_start_matches("http://");
    let mut second = desk.stint("serve");
    let printed = text(&second.env("STINT_LISTEN", address).env("STINT_LOG", "info").output().unwrap());
    assert!(printed.contains(address) && !printed.contains("already exists"), "{printed}");
}

#[test]
fn a_ledger_in_two_places_is_refused() {
    let desk = Desk::server();
    let printed = text(&desk.stint("check").env("STINT_LEDGER", "elsewhere.db").output().unwrap());
    assert!(
        printed.contains("ledger.url_env: a second place for the ledger: STINT_LEDGER is set"),
        "{printed}"
    );
    let printed = text(&desk.stint("check").env("DATABASE_URL", "mysql://me:sesame@db/x").output().unwrap());
    assert!(
        printed.contains("ledger.url_env: what it names is no address of a PostgreSQL database"),
        "{printed}"
    );
    assert!(!printed.contains("sesame"), "{printed}");
}
