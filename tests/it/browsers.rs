//! Pages in browsers that call the API: what a browser asks first, and what it lets a page see.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::harness::{Answer, Folder, Manner, Process, Upstream};

const PAGE: &str = "https://app.example";

/// What a browser is answered that asks for a page, before the page may send its key.
async fn preflight(process: &Process, origin: &str) -> HeaderMap {
    let asked = process
        .client
        .request(Method::OPTIONS, format!("{}/v1/chat/completions", process.base))
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,x-stainless-lang");
    asked.send().await.unwrap().headers().clone()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

fn configured(cors: &str) -> Folder {
    let hash = stint_types::tenant::hash_key("sk-test");
    Folder::new(&format!("{cors}\n[[key]]\nname = \"test\"\nhash = \"{hash}\"\n"))
}

#[tokio::test]
async fn a_page_of_a_listed_origin_may_call_with_its_key_and_see_what_it_cost() {
    let process = configured(&format!("[server.cors]\norigins = [\"{PAGE}\"]")).serve();
    let told = preflight(&process, PAGE).await;
    assert_eq!(header(&told, "access-control-allow-origin"), Some(PAGE));
    let allowed = header(&told, "access-control-allow-headers").unwrap_or_default();
    assert!(allowed.contains("authorization") && allowed.contains("x-stainless-lang"), "{allowed}");
    assert_eq!(
        header(&preflight(&process, "https://other.example").await, "access-control-allow-origin"),
        None
    );
    let body = json!({ "model": "nobody", "messages": [{ "role": "user", "content": "x" }] });
    let refused = process.request("sk-test", &body, &[("origin", PAGE)]).send().await.unwrap();
    assert_eq!(refused.status(), 404);
    assert_eq!(
        header(refused.headers(), "access-control-allow-origin"),
        Some(PAGE),
        "errors can be read too"
    );
    let exposed = header(refused.headers(), "access-control-expose-headers").unwrap_or_default();
    for name in ["x-request-id", "x-ratelimit-remaining-usd", "x-cost-usd", "retry-after"] {
        assert!(exposed.contains(name), "{name} in {exposed}");
    }
}

#[tokio::test]
async fn without_the_section_no_page_may_call_and_with_a_star_every_one_may() {
    let process = configured("").serve();
    assert_eq!(header(&preflight(&process, PAGE).await, "access-control-allow-origin"), None);
    let process = configured("[server.cors]\norigins = [\"*\"]").serve();
    assert_eq!(header(&preflight(&process, PAGE).await, "access-control-allow-origin"), Some("*"));
}

#[test]
fn an_origin_that_no_browser_would_send_is_a_mistake() {
    for wrong in [
        "https://app.example/",
        "app.example",
        "https://App.example",
        "https://app.example:443",
        "app://obsidian.md/",
        "app://me@obsidian.md",
        "app://:secret@obsidian.md",
        "file:///page.html",
    ] {
        let folder = Folder::new(&format!("[server.cors]\norigins = [\"{wrong}\"]\n"));
        let output = folder.stint("check").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("is no origin"), "{wrong}: {told}");
    }
}

#[tokio::test]
async fn an_application_with_a_scheme_of_its_own_and_an_extension_may_be_listed() {
    let pages = ["app://obsidian.md", "chrome-extension://abcdefghijklmnop", "tauri://localhost"];
    let process = configured(&format!("[server.cors]\norigins = {pages:?}")).serve();
    for page in pages {
        let told = preflight(&process, page).await;
        assert_eq!(header(&told, "access-control-allow-origin"), Some(page));
    }
}

