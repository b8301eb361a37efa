//! Several gateways on one database, as an operator runs them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::cluster::cluster;
use crate::harness::{Folder, Process};

fn folder() -> Folder {
    let hash = stint_types::tenant::hash_key("sk-test");
    let limits = r#"limits = [{ requests = 5, per = "total" }, { money = "1", per = "month" }]"#;
    Folder::new(&format!(
        "[ledger]\nurl_env = \"DATABASE_URL\"\nlease = \"2s\"\n[[key]]\nname = \"test\"\nhash = \"{hash}\"\n{limits}\n"
    ))
}

fn serve(folder: &Folder, url: &str) -> Process {
    let mut command = folder.stint("serve");
    command.env_remove("STINT_LEDGER").env("DATABASE_URL", url);
    folder.serve_by(command)
}

fn question() -> Value {
    json!({
        "model": "reasoner",
        "messages": [{ "role": "user", "content": "What is 12+34*2?" }],
        "budget": { "thinking_tokens": 4, "solution_tokens": 12 },
    })
}

/// How many of a key's requests are left, as a gateway says.
async fn left(gateway: &Process) -> u64 {
    let page = gateway.get("sk-test", "/v1/allowance").await.good();
    let limits = page["limits"].as_array().unwrap_or_else(|| panic!("{page}"));
    let requests = limits.iter().find(|limit| limit["limit"].as_str().unwrap().contains("requests"));
    requests.unwrap()["left"].as_u64().unwrap()
}

#[tokio::test]
async fn two_gateways_serve_one_key_as_often_as_it_may_and_one_that_is_killed_takes_nothing_with_it() {
    let (url, folder) = (cluster().database(), folder());
    let (one, mut two) = (serve(&folder, &url), serve(&folder, &url));
    one.ask("sk-test", &question()).await.good();
    two.ask("sk-test", &question()).await.good();
    two.signal("KILL");
    two.ended();
    // What is left of a dead gateway's part is to be had when its lease has run out.
    for _ in 0..3 {
        let mut answer = one.ask("sk-test", &question()).await;
        for _ in 0..240 {
            if answer.status == 200 {
                break;
            }
            assert_eq!(answer.error()["code"], "insufficient_quota", "{}", answer.text);
            tokio::time::sleep(Duration::from_millis(250)).await;
            answer = one.ask("sk-test", &question()).await;
        }
        answer.good();
    }
    let refused = one.ask("sk-test", &question()).await;
    assert_eq!(refused.error()["code"], "insufficient_quota");
    assert_eq!(left(&one).await, 0);
    let three = serve(&folder, &url);
    assert_eq!(three.ask("sk-test", &question()).await.status, 429, "a new one knows what was spent before");
    assert_eq!(left(&three).await, 0);
}

/// One that cannot listen is never known to the others, who would wait for its lease to run out.
#[tokio::test]
async fn a_gateway_whose_port_is_taken_registers_no_replica() {
    let (url, folder) = (cluster().database(), folder());
    let one = serve(&folder, &url);
    let mut command = folder.stint("serve");
    command.env_remove("STINT_LEDGER").env("DATABASE_URL", &url);
    command.env("STINT_LISTEN", one.base.trim_start_matches("http://"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("cannot listen on"), "{said}");
    assert_eq!(cluster().ask(&url, "SELECT count(*) FROM replicas"), "1");
}
