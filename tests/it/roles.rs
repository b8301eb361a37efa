//! Roles on the admin API, and the log of what admins changed.

use serde_json::{Value, json};

use crate::harness::Managed;
use crate::harness::managed::TOKEN;

/// Makes a key with a role; its secret.
async fn admin(managed: &Managed, name: &str, role: &str) -> String {
    managed.key(&json!({ "name": name, "role": role })).await.1
}

async fn status(managed: &Managed, secret: &str, method: &str, path: &str, body: &Value) -> u16 {
    managed.ask(secret, method, path, Some(body)).await.status
}

#[tokio::test]
async fn each_role_may_what_those_below_it_may_and_no_more() {
    let managed = Managed::new("");
    let _process = managed.serve();
    let [read, keys, all] = [
        admin(&managed, "reader", "read").await,
        admin(&managed, "keeper", "keys").await,
        admin(&managed, "owner", "all").await,
    ];
    let none = managed.key(&json!({ "name": "caller" })).await.1;
    let check = async |method: &str, path: &str, body: Value, expected: [u16; 4]| {
        let mut found = Vec::new();
        for secret in [&none, &read, &keys, &all] {
            found.push(status(&managed, secret, method, path, &body).await);
        }
        assert_eq!(found, expected, "{method} {path}");
    };
    for path in ["/admin/keys", "/admin/accounts", "/admin/audit", "/admin/export", "/admin/episodes"] {
        check("GET", path, json!({}), [403, 200, 200, 200]).await;
    }
    check("PUT", "/admin/accounts/acme", json!({ "limits": [] }), [403, 403, 200, 200]).await;
    check("POST", "/admin/reload", json!({}), [403, 403, 403, 200]).await;
    check("POST", "/admin/episodes/r/end?account=acme", json!({}), [403, 403, 403, 404]).await;
    let metrics = format!("{}/metrics", _process.base);
    let page = _process.client.get(metrics).bearer_auth(&read).send().await.unwrap();
    assert_eq!(page.status(), 200, "who may see everything may see the metrics");
    let refused = managed.ask(&read, "POST", "/admin/reload", None).await.json();
    assert_eq!(refused["error"]["code"], "role_too_low");
    assert!(refused["error"]["message"].as_str().unwrap().contains("\"all\""), "{refused}");
}

#[tokio::test]
async fn nobody_gives_or_takes_a_role_above_their_own() {
    let managed = Managed::new("");
    let _process = managed.serve();
    let (owner, _) = managed.key(&json!({ "name": "owner", "admin": true })).await;
    let (caller, _) = managed.key(&json!({ "name": "caller" })).await;
    let keys = admin(&managed, "keeper", "keys").await;
    let hash = stint_types::tenant::hash_key("sk-chosen");
    let refused = async |method: &str, path: String, body: Value| {
        let answer = managed.ask(&keys, method, &path, Some(&body)).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (403, &json!("role_too_low")), "{path}");
    };
    refused("POST", "/admin/keys".into(), json!({ "name": "x", "role": "all" })).await;
    refused("POST", "/admin/keys".into(), json!({ "name": "x", "admin": true })).await;
    refused("PATCH", format!("/admin/keys/{caller}"), json!({ "role": "all" })).await;
    refused("PATCH", format!("/admin/keys/{owner}"), json!({ "role": null })).await;
    refused("POST", format!("/admin/keys/{owner}/rotate"), json!({})).await;
    refused("DELETE", format!("/admin/keys/{owner}"), json!({})).await;
    for terms in [
        json!({ "limits": [{ "requests": 0, "per": "total" }] }),
        json!({ "warn_at": 5 }),
        json!({ "time_zone": "Europe/Berlin" }),
    ] {
        refused("PATCH", format!("/admin/keys/{owner}"), terms.clone()).await;
        refused("PUT", "/admin/accounts/owner".into(), terms).await;
    }
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for text in [
        format!("[[key]]\nname = \"x\"\nhash = \"{hash}\"\nrole = \"all\"\n"),
        format!("[[key]]\nname = \"owner\"\nhash = \"{hash}\"\n"),
        "[[account]]\nname = \"owner\"\nwarn_at = 5\n".to_owned(),
    ] {
        let import = client.post(format!("{}/admin/import", managed.admin)).bearer_auth(&keys);
        let answer =
            import.header("content-type", "application/toml").body(text.clone()).send().await.unwrap();
        assert_eq!(answer.status(), 403, "{text}");
    }
    assert_eq!(
        status(&managed, &keys, "POST", "/admin/keys", &json!({ "name": "y", "role": "keys" })).await,
        201
    );
    let both = json!({ "name": "z", "role": "read", "admin": true });
    assert_eq!(status(&managed, TOKEN, "POST", "/admin/keys", &both).await, 400);
}

#[tokio::test]
async fn what_admins_change_is_in_the_log_with_who_did_it_and_no_secret() {
    let managed = Managed::new("");
    let mut process = managed.serve();
    let (id, secret) = managed.key(&json!({ "name": "alice", "models": ["m"] })).await;
    let keeper = admin(&managed, "keeper", "keys").await;
    managed
        .ask(&keeper, "PATCH", &format!("/admin/keys/{id}"), Some(&json!({ "models": ["n"] })))
        .await
        .good();
    let rotated =
        managed.ask(TOKEN, "POST", &format!("/admin/keys/{id}/rotate"), Some(&json!({}))).await.good();
    let limits = json!({ "limits": [{ "money": "5", "per": "day" }] });
    managed.ask(&keeper, "PUT", "/admin/accounts/acme", Some(&limits)).await.good();
    managed.ask(&keeper, "PUT", "/admin/accounts/alice/x", Some(&json!({ "nonsense": 1 }))).await;
    managed.ask(TOKEN, "POST", "/admin/reload", None).await.good();
    process.signal("TERM");
    process.ended();
    // Nobody serves, so the command line opens the books itself.
    managed.keys(&["revoke", "alice"]);
    let _process = managed.serve();
    let log = managed.ask(TOKEN, "GET", "/admin/audit", None).await;
    for hidden in [&secret, rotated["secret"].as_str().unwrap(), &keeper, "sha256:"] {
        assert!(!log.text.contains(hidden), "{}", log.text);
    }
    let log = log.good();
    let rows: Vec<[&str; 3]> = log["data"].as_array().unwrap().iter().rev().map(row).collect();
    let expected = [
        ["/token", "key.create", "alice"],
        ["/token", "key.create", "keeper"],
        ["keeper", "key.change", "alice"],
        ["/token", "key.rotate", "alice"],
        ["keeper", "account.set", "acme"],
        ["/token", "configuration.reload", "configuration"],
        ["/command line", "key.revoke", "alice"],
    ];
    assert_eq!(rows, expected);
    let change = &log["data"][4];
    assert_eq!((&change["before"]["models"], &change["after"]["models"]), (&json!(["m"]), &json!(["n"])));
    let part = managed.ask(TOKEN, "GET", "/admin/audit?limit=3", None).await.good();
    let next = format!("/admin/audit?limit=3&after={}", part["next"].as_str().unwrap());
    assert_eq!(managed.ask(TOKEN, "GET", &next, None).await.good()["data"][0]["number"], 4);
    let verified = managed.folder.stint("ledger").arg("verify").output().unwrap();
    let printed = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success() && printed.contains("7 changes of admins"), "{printed}");
}

fn row(change: &Value) -> [&str; 3] {
    ["who", "action", "subject"].map(|member| change[member].as_str().unwrap())
}
