//! Between the signal and the end: answers that run are finished, and the gateway is seen and managed until they are.

use reqwest::{Client, Method, Response};
use serde_json::{Value, json};

use crate::harness::faultup::Faultup;
use crate::harness::faultup::rig::question;
use crate::harness::faultup::script::{Step, chunked, event, says};
use crate::harness::managed::TOKEN;
use crate::harness::patience::until;
use crate::harness::{Folder, Process, free_port};

/// A server with one answer that is streamed and does not end.
struct Draining {
    folder: Folder,
    process: Process,
    admin: String,
}

impl Draining {
    /// With more lines of `[server]`.
    async fn start(upstream: &Faultup, server: &str) -> Draining {
        let port = free_port();
        let folder = Folder::new(&format!(
            "[server]\ndrain = '60s'\n{server}[engine]\nembedded = false\n[admin]\nlisten = '127.0.0.1:{port}'\n\
             token_file = 'admin.token'\n[[backend]]\nbase_url = '{}/v1'\n\
             [[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '4'\n",
            upstream.address
        ));
        std::fs::write(folder.path().join("admin.token"), TOKEN).unwrap();
        // Nobody else gets this port, so whether it is closed can be seen.
        let mut command = folder.stint("serve");
        command.env("STINT_LISTEN", format!("127.0.0.1:{}", free_port()));
        let process = folder.serve_by(command);
        Draining { folder, process, admin: format!("http://127.0.0.1:{port}") }
    }

    /// Asks on a connection of its own.
    async fn get(&self, secret: &str, path: &str) -> (u16, String) {
        let asked = client().get(format!("{}{path}", self.process.base)).bearer_auth(secret).send().await;
        let answer = asked.expect("it is accepted");
        (answer.status().as_u16(), answer.text().await.unwrap())
    }

    async fn manage(&self, method: Method, path: &str, body: Value) -> Value {
        let request = client().request(method, format!("{}{path}", self.admin)).bearer_auth(TOKEN);
        let request = request.header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.expect("it is accepted");
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }
}

fn client() -> Client {
    Client::builder().no_proxy().build().unwrap()
}

#[tokio::test]
async fn until_the_last_answer_is_over_the_gateway_is_seen_and_managed_and_sends_callers_elsewhere() {
    let upstream = Faultup::start(vec![chunked().chunk(&event(&says("4"))).then(Step::Hold)]).await;
    let mut site = Draining::start(&upstream, "").await;
    let new = json!({ "name": "alice" });
    let key = site.manage(Method::POST, "/admin/keys", new).await;
    let (id, secret) = (key["id"].as_str().unwrap().to_owned(), key["secret"].as_str().unwrap().to_owned());
    let running = tokio::spawn(site.process.request(&secret, &question(true), &[]).send());
    upstream.until(|log| log.len() == 1).await;
    site.process.signal("TERM");
    until("it says that it ends", async || site.get("", "/readyz").await.0 == 503).await;
    assert_eq!(site.get("", "/readyz").await.1, "not ready: shutting down\n");
    assert_eq!(site.get("", "/healthz").await, (200, "alive\n".to_owned()));
    assert_eq!(site.get(&secret, "/metrics").await.0, 403, "it is no key of an operator, which is looked at");
    let late = client().post(format!("{}/v1/chat/completions", site.process.base)).bearer_auth(&secret);
    let late = late.header("content-type", "application/json").body(question(false).to_string());
    is_sent_elsewhere(late.send().await.expect("it is accepted")).await;
    is_sent_elsewhere(client().get(format!("{}/v1/models", site.process.base)).send().await.unwrap()).await;
    // By the server that ends, whose database nobody else may open.
    let revoked = site.folder.stint("keys").args(["revoke", &id]).output().unwrap();
    assert!(revoked.status.success(), "{}", String::from_utf8_lossy(&revoked.stderr));
    let shown = site.manage(Method::GET, &format!("/admin/keys/{id}"), json!(null)).await;
    assert!(shown["revoked_at"].is_string(), "{shown}");
    assert_eq!(site.get(&secret, "/metrics").await.0, 401, "it is no key any more");
    assert!(!running.is_finished() || running.await.unwrap().is_ok(), "its answer goes on");
    site.process.signal("TERM");
    let base = site.process.base.clone();
    assert!(tokio::task::spawn_blocking(move || site.process.ended()).await.unwrap().success());
    assert!(client().get(format!("{base}/healthz")).send().await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn where_metrics_have_a_listener_of_their_own_the_apis_closes_first() {
    let upstream = Faultup::start(vec![chunked().chunk(&event(&says("4"))).then(Step::Hold)]).await;
    let port = free_port();
    let mut site = Draining::start(&upstream, &format!("metrics_listen = '127.0.0.1:{port}'\n")).await;
    let running = tokio::spawn(site.process.request("", &question(true), &[]).send());
    upstream.until(|log| log.len() == 1).await;
    site.process.signal("TERM");
    let seen = async |path: &str| {
        let answer =
            client().get(format!("http://127.0.0.1:{port}{path}")).send().await.expect("it is accepted");
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    until("it says that it ends", async || seen("/readyz").await.0 == 503).await;
    let api = format!("{}/healthz", site.process.base);
    until("the API's listener is closed", async || client().get(&api).send().await.is_err()).await;
    assert!(seen("/metrics").await.1.contains("stint_connections"));
    assert!(!running.is_finished() || running.await.unwrap().is_ok(), "its answer goes on");
    site.process.signal("TERM");
    assert!(tokio::task::spawn_blocking(move || site.process.ended()).await.unwrap().success());
}

async fn is_sent_elsewhere(answer: Response) {
    let header = |name| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(answer.status().as_u16(), 503);
    assert_eq!(
        (header("retry-after").as_deref(), header("connection").as_deref()),
        (Some("1"), Some("close"))
    );
    let text = answer.text().await.unwrap();
    assert!(text.contains("\"code\":\"shutting_down\""), "{text}");
}
