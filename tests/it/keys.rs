//! Keys and accounts as operators manage them: by `stint keys`, by the admin API, and by a file in a repository.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::managed::TOKEN;
use crate::harness::patience::until;
use crate::harness::{Answer, Deployment, Folder, Managed, Process, Says};
use stint_types::units::Timestamp;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn secret(text: &str) -> String {
    parsed(text)["secret"].as_str().unwrap().to_owned()
}

/// How the key is answered.
async fn status(process: &Process, key: &str) -> u16 {
    process.get(key, "/v1/allowance").await.status
}

fn question() -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 1+2?" }] })
}

#[tokio::test]
async fn the_command_line_manages_keys_with_and_without_a_server() {
    let managed = Managed::new("");
    let early = secret(&managed.keys(&["create", "early", "--json"]));
    let process = managed.serve();
    assert_eq!(status(&process, &early).await, 200);
    let words =
        ["create", "alice", "--account", "acme", "--limit", "money=0/month", "--model", "m", "--json"];
    let first = secret(&managed.keys(&words));
    let limits = process.get(&first, "/v1/allowance").await.good();
    assert_eq!(limits["limits"][0]["limit"], "key money month", "{limits}");
    let refused = process.ask(&first, &question()).await;
    assert_eq!((refused.status, &refused.error()["code"]), (429, &json!("insufficient_quota")));
    let told = managed.keys(&[
        "limit",
        "acme/alice",
        "--limit",
        "money=5/day,model=m",
        "--limit",
        "requests=9/minute",
    ]);
    assert!(told.ends_with("removed: money=0/month\n"), "{told}");
    let told = managed.keys(&["limit", "acme/alice", "--add", "--limit", "concurrency=3"]);
    let all = "money=5/day,model=m requests=9/minute concurrency=3";
    assert!(told.contains(all) && !told.contains("removed"), "{told}");
    let tried = process.ask(&first, &question()).await;
    assert_eq!(tried.error()["code"], "upstream_failed", "there is money now");
    let second = secret(&managed.keys(&["rotate", "acme/alice", "--grace", "1h", "--json"]));
    assert_eq!((status(&process, &first).await, status(&process, &second).await), (200, 200));
    let third = secret(&managed.keys(&["rotate", "acme/alice", "--json"]));
    assert_eq!((status(&process, &second).await, status(&process, &third).await), (401, 200));
    managed.keys(&["revoke", "acme/alice"]);
    for gone in [&first, &second, &third] {
        assert_eq!(status(&process, gone).await, 401);
    }
    managed.keys(&[
        "limit",
        "acme",
        "--account",
        "--limit",
        "money=100/month",
        "--time-zone",
        "Europe/Berlin",
    ]);
    managed.keys(&["limit", "acme", "--account", "--warn-at", "50"]);
    let acme = managed.ask(TOKEN, "GET", "/admin/accounts/acme", None).await.good();
    assert_eq!((&acme["limits"][0]["money"], &acme["time_zone"]), (&json!("100"), &json!("Europe/Berlin")));
    assert_eq!((&acme["warn_at"], &acme["standing"][0]["left"]), (&json!(50), &json!("100")));
    assert_eq!(acme["standing"][0]["limit"], "account acme money month", "an account's limit is not a key's");
    drop(process);
    let list = managed.keys(&["list"]);
    assert!(list.contains("acme/alice  revoked") && list.contains("early       active"), "{list}");
    assert!(!list.contains("sk-stint") && !list.contains("sha256"), "{list}");
    let process = managed.serve();
    assert_eq!((status(&process, &early).await, status(&process, &third).await), (200, 401));
}

#[tokio::test]
async fn what_cannot_be_done_is_said_with_what_to_do() {
    let folder = Folder::new(
        "[engine]\nembedded = false\n[[backend]]\nbase_url = 'http://127.0.0.1:1'\nmodels = ['m']\n",
    );
    let process = folder.serve();
    let output = folder.stint("keys").arg("list").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no [admin]"), "{output:?}");
    drop(process);
    let hash = stint_types::tenant::hash_key("sk-boss");
    let managed = Managed::new(&format!("[[key]]\nname = 'boss'\nhash = '{hash}'\n"));
    let complaints: [(&[&str], &str); 6] = [
        (&["revoke", "boss"], "declared in the configuration"),
        (&["create", "boss"], "declared in the configuration"),
        (&["rotate", "nobody"], "there is no key nobody"),
        (&["create", "x", "--model", "mm"], "there is no \"mm\""),
        (&["create", "x", "--limit", "money=20"], "limits[0].per"),
        (&["rotate", "boss", "--grace", "100d"], "at most 30 days"),
    ];
    for (words, says) in complaints {
        let told = managed.complaint(words);
        assert!(told.contains(says), "{words:?}: {told}");
    }
    let process = managed.serve();
    std::fs::write(managed.folder.path().join("admin.token"), "another-token-than-it-has").unwrap();
    assert!(managed.complaint(&["list"]).contains("refuses the token"));
    drop(process);
    let output =
        managed.folder.stint("keys").args(["list"]).env("STINT_LEDGER", ":memory:").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("no server answers"), "{output:?}");
}

