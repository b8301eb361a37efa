//! Requests in disguise: paths, hosts, headers and names that are to be taken for others.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::managed::TOKEN;
use crate::harness::{Managed, Process, Upstream};

/// What a server says to a request with this line, with these lines after it.
async fn raw(base: &str, line: &str, more: &str) -> (u16, String) {
    let mut connection = TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap();
    let request = format!("{line} HTTP/1.1\r\nconnection: close\r\n{more}\r\n");
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{line}: {answer:?}")), answer)
}

/// Ways to write a path that some servers take for it, and some for another.
fn disguised(path: &str) -> Vec<String> {
    let (head, tail) = path.split_at(path.rfind('/').unwrap());
    let upper = path.to_uppercase();
    let dots: String = path
        .bytes()
        .map(|byte| if byte == b'/' { '/'.to_string() } else { format!("%{byte:02x}") })
        .collect();
    vec![
        path.to_owned(),
        format!("/{path}"),
        format!("{head}/{tail}"),
        format!("{path}/"),
        format!("{path}."),
        format!("{path}%20"),
        format!("{path}%00"),
        format!("{path};x"),
        format!("{path};/v1/models"),
        format!("{path}?/v1/models"),
        format!("{path}%3f"),
        format!("{path}%23"),
        format!("/v1/models/..{path}"),
        format!("/v1/..;{path}"),
        format!("//v1/..;{path}"),
        format!("/v1/%2e%2e{path}"),
        format!("/v1/.%2e{path}"),
        format!("/v1/%252e%252e{path}"),
        format!("/healthz/..{path}"),
        format!("/.{path}"),
        format!("/%2f{path}"),
        format!("{head}%2f{}", &tail[1..]),
        format!("{head}\\{}", &tail[1..]),
        format!("{head}/./{}", &tail[1..]),
        upper,
        dots,
    ]
}

/// Headers that tell some servers of another path, host or caller.
const TALES: [&str; 10] = [
    "",
    "x-original-url: /healthz\r\n",
    "x-rewrite-url: /v1/models\r\n",
    "x-forwarded-prefix: /v1\r\n",
    "x-forwarded-for: 127.0.0.1\r\n",
    "forwarded: for=127.0.0.1;host=localhost\r\n",
    "x-forwarded-host: localhost\r\n",
    "x-http-method-override: GET\r\n",
    "x-real-ip: 127.0.0.1\r\n",
    "x-user: admin\r\nx-admin: true\r\n",
];

/// A server with a key that may use the model `m` alone.
async fn managed() -> (Managed, Process, String) {
    let managed = Managed::new("");
    let process = managed.serve();
    let (_, user) = managed.key(&json!({ "name": "user", "account": "acme", "models": ["m"] })).await;
    (managed, process, user)
}

fn host(base: &str) -> String {
    format!("host: {}\r\n", base.strip_prefix("http://").unwrap())
}

fn bearer(secret: &str) -> String {
    if secret.is_empty() { String::new() } else { format!("authorization: Bearer {secret}\r\n") }
}

/// AU-02: whatever a path looks like, a client that may not use the admin API gets nothing of it, on either listener.
#[tokio::test]
async fn no_path_and_no_header_leads_round_the_admin_apis_guard() {
    let (managed, process, user) = managed().await;
    for path in disguised("/admin/keys").iter().chain(&disguised("/admin/export")) {
        for tale in TALES {
            for secret in ["", "sk-bad", &user] {
                let more = host(&managed.admin) + &bearer(secret) + tale;
                let (status, answer) = raw(&managed.admin, &format!("GET {path}"), &more).await;
                assert!(matches!(status, 400 | 401 | 403), "{path} {tale}: {answer}");
            }
            for secret in [&*user, TOKEN] {
                let more = host(&process.base) + &bearer(secret) + tale;
                let (status, answer) = raw(&process.base, &format!("GET {path}"), &more).await;
                assert!((400..500).contains(&status), "{path} {tale}: {answer}");
            }
        }
    }
}

/// AU-02: a key's models are its own, however another's is written.
#[tokio::test]
async fn no_path_leads_to_a_model_that_the_key_may_not_name() {
    let (_managed, process, user) = managed().await;
    let more = host(&process.base) + &bearer(&user);
    assert_eq!(raw(&process.base, "GET /v1/models/m", &more).await.0, 200);
    for path in disguised("/v1/models/n") {
        for tale in TALES {
            let (status, answer) = raw(&process.base, &format!("GET {path}"), &(more.clone() + tale)).await;
            assert!((400..500).contains(&status), "{path} {tale}: {answer}");
        }
    }
    for line in ["GET /v1/models", "GET //v1/models", "GET /v1/models/", "GET /V1/models", "GET /v1/%6dodels"]
    {
        for secret in ["", "sk-bad"] {
            let (status, answer) = raw(&process.base, line, &(host(&process.base) + &bearer(secret))).await;
            assert!(matches!(status, 401 | 404), "{line}: {answer}");
        }
    }
}

