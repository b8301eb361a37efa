//! A server of the embedded model with an admin API, and a load of which everything is known.

use serde_json::{Value, json};

use crate::harness::{Answer, Chromium, Folder, Process, free_port};

pub(super) const TOKEN: &str = "the-token-of-the-admin-api";
pub(super) const KEY: &str = "sk-test";

/// The run of an agent: anyone who asks may call it anything.
pub(super) const RUN: &str = "<img src=x onerror=\"document.title='owned'\">";

/// A word that is asked for, and which no panel but the playground may show.
pub(super) const SECRET: &str = "xylophone";

/// A running server.
pub(super) struct Desk {
    pub(super) folder: Folder,
    pub(super) process: Process,
    pub(super) admin: String,
}

impl Desk {
    /// The embedded model and one key, which may spend 20 dollars a day; and what else the configuration is to say.
    pub(super) fn new(more: &str) -> Desk {
        let port = free_port();
        let hash = stint_types::tenant::hash_key(KEY);
        let folder = Folder::new(&format!(
            "[admin]\nlisten = \"127.0.0.1:{port}\"\ntoken_file = \"admin.token\"\n[[key]]\nname = \"alice\"\n\
             account = \"acme\"\nhash = \"{hash}\"\nlimits = [{{ money = \"20\", per = \"day\" }}]\n{more}"
        ));
        std::fs::write(folder.path().join("admin.token"), TOKEN).unwrap();
        let process = folder.serve();
        Desk { folder, process, admin: format!("http://127.0.0.1:{port}") }
    }

    /// One part of what the page shows.
    pub(super) async fn part(&self, part: &str) -> Answer {
        let request = self.process.client.get(format!("{}/admin/page/{part}", self.admin));
        Answer::of(request.bearer_auth(TOKEN)).await
    }

    /// A browser that has the panels before it.
    pub(super) fn browser(&self, panel: &str) -> Chromium {
        let mut browser = Chromium::open(&format!("{}/#{panel}", self.admin));
        log_in(&mut browser, TOKEN);
        browser.until("!document.getElementById('top').hidden");
        browser
    }

    /// A question with so many thinking tokens.
    pub(super) async fn ask(&self, thinking: u64, episode: Option<&Value>) -> Value {
        let mut body = json!({
            "model": "reasoner",
            "messages": [{ "role": "user", "content": "What is 12+34*2?" }],
            "budget": { "thinking_tokens": thinking },
            "metadata": { "topic": SECRET },
        });
        if let Some(episode) = episode {
            body["budget"]["episode"] = episode.clone();
        }
        self.process.ask(KEY, &body).await.good()
    }

    /// Three thoughts that are cut, two that end by themselves, two of all of them steps of a run.
    pub(super) async fn known_load(&self) -> Known {
        let run = json!({ "id": RUN, "turns": 5, "cost_usd": "1" });
        let mut known = Known::default();
        for (thinking, episode) in [(8, None), (8, None), (8, Some(&run)), (200, Some(&run)), (200, None)] {
            known.add(&self.ask(thinking, episode).await);
        }
        known
    }
}

/// Types a token into the login.
pub(super) fn log_in(browser: &mut Chromium, token: &str) {
    browser.types("#token", token);
    browser.press(".login button");
}

/// What a load came to, by its answers.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) requests: u64,
    pub(super) cut: u64,
    pub(super) planned: u64,
    pub(super) thinking: u64,
    pub(super) solution: u64,
    pub(super) dollars: f64,
}

impl Known {
    fn add(&mut self, answer: &Value) {
        let budget = &answer["budget"];
        let number = |phase: &str, member: &str| budget[phase][member].as_u64().unwrap();
        self.requests += 1;
        self.cut += u64::from(budget["thinking"]["ended"] == "cut");
        self.planned += number("thinking", "budget");
        self.thinking += number("thinking", "used");
        self.solution += number("solution", "used");
        self.dollars += budget["cost_usd"].as_str().unwrap().parse::<f64>().unwrap();
    }
}
