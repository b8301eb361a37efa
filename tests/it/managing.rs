//! What an operator sees and changes of requests and runs while a server runs.

use serde_json::{Value, json};

use crate::harness::patience::until;
use crate::harness::{Answer, Folder, Manner, Process, Upstream, free_port};

const TOKEN: &str = "the-token-of-the-admin-api";

/// A server of the embedded model with an admin API.
struct Desk {
    folder: Folder,
    process: Process,
    admin: String,
}

impl Desk {
    fn new() -> Desk {
        Desk::serving("")
    }

    /// The same with more to serve.
    fn serving(more: &str) -> Desk {
        let port = free_port();
        let hash = stint_types::tenant::hash_key("sk-test");
        let folder = Folder::new(&format!(
            "[admin]\nlisten = \"127.0.0.1:{port}\"\ntoken_file = \"admin.token\"\n\
             [[key]]\nname = \"alice\"\naccount = \"acme\"\nhash = \"{hash}\"\n{more}"
        ));
        std::fs::write(folder.path().join("admin.token"), TOKEN).unwrap();
        let process = folder.serve();
        Desk { folder, process, admin: format!("http://127.0.0.1:{port}") }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Answer {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.process.client.request(method, format!("{}{path}", self.admin)).bearer_auth(TOKEN);
        Answer::of(request.header("content-type", "application/json").body(body.to_string())).await
    }

    /// A step of a run that states one turn.
    async fn step(&self) -> Answer {
        let body = json!({
            "model": "reasoner",
            "messages": [{ "role": "user", "content": "1+1=" }],
            "budget": { "thinking_tokens": 8, "episode": { "id": "run-1", "turns": 1 } },
        });
        self.process.ask("sk-test", &body).await
    }
}

#[tokio::test]
async fn a_run_is_listed_raised_and_ended_and_its_entries_are_verified() {
    let mut desk = Desk::new();
    desk.step().await.good();
    assert_eq!(desk.step().await.status, 429, "its one turn is taken");
    let list = desk.ask("GET", "/admin/episodes?account=acme/alice", json!({})).await.good();
    assert_eq!(list["data"][0]["id"], "run-1");
    assert_eq!(list["data"][0]["limits"], json!({ "turns": 1 }));
    let raise = "/admin/episodes/run-1/raise?account=acme/alice";
    let nothing = desk.ask("POST", raise, json!({})).await;
    assert!(nothing.status == 400 && nothing.text.contains("by how much"), "{}", nothing.text);
    let raised = desk.ask("POST", raise, json!({ "turns": 1 })).await.good();
    assert_eq!((&raised["limits"]["turns"], &raised["raised"]["times"]), (&json!(2), &json!(1)), "{raised}");
    // The agent goes on to state what it stated.
    desk.step().await.good();
    assert_eq!(desk.step().await.status, 429);
    desk.ask("POST", raise, json!({ "turns": 5, "tool_calls": { "search": 3 } })).await.good();
    desk.step().await.good();
    let ended = desk.ask("POST", "/admin/episodes/run-1/end?account=acme/alice", json!({})).await.good();
    assert_eq!(ended["raised"]["is_ended"], true);
    assert_eq!(desk.step().await.status, 429, "it takes no step any more");
    let late = desk.ask("POST", raise, json!({ "turns": 1 })).await;
    assert_eq!((late.status, &late.error()["code"]), (409, &json!("ended")));
    let nobody = desk.ask("GET", "/admin/episodes/run-1?account=acme", json!({})).await;
    assert_eq!((nobody.status, &nobody.error()["code"]), (404, &json!("episode_not_found")));
    desk.process.signal("TERM");
    assert!(desk.process.ended().success());
    let verified = desk.folder.stint("ledger").arg("verify").output().unwrap();
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
}

#[tokio::test]
async fn a_request_is_found_by_each_of_its_ids() {
    let desk = Desk::new();
    let body = json!({ "model": "reasoner", "messages": [{ "role": "user", "content": "1+1=" }] });
    let answer = desk.process.ask("sk-test", &body).await;
    let (told, header) = (answer.good(), answer.headers["x-request-id"].to_str().unwrap().to_owned());
    for id in [told["id"].as_str().unwrap(), told["budget"]["id"].as_str().unwrap(), &header] {
        let story = desk.ask("GET", &format!("/admin/requests/{id}"), json!({})).await.good();
        assert_eq!(
            (&story["account"], &story["outcome"]["ended"]),
            (&json!("acme/alice"), &json!("finished"))
        );
    }
    let unknown = desk.ask("GET", "/admin/requests/req_1", json!({})).await;
    assert_eq!((unknown.status, &unknown.error()["code"]), (404, &json!("request_not_found")));
}

/// A step of a run that may cost so much, answered in so many words at 4 nano-dollars each.
async fn worded(desk: &Desk, words: u64, dollars: &str) -> Answer {
    let body = json!({
        "model": "m", "messages": [{ "role": "user", "content": Manner::Words(words).words() }],
        "budget": { "episode": { "id": "run-1", "cost_usd": dollars } },
    });
    desk.process.ask("sk-test", &body).await
}

/// How many steps have waited for what others of their run hold.
async fn waited(desk: &Desk) -> u64 {
    let page = desk.process.get("sk-test", "/metrics").await.text;
    let waits = page.lines().find_map(|line| line.strip_prefix("stint_episode_waits_total "));
    waits.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

#[tokio::test]
async fn answers_that_wait_for_their_runs_money_or_ended_by_it_go_on_after_a_raise() {
    let upstream = Upstream::start();
    let desk = Desk::serving(&format!(
        "admin = true\n[[backend]]\nbase_url = \"{}\"\n[[backend.model]]\nname = \"m\"\nprice_input = \"0\"\nprice_output = \"4\"\n\
         stops_billing = true\n",
        upstream.base
    ));
    let raise = "/admin/episodes/run-1/raise?account=acme/alice";
    let ended = |answer: &Answer| answer.good()["budget"]["solution"]["ended"].clone();
    // The first takes all that there is, and grows no further; the second waits for what is left of it.
    let waits = async {
        until("the first is written", async || !upstream.written().is_empty()).await;
        worded(&desk, 50, "0.0022").await
    };
    let raises = async {
        until("the second waits", async || waited(&desk).await > 0).await;
        desk.ask("POST", raise, json!({ "cost_usd": "0.0025" })).await.good()
    };
    let (first, second, raised) = tokio::join!(worded(&desk, 1_000, "0.0022"), waits, raises);
    assert_eq!((ended(&first), ended(&second)), (json!("money"), json!("stop")), "{}", second.text);
    assert_eq!(raised["limits"]["cost_usd"], "0.0047", "{raised}");
    assert_eq!(worded(&desk, 1_000, "0.0022").await.status, 429, "too little is left");
    desk.ask("POST", raise, json!({ "cost_usd": "0.05" })).await.good();
    let third = worded(&desk, 1_000, "0.0022").await;
    assert_eq!(ended(&third), "stop", "{}", third.text);
    let page = desk.ask("GET", "/admin/episodes/run-1?account=acme/alice", json!({})).await.good();
    let cost = |answer: &Answer| -> stint_types::units::Money {
        answer.good()["budget"]["cost_usd"].as_str().unwrap().parse().unwrap()
    };
    let all: stint_types::units::Money = [&first, &second, &third].into_iter().map(cost).sum();
    assert_eq!(page["cost_usd"].as_str().map(str::to_owned), Some(all.to_string()), "{page}");
}
