//! Callers with tokens of an issuer in place of keys: the real binary over a real issuer that signs, rotates and fails.

use std::net::TcpListener;
use std::time::Duration;

use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

use crate::harness::issuer::{SigningKey, TokenIssuer};
use crate::harness::patience::{until, within};
use crate::harness::{Answer, Deployment, Folder, Process, Says, free_port};

const TOKEN: &str = "the-token-of-the-admin-api";

/// What everybody may.
const ALL: &str = "[[issuer.profile]]\nname = \"all\"\n";

/// A gateway whose callers come with tokens, over an upstream of ten tokens.
struct Trusting {
    issuer: TokenIssuer,
    folder: Folder,
    upstream: Deployment,
    admin: String,
    port: u16,
}

impl Trusting {
    /// With more of the issuer's section, and its profiles.
    async fn new(issuer: TokenIssuer, more: &str) -> Trusting {
        let upstream = Deployment::always(Says::tokens(10)).await;
        let port = free_port();
        let folder = Folder::new("");
        std::fs::write(folder.path().join("admin.token"), TOKEN).unwrap();
        let trusting = Trusting { issuer, folder, upstream, admin: format!("http://127.0.0.1:{port}"), port };
        trusting.write(more);
        trusting
    }

    fn write(&self, more: &str) {
        let own = stint_types::tenant::hash_key("sk-own");
        self.folder.write(&format!(
            "[admin]\nlisten = \"127.0.0.1:{}\"\ntoken_file = \"admin.token\"\n\
             [engine]\nembedded = false\n[[backend]]\nbase_url = \"{}\"\n[[backend.model]]\nname = \"m\"\n\
             price_input = \"1\"\nprice_output = \"1\"\n[[backend.model]]\nname = \"n\"\n\
             [[key]]\nname = \"own\"\nrole = \"read\"\nhash = \"{own}\"\n\
             [[issuer]]\nurl = \"{}\"\naudiences = [\"stint\"]\naccount_prefix = \"staff\"\n{more}",
            self.port, self.upstream.base, self.issuer.url
        ));
    }

    /// Asks the admin API.
    async fn admin(&self, secret: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = client.request(method, format!("{}{path}", self.admin)).bearer_auth(secret);
        let body = body.map(Value::to_string).unwrap_or_default();
        Answer::of(request.header("content-type", "application/json").body(body)).await
    }
}

fn question() -> Value {
    json!({ "model": "m", "messages": [{ "role": "user", "content": "What is 1+2?" }] })
}

async fn post(process: &Process, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let request = process.client.post(format!("{}{path}", process.base));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
}

/// What the answer says of the token, in the words of the standard.
fn challenge(answer: &Answer) -> &str {
    answer.headers.get("www-authenticate").map(|value| value.to_str().unwrap()).unwrap_or_default()
}

#[tokio::test]
async fn a_caller_with_a_token_asks_by_every_api() {
    for algorithm in [Algorithm::ES256, Algorithm::EdDSA, Algorithm::RS256] {
        let trusting = Trusting::new(TokenIssuer::signing(algorithm), ALL).await;
        let process = trusting.folder.serve();
        let token = trusting.issuer.token("alice");
        let bearer = format!("Bearer {token}");
        process.ask(&token, &question()).await.good();
        let mut streamed = question();
        streamed["stream"] = true.into();
        assert!(process.ask(&token, &streamed).await.chunks().done);
        let message = json!({ "model": "m", "max_tokens": 50, "messages": question()["messages"] });
        for header in [("x-api-key", token.as_str()), ("authorization", bearer.as_str())] {
            post(&process, "/v1/messages", &[header], &message).await.good();
        }
        let responses = json!({ "model": "m", "input": "What is 1+2?" });
        let stored = post(&process, "/v1/responses", &[("authorization", &bearer)], &responses).await.good();
        let path = format!("/v1/responses/{}", stored["id"].as_str().unwrap());
        process.get(&token, &path).await.good();
        let usage = process.get(&token, "/v1/usage").await.good();
        assert_eq!(usage["data"][0]["requests"], 5, "{usage}");
        process.ask("sk-own", &question()).await.good();
        assert_eq!(process.ask("", &question()).await.status, 401, "nobody asks without either");
    }
}

