//! Sends alerts to an operator's webhook: limits that are nearly used up, and overruns.

use std::ops::ControlFlow;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::outbound;
use stint_ledger::{ClosedReservation, LimitStatus, LimitWarning, WarningCause};
use stint_types::tasks::Tasks;

/// How many alerts may wait; more are counted and left out.
const WAITING_MAX: usize = 256;

/// How long one delivery may take.
const DELIVERY_MAX: Duration = Duration::from_secs(5);

/// How long to wait before each further try.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// The way to the webhook. Sending never waits.
#[derive(Debug, Clone)]
pub(super) struct Alerts {
    sender: Option<mpsc::Sender<Value>>,
}

impl Alerts {
    /// Delivers to this address, in the background; nowhere, without one.
    pub(super) fn new(tasks: &Tasks, webhook: Option<&Url>) -> Result<Alerts, reqwest::Error> {
        let Some(url) = webhook.cloned() else { return Ok(Alerts { sender: None }) };
        let client = outbound::client_builder().timeout(DELIVERY_MAX).build()?;
        let (line, mut alerts) = mpsc::channel::<Value>(WAITING_MAX);
        let stopping = tasks.stopping();
        tasks.spawn(async move {
            tokio::pin!(stopping);
            loop {
                let next = async {
                    match alerts.recv().await {
                        Some(alert) => deliver(&client, &url, &alert).await,
                        None => return ControlFlow::Break(()),
                    }
                    ControlFlow::Continue(())
                };
                tokio::select! {
                    biased;
                    () = &mut stopping => return,
                    // Nobody tells this address any more.
                    next = next => if next.is_break() { return },
                }
            }
        });
        Ok(Alerts { sender: Some(line) })
    }

    /// A limit is nearly used up, or refused something before that.
    pub(super) fn send_warning(&self, warning: &LimitWarning) {
        let LimitStatus { limit, max, spent, reserved, left, resets_at } = &warning.status;
        self.send(json!({
            "event": match warning.cause {
                WarningCause::NearlyUsedUp => "limit_nearly_used_up",
                WarningCause::Refused => "limit_refuses",
            },
            "account": warning.account,
            "limit": limit.to_string(),
            "max": max,
            "spent": spent,
            "reserved": reserved,
            "left": left,
            "resets_at": resets_at,
        }));
    }

    /// An upstream took more than was reserved.
    pub(super) fn send_overrun(&self, account: &str, closed: &ClosedReservation) {
        self.send(json!({
            "event": "overrun",
            "account": account,
            "request": closed.id.to_string(),
            "model": closed.about.model,
            "spent": closed.spent,
            "overrun": closed.overrun,
        }));
    }

    fn send(&self, alert: Value) {
        if self.sender.as_ref().is_some_and(|line| line.try_send(alert).is_err()) {
            tracing::error!("the webhook does not keep up; an alert is left out");
        }
    }
}

async fn deliver(client: &Client, url: &Url, alert: &Value) {
    let mut waits = RETRIES.iter();
    loop {
        // The error's own text would show the address, which may be a secret.
        let why = match post(client, url, alert).await {
            Ok(response) if response.status().is_success() => return,
            Ok(response) => response.status().to_string(),
            Err(error) => error.without_url().to_string(),
        };
        let Some(wait) = waits.next() else {
            tracing::error!(why, %alert, "the webhook took no alert");
            return;
        };
        tokio::time::sleep(*wait).await;
    }
}

async fn post(client: &Client, url: &Url, alert: &Value) -> Result<Response, reqwest::Error> {
    client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(alert.to_string()).send().await
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use axum::Router;
    use axum::body::Body;
    use axum::response::Response;
    use axum::routing;

    use super::*;
    use crate::http;
    use stint_ledger::AccountId;
    use stint_types::metrics::Metrics;
    use stint_types::units::{Amount, Limit, Money, Unit, Window};

    /// A webhook that refuses the first alert once; and what it was sent.
    fn webhook(tasks: &Tasks) -> (Url, Arc<Mutex<Vec<Value>>>) {
        let taken = Arc::<Mutex<Vec<Value>>>::default();
        let seen = taken.clone();
        let take = move |body: String| async move {
            let mut seen = seen.lock().unwrap();
            seen.push(serde_json::from_str(&body).unwrap());
            let status = if seen.len() == 1 { 502 } else { 200 };
            Response::builder().status(status).body(Body::empty()).unwrap()
        };
        let settings = crate::config::load(None, &|name| (name == "STINT_LEDGER").then(|| ":memory:".into()));
        let bound = http::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let url = format!("http://{}/hook", bound.address()).parse().unwrap();
        let server =
            http::Server::new(settings.unwrap().http, Arc::new(Metrics::new().unwrap()), tasks.clone());
        tasks.spawn(server.serve(bound, Router::new().route("/hook", routing::post(take))));
        (url, taken)
    }

    #[tokio::test]
    async fn an_alert_is_delivered_also_when_the_first_try_fails() {
        let tasks = Tasks::default();
        let (url, taken) = webhook(&tasks);
        let alerts = Alerts::new(&tasks, Some(&url)).unwrap();
        let money = |nanos| Amount::Money(Money(nanos));
        alerts.send_warning(&LimitWarning {
            account: AccountId::new("acme"),
            status: LimitStatus {
                limit: Limit::of_key(Unit::Money, Window::Day),
                max: money(1_000_000_000),
                spent: money(700_000_000),
                reserved: money(100_000_000),
                left: money(200_000_000),
                resets_at: None,
            },
            cause: WarningCause::NearlyUsedUp,
        });
        while taken.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let expected = json!({
            "event": "limit_nearly_used_up", "account": "acme", "limit": "key money day", "max": "1",
            "spent": "0.7", "reserved": "0.1", "left": "0.2", "resets_at": null,
        });
        assert_eq!(*taken.lock().unwrap(), [expected.clone(), expected]);
        tasks.stop();
        assert!(tasks.drain(Duration::from_secs(60)).await);
    }
}