#[tokio::test]
async fn keys_live_in_a_repository_by_export_and_import() {
    let (one, other) = (Managed::new(""), Managed::new(""));
    one.keys(&["limit", "acme", "--account", "--limit", "money=100/month"]);
    let words =
        ["create", "alice", "--account", "acme", "--limit", "thinking=9/hour,each=user", "--route", "auto"];
    let made = one.keys(
        &[&words[..], &["--admin", "--priority", "batch", "--expires", "2099-01-01T00:00:00Z", "--json"]]
            .concat(),
    );
    let text = one.keys(&["export"]);
    assert!(!text.contains("sk-stint") && text.contains("priority = \"batch\""), "{text}");
    let file = other.folder.path().join("keys.toml");
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(other.keys(&["import", file]).trim(), "2 created, 0 changed, 0 unchanged");
    let process = other.serve();
    assert_eq!(other.keys(&["import", file]).trim(), "0 created, 0 changed, 2 unchanged");
    assert_eq!(other.keys(&["export"]), text, "what was taken over is what was given");
    assert_eq!(status(&process, &secret(&made)).await, 200);
    let shown = parsed(&other.keys(&["limit", "acme/alice", "--priority", "interactive", "--json"]));
    assert_eq!(shown["priority"], "interactive");
    std::fs::write(file, format!("{text}\n[[key]]\nname = 'x'\nhsh = 'y'\n")).unwrap();
    let told = other.complaint(&["import", file]);
    let line = text.lines().count() + 2;
    for says in
        [format!("line {line}: key.hash: missing"), format!("line {}: key.hsh: unknown key", line + 2)]
    {
        assert!(told.contains(&says), "{says} in {told}");
    }
    assert!(!other.keys(&["list"]).contains(" x "), "nothing of it was taken");
}

/// The form of the configuration, where the same text stands in it.
#[tokio::test]
async fn an_export_can_stand_in_the_configuration() {
    let one = Managed::new("");
    let made =
        secret(&one.keys(&["create", "alice", "--account", "acme", "--limit", "money=1/day", "--json"]));
    let declared = Managed::new(&one.keys(&["export"]));
    let process = declared.serve();
    assert_eq!(status(&process, &made).await, 200);
    let list = parsed(&declared.keys(&["list", "--json"]));
    assert_eq!((&list[0]["source"], &list[0]["path"]), (&json!("configuration"), &json!("acme/alice")));
}

/// AU-13: what is revoked, expired or replaced is refused by the next request.
#[tokio::test]
async fn a_change_holds_for_the_next_request() {
    let managed = Managed::new("");
    let process = managed.serve();
    let (id, first) = managed.key(&json!({ "name": "alice" })).await;
    let path = format!("/admin/keys/{id}");
    let rotated = managed.ask(TOKEN, "POST", &format!("{path}/rotate"), None).await.good();
    let second = rotated["secret"].as_str().unwrap();
    assert_eq!((status(&process, &first).await, status(&process, second).await), (401, 200));
    let expired = json!({ "expires_at": "2020-01-01T00:00:00Z" });
    let key = managed.ask(TOKEN, "PATCH", &path, Some(&expired)).await.good();
    assert_eq!((&key["state"], status(&process, second).await), (&json!("expired"), 401));
    managed.ask(TOKEN, "PATCH", &path, Some(&json!({ "expires_at": null }))).await.good();
    assert_eq!(status(&process, second).await, 200);
    // On a machine that stands still meanwhile it may end before it is used.
    let mut lasts = Duration::from_millis(1500);
    loop {
        let ends = Timestamp::now() + lasts;
        managed.ask(TOKEN, "PATCH", &path, Some(&json!({ "expires_at": ends }))).await.good();
        let is_good = status(&process, second).await == 200;
        assert!(is_good || Timestamp::now() >= ends, "it has not ended yet");
        tokio::time::sleep(lasts).await;
        assert_eq!(status(&process, second).await, 401, "nothing had to happen for it to end");
        if is_good {
            break;
        }
        lasts *= 2;
    }
    managed.ask(TOKEN, "PATCH", &path, Some(&json!({ "expires_at": null }))).await.good();
    let key = managed.ask(TOKEN, "DELETE", &path, None).await.good();
    assert_eq!((&key["state"], status(&process, second).await), (&json!("revoked"), 401));
    let again = managed.ask(TOKEN, "PATCH", &path, Some(&json!({ "admin": true }))).await;
    assert_eq!((again.status, &again.error()["code"]), (409, &json!("revoked")));
}

