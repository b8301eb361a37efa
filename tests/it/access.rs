//! Who may do what: every route against every kind of caller, and what keys are limited to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::managed::TOKEN;
use crate::harness::patience::QuietInstant;
use crate::harness::{Answer, Managed, Process, World, model, tenant};
use stint::http;
use stint_backend::scripted::{ScriptedBackend, ScriptedReply};
use stint_types::catalog::EnforcementClass;
use stint_types::tenant::{KeyAccess, hash_key};

/// What each kind of caller gets: nobody, a bad key, a user's key, a key with the admin scope, the admin's token.
type Row = (&'static str, &'static str, [u16; 5]);

/// The API's listener. What is asked is empty, so a caller who is let in is told 400 where a body is needed.
const API: &[Row] = &[
    ("POST", "/v1/chat/completions", [401, 401, 400, 400, 401]),
    ("POST", "/v1/completions", [401, 401, 400, 400, 401]),
    ("POST", "/v1/embeddings", [401, 401, 400, 400, 401]),
    ("POST", "/v1/messages", [401, 401, 400, 400, 401]),
    ("POST", "/v1/messages/count_tokens", [401, 401, 400, 400, 401]),
    ("POST", "/v1/responses", [401, 401, 400, 400, 401]),
    ("POST", "/v1/responses/compact", [401, 401, 400, 400, 401]),
    ("POST", "/v1/responses/input_tokens", [401, 401, 400, 400, 401]),
    ("GET", "/v1/responses/{id}", [401, 401, 404, 404, 401]),
    ("DELETE", "/v1/responses/{id}", [401, 401, 404, 404, 401]),
    ("POST", "/v1/responses/{id}/cancel", [401, 401, 404, 404, 401]),
    ("GET", "/v1/responses/{id}/input_items", [401, 401, 404, 404, 401]),
    ("POST", "/v1/conversations", [401, 401, 200, 200, 401]),
    ("GET", "/v1/conversations/{id}", [401, 401, 404, 404, 401]),
    ("POST", "/v1/conversations/{id}", [401, 401, 404, 404, 401]),
    ("DELETE", "/v1/conversations/{id}", [401, 401, 404, 404, 401]),
    ("GET", "/v1/conversations/{id}/items", [401, 401, 404, 404, 401]),
    ("POST", "/v1/conversations/{id}/items", [401, 401, 404, 404, 401]),
    ("GET", "/v1/conversations/{id}/items/{item}", [401, 401, 404, 404, 401]),
    ("DELETE", "/v1/conversations/{id}/items/{item}", [401, 401, 404, 404, 401]),
    ("POST", "/v1/plan", [401, 401, 400, 400, 401]),
    ("GET", "/v1/models", [401, 401, 200, 200, 401]),
    ("GET", "/v1/models/{*name}", [401, 401, 404, 404, 401]),
    ("GET", "/v1/allowance", [401, 401, 200, 200, 401]),
    ("GET", "/v1/usage", [401, 401, 200, 200, 401]),
    ("POST", "/v1/feedback", [401, 401, 400, 400, 401]),
    ("GET", "/v1/requests/{id}", [401, 401, 404, 404, 401]),
    ("GET", "/v1/episodes/{id}", [401, 401, 404, 404, 401]),
    ("GET", "/metrics", [401, 401, 403, 200, 401]),
    ("GET", "/healthz", [200, 200, 200, 200, 200]),
    ("GET", "/readyz", [200, 200, 200, 200, 200]),
];

