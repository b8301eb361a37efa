//! How many files a gateway may have open, and what a lack of them is taken for.

use futures_util::future::join_all;
use serde_json::json;

use crate::harness::{Folder, Manner, Upstream};

fn folder(upstream: &Upstream) -> Folder {
    Folder::new(&format!(
        "[engine]\nembedded = false\n[[backend]]\nname = 'b'\nmodels = ['m']\nbase_url = '{}'\n",
        upstream.base
    ))
}

#[tokio::test]
async fn the_limit_on_open_files_is_raised_to_what_the_system_allows_and_too_low_a_one_is_told() {
    let upstream = Upstream::start();
    let folder = folder(&upstream);
    let process = folder.serve_after("ulimit -Sn 300; ulimit -Hn 900");
    process.logged("may have 900 files open").await;
    let metrics = process.get("", "/metrics").await.text;
    assert!(metrics.lines().any(|line| line == "process_max_fds 900"), "{metrics}");
}

#[tokio::test]
async fn a_lack_of_open_files_is_not_taken_for_a_failure_of_the_upstream() {
    let upstream = Upstream::start();
    let folder = folder(&upstream);
    let process = folder.serve_after("ulimit -n 64");
    let body = |user: usize| {
        json!({
            "model": "m", "stream": true, "user": user.to_string(),
            "messages": [{ "role": "user", "content": Manner::Words(400).words() }],
        })
    };
    let bodies: Vec<_> = (0..50).map(body).collect();
    let answers = join_all(bodies.iter().map(|body| process.request("", body, &[]).send())).await;
    // Some are not even accepted.
    let statuses: Vec<u16> = answers.iter().flatten().map(|answer| answer.status().as_u16()).collect();
    assert!(statuses.contains(&503), "there were too few files: {statuses:?}");
    assert!(statuses.iter().all(|status| [200, 503].contains(status)), "{statuses:?}");
    drop(answers);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let metrics = client.get(format!("{}/metrics", process.base)).send().await.unwrap().text().await.unwrap();
    let count = |fault: &str| {
        let series = format!("stint_attempt_failures_total{{fault=\"{fault}\",model=\"m\"");
        let line = metrics.lines().find(|line| line.starts_with(&series)).expect("a series");
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert!(count("gateway") >= 5 && count("backend") == 0, "{metrics}");
    assert!(metrics.contains("stint_backend_state{model=\"m\",target=\"b\"} 1"), "{metrics}");
}
