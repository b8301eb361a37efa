//! However much there is, the page stays small.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sqlx::{Connection, SqliteConnection};

use crate::harness::Chromium;

use super::load::Desk;

/// The most bytes of any part.
const PART_MAX: usize = 200_000;

/// OB-04: however much there is, each part is short.
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

/// How often each panel is looked at while it is measured.
const LOOKS: u32 = 20;

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "it measures")]
#[ignore = "measures; says what the page takes of the server and of the browser"]
async fn what_the_page_takes_with_ten_thousand_runs_and_two_hundred_models() {
    let desk = crowded().await;
    for _ in 0..20 {
        desk.ask(8, None).await;
    }
    let mut browser = desk.browser("now");
    browser.until("document.querySelectorAll('.targets li').length === 60");
    browser.go(&format!("{}/page", desk.admin));
    let paint = "performance.getEntriesByName('first-contentful-paint')[0]";
    browser.until(paint);
    println!("first paint: {} ms after the navigation", browser.eval(&format!("{paint}.startTime")));
    let begun = browser.eval("performance.now()").as_f64().unwrap();
    super::load::log_in(&mut browser, super::load::TOKEN);
    browser.until("document.querySelectorAll('.targets li').length === 60");
    println!(
        "all of Now: {} ms after the login",
        browser.eval("performance.now()").as_f64().unwrap() - begun
    );
    for (panel, every) in
        [("now", 2.0), ("thinking", 5.0), ("money", 5.0), ("episodes", 4.0), ("decisions", 3.0)]
    {
        browser.press(&format!("#panels a[href=\"#{panel}\"]"));
        browser.until("document.getElementById('state').textContent === 'live'");
        let before = (desk.process.processor_time(), busy(&mut browser));
        let look = format!(
            "(async () => {{ for (let look = 0; look < {LOOKS}; look += 1) {{ \
             document.dispatchEvent(new Event('visibilitychange')); \
             await new Promise((done) => setTimeout(done, 250)); }} }})()"
        );
        browser.eval(&look);
        let after = (desk.process.processor_time(), busy(&mut browser));
        let each = |before: f64, after: f64| (after - before) / f64::from(LOOKS) / every * 1000.0;
        println!(
            "{panel}: {:.1} ms of the server and {:.1} ms of the browser a second, at one look every {every} s",
            each(before.0, after.0),
            each(before.1, after.1)
        );
    }
}

/// The processor time of the page's tasks, in seconds.
fn busy(browser: &mut Chromium) -> f64 {
    let told = browser.call("Performance.getMetrics", &json!({}));
    let metrics = told["metrics"].as_array().unwrap();
    metrics.iter().find(|metric| metric["name"] == "TaskDuration").unwrap()["value"].as_f64().unwrap()
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