#[tokio::test]
async fn lists_come_in_pages() {
    let managed = Managed::new("");
    let _process = managed.serve();
    let mut ids = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        ids.push(managed.key(&json!({ "name": name })).await.0);
    }
    let mut seen = Vec::new();
    let mut path = "/admin/keys?limit=2".to_owned();
    loop {
        let page = managed.ask(TOKEN, "GET", &path, None).await.good();
        let keys = page["data"].as_array().unwrap();
        assert!(keys.len() <= 2);
        seen.extend(keys.iter().map(|key| key["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/admin/keys?limit=2&after={next}");
    }
    assert_eq!(seen, ids);
    let accounts = managed.ask(TOKEN, "GET", "/admin/accounts?limit=4", None).await.good();
    assert_eq!((accounts["data"].as_array().unwrap().len(), &accounts["next"]), (4, &json!("d")));
    for (query, param) in
        [("limit=0", "limit"), ("after=x", "after"), ("sort=name", "sort"), ("limit=1&limit=2", "limit")]
    {
        let answer = managed.ask(TOKEN, "GET", &format!("/admin/keys?{query}"), None).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(param)), "{query}");
    }
}

#[tokio::test]
async fn the_keys_of_an_account_are_listed_with_those_below_it() {
    let managed = Managed::new("");
    let _process = managed.serve();
    for (name, account) in [("a", "acme"), ("b", "acme/lab"), ("c", "acmes")] {
        managed.key(&json!({ "name": name, "account": account })).await;
    }
    let expected =
        [("acme", "acme/a acme/lab/b"), ("acme/lab", "acme/lab/b"), ("acme/a", "acme/a"), ("acm", "")];
    for (account, paths) in expected {
        let list = managed.ask(TOKEN, "GET", &format!("/admin/keys?account={account}"), None).await.good();
        let mut found: Vec<_> =
            list["data"].as_array().unwrap().iter().map(|key| key["path"].as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found.join(" "), paths, "{account}");
    }
}

/// AU-08: what is not a member of a key is refused by name, so nothing can be slipped in.
#[tokio::test]
async fn bad_input_to_the_admin_api_is_named() {
    let managed = Managed::new("");
    let _process = managed.serve();
    let table = [
        (json!({}), "name"),
        (json!({ "name": "x", "max_budget": 9 }), "max_budget"),
        (json!({ "name": "x", "role": "admin" }), "role"),
        (json!({ "name": "x", "spend": 0 }), "spend"),
        (json!({ "name": "x", "hash": "sha256:00" }), "hash"),
        (json!({ "name": "x", "admin": "yes" }), "admin"),
        (json!({ "name": "x", "models": ["m", "zz"] }), "models[1]"),
        (json!({ "name": "x", "routes": ["m"] }), "routes[0]"),
        (json!({ "name": "x", "expires_at": "soon" }), "expires_at"),
        (json!({ "name": "x", "time_zone": "Berlin" }), "time_zone"),
        (json!({ "name": "x", "priority": "urgent" }), "priority"),
        (json!({ "name": "x", "warn_at": 0 }), "warn_at"),
        (json!({ "name": "x", "limits": [{}] }), "limits[0]"),
        (json!({ "name": "x", "limits": [{ "money": "1", "thinking": 1, "per": "day" }] }), "limits[0]"),
        (json!({ "name": "x", "limits": [{ "money": 0.5, "per": "day" }] }), "limits[0].money"),
        (json!({ "name": "x", "limits": [{ "money": "1" }] }), "limits[0].per"),
        (
            json!({ "name": "x", "limits": [{ "money": "1", "per": "day", "model": "mm" }] }),
            "limits[0].model",
        ),
        (json!({ "name": "x", "limits": [{ "concurrency": 0 }] }), "limits[0].concurrency"),
        (json!({ "name": "x", "limits": [{ "concurrency": 1, "per": "day" }] }), "limits[0].per"),
        (json!({ "name": "x", "limits": [{ "money": "1", "per": "day", "on": "m" }] }), "limits[0].on"),
        (
            json!({ "name": "x", "limits": [{ "money": "1", "per": "day", "tag": "t", "each": "user" }] }),
            "limits[0]",
        ),
        (
            json!({ "name": "x", "limits": [{ "money": "1", "per": "day" }, { "money": "2", "per": "day" }] }),
            "limits[1]",
        ),
    ];
    for (body, param) in table {
        let answer = managed.ask(TOKEN, "POST", "/admin/keys", Some(&body)).await;
        assert_eq!(
            (answer.status, &answer.error()["param"]),
            (400, &json!(param)),
            "{body}: {}",
            answer.text
        );
    }
    let unnamed = managed.ask(TOKEN, "POST", "/admin/keys", Some(&json!({ "name": "a//b" }))).await;
    assert_eq!(unnamed.status, 400, "{}", unnamed.text);
    let list = managed.ask(TOKEN, "GET", "/admin/keys", None).await.good();
    assert_eq!(list["data"], json!([]), "nothing was made on the way");
}