#[tokio::test]
async fn a_token_that_fails_a_check_is_told_which() {
    let more = format!("require = {{ scope = \"stint\" }}\nleeway = \"1s\"\n{ALL}");
    let trusting = Trusting::new(TokenIssuer::start(), &more).await;
    let process = trusting.folder.serve();
    let issuer = &trusting.issuer;
    let scope = json!({ "scope": "openid stint" });
    let good = issuer.token_with("alice", &scope);
    process.ask(&good, &question()).await.good();
    let with = |claim: &str, value: Value| {
        let mut more = scope.clone();
        more[claim] = value;
        issuer.token_with("alice", &more)
    };
    let claims = json!({ "scope": "stint", "iss": issuer.url, "aud": "stint", "sub": "alice", "exp": 4_000_000_000_u64 });
    let stranger = SigningKey::new("first", Algorithm::ES256);
    let unpublished = SigningKey::new("other", Algorithm::ES256);
    // `{"alg":"none"}`, and the claims of a good token without its signature.
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", good.split('.').nth(1).unwrap());
    let cases = [
        (with("exp", json!(1_000)), 401, "expired"),
        (with("nbf", json!(4_000_000_000_u64)), 401, "nbf"),
        (with("aud", json!("billing")), 401, "audience"),
        (with("iss", json!("https://evil.example.com")), 401, "issuer"),
        (with("iss", json!([issuer.url])), 401, "issuer"),
        (with("exp", Value::Null), 401, "exp"),
        (with("aud", Value::Null), 401, "aud"),
        (unsigned, 401, "algorithm"),
        (issuer.key.sign_with_public_half(&claims), 401, "algorithm"),
        (stranger.sign(&claims), 401, "signature"),
        (unpublished.sign(&claims), 401, "kid"),
        (with("scope", json!("openid")), 403, "scope"),
        (with("sub", json!("")), 403, "sub"),
        (with("sub", json!("a".repeat(300))), 403, "sub"),
    ];
    for (token, status, word) in cases {
        let answer = process.ask(&token, &question()).await;
        assert_eq!(answer.status, status, "{word}: {}", answer.text);
        let error = answer.error();
        let (code, said) = if status == 401 {
            ("invalid_token", "Bearer error=\"invalid_token\"")
        } else {
            ("token_not_allowed", "Bearer error=\"insufficient_scope\"")
        };
        assert_eq!(error["code"], code, "{word}");
        assert!(error["message"].as_str().unwrap().contains(word), "{word}: {error}");
        assert!(challenge(&answer).starts_with(said) && challenge(&answer).contains(word), "{word}");
        let payload = token.split('.').nth(1).unwrap();
        assert!(!answer.text.contains(payload) && !challenge(&answer).contains(payload), "{word}");
    }
    let anthropic =
        post(&process, "/v1/messages", &[("x-api-key", &with("exp", json!(1)))], &json!({})).await;
    assert_eq!((anthropic.status, &anthropic.json()["error"]["type"]), (401, &json!("authentication_error")));
    assert_eq!(trusting.upstream.log().len(), 1, "no other reached a model");
}

#[tokio::test]
async fn rotated_keys_are_taken_at_once_and_those_that_are_gone_no_more() {
    let trusting = Trusting::new(TokenIssuer::start(), ALL).await;
    let process = trusting.folder.serve();
    let (issuer, next) = (&trusting.issuer, SigningKey::new("second", Algorithm::ES256));
    let old = issuer.token("alice");
    process.ask(&old, &question()).await.good();
    let new = next.sign(&issuer.claims("alice"));
    assert_eq!(process.ask(&new, &question()).await.status, 401, "not published yet");
    issuer.publish(&[&issuer.key, &next]);
    process.ask(&new, &question()).await.good();
    process.ask(&old, &question()).await.good();
    issuer.publish(&[&next]);
    let third = SigningKey::new("third", Algorithm::ES256);
    assert_eq!(process.ask(&third.sign(&issuer.claims("eve")), &question()).await.status, 401);
    let gone = process.ask(&old, &question()).await;
    assert!(gone.status == 401 && challenge(&gone).contains("kid"), "{}", gone.text);
    process.ask(&new, &question()).await.good();
}

