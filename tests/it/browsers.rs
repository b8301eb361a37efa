//! Pages in browsers that call the API: what a browser asks first, and what it lets a page see.

use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;

use crate::harness::{Folder, Process};

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
    let hash = stint::tenant::hash_key("sk-test");
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
    for name in ["x-request-id", "x-ratelimit-remaining", "x-cost-usd", "retry-after"] {
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
    for wrong in ["https://app.example/", "app.example", "https://App.example", "https://app.example:443"] {
        let folder = Folder::new(&format!("[server.cors]\norigins = [\"{wrong}\"]\n"));
        let output = folder.stint("check").output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && told.contains("is no origin"), "{wrong}: {told}");
    }
}
