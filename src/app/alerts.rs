//! Sends alerts to an operator's webhook: limits that are nearly used up, and overruns.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, Url};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::sleep;

use crate::outbound;
use stint_ledger::{ClosedReservation, LimitStatus, LimitWarning, WarningCause};
use stint_types::tasks::Tasks;

/// How many alerts may wait; more are counted and left out.
const WAITING_MAX: usize = 256;

/// How long one delivery may take.
const DELIVERY_MAX: Duration = Duration::from_secs(5);

/// How long to wait before each further try.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// How long those that wait may take at the end of the process, in all. The ledger's writer has longer.
const END_MAX: Duration = Duration::from_secs(5);

/// The way to the webhook. Sending never waits.
#[derive(Debug, Clone)]
pub(super) struct Alerts {
    sender: Option<mpsc::Sender<Value>>,
}

impl Alerts {
    /// Delivers to this address, in the background; nowhere, without one. These tasks end after all that settles.
    pub(super) fn new(tasks: &Tasks, webhook: Option<&Url>) -> Result<Alerts, reqwest::Error> {
        let Some(url) = webhook.cloned() else { return Ok(Alerts { sender: None }) };
        let client = outbound::client_builder().timeout(DELIVERY_MAX).build()?;
        let (line, alerts) = mpsc::channel::<Value>(WAITING_MAX);
        tasks.spawn(AlertWebhook { client, url, tasks: tasks.clone() }.run(alerts));
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
        match self.sender.as_ref().map(|line| line.try_send(alert)) {
            None | Some(Ok(())) => {}
            Some(Err(TrySendError::Full(alert))) => {
                tracing::error!(%alert, "the webhook does not keep up; an alert is left out");
            }
            Some(Err(TrySendError::Closed(alert))) => {
                tracing::error!(%alert, "the gateway ends; an alert is left out");
            }
        }
    }
}

/// The address that alerts go to, and the task that calls it.
struct AlertWebhook {
    client: Client,
    url: Url,
    tasks: Tasks,
}

impl AlertWebhook {
    /// Delivers until nobody tells this address any more. From shutdown on only what waits already, and for a limited time.
    async fn run(self, mut alerts: mpsc::Receiver<Value>) {
        let patience = async {
            self.tasks.stopping().await;
            sleep(END_MAX).await;
        };
        let is_done = tokio::select! {
            () = self.deliver_all(&mut alerts) => true,
            () = patience => false,
        };
        if !is_done {
            tracing::error!(waiting = alerts.len(), "the webhook did not take all alerts before the end");
        }
    }

    async fn deliver_all(&self, alerts: &mut mpsc::Receiver<Value>) {
        let stopping = self.tasks.stopping();
        tokio::pin!(stopping);
        let mut is_closing = false;
        loop {
            tokio::select! {
                biased;
                () = &mut stopping, if !is_closing => {
                    is_closing = true;
                    alerts.close();
                }
                alert = alerts.recv() => match alert {
                    Some(alert) => self.deliver(&alert).await,
                    None => return,
                },
            }
        }
    }

    /// Tries a few times; from shutdown on once.
    async fn deliver(&self, alert: &Value) {
        let mut waits = RETRIES.iter();
        loop {
            // The error's own text would show the address, which may be a secret.
            let why = match post(&self.client, &self.url, alert).await {
                Ok(response) if response.status().is_success() => return,
                Ok(response) => response.status().to_string(),
                Err(error) => error.without_url().to_string(),
            };
            let Some(wait) = waits.next().filter(|_| !self.tasks.is_stopping()) else {
                tracing::error!(why, %alert, "the webhook took no alert");
                return;
            };
            tokio::select! {
                () = sleep(*wait) => {}
                () = self.tasks.stopping() => {}
            }
        }
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
    async fn what_waits_when_the_gateway_ends_is_delivered_with_one_try_each() {
        let (server_tasks, tasks) = (Tasks::default(), Tasks::default());
        let (url, taken) = webhook(&server_tasks);
        let alerts = Alerts::new(&tasks, Some(&url)).unwrap();
        [1, 2, 3].into_iter().for_each(|alert| alerts.send(json!(alert)));
        tasks.stop();
        assert!(tasks.drain(Duration::from_secs(60)).await);
        assert_eq!(*taken.lock().unwrap(), [json!(1), json!(2), json!(3)], "the first was refused");
        server_tasks.stop();
        assert!(server_tasks.drain(Duration::from_secs(60)).await);
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
            sleep(Duration::from_millis(20)).await;
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
