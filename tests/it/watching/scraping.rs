//! A real Prometheus that scrapes a gateway under load: every panel has data, and alerts are raised by their faults.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::hook::{Does, Hook};
use crate::harness::issuer::TokenIssuer;
use crate::harness::{Folder, Process, Upstream};

use super::alert_table::alerts;
use super::panels::rows;
use super::prometheus::Prometheus;

/// Something of everything that there are series for. The model `gone` has no server.
fn configuration(upstream: &str, issuer: &str, hook: &str) -> String {
    let hash = stint_types::tenant::hash_key("sk-test");
    format!(
        "[[backend]]\nbase_url = '{upstream}'\n[[backend.model]]\nname = 'm'\nprice_input = '1'\nprice_output = '2'\n\
         [[backend]]\nname = 'dead'\nbase_url = 'http://127.0.0.1:9/v1'\n[[backend.model]]\nname = 'gone'\nprice_input = '1'\n\
         price_output = '2'\n\
         [[key]]\nname = 'test'\nadmin = true\nhash = '{hash}'\nlimits = [{{ money = '5', per = 'month' }}, {{ requests = 1000000, \
         per = 'hour' }}]\n\
         [[route]]\nname = 'vote'\nmodels = ['reasoner']\nvote = {{ compare = 'number', samples_max = 3 }}\njudge = 'reasoner'\n\
         probe = {{ model = 'reasoner' }}\n\
         [[route]]\nname = 'watched'\nmodels = ['reasoner', 'm']\nenforce = 'observe'\n\
         [[route]]\nname = 'shared'\nmodels = ['reasoner']\nrecipe = 'vote'\nvote = {{ compare = 'number' }}\n\
         [[issuer]]\nurl = '{issuer}'\naudiences = ['stint']\naccount_prefix = 'staff'\n[[issuer.profile]]\nname = 'all'\n\
         [[guardrail]]\nname = 'judge'\nurl = '{hook}'\nsecret_file = 'guard.secret'\nstages = ['before', 'after']\n"
    )
}

fn question(model: &str, text: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }], "user": "u" })
}

/// Every kind of request once.
async fn load(process: &Process, token: &str) {
    process.ask(token, &question("m", "tokens 5")).await.good();
    for model in ["reasoner", "vote", "watched", "shared"] {
        process.ask("sk-test", &question(model, "What is 12+34*2?")).await;
    }
    process.ask("sk-test", &question("m", "tokens 5")).await;
    let answer = process.ask("sk-test", &question("reasoner", "What is 3+4?")).await.good();
    let feedback = json!({ "id": answer["id"], "score": 1 }).to_string();
    let said = process.client.post(format!("{}/v1/feedback", process.base)).bearer_auth("sk-test");
    said.header("content-type", "application/json").body(feedback).send().await.unwrap();
    let mut dear = question("reasoner", "What is 12+34*2?");
    dear["budget"] = json!({ "cost_usd": "0.000000001" });
    assert!(process.ask("sk-test", &dear).await.status >= 400);
}

/// Series of what this server has not: a certificate.
const ELSEWHERE: [&str; 1] = ["stint_certificate_expiry_seconds"];

/// A query as Grafana sends it.
fn as_sent(query: &str) -> String {
    query.replace("$instance", ".+").replace("$__rate_interval", "1m")
}

/// OB-03: in a real Prometheus.
#[tokio::test]
async fn every_panel_has_data_and_alerts_are_raised_by_their_faults() {
    let upstream = Upstream::start();
    let (issuer, hook) = (TokenIssuer::start(), Hook::start(Does::Says(json!({ "verdict": "allow" }))));
    let folder = Folder::new(&configuration(&upstream.base, &issuer.url, &hook.url));
    std::fs::write(folder.path().join("guard.secret"), "the-secret-of-the-guardrail").unwrap();
    let process = folder.serve();
    let prometheus = Prometheus::start(process.base.strip_prefix("http://").unwrap()).await;
    prometheus.until("stint_config_state").await;
    for alert in alerts() {
        assert_eq!(prometheus.found(alert.expression).await, 0, "{} though nothing happened", alert.name);
    }
    let mut empty: Vec<String> = rows()
        .iter()
        .flat_map(|row| &row.panels)
        .flat_map(|panel| panel.queries.iter().map(|(query, _)| as_sent(query)))
        .filter(|query| !ELSEWHERE.iter().any(|series| query.contains(series)))
        .collect();
    let began = Instant::now();
    while !empty.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "without data: {empty:#?}");
        load(&process, &issuer.token("alice")).await;
        let mut still = Vec::new();
        for query in empty {
            if prometheus.found(&query).await == 0 {
                still.push(query);
            }
        }
        empty = still;
    }
    faults(&process, &folder, &prometheus).await;
}

/// Asks the model that has no server until an alert is raised, over ten seconds instead of the minutes that it takes.
async fn raised_while_asked(process: &Process, prometheus: &Prometheus, name: &str) {
    let alert = alerts().into_iter().find(|alert| alert.name == name).unwrap();
    let minutes =
        [("[3m]", "[10s]"), ("[10m]", "[10s]"), ("offset 3m", "offset 10s"), ("offset 10m", "offset 10s")];
    let expression =
        minutes.iter().fold(alert.expression.to_owned(), |text, (from, to)| text.replace(from, to));
    let began = Instant::now();
    while prometheus.found(&expression).await == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "{name} is not raised");
        process.ask("sk-test", &question("gone", "x")).await;
    }
}

/// Makes some faults, and sees their alerts raised, in the end by the server's own death.
async fn faults(process: &Process, folder: &Folder, prometheus: &Prometheus) {
    let raised = async |name: &str| {
        let alert = alerts().into_iter().find(|alert| alert.name == name).unwrap();
        prometheus.until(alert.expression).await;
    };
    for name in ["StintTargetLeftAlone", "StintModelUnavailable"] {
        raised_while_asked(process, prometheus, name).await;
    }
    raised("StintServerErrors").await;
    folder.write("[server]\nlisten = 'nowhere'\n");
    process.signal("HUP");
    raised("StintConfigRefused").await;
    process.signal("KILL");
    raised("StintDown").await;
}