/// The admin API's listener.
const ADMIN: &[Row] = &[
    ("GET", "/admin/keys", [401, 401, 403, 200, 200]),
    ("POST", "/admin/keys", [401, 401, 403, 400, 400]),
    ("GET", "/admin/keys/{id}", [401, 401, 403, 404, 404]),
    ("PATCH", "/admin/keys/{id}", [401, 401, 403, 404, 404]),
    ("DELETE", "/admin/keys/{id}", [401, 401, 403, 404, 404]),
    ("POST", "/admin/keys/{id}/rotate", [401, 401, 403, 404, 404]),
    ("GET", "/admin/accounts", [401, 401, 403, 200, 200]),
    ("GET", "/admin/accounts/{*path}", [401, 401, 403, 404, 404]),
    ("PUT", "/admin/accounts/{*path}", [401, 401, 403, 200, 200]),
    ("DELETE", "/admin/accounts/{*path}", [401, 401, 403, 200, 404]),
    ("DELETE", "/admin/stored/{*who}", [401, 401, 403, 200, 200]),
    ("GET", "/admin/audit", [401, 401, 403, 200, 200]),
    ("GET", "/admin/export", [401, 401, 403, 200, 200]),
    ("POST", "/admin/import", [401, 401, 403, 415, 415]),
    ("POST", "/admin/reload", [401, 401, 403, 200, 200]),
    ("GET", "/admin/requests/{id}", [401, 401, 403, 404, 404]),
    ("GET", "/admin/episodes", [401, 401, 403, 200, 200]),
    ("GET", "/admin/episodes/{id}", [401, 401, 403, 400, 400]),
    ("POST", "/admin/episodes/{id}/raise", [401, 401, 403, 400, 400]),
    ("POST", "/admin/episodes/{id}/end", [401, 401, 403, 400, 400]),
    ("GET", "/admin/page/{part}", [401, 401, 403, 404, 404]),
    // It asks the API with the key of the user of the page: without one it is the API that says no.
    ("POST", "/admin/try", [401, 401, 403, 401, 401]),
];

async fn ask(base: &str, secret: &str, method: &str, path: &str) -> Answer {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    let path = path
        .replace("{id}", "key_00")
        .replace("{item}", "msg_0")
        .replace("{*name}", "no/such")
        .replace("{*path}", "some/account");
    let mut request = client.request(method.clone(), format!("{base}{path}"));
    if !secret.is_empty() {
        request = request.bearer_auth(secret);
    }
    if method != "GET" && method != "DELETE" {
        request = request.header("content-type", "application/json").body("{}");
    }
    Answer::of(request).await
}

/// A server with a key of a user's and one with the admin scope.
async fn managed() -> (Managed, Process, String, String) {
    let managed = Managed::new("");
    let process = managed.serve();
    let (_, user) = managed.key(&json!({ "name": "user", "account": "acme" })).await;
    let (_, admin) = managed.key(&json!({ "name": "admin", "admin": true })).await;
    (managed, process, user, admin)
}

/// AU-01, AU-09: if you add a route, add a row.
#[tokio::test]
async fn every_route_lets_in_whom_its_row_says() {
    let (managed, process, user, admin) = managed().await;
    let tables =
        [(&process.base, API, http::api_table()), (&managed.admin, ADMIN, http::admin::admin_table())];
    for (base, rows, table) in tables {
        let known: BTreeSet<_> = rows.iter().map(|(method, path, _)| (*method, *path)).collect();
        assert_eq!(known, table.into_iter().collect(), "every route has a row here, and every row a route");
        for (method, path, expected) in rows {
            let mut got = Vec::new();
            for secret in ["", "sk-bad", &user, &admin, TOKEN] {
                got.push(ask(base, secret, method, path).await.status);
            }
            assert_eq!(
                got, expected,
                "{method} {path}: nobody, a bad key, a user, an admin's key, the token"
            );
        }
    }
}

/// AU-09: the two listeners share no path, and the admin's tells strangers nothing of its paths.
#[tokio::test]
async fn the_admin_api_is_on_its_own_listener_alone() {
    let (managed, process, user, admin) = managed().await;
    for (_, path, _) in ADMIN {
        for secret in ["", &user, &admin, TOKEN] {
            assert_eq!(ask(&process.base, secret, "GET", path).await.status, 404, "{path}");
        }
    }
    for path in
        ["/v1/models", "/metrics", "/healthz", "/admin", "/admin/keys/", "//admin/keys", "/ADMIN/keys"]
    {
        let statuses = [("", 401), (&*user, 403), (TOKEN, 404)];
        for (secret, status) in statuses {
            assert_eq!(ask(&managed.admin, secret, "GET", path).await.status, status, "{path}");
        }
    }
    assert_eq!(ask(&managed.admin, "", "TRACE", "/admin/keys").await.status, 401);
    assert_eq!(ask(&managed.admin, TOKEN, "PUT", "/admin/keys").await.status, 405);
}