#[tokio::test]
async fn any_number_of_unknown_keys_costs_the_issuer_few_fetches() {
    let trusting = Trusting::new(TokenIssuer::start(), ALL).await;
    let process = trusting.folder.serve();
    process.ask(&trusting.issuer.token("alice"), &question()).await.good();
    let before = trusting.issuer.fetches();
    let mut stranger = SigningKey::new("stranger", Algorithm::ES256);
    for number in 0..200 {
        stranger = stranger.renamed(&format!("kid-{number}"));
        let answer = process.ask(&stranger.sign(&trusting.issuer.claims("eve")), &question()).await;
        assert_eq!(answer.status, 401, "{}", answer.text);
    }
    let more = trusting.issuer.fetches() - before;
    assert!(more <= 8, "{more} fetches");
    process.ask(&trusting.issuer.token("alice"), &question()).await.good();
}

#[tokio::test]
async fn an_issuer_that_is_down_takes_nobody_out_who_is_known_and_is_found_when_it_is_back() {
    let trusting =
        Trusting::new(TokenIssuer::start(), &format!("refresh = \"1s\"\nkeep = \"1h\"\n{ALL}")).await;
    trusting.issuer.set_down(true);
    let process = trusting.folder.serve();
    let token = trusting.issuer.token("alice");
    let refused = process.ask(&token, &question()).await;
    assert_eq!((refused.status, &refused.error()["code"]), (503, &json!("token_not_checked")));
    assert!(refused.headers.contains_key("retry-after"));
    process.logged("the keys of an issuer of tokens cannot be fetched").await;
    process.ask("sk-own", &question()).await.good();
    trusting.issuer.set_down(false);
    until("it is known", async || process.ask(&token, &question()).await.status == 200).await;
    trusting.issuer.set_down(true);
    let failed = "stint_issuer_key_fetches_total{issuer=\"staff\",outcome=\"failed\"}";
    let failures = async || metric(&process, failed).await;
    let before = failures().await;
    until("its keys are asked for", async || failures().await > before).await;
    process.ask(&trusting.issuer.token("bob"), &question()).await.good();
}

#[tokio::test]
async fn the_metrics_do_not_wait_for_an_issuer_that_does_not_answer() {
    let trusting = Trusting::new(TokenIssuer::start(), ALL).await;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/realms/acme", silent.local_addr().unwrap());
    let file = trusting.folder.path().join("stint.toml");
    let text = std::fs::read_to_string(&file).unwrap().replace(&trusting.issuer.url, &url);
    trusting.folder.write(&text);
    let process = trusting.folder.serve();
    let token = trusting.issuer.token_with("alice", &json!({ "iss": url }));
    let began = std::time::Instant::now();
    let answered = within(Duration::from_secs(3), process.get(&token, "/metrics")).await;
    let answer = answered.expect("it does not wait");
    assert_eq!((answer.status, &answer.error()["code"]), (503, &json!("token_not_checked")));
    process.ask(&token, &question()).await;
    assert!(began.elapsed() > Duration::from_secs(4), "a caller waits, since the keys may come");
}

#[tokio::test]
async fn a_number_is_another_caller_than_the_text_that_looks_like_it() {
    let profile = "[[issuer.profile]]\nname = \"all\"\nlimits = [{ requests = 1, per = \"total\" }]\n";
    let trusting = Trusting::new(TokenIssuer::start(), profile).await;
    let process = trusting.folder.serve();
    for sub in [json!(12), json!("12"), json!("%n12")] {
        let token = trusting.issuer.token_with("", &json!({ "sub": sub }));
        process.ask(&token, &question()).await.good();
        assert_eq!(process.ask(&token, &question()).await.status, 429, "{sub}");
    }
}

#[tokio::test]
async fn keys_that_could_not_be_fetched_for_too_long_are_used_no_more() {
    let more = format!("refresh = \"1s\"\nkeep = \"0s\"\n{ALL}");
    let trusting = Trusting::new(TokenIssuer::start(), &more).await;
    let process = trusting.folder.serve();
    let token = trusting.issuer.token("alice");
    until("it is known", async || process.ask(&token, &question()).await.status == 200).await;
    trusting.issuer.set_down(true);
    until("its keys are too old", async || process.ask(&token, &question()).await.status == 503).await;
    trusting.issuer.set_down(false);
    until("it is known", async || process.ask(&token, &question()).await.status == 200).await;
}

