//! Words that nobody else may see, in everything that a caller, an operator and an upstream write: they come to whom they are for, and
//! into nothing that watches.

use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use crate::harness::hook::{Does, Hook};
use crate::harness::{Answer, Folder, Process, free_port};

use super::end;
use super::receiver::Receiver;

/// Every word that is looked for has this in it.
const CANARY: &str = "canary";
const KEY: &str = "sk-canary-of-a-key";
const TOKEN: &str = "canary-of-an-admin-token";
const UPSTREAM_KEY: &str = "canary-of-an-upstream-key";

/// The gateway, and all that it sends something to.
struct Watched {
    collector: Receiver,
    upstream: Receiver,
    refusing: Receiver,
    hook: Hook,
    folder: Folder,
    admin: String,
}

impl Watched {
    fn new() -> Watched {
        let refusal = json!({ "error": { "message": "canary-of-a-prompt: that is not served", "type": "invalid_request_error" } });
        let refusing = Receiver::answering("/v1/chat/completions", move || {
            (StatusCode::BAD_REQUEST, refusal.to_string()).into_response()
        });
        let (collector, upstream) = (Receiver::over_http(), Receiver::upstream());
        let hook = Hook::start(Does::Says(json!({ "verdict": "allow" })));
        let port = free_port();
        let model = |name: &str, base: &str| {
            format!(
                "[[backend]]\nname = '{name}'\nbase_url = '{base}/v1'\napi_key_file = 'upstream.key'\n[[backend.model]]\nname = '{name}'\n\
                 capabilities = ['tools']\nprice_input = '1'\nprice_output = '2'\n"
            )
        };
        let hash = stint_types::tenant::hash_key(KEY);
        let folder = Folder::new(&format!(
            "[admin]\nlisten = '127.0.0.1:{port}'\ntoken_file = 'admin.token'\n[traces]\nendpoint = '{}'\n{}{}\
             [[key]]\nname = 'test'\nrole = 'read'\nhash = '{hash}'\nlimits = [{{ money = '5', per = 'month' }}]\n\
             [[guardrail]]\nname = 'judge'\nurl = '{}'\nsecret_file = 'guard.secret'\naccounts = ['other']\n\
             stages = ['before', 'after']\n",
            collector.base,
            model("m", &upstream.base),
            model("n", &refusing.base),
            hook.url
        ));
        for (file, secret) in [
            ("admin.token", TOKEN),
            ("upstream.key", UPSTREAM_KEY),
            ("guard.secret", "canary-of-a-hook's-secret"),
        ] {
            std::fs::write(folder.path().join(file), secret).unwrap();
        }
        Watched { collector, upstream, refusing, hook, folder, admin: format!("http://127.0.0.1:{port}") }
    }

    /// Asks the admin API.
    async fn admin(
        &self,
        process: &Process,
        method: &str,
        path: &str,
        token: &str,
        body: Option<Value>,
    ) -> Answer {
        let request = process.client.request(method.parse().unwrap(), format!("{}{path}", self.admin));
        let request = request.bearer_auth(token);
        Answer::of(match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        })
        .await
    }

    /// All that an operator is shown.
    async fn shown(&self, process: &Process) -> Vec<(String, String)> {
        let mut shown = vec![("/metrics".to_owned(), process.get(KEY, "/metrics").await.text)];
        let parts = ["now", "history", "models", "thinking", "money", "episodes", "decisions"];
        let pages = parts.map(|part| format!("/admin/page/{part}"));
        let lists = ["audit", "keys", "accounts", "episodes", "export"].map(|list| format!("/admin/{list}"));
        for path in pages.into_iter().chain(lists) {
            let answer = self.admin(process, "GET", &path, TOKEN, None).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text);
            shown.push((path, answer.text));
        }
        shown
    }
}