/// How it answers a request with this key.
async fn send(process: &Process, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let request = process.client.request(method, format!("{}/v1/{path}", process.base)).bearer_auth(key);
    Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
}

/// A name may be given again. What was stored under it is the old key's all the same.
#[tokio::test]
async fn a_new_key_under_an_old_name_has_nothing_of_what_the_old_one_stored() {
    let upstream = Deployment::always(Says::tokens(10)).await;
    let managed = Managed::new(&format!(
        "[[backend]]\nname = \"second\"\nbase_url = \"{}\"\n[[backend.model]]\nname = \"s\"\nprice_input = \"1\"\n\
         price_output = \"1\"\n",
        upstream.base
    ));
    let process = managed.serve();
    let (id, old) = managed.key(&json!({ "name": "alice" })).await;
    let asked = json!({ "model": "s", "input": "a secret", "max_output_tokens": 30 });
    let response = send(&process, &old, "POST", "responses", &asked).await.good();
    assert_eq!(response["store"], true, "{response}");
    let items = json!({ "items": [{ "role": "user", "content": "another secret" }] });
    let conversation = send(&process, &old, "POST", "conversations", &items).await.good();
    let (response, conversation) = (response["id"].as_str().unwrap(), conversation["id"].as_str().unwrap());
    let item = {
        let path = format!("conversations/{conversation}/items");
        let listed = send(&process, &old, "GET", &path, &json!({})).await.good();
        listed["data"][0]["id"].as_str().unwrap().to_owned()
    };
    let continued = |member: &str, id: &str| json!({ "model": "s", "input": "Go on.", member: id });
    let tries = [
        ("GET", format!("responses/{response}"), json!({}), 404),
        ("GET", format!("responses/{response}/input_items"), json!({}), 404),
        ("POST", "responses".to_owned(), continued("previous_response_id", response), 400),
        ("POST", "responses".to_owned(), continued("conversation", conversation), 404),
        ("GET", format!("conversations/{conversation}"), json!({}), 404),
        ("GET", format!("conversations/{conversation}/items"), json!({}), 404),
        ("POST", format!("conversations/{conversation}/items"), items.clone(), 404),
        ("POST", format!("conversations/{conversation}"), json!({ "metadata": {} }), 404),
        ("DELETE", format!("conversations/{conversation}/items/{item}"), json!({}), 404),
        ("DELETE", format!("conversations/{conversation}"), json!({}), 404),
        ("DELETE", format!("responses/{response}"), json!({}), 404),
    ];
    let rotated =
        managed.ask(TOKEN, "POST", &format!("/admin/keys/{id}/rotate"), Some(&json!({}))).await.good();
    let rotated = rotated["secret"].as_str().unwrap();
    for (method, path, body, _) in tries.iter().filter(|(method, ..)| *method == "GET") {
        assert_eq!(send(&process, rotated, method, path, body).await.status, 200, "{path}, after a rotation");
    }
    managed.ask(TOKEN, "DELETE", &format!("/admin/keys/{id}"), None).await.good();
    let (_, new) = managed.key(&json!({ "name": "alice" })).await;
    for (method, path, body, expected) in &tries {
        let answer = send(&process, &new, method, path, body).await;
        assert_eq!(answer.status, *expected, "{method} {path}: {}", answer.text);
    }
}