#[tokio::test]
async fn each_caller_has_limits_of_their_own_by_what_their_token_says() {
    let profiles = "profile_claim = \"groups\"\n\
        [[issuer.profile]]\nname = \"heavy\"\nwhen = [\"ml\"]\nlimits = [{ requests = 3, per = \"total\" }]\n\
        [[issuer.profile]]\nname = \"light\"\nwhen = [\"everyone\"]\nmodels = [\"m\"]\nlimits = [{ requests = 1, per = \"total\" }]\n\
        [[account]]\nname = \"staff\"\nlimits = [{ requests = 6, per = \"total\" }]\n";
    let trusting = Trusting::new(TokenIssuer::start(), profiles).await;
    let process = trusting.folder.serve();
    let token = |sub: &str, groups: &[&str]| trusting.issuer.token_with(sub, &json!({ "groups": groups }));
    let ask = async |process: &Process, token: &str| process.ask(token, &question()).await.status;
    let (alice, bob) = (token("alice", &["everyone"]), token("bob", &["ml", "everyone"]));
    assert_eq!([ask(&process, &alice).await, ask(&process, &alice).await], [200, 429]);
    assert_eq!(ask(&process, &bob).await, 200);
    let models = process.get(&alice, "/v1/models").await.text;
    assert!(models.contains("\"m\"") && !models.contains("\"n\""), "{models}");
    assert_eq!(ask(&process, &token("eve", &["guests"])).await, 403);
    let page = trusting.admin(TOKEN, "GET", "/admin/accounts/staff/bob", None).await.good();
    assert_eq!(page["standing"][1]["left"], 2, "{page}");
    drop(process);
    // What they spent is known after a restart, by whichever token they come.
    let process = trusting.folder.serve();
    assert_eq!(ask(&process, &token("alice", &["everyone"])).await, 429);
    // In another group there is more.
    let mut later = trusting.issuer.claims("alice");
    later["groups"] = json!(["ml"]);
    later["iat"] = json!(later["iat"].as_i64().unwrap() + 1);
    let promoted = trusting.issuer.key.sign(&later);
    assert_eq!([ask(&process, &promoted).await, ask(&process, &promoted).await], [200, 200]);
    assert_eq!(ask(&process, &promoted).await, 429);
    // An admin may give one of them other limits, and all of them have one above.
    let more = json!({ "limits": [{ "requests": 9, "per": "total" }] });
    trusting.admin(TOKEN, "PUT", "/admin/accounts/staff/alice", Some(&more)).await.good();
    assert_eq!([ask(&process, &promoted).await, ask(&process, &bob).await], [200, 200]);
    let spent = process.ask(&promoted, &question()).await;
    assert_eq!(spent.error()["budget"]["limit"], "account staff requests total", "{}", spent.text);
}

#[tokio::test]
async fn no_token_reaches_what_is_anothers() {
    let trusting = Trusting::new(TokenIssuer::start(), ALL).await;
    let process = trusting.folder.serve();
    let [alice, bob, child] = ["alice", "bob", "alice/x"].map(|sub| trusting.issuer.token(sub));
    let body = json!({ "model": "m", "input": "A secret of Alice" });
    let bearer = format!("Bearer {alice}");
    let stored = post(&process, "/v1/responses", &[("authorization", &bearer)], &body).await.good();
    let path = format!("/v1/responses/{}", stored["id"].as_str().unwrap());
    process.get(&alice, &path).await.good();
    process.get(&trusting.issuer.token_with("alice", &json!({ "jti": "2" })), &path).await.good();
    for other in [bob.as_str(), child.as_str(), "sk-own"] {
        assert_eq!(process.get(other, &path).await.status, 404);
    }
    // Nor does a key get into their tree, or a token out of it.
    let key = json!({ "name": "staff/alice" });
    let refused = trusting.admin(TOKEN, "POST", "/admin/keys", Some(&key)).await;
    assert_eq!((refused.status, &refused.error()["code"]), (409, &json!("reserved_for_tokens")));
    process.ask(&trusting.issuer.token("../own"), &question()).await.good();
    let usage = process.get("sk-own", "/v1/usage").await.good();
    assert!(usage["data"].as_array().unwrap().is_empty(), "{usage}");
}