/// AU-06, IN-04: whatever is not a key is answered alike, at once, on both listeners; where there is none, that is said.
#[tokio::test]
async fn bad_credentials_are_all_refused_alike() {
    let (managed, process, user, admin) = managed().await;
    let long = "x".repeat(20_000);
    let bearer = |key: &str| format!("Bearer {key}");
    for (base, path, good) in [(&process.base, "/v1/models", &user), (&managed.admin, "/admin/keys", &admin)]
    {
        let table: Vec<Vec<(&str, Vec<u8>)>> = vec![
            vec![],
            vec![("authorization", vec![])],
            vec![("authorization", b"Bearer".to_vec())],
            vec![("authorization", b"Bearer ".to_vec())],
            vec![("authorization", bearer("").into())],
            vec![("authorization", bearer(&long).into())],
            vec![("authorization", bearer("k\u{e9}y").into())],
            vec![("authorization", b"Bearer \xff\xfe".to_vec())],
            vec![("authorization", bearer("' OR '1'='1").into())],
            vec![("authorization", format!("Basic {good}").into())],
            vec![("authorization", bearer(&format!("{good}x")).into())],
            vec![("authorization", bearer(&good[..good.len() - 1]).into())],
            vec![("authorization", bearer(&good.to_uppercase()).into())],
            vec![("authorization", bearer(good).into()), ("authorization", bearer("sk-other").into())],
            vec![("authorization", bearer(good).into()), ("x-api-key", b"sk-other".to_vec())],
            vec![("cookie", format!("key={good}").into())],
        ];
        let mut said = BTreeSet::new();
        for headers in table {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let mut request = client.get(format!("{base}{path}"));
            for (name, value) in &headers {
                request = request.header(*name, value.as_slice());
            }
            let began = QuietInstant::now();
            let answer = Answer::of(request).await;
            let took = began.elapsed();
            assert_eq!(answer.status, 401, "{headers:?}");
            assert!(took < Duration::from_millis(500), "{took:?} on a busy machine");
            said.insert(answer.error().to_string());
        }
        let codes: Vec<bool> =
            said.iter().map(|error| error.contains("\"code\":\"invalid_api_key\"")).collect();
        assert_eq!(codes, [true, false], "one answer to what is no key, and one to none: {said:?}");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let twice = client.get(format!("{base}{path}")).bearer_auth(good).header("x-api-key", good.as_str());
        assert_eq!(Answer::of(twice).await.status, 200, "the same key twice is one key");
    }
}

/// AU-08: a key cannot change itself, nor say in a request who it is.
#[tokio::test]
async fn a_user_cannot_raise_its_own_rights() {
    let (managed, process, user, _) = managed().await;
    let id = managed.ask(TOKEN, "GET", "/admin/keys?account=acme/user", None).await.good();
    let path = format!("/admin/keys/{}", id["data"][0]["id"].as_str().unwrap());
    for body in [json!({ "admin": true }), json!({ "limits": [] }), json!({ "max_budget": 9 })] {
        let answer = managed.ask(&user, "PATCH", &path, Some(&body)).await;
        assert_eq!((answer.status, &answer.error()["code"]), (403, &json!("not_admin")), "{body}");
    }
    for member in ["max_budget", "team_id", "role", "spend", "account", "admin"] {
        let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] });
        body[member] = json!("1");
        let answer = process.ask(&user, &body).await;
        assert_eq!((answer.status, &answer.error()["param"]), (400, &json!(member)), "{}", answer.text);
    }
}

/// AU-12: nothing that can be read out lets anybody in.
#[tokio::test]
async fn no_answer_has_a_usable_credential() {
    let (managed, process, user, admin) = managed().await;
    let hash = hash_key(&user).to_string();
    let digits = hash.strip_prefix("sha256:").unwrap();
    for credential in [&*hash, digits] {
        assert_eq!(process.get(credential, "/v1/models").await.status, 401);
        assert_eq!(ask(&managed.admin, credential, "GET", "/admin/keys").await.status, 401);
    }
    let token = hash_key(TOKEN).to_string();
    assert_eq!(ask(&managed.admin, &token, "GET", "/admin/keys").await.status, 401);
    for path in ["/admin/keys", "/admin/accounts", "/admin/export"] {
        let text = managed.ask(TOKEN, "GET", path, None).await.text;
        for credential in [&*user, &admin, TOKEN] {
            assert!(!text.contains(credential), "{path}: {text}");
        }
        assert_eq!(text.contains(digits), path == "/admin/export", "{path}: {text}");
    }
}