/// How the gateway answers a request for this path as a page of that host and origin sends it.
async fn asked(process: &Process, method: Method, path: &str, host: &str, origin: &str) -> Answer {
    let request = process.client.request(method, format!("{}{path}", process.base));
    Answer::of(
        request.header("host", host).header("origin", origin).body(r#"{"model":"nobody","messages":[]}"#),
    )
    .await
}

#[tokio::test]
async fn while_no_key_exists_no_page_of_another_site_reaches_the_api() {
    let folder = Folder::new("[server]\nhosts = [\"gateway.example\"]\n");
    let process = folder.serve();
    let own = process.base.strip_prefix("http://").unwrap();
    let paths = [
        (Method::POST, "/v1/chat/completions"),
        (Method::POST, "/v1/conversations"),
        (Method::GET, "/v1/models"),
        (Method::GET, "/v1/usage"),
        (Method::GET, "/v1/allowance"),
        (Method::GET, "/metrics"),
        (Method::GET, "/"),
    ];
    for (method, path) in paths {
        for (host, origin, code) in [
            ("evil.example", "http://evil.example", Some("bad_host")),
            (own, "https://evil.example", Some("bad_origin")),
            (own, "null", Some("bad_origin")),
            (own, &*process.base, None),
            ("gateway.example", "https://gateway.example", None),
        ] {
            let answer = asked(&process, method.clone(), path, host, origin).await;
            let found = (answer.status == 403).then(|| answer.error()["code"].clone());
            assert_eq!(found, code.map(Into::into), "{path} by {host} from {origin}: {}", answer.text);
        }
    }
    let health = asked(&process, Method::GET, "/healthz", "balancer.example", "null").await;
    assert_eq!(health.status, 200, "{}", health.text);
    let hash = stint_types::tenant::hash_key("sk-test");
    folder.write(&format!("[[key]]\nname = \"test\"\nhash = \"{hash}\"\n"));
    process.signal("HUP");
    process.logged("the configuration is in force").await;
    let keyed = asked(&process, Method::GET, "/v1/models", "proxy.example", "https://evil.example").await;
    assert_eq!(keyed.status, 401, "where there are keys, the key decides: {}", keyed.text);
}

#[tokio::test]
async fn without_keys_a_listed_origin_may_call_and_with_a_star_every_one() {
    for origins in [PAGE, "*"] {
        let process = Folder::new(&format!("[server.cors]\norigins = [\"{origins}\"]\n")).serve();
        let own = process.base.strip_prefix("http://").unwrap();
        let listed = asked(&process, Method::GET, "/v1/models", own, PAGE).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        let other = asked(&process, Method::GET, "/v1/models", own, "https://other.example").await;
        assert_eq!(other.status, if origins == "*" { 200 } else { 403 }, "{}", other.text);
    }
}

/// A page that asks for a stream with a key of its own, and shows what it heard and what its browser let it see.
const SCRIPT: &str = r#"<!doctype html><p id="said">nothing</p><p id="cost">nothing</p><script type="module">
const answer = await fetch("BASE/v1/chat/completions", {
  method: "POST",
  headers: { authorization: "Bearer sk-test", "content-type": "application/json", "x-stainless-lang": "js" },
  body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "ASKED" }] }),
});
let text = "";
for (const line of (await answer.text()).split("\n"))
  if (line.startsWith("data: {")) text += JSON.parse(line.slice(6)).choices[0]?.delta?.content ?? "";
document.getElementById("said").textContent = `${answer.status}: ${text.trim().split(" ").length} words`;
document.getElementById("cost").textContent = answer.headers.get("x-request-id") ? "an id" : "no id";
</script>"#;

/// Serves one page to every client, for as long as the tests run.
fn host(listener: TcpListener, page: String) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("content-type: text/html\r\ncontent-length: {}", page.len());
            let _ = write!(stream, "HTTP/1.1 200 OK\r\n{head}\r\nconnection: close\r\n\r\n{page}");
        }
    });
}

/// What Chromium shows of a page once its script is done.
fn shown(url: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut chromium = Command::new("chromium");
    // Without a sandbox, which root cannot have, and with little shared memory, as in a container.
    chromium.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]);
    chromium.args(["--virtual-time-budget=20000", "--dump-dom"]);
    chromium.arg(format!("--user-data-dir={}", folder.path().display())).arg(url).stderr(Stdio::null());
    let output = chromium.output().expect("no chromium: run `make test-tools`");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_chromium_hears_a_stream_only_where_its_origin_is_listed() {
    let upstream = Upstream::start();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let backend = format!(
        "[server.cors]\norigins = [\"http://127.0.0.1:{port}\"]\n[engine]\nembedded = false\n\
         [[backend]]\nbase_url = \"{}\"\n[[backend.model]]\nname = \"m\"",
        upstream.base
    );
    let process = configured(&backend).serve();
    host(listener, SCRIPT.replace("BASE", &process.base).replace("ASKED", &Manner::Words(20).words()));
    let listed = shown(&format!("http://127.0.0.1:{port}/"));
    assert!(listed.contains("200: 20 words") && listed.contains("an id"), "{listed}");
    let other = shown(&format!("http://localhost:{port}/"));
    assert!(other.contains("<p id=\"said\">nothing</p>"), "{other}");
}
