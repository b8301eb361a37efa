//! The running server, which is asked as any caller asks it.

use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use crate::app::server_call::KEY;
use crate::config;
use stint_types::units::{Money, Tokens};

use super::task::Task;

/// How long an answer may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1800);
/// How often a call is tried that failed for no fault of its own, and how long is waited at most before the next try.
const TRIES: u32 = 5;
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Why the server does not answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerError {
    #[error(
        "no server answers at {0}; start it with `stint serve`, name the configuration that it runs with by --config, or \
         give its address by --url"
    )]
    Unreachable(String, #[source] reqwest::Error),
    #[error("{0}")]
    Refused(String),
    #[error("the answer cannot be read; is it a stint of this version?")]
    Malformed,
}

/// What came of a question.
pub(super) enum ServerReply {
    Answered(ModelAnswer),
    /// So little money does not pay for it.
    TooDear,
}

/// An answer.
#[derive(Debug)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    pub(super) thought: Tokens,
    pub(super) is_cut: bool,
    pub(super) solution: Tokens,
    pub(super) cost: Money,
    /// True if the money ended it.
    pub(super) is_short_of_money: bool,
}

/// What is to be known of a model before it is measured.
pub(super) struct ServedModel {
    pub(super) is_priced: bool,
    pub(super) thinking_max: Tokens,
}

/// What a question would be planned as.
pub(super) struct CallQuote {
    /// What it may cost at most, as far as the first reservation goes.
    pub(super) worst: Money,
    pub(super) thinking: Tokens,
}

/// The server, and the model that is asked.
pub(super) struct CurveServer {
    client: reqwest::Client,
    base: String,
    model: String,
    temperature: Option<f64>,
}

impl CurveServer {
    pub(super) fn new(
        client: reqwest::Client,
        base: String,
        model: &str,
        temperature: Option<f64>,
    ) -> CurveServer {
        CurveServer { client, base, model: model.to_owned(), temperature }
    }

    /// What the server says of the model.
    pub(super) async fn model(&self) -> Result<ServedModel, ServerError> {
        let page = self.send(|| self.client.get(format!("{}/v1/models/{}", self.base, self.model))).await?;
        let page = accepted(page)?;
        let free = |price: &Value| match price {
            Value::Object(members) => members
                .iter()
                .filter(|(name, _)| name.contains("_usd"))
                .all(|(_, usd)| usd.as_str().and_then(|usd| usd.parse::<f64>().ok()) == Some(0.0)),
            _ => true,
        };
        let thinking_max = page["thinking_max"].as_u64().ok_or(ServerError::Malformed)?;
        Ok(ServedModel { is_priced: !free(&page["price"]), thinking_max: Tokens(thinking_max) })
    }

    /// What a question under a budget would be planned as.
    pub(super) async fn quote(&self, task: &Task, budget: Tokens) -> Result<CallQuote, ServerError> {
        let body = self.body(task, budget, None);
        let quote = accepted(self.post("/v1/plan", &body).await?)?;
        let chosen = quote["chosen"].as_u64().and_then(|at| usize::try_from(at).ok());
        let offer = &quote["offers"][chosen.ok_or(ServerError::Malformed)?];
        let read = || {
            let worst = offer["worst_case_usd"].as_str()?.parse().ok()?;
            Some(CallQuote { worst, thinking: Tokens(offer["thinking_tokens"].as_u64()?) })
        };
        read().ok_or(ServerError::Malformed)
    }

    /// Asks; where there is a limit of money, the answer costs no more.
    pub(super) async fn ask(
        &self,
        task: &Task,
        budget: Tokens,
        money: Option<Money>,
    ) -> Result<ServerReply, ServerError> {
        let answer = self.post("/v1/chat/completions", &self.body(task, budget, money)).await?;
        if answer["error"]["code"] == "budget_too_small" && money.is_some() {
            return Ok(ServerReply::TooDear);
        }
        let answer = accepted(answer)?;
        let (choice, spent) = (&answer["choices"][0]["message"]["content"], &answer["budget"]);
        let tokens = |phase: &str| spent[phase]["used"].as_u64().map(Tokens);
        let read = || {
            Some(ModelAnswer {
                text: choice.as_str().unwrap_or_default().to_owned(),
                thought: tokens("thinking")?,
                is_cut: spent["thinking"]["ended"] == "cut",
                solution: tokens("solution")?,
                cost: spent["cost_usd"].as_str().map_or(Some(Money::ZERO), |usd| usd.parse().ok())?,
                is_short_of_money: spent["solution"]["ended"] == "money",
            })
        };
        read().map(ServerReply::Answered).ok_or(ServerError::Malformed)
    }

    fn body(&self, task: &Task, budget: Tokens, money: Option<Money>) -> Value {
        let mut body = json!({
            "model": self.model, "messages": task.messages, "budget": { "thinking_tokens": budget },
        });
        if let Some(money) = money {
            body["budget"]["cost_usd"] = money.to_string().into();
        }
        if let Some(temperature) = self.temperature {
            body["temperature"] = temperature.into();
        }
        body
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, ServerError> {
        let text = body.to_string();
        self.send(|| {
            let request = self.client.post(format!("{}{path}", self.base));
            request.header("content-type", "application/json").body(text.clone())
        })
        .await
    }

    /// Sends a request, again where the server or the upstream is busy.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Value, ServerError> {
        let mut wait = Duration::from_millis(500);
        for attempt in 1.. {
            let mut sent = request();
            if let Some(key) = config::environment(KEY) {
                sent = sent.bearer_auth(key);
            }
            let unreachable = |cause| ServerError::Unreachable(self.base.clone(), cause);
            let answer = sent.send().await.map_err(unreachable)?;
            let status = answer.status();
            let is_final = answer.headers().get("x-should-retry").is_some_and(|says| says == "false");
            let is_busy = status.is_server_error() || status.as_u16() == 429;
            if is_busy && !is_final && attempt < TRIES {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(WAIT_MAX);
                continue;
            }
            let text = answer.text().await.map_err(unreachable)?;
            return serde_json::from_str(&text).map_err(|_| ServerError::Malformed);
        }
        Err(ServerError::Malformed)
    }
}

/// What the server says, unless that is an error.
fn accepted(answer: Value) -> Result<Value, ServerError> {
    match answer["error"]["message"].as_str() {
        Some(message) => Err(ServerError::Refused(message.to_owned())),
        None => Ok(answer),
    }
}