/// AU-17: pages for everybody, and errors, tell nothing of keys.
#[tokio::test]
async fn open_pages_and_errors_tell_nothing_of_keys() {
    let (managed, process, user, _) = managed().await;
    let list = managed.ask(TOKEN, "GET", "/admin/keys", None).await.good();
    let id = list["data"][0]["id"].as_str().unwrap();
    process.ask(&user, &json!({ "model": "m", "messages": [{ "role": "user", "content": "x" }] })).await;
    let wrong = format!("{}0", &user[..user.len() - 1]);
    let pages = [
        process.get("", "/metrics").await,
        process.get("", "/healthz").await,
        process.get("", "/readyz").await,
        process.get(&wrong, "/v1/models").await,
        process.get(&user, "/v1/models/nothing").await,
        ask(&managed.admin, &wrong, "GET", "/admin/keys").await,
        ask(&managed.admin, &user, "GET", "/admin/keys").await,
    ];
    for page in pages {
        let headers = format!("{:?}", page.headers);
        for secret in [&user[..16], &wrong[20..30], id, "acme", "sha256"] {
            assert!(!page.text.contains(secret) && !headers.contains(secret), "{secret} in {}", page.text);
        }
    }
}

/// AU-23: a page of another site that resolved its own name to this machine cannot use the admin API, though it had
/// the token.
#[tokio::test]
async fn the_admin_api_is_called_by_its_own_names_only() {
    let managed = Managed::new("");
    let _process = managed.serve();
    let get = async |host: &str| {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.get(format!("{}/admin/keys", managed.admin)).header("host", host);
        Answer::of(request.bearer_auth(TOKEN)).await.status
    };
    let port = managed.admin.rsplit_once(':').unwrap().1;
    for host in ["localhost", "127.0.0.1", "[::1]", "LocalHost"] {
        assert_eq!(get(host).await, 200, "{host}");
        assert_eq!(get(&format!("{host}:{port}")).await, 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "x@localhost", "0.0.0.0"]
    {
        assert_eq!(get(host).await, 403, "{host}");
    }
    for host in ["localhost:4000/#@x", "localhost/../x", ""] {
        assert!(matches!(get(host).await, 400 | 403), "{host}");
    }
}

/// Models `m` and `n` behind `auto`, for a key with this access.
async fn scoped(access: KeyAccess) -> (World, [Arc<ScriptedBackend>; 2]) {
    let scripts =
        [(); 2].map(|()| Arc::new(ScriptedBackend::always(ScriptedReply::new().thinks(3).answers("3"))));
    let models = ["m", "n"].map(|name| model(name, EnforcementClass::Inline));
    let mut caller = tenant("key", 1_000_000_000);
    caller.tenant.access = access;
    let world = World::new(models.into_iter().zip(scripts.clone()).collect(), vec![caller]).await;
    (world, scripts)
}

fn access(models: &[&str], routes: &[&str]) -> KeyAccess {
    let names = |list: &[&str]| list.iter().map(|&name| name.into()).collect();
    KeyAccess { models: names(models), routes: names(routes), role: None }
}

/// AU-03: the endpoints by which a model can be asked for. If you add a route to the API, add it here, or to those
/// that name no model.
const NAMING: &[(&str, &str)] = &[
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/embeddings"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/responses/input_tokens"),
    ("POST", "/v1/plan"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{*name}"),
];
const NAMELESS: &[(&str, &str)] = &[
    ("GET", "/v1/allowance"),
    ("GET", "/v1/usage"),
    ("POST", "/v1/feedback"),
    ("GET", "/v1/requests/{id}"),
    ("GET", "/v1/responses/{id}"),
    ("DELETE", "/v1/responses/{id}"),
    ("POST", "/v1/responses/{id}/cancel"),
    ("GET", "/v1/responses/{id}/input_items"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/{id}"),
    ("POST", "/v1/conversations/{id}"),
    ("DELETE", "/v1/conversations/{id}"),
    ("GET", "/v1/conversations/{id}/items"),
    ("POST", "/v1/conversations/{id}/items"),
    ("GET", "/v1/conversations/{id}/items/{item}"),
    ("DELETE", "/v1/conversations/{id}/items/{item}"),
    ("GET", "/v1/episodes/{id}"),
    ("GET", "/metrics"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
];

/// What of these names a key may use, by each way in.
async fn check(access: KeyAccess, allowed: &[&str]) {
    let (world, _) = scoped(access.clone()).await;
    let list = world.get("sk-key", "/v1/models").await.good();
    let listed: BTreeSet<_> =
        list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(listed, allowed.iter().copied().collect(), "{access:?}");
    for name in ["auto", "m", "n"] {
        let may = allowed.contains(&name);
        let expected = if may { 200 } else { 404 };
        let page = world.get("sk-key", &format!("/v1/models/{name}")).await;
        assert_eq!(page.status, expected, "{name} for {access:?}");
        let text = json!({ "model": name, "prompt": "1+2" });
        assert_eq!(world.post("/v1/completions", "sk-key", &text).await.status, expected, "{name}");
        let quoted = json!({ "model": name, "messages": [{ "role": "user", "content": "1+2" }] });
        assert_eq!(world.post("/v1/plan", "sk-key", &quoted).await.status, expected, "{name}");
        // These models make no vectors. A key that may name them gets an error that says so.
        let vectors = world.post("/v1/embeddings", "sk-key", &json!({ "model": name, "input": "1" })).await;
        assert_eq!(vectors.status, if may { 400 } else { 404 }, "{name}: {}", vectors.text);
        let answer = world.post("/v1/responses", "sk-key", &json!({ "model": name, "input": "1+2" })).await;
        assert_eq!(answer.status, expected, "{name}: {}", answer.text);
        let turns = json!([{ "role": "user", "content": "What is 1+2?" }]);
        let asked = json!({ "model": name, "messages": turns, "max_tokens": 64 });
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            let answer = world.post(path, "sk-key", &asked).await;
            assert_eq!(answer.status, expected, "{path} {name}: {}", answer.text);
        }
        for (suffix, stream) in [("", false), ("", true), (":low", false), (":t=2", true)] {
            let body = json!({
                "model": format!("{name}{suffix}"), "stream": stream,
                "messages": [{ "role": "user", "content": "What is 1+2?" }],
            });
            let answer = world.ask("sk-key", &body).await;
            assert_eq!(answer.status, expected, "{body} for {access:?}: {}", answer.text);
            if !may {
                assert_eq!(answer.error()["code"], "model_not_found");
            }
        }
    }
    world.settled().await;
}

/// AU-03
#[tokio::test]
async fn a_key_is_kept_to_its_models_and_routes_whichever_way_it_comes() {
    let known: BTreeSet<_> = NAMING.iter().chain(NAMELESS).copied().collect();
    assert_eq!(known, http::api_table().into_iter().collect(), "every way in is looked at");
    check(access(&[], &[]), &["auto", "m", "n"]).await;
    check(access(&["m"], &[]), &["auto", "m"]).await;
    check(access(&["m", "n"], &["auto"]), &["auto", "m", "n"]).await;
    check(access(&["n"], &["other"]), &["n"]).await;
    check(access(&[], &["auto"]), &["auto"]).await;
    check(access(&["gone"], &[]), &[]).await;
}

#[tokio::test]
async fn a_route_chooses_among_the_keys_models_alone() {
    let (world, [m, n]) = scoped(access(&["n"], &[])).await;
    let list = world.get("sk-key", "/v1/models/auto").await.good();
    assert_eq!(list["route"], json!(["n"]));
    for preference in [0.0, 0.5, 1.0] {
        let body = json!({
            "model": "auto", "messages": [{ "role": "user", "content": "What is 1+2?" }],
            "budget": { "preference": preference },
        });
        let answer: Value = world.ask("sk-key", &body).await.good();
        assert_eq!(answer["model"], "n");
    }
    assert_eq!((m.records().len(), n.records().len()), (0, 3));
}