#[tokio::test]
async fn a_profile_gives_a_role_on_the_admin_api() {
    let profiles = "profile_claim = \"groups\"\n[[issuer.profile]]\nname = \"sre\"\nwhen = [\"sre\"]\nrole = \"keys\"\n\
        [[issuer.profile]]\nname = \"all\"\n";
    let trusting = Trusting::new(TokenIssuer::start(), profiles).await;
    let process = trusting.folder.serve();
    let sre = trusting.issuer.token_with("grace", &json!({ "groups": ["sre"] }));
    let none = trusting.issuer.token("alice");
    let status = async |token: &str, method: &str, path: &str, body: Value| {
        trusting.admin(token, method, path, Some(&body)).await.status
    };
    assert_eq!(status(&sre, "GET", "/admin/keys", Value::Null).await, 200);
    assert_eq!(status(&sre, "POST", "/admin/keys", json!({ "name": "made" })).await, 201);
    assert_eq!(status(&sre, "POST", "/admin/reload", json!({})).await, 403);
    assert_eq!(status(&none, "GET", "/admin/keys", Value::Null).await, 403);
    let expired = trusting.issuer.token_with("grace", &json!({ "groups": ["sre"], "exp": 1_000 }));
    assert_eq!(status(&expired, "GET", "/admin/keys", Value::Null).await, 401);
    let log = trusting.admin(TOKEN, "GET", "/admin/audit", None).await.good();
    assert_eq!(
        (&log["data"][0]["who"], &log["data"][0]["action"]),
        (&json!("staff/grace"), &json!("key.create"))
    );
    assert_eq!(process.get(&none, "/metrics").await.status, 403);
    process.get(&sre, "/metrics").await;
    assert!(metric(&process, "stint_token_checks_total{issuer=\"staff\",outcome=\"expired\"}").await > 0.0);
}

#[tokio::test]
async fn a_reload_changes_what_tokens_may_and_forgets_an_issuer() {
    let trusting = Trusting::new(TokenIssuer::start(), ALL).await;
    let process = trusting.folder.serve();
    let token = trusting.issuer.token("alice");
    process.ask(&token, &question()).await.good();
    trusting.write("[[issuer.profile]]\nname = \"all\"\nlimits = [{ requests = 1, per = \"total\" }]\n");
    trusting.admin(TOKEN, "POST", "/admin/reload", None).await.good();
    assert_eq!(process.ask(&token, &question()).await.status, 429);
    assert_eq!(trusting.issuer.fetches(), 1, "its keys are kept");
    trusting.write("audiences = [\"other\"]\n");
    let refused = trusting.admin(TOKEN, "POST", "/admin/reload", None).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    trusting.write(&ALL.replace("all", "renamed"));
    trusting.admin(TOKEN, "POST", "/admin/reload", None).await.good();
    process.ask(&token, &question()).await.good();
}

#[tokio::test]
async fn no_token_is_logged_shown_or_kept() {
    let trusting = Trusting::new(TokenIssuer::start(), ALL).await;
    let mut process = trusting.folder.serve();
    let good = trusting.issuer.token_with("alice", &json!({ "email": "canary-in-the-claims@example.com" }));
    let bad = trusting.issuer.token_with("alice", &json!({ "exp": 1_000 }));
    process.ask(&good, &question()).await.good();
    assert_eq!(process.ask(&bad, &question()).await.status, 401);
    let audit = trusting.admin(TOKEN, "GET", "/admin/audit", None).await.text;
    let accounts = trusting.admin(TOKEN, "GET", "/admin/accounts", None).await.text;
    process.signal("TERM");
    process.ended();
    let mut seen = format!("{audit}{accounts}{}", process.lines("").join("\n"));
    for file in std::fs::read_dir(trusting.folder.path()).unwrap() {
        seen += &String::from_utf8_lossy(&std::fs::read(file.unwrap().path()).unwrap());
    }
    assert!(seen.contains("staff/alice"), "the account is there");
    for token in [&good, &bad] {
        for part in token.split('.').skip(1) {
            assert!(!seen.contains(part), "a part of a token");
        }
    }
    assert!(!seen.contains("canary-in-the-claims"));
}

async fn metric(process: &Process, series: &str) -> f64 {
    let page = process.client.get(format!("{}/metrics", process.base)).bearer_auth("sk-own").send();
    let text = page.await.unwrap().text().await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap_or_else(|| panic!("no {series} in {text}")).trim().parse().unwrap()
}
