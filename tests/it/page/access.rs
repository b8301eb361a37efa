//! Who sees the page.

use reqwest::Method;
use serde_json::json;

use crate::harness::{Answer, Chromium, Folder, Process};

use super::load::{Desk, TOKEN, log_in};

/// AU-22, OB-06: what nobody sees without a token: everything but the page's own files, which say nothing of this server.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_nothing_is_served_but_the_login() {
    let desk = Desk::new("");
    desk.known_load().await;
    for part in ["now", "history", "models", "thinking", "money", "episodes", "decisions"] {
        let asked = desk.process.client.get(format!("{}/admin/page/{part}", desk.admin));
        assert_eq!(Answer::of(asked).await.status, 401, "{part}");
    }
    let page = Answer::of(desk.process.client.get(&desk.admin)).await;
    assert_eq!((page.status, &page.headers["cache-control"]), (200, &"no-store".parse().unwrap()));
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert_eq!(page.headers["x-content-type-options"], "nosniff");
    assert!(!page.text.contains("reasoner") && !page.text.contains("acme"), "{}", page.text);

    let mut browser = Chromium::open(&desk.admin);
    browser.shows(".login", "Token");
    assert_eq!(browser.eval("document.getElementById('top').hidden"), true);
    log_in(&mut browser, "another-token-altogether");
    browser.shows("#problem", "unknown, expired or revoked");
    log_in(&mut browser, TOKEN);
    browser.shows("[data-stat=\"requests total\"]", "5");
    assert_eq!(browser.eval("[document.cookie, localStorage.length, sessionStorage.length].join()"), ",0,0");
    browser.press("#leave");
    browser.shows(".login", "Token");
    assert!(!browser.eval("document.body.innerText").as_str().unwrap().contains("reasoner"));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// AU-23: the page is served by the admin listener's own names.
#[tokio::test]
async fn a_page_of_another_name_reads_nothing_on_the_admin_listener() {
    let desk = Desk::new("");
    for path in ["/", "/page", "/page/app.js", "/admin/page/now"] {
        let asked = desk.process.client.get(format!("{}{path}", desk.admin)).bearer_auth(TOKEN);
        let answer = Answer::of(asked.header("host", "rebound.example")).await;
        assert_eq!((answer.status, &answer.error()["code"]), (403, &json!("bad_host")), "{path}");
    }
}

/// Asks the API's own listener for the page, with headers.
async fn ask(process: &Process, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let request = process.client.request(method, format!("{}{path}", process.base));
    Answer::of(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
}

/// AU-22, AU-23: pages of other sites read and change nothing.
#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_needs_a_key_this_machine_sees_the_page_beside_the_api() {
    let folder = Folder::new("[server.cors]\norigins = [\"*\"]\n");
    let process = folder.serve();
    let front = ask(&process, Method::GET, "/", &[("accept", "text/html")]).await;
    assert!(front.text.contains("href=\"/page\""), "{}", front.text);
    let mut browser = Chromium::open(&format!("{}/page", process.base));
    browser.shows("[data-target^=\"reasoner/\"]", "available");
    assert_eq!(browser.complaints, Vec::<String>::new());
    let now = "/admin/page/now";
    let own = process.base.replace("127.0.0.1", "localhost");
    assert_eq!(ask(&process, Method::GET, now, &[]).await.status, 200);
    for (name, value) in [
        ("host", "rebound.example"),
        ("x-forwarded-for", "192.0.2.7"),
        ("forwarded", "for=192.0.2.7"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("origin", &own),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        for path in [now, "/page"] {
            let answer = ask(&process, Method::GET, path, &[(name, value)]).await;
            assert_eq!(answer.status, 403, "{name}: {value}");
            assert!(!answer.headers.contains_key("access-control-allow-origin"), "{name}: {value}");
        }
        let end = "/admin/episodes/run/end?account=anonymous";
        assert_eq!(ask(&process, Method::POST, end, &[(name, value)]).await.status, 403, "{name}: {value}");
    }
    let hash = stint_types::tenant::hash_key("sk-test");
    folder.write(&format!("[[key]]\nname = \"alice\"\nhash = \"{hash}\"\n"));
    process.signal("HUP");
    process.logged("the configuration is in force").await;
    for path in [now, "/page", "/page/app.js"] {
        let answer = ask(&process, Method::GET, path, &[("authorization", "Bearer sk-test")]).await;
        assert_eq!(answer.status, 404, "{path}: anyone who has keys has [admin]");
    }
}