/// The same of what is stored of its requests without being asked for.
#[tokio::test]
async fn a_new_key_under_an_old_name_has_no_replay_no_record_and_no_run_of_the_old_one() {
    let upstream = Deployment::always(Says::tokens(10)).await;
    let managed = Managed::new(&format!(
        "[[backend]]\nname = \"second\"\nbase_url = \"{}\"\n[[backend.model]]\nname = \"s\"\nprice_input = \"1\"\n\
         price_output = \"1\"\n",
        upstream.base
    ));
    let process = managed.serve();
    let (key_id, old) = managed.key(&json!({ "name": "alice" })).await;
    let asked = json!({ "model": "s", "max_tokens": 30, "budget": { "episode": "nightly" },
                        "messages": [{ "role": "user", "content": "a secret" }] });
    let ask = async |key: &str, body: &Value| {
        let request = process.client.post(format!("{}/v1/chat/completions", process.base)).bearer_auth(key);
        let request = request.header("idempotency-key", "night-1").header("content-type", "application/json");
        Answer::of(request.body(body.to_string())).await
    };
    let first = ask(&old, &asked).await;
    let record = {
        let id = first.json()["budget"]["id"].as_str().unwrap().to_owned();
        format!("requests/{id}")
    };
    let looks = async |key: &str| {
        let record = send(&process, key, "GET", &record, &json!({})).await.status;
        (record, send(&process, key, "GET", "episodes/nightly", &json!({})).await.status)
    };
    until("the record is there", async || looks(&old).await == (200, 200)).await;
    assert_eq!(ask(&old, &asked).await.text, first.text, "a replay");
    managed.ask(TOKEN, "DELETE", &format!("/admin/keys/{key_id}"), None).await.good();
    let (_, new) = managed.key(&json!({ "name": "alice" })).await;
    assert_eq!(looks(&new).await, (404, 404));
    let judged = json!({ "id": first.json()["budget"]["id"], "score": 1 });
    assert_eq!(send(&process, &new, "POST", "feedback", &judged).await.status, 404);
    let named = ask(&new, &asked).await;
    assert_eq!((named.status, &named.error()["param"]), (400, &json!("budget.episode")), "{}", named.text);
    let plain = json!({ "model": "s", "max_tokens": 30, "messages": asked["messages"] });
    let again = ask(&new, &plain).await;
    assert_eq!(again.status, 200, "{}", again.text);
    assert_ne!(again.json()["id"], first.json()["id"]);
    assert_eq!(ask(&new, &plain).await.text, again.text, "a replay of its own");
}

/// An operator deletes what somebody stored, whose key may be gone; the books stay.
#[tokio::test]
async fn what_a_revoked_key_stored_is_deleted_by_its_id_or_by_its_name() {
    let upstream = Deployment::always(Says::tokens(10)).await;
    let managed = Managed::new(&format!(
        "[[backend]]\nname = \"second\"\nbase_url = \"{}\"\n[[backend.model]]\nname = \"s\"\nprice_input = \"1\"\n\
         price_output = \"1\"\n",
        upstream.base
    ));
    let process = managed.serve();
    let asked = json!({ "model": "s", "input": "a secret", "max_output_tokens": 30 });
    let items = json!({ "items": [{ "role": "user", "content": "another secret" }] });
    let mut kept = Vec::new();
    for _ in 0..2 {
        let (id, key) = managed.key(&json!({ "name": "alice" })).await;
        send(&process, &key, "POST", "responses", &asked).await.good();
        send(&process, &key, "POST", "conversations", &items).await.good();
        managed.ask(TOKEN, "DELETE", &format!("/admin/keys/{id}"), None).await.good();
        kept.push(id);
    }
    let forget = async |who: &str| {
        let deleted = managed.ask(TOKEN, "DELETE", &format!("/admin/stored/{who}"), None).await.good();
        (deleted["responses"].clone(), deleted["conversations"].clone())
    };
    assert_eq!(forget(&kept[0]).await, (json!(1), json!(1)));
    assert_eq!(forget(&kept[0]).await, (json!(0), json!(0)));
    let audit = managed.ask(TOKEN, "GET", "/admin/audit?limit=1", None).await.good();
    assert_eq!(audit["data"][0]["action"], "stored.delete", "{audit}");
    assert_eq!(forget("alice").await, (json!(1), json!(1)), "of the second key");
    let unknown = managed.ask(TOKEN, "DELETE", "/admin/stored/key_ffffffffffffffff", None).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
    let (_, key) = managed.key(&json!({ "name": "alice" })).await;
    let usage = send(&process, &key, "GET", "usage", &json!({})).await.good();
    assert_eq!(usage["data"][0]["requests"], 2, "the books stay: {usage}");
}