/// What is asked by each API: in every place where a caller can write something.
fn questions(model: &str, stream: bool) -> [(&'static str, Value); 3] {
    let parameters =
        json!({ "type": "object", "properties": { "canary-of-a-parameter": { "type": "string" } } });
    let arguments = json!({ "canary-of-a-parameter": "canary-of-an-argument" });
    let function =
        json!({ "name": "look", "description": "canary-of-a-description", "parameters": parameters });
    let call = json!({ "id": "call_1", "type": "function", "function": { "name": "look", "arguments": arguments.to_string() } });
    let chat = json!({
        "model": model, "stream": stream, "max_tokens": 500, "stop": ["canary-of-a-stop"],
        "metadata": { "topic": "canary-of-metadata" },
        "tools": [{ "type": "function", "function": function }],
        "messages": [
            { "role": "system", "content": "canary-of-instructions" },
            { "role": "user", "content": "canary-of-a-prompt" },
            { "role": "assistant", "content": "canary-of-a-turn", "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "call_1", "content": "canary-of-a-result" },
        ],
    });
    let messages = json!({
        "model": model, "stream": stream, "max_tokens": 2000, "system": "canary-of-instructions",
        "tools": [{ "name": "look", "description": "canary-of-a-description", "input_schema": parameters }],
        "messages": [
            { "role": "user", "content": "canary-of-a-prompt" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "toolu_1", "name": "look", "input": arguments }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "toolu_1", "content": "canary-of-a-result" }] },
        ],
    });
    let responses = json!({
        "model": model, "stream": stream, "store": false, "instructions": "canary-of-instructions",
        "input": "canary-of-a-prompt", "metadata": { "topic": "canary-of-metadata" },
    });
    [("/v1/chat/completions", chat), ("/v1/messages", messages), ("/v1/responses", responses)]
}

async fn ask(process: &Process, key: &str, path: &str, body: String) -> Answer {
    let request = process.client.post(format!("{}{path}", process.base)).bearer_auth(key);
    Answer::of(request.header("content-type", "application/json").body(body)).await
}

/// All that may go wrong, and all that goes well.
async fn load(watched: &Watched, process: &Process) {
    for stream in [false, true] {
        for (path, body) in questions("m", stream) {
            let answer = ask(process, KEY, path, body.to_string()).await;
            assert!(
                answer.status == 200 && answer.text.contains("canary-of-an-answer"),
                "{path}: {}",
                answer.text
            );
            assert!(!answer.text.contains(UPSTREAM_KEY), "{path}");
        }
        for (path, body) in questions("n", stream) {
            let refused = ask(process, KEY, path, body.to_string()).await;
            assert!(
                refused.status >= 400 && !refused.text.contains(UPSTREAM_KEY),
                "{path}: {}",
                refused.text
            );
        }
    }
    let (path, body) = &questions("m", false)[0];
    assert_eq!(ask(process, "sk-canary-of-another", path, body.to_string()).await.status, 401);
    for wrong in [
        body.to_string().replacen('{', "", 1),
        body.to_string().replace("\"assistant\"", "\"canary-of-a-role\""),
    ] {
        assert_eq!(ask(process, KEY, path, wrong).await.status, 400);
    }
    let made = watched.admin(process, "POST", "/admin/keys", TOKEN, Some(json!({ "name": "alice" }))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let secret = made.json()["secret"].as_str().unwrap().to_owned();
    ask(process, &secret, path, body.to_string()).await.good();
    assert_eq!(watched.admin(process, "GET", "/admin/keys", "canary-of-no-token", None).await.status, 401);
    let wrong = json!({ "name": "bob", "role": "canary-of-a-role" });
    assert_eq!(watched.admin(process, "POST", "/admin/keys", TOKEN, Some(wrong)).await.status, 400);
    for (path, text) in watched.shown(process).await {
        assert!(!text.contains(CANARY) && !text.contains(&secret), "{path}: {text}");
    }
    let audit = watched.admin(process, "GET", "/admin/audit", TOKEN, None).await.good();
    assert_eq!(audit["data"][0]["action"], "key.create", "it has something");
}

#[tokio::test]
async fn no_secret_and_no_word_of_a_request_comes_to_whom_it_is_not_for() {
    let watched = Watched::new();
    let process = watched.folder.serve();
    load(&watched, &process).await;
    let log = process.lines("").join("\n");
    end(process).await;
    assert!(log.contains("test") && !log.contains(CANARY), "{log}");
    assert!(
        watched.collector.has("chat m") && !watched.collector.has(CANARY),
        "{:?}",
        watched.collector.spans()
    );
    assert!(watched.hook.seen().is_empty(), "it judges another account");
    let seen = watched.upstream.header("authorization");
    assert!(
        !seen.is_empty() && seen.iter().flatten().all(|line| line == &format!("Bearer {UPSTREAM_KEY}")),
        "{seen:?}"
    );
    assert!(watched.upstream.has("canary-of-a-result") && watched.refusing.has("canary-of-a-prompt"));
    for sent in [&watched.upstream, &watched.refusing] {
        assert!([KEY, TOKEN, UPSTREAM_KEY].iter().all(|secret| !sent.has(secret)));
    }
    for file in std::fs::read_dir(watched.folder.path()).unwrap() {
        let path = file.unwrap().path();
        let is_stored = path.file_name().unwrap().to_string_lossy().starts_with("ledger.db");
        let bytes = std::fs::read(&path).unwrap();
        let has = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!is_stored || !has, "{}", path.display());
    }
}
