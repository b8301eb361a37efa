//! However much there is, the page stays small.

use std::fmt::Write as _;

use serde_json::Value;
use sqlx::{Connection, SqliteConnection};

use super::load::Desk;

/// The most bytes of any part.
const PART_MAX: usize = 200_000;

#[tokio::test(flavor = "multi_thread")]
async fn with_ten_thousand_runs_and_two_hundred_models_every_part_stays_small() {
    let desk = crowded().await;
    for (part, list, most) in [
        ("now", "targets", 60),
        ("now", "models", 12),
        ("thinking", "models", 40),
        ("thinking", "curves", 8),
        ("money", "accounts", 20),
        ("money", "spenders", 12),
        ("episodes", "episodes", 20),
        ("decisions", "decisions", 50),
    ] {
        let answer = desk.part(part).await;
        let told: Value = answer.good();
        let entries = told[list].as_array().unwrap_or_else(|| panic!("{part}: {told}")).len();
        assert!(entries <= most && answer.text.len() < PART_MAX, "{part}: {entries}, {}", answer.text.len());
    }
    let runs = desk.part("episodes?limit=3").await.good();
    let names: Vec<&str> =
        runs["episodes"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    assert_eq!((names, &runs["has_more"]), (vec!["run-9999", "run-9998", "run-9997"], &true.into()));
    assert_eq!(desk.part("now").await.good()["targets_count"], 201);
    assert_eq!(desk.part("now?limit=1001").await.status, 400);
    assert_eq!(desk.part("nothing").await.status, 404);
}

/// A server of two hundred models, with as many limited keys, and ten thousand runs in its store.
pub(super) async fn crowded() -> Desk {
    let mut more = String::from("[[backend]]\nbase_url = \"http://127.0.0.1:1/v1\"\n");
    for model in 0..200 {
        let _ = writeln!(
            more,
            "[[backend.model]]\nname = \"model-{model}\"\nprice_input = \"1\"\nprice_output = \"4\"\nthinking_max = 4096"
        );
    }
    for key in 0..200 {
        let hash = stint_types::tenant::hash_key(&format!("sk-{key}"));
        let _ = writeln!(
            more,
            "[[key]]\nname = \"key-{key}\"\naccount = \"acme\"\nhash = \"{hash}\"\nlimits = [{{ money = \"1\", per = \"month\" }}]"
        );
    }
    let desk = Desk::new(&more);
    let path = desk.folder.path().join("ledger.db");
    let mut ledger = SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.unwrap();
    sqlx::query(
        "WITH RECURSIVE runs(number) AS (SELECT 0 UNION ALL SELECT number + 1 FROM runs WHERE number < 9999) \
         INSERT INTO episodes (account, id, limits, context, ended, steps, used_at) \
         SELECT 'acme/key-' || (number % 200), 'run-' || number, '{\"turns\":20,\"cost\":1000000000}', 0, 'open', 3, \
         4000000000000 + number FROM runs",
    )
    .execute(&mut ledger)
    .await
    .unwrap();
    ledger.close().await.unwrap();
    desk
}
