//! A response as events.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::chat::Event;
use crate::gateway::{Flight, Receipt};
use crate::http::bodies::Held;
use crate::http::error::Problem;
use crate::http::events;
use crate::units::Timestamp;

use super::echo;
use super::keeping::Keeping;
use super::output::{Look, shown};
use super::teller::{Teller, event};

/// Writes the events of one response.
pub(super) struct Chunks {
    /// The response as it is before it ends.
    frame: Value,
    teller: Teller,
    keeping: Keeping,
    begun: bool,
    /// What ends it, once it has ended and is kept.
    ended: Option<String>,
    /// Room for what it continues.
    _held: Vec<Held>,
}

impl Chunks {
    pub(super) fn new(
        flight: &Flight,
        created: Timestamp,
        look: Look,
        echo: &Map<String, Value>,
        keeping: Keeping,
    ) -> Chunks {
        let id = flight.id();
        let frame = echo::frame(id, created, flight.model(), keeping.stores(), echo);
        Chunks { frame, teller: Teller::new(id, look), keeping, begun: false, ended: None, _held: Vec::new() }
    }

    /// The same with room that it gives back when it is over.
    pub(super) fn holding(self, held: Vec<Held>) -> Chunks {
        Chunks { _held: held, ..self }
    }

    fn begin(&mut self) -> String {
        if std::mem::replace(&mut self.begun, true) {
            return String::new();
        }
        let response = json!({ "response": self.frame });
        let created = self.teller.emit("response.created", response.clone());
        created + &self.teller.emit("response.in_progress", response)
    }

    async fn end(&mut self, receipt: &Receipt) {
        let status = echo::status(receipt);
        let mut text = self.begin();
        text += &self.teller.end(status);
        let (now, items) = (Timestamp::now(), self.teller.items());
        let mut response = echo::ended(self.frame.clone(), receipt, shown(items), now);
        self.keeping.keep(receipt, now, &mut response, items).await;
        text += &self.teller.emit(&format!("response.{status}"), json!({ "response": response }));
        self.ended = Some(text);
    }
}

impl events::Chunks for Chunks {
    fn said(&mut self, _: u32, event: Event) -> String {
        let begun = self.begin();
        begun + &self.teller.tell(event)
    }

    fn ended(&mut self, _: &Receipt) -> String {
        self.ended.take().unwrap_or_default()
    }

    fn before_end<'a>(&'a mut self, receipt: &'a Receipt) -> BoxFuture<'a, ()> {
        self.end(receipt).boxed()
    }

    fn silence(&self) -> &'static str {
        ": thinking\n\n"
    }

    /// For those who look at the response's state, and for those who look for an error.
    fn problem(&self, problem: &Problem) -> String {
        let error = problem.to_json()["error"].take();
        let code = failed_code(problem.status().as_u16(), error["code"].as_str());
        let mut response = self.frame.clone();
        response["status"] = "failed".into();
        response["store"] = false.into();
        response["conversation"] = Value::Null;
        response["output"] = shown(self.teller.items()).into();
        response["error"] = json!({ "code": code, "message": error["message"] });
        let number = self.teller.sequence();
        let failed = event("response.failed", number, json!({ "response": response }));
        let flat = json!({
            "code": error["code"], "message": error["message"], "param": error["param"], "error": error,
        });
        failed + &event("error", number + 1, flat)
    }
}

/// The API has few words for why a response failed; agents look for two more.
fn failed_code(status: u16, code: Option<&str>) -> &str {
    match (status, code) {
        (_, Some(code @ ("insufficient_quota" | "context_length_exceeded"))) => code,
        (429, _) => "rate_limit_exceeded",
        (400..=499, _) => "invalid_prompt",
        _ => "server_error",
    }
}