/// AU-02, IN-02: one host, whether in the line or in the header, and none of them lets anybody in.
#[tokio::test]
async fn hosts_and_whole_addresses_are_no_way_in() {
    let (managed, process, user) = managed().await;
    let authority = managed.admin.strip_prefix("http://").unwrap().to_owned();
    let hosts = [
        "x/#@y",
        "localhost/#@y",
        "localhost@evil",
        "evil",
        "evil#localhost",
        "localhost\t",
        "",
        "localhost, evil",
    ];
    for secret in ["", &user] {
        for name in hosts {
            let more = format!("host: {name}\r\n{}", bearer(secret));
            for line in ["GET /admin/keys".to_owned(), format!("GET http://{authority}/admin/keys")] {
                let (status, answer) = raw(&managed.admin, &line, &more).await;
                assert!(matches!(status, 400 | 401 | 403), "{line} {name:?}: {answer}");
            }
        }
        for target in [
            "http://localhost/admin/keys",
            "http://evil/admin/keys",
            "http://x@localhost/admin/keys",
            "localhost:80",
            "*",
        ] {
            for more in [host(&managed.admin), String::new(), "host: localhost\r\n".to_owned()] {
                let (status, answer) =
                    raw(&managed.admin, &format!("GET {target}"), &(more + &bearer(secret))).await;
                assert!((400..500).contains(&status), "{target}: {answer}");
            }
        }
    }
    // The same address in both is accepted, for a client that has access.
    let both = host(&managed.admin) + &bearer(TOKEN);
    assert_eq!(raw(&managed.admin, &format!("GET {}/admin/keys", managed.admin), &both).await.0, 200);
    let other = "host: evil\r\n".to_owned() + &bearer(TOKEN);
    for (base, path) in [(&managed.admin, "/admin/keys"), (&process.base, "/v1/models")] {
        let status = raw(base, &format!("GET {base}{path}"), &other).await.0;
        assert!(matches!(status, 400 | 403), "{status}");
    }
}

/// AU-04: what a key may not name is answered like what is not there.
#[tokio::test]
async fn what_is_anothers_is_answered_like_what_is_not_there() {
    let (_managed, process, user) = managed().await;
    let page = async |name: &str| process.get(&user, &format!("/v1/models/{name}")).await;
    let asked = async |name: &str| {
        let body = json!({ "model": name, "messages": [{ "role": "user", "content": "x" }] });
        process.ask(&user, &body).await
    };
    for (theirs, nobodys) in [(page("n").await, page("q").await), (asked("n").await, asked("q").await)] {
        assert_eq!((theirs.status, theirs.text), (404, nobodys.text.replace("\\\"q\\\"", "\\\"n\\\"")));
        let names = |headers: &reqwest::header::HeaderMap| -> BTreeSet<String> {
            headers.keys().map(ToString::to_string).collect()
        };
        assert_eq!(names(&theirs.headers), names(&nobodys.headers));
    }
}

/// Names with which statements and patterns are written.
const MARKS: [&str; 7] =
    ["'; DROP TABLE keys; --", "%", "_%_", "a' OR '1'='1", "\"; DELETE FROM reservations", "$1", "\\'--"];

/// AU-07: what has a meaning in statements and patterns is a name like any other, and finds nothing but itself.
#[tokio::test]
async fn marks_of_statements_and_patterns_mean_nothing() {
    let upstream = Upstream::start();
    let managed = Managed::new(&format!(
        "[[backend]]\nname = 'there'\nbase_url = '{}'\n[[backend.model]]\nname = 'up'\nprice_input = '1'\nprice_output = '1'\n",
        upstream.base
    ));
    let process = managed.serve();
    let (_, user) = managed.key(&json!({ "name": "user", "account": "acme" })).await;
    let mut kept = Vec::new();
    for (number, mark) in MARKS.iter().enumerate() {
        let made = managed
            .ask(
                TOKEN,
                "POST",
                "/admin/keys",
                Some(&json!({ "name": format!("k{number} {mark}"), "account": "acme" })),
            )
            .await;
        assert!(matches!(made.status, 201 | 400), "{}", made.text);
        if made.status == 201 {
            kept.push(made.json()["secret"].as_str().unwrap().to_owned());
        }
        assert_eq!(process.get(mark, "/v1/models").await.status, 401);
        assert_eq!(managed.ask(mark, "GET", "/admin/keys", None).await.status, 401);
        let question = json!({
            "model": "up", "user": mark, "metadata": { "tag": mark },
            "messages": [{ "role": "user", "content": "tokens 2" }],
        });
        process.ask(&user, &question).await.good();
        let mut named = question.clone();
        named["model"] = json!(mark);
        assert_eq!(process.ask(&user, &named).await.error()["code"], "model_not_found");
        let pairs = [("account", *mark), ("after", mark)];
        for pair in pairs {
            let query = form_urlencoded::Serializer::new(String::new()).extend_pairs([pair]).finish();
            let page = managed.ask(TOKEN, "GET", &format!("/admin/keys?{query}"), None).await;
            let found = page.json()["data"].as_array().map_or(0, Vec::len);
            assert_eq!(found, 0, "{query} finds nothing: {}", page.text);
        }
    }
    assert!(!kept.is_empty());
    let list = managed.ask(TOKEN, "GET", "/admin/keys", None).await.good();
    assert_eq!(list["data"].as_array().unwrap().len(), 1 + kept.len(), "all are there still");
    for secret in kept {
        assert_eq!(process.get(&secret, "/v1/models").await.status, 200);
    }
    let usage: Value = process.get(&user, "/v1/usage?group_by=key").await.good();
    assert_eq!(usage["data"][0]["requests"], MARKS.len(), "{usage}");
    let users: BTreeSet<String> = upstream.attempts().into_keys().collect();
    assert_eq!(users, MARKS.map(str::to_owned).into(), "they came through as they were");
    drop(process);
    let verified = managed.folder.stint("ledger").arg("verify").output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
}

/// AU-07: no statement is put together from what somebody says: only tests tell the driver that a text of theirs is safe.
#[test]
fn every_statement_is_a_text_of_the_program() {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src"), root.join("crates")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name().unwrap() != "tests" {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(!text.contains("AssertSqlSafe"), "{}", path.display());
                // It takes any text. So the one type has it that is made of the program's own texts alone.
                let is_the_type = path.ends_with("storage/src/sql/text.rs");
                assert!(is_the_type || !text.contains("QueryBuilder"), "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files > 200, "{files}");
}
