//! What a gateway does at one moment, as the admin API tells it.

use std::time::Duration;

use serde_json::Value;

use crate::app::server_call::harmless;
use stint_types::units::Timestamp;

/// All that is shown.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Snapshot {
    pub(super) version: String,
    /// Why it takes no requests, where it takes none.
    pub(super) not_ready: Option<String>,
    pub(super) counters: Counters,
    pub(super) in_flight: u64,
    pub(super) queued: u64,
    pub(super) connections: u64,
    pub(super) reserved_usd: f64,
    /// Those that have run the longest come first; there may be more.
    pub(super) requests: Vec<TopRequest>,
    pub(super) requests_count: u64,
    pub(super) targets: Vec<TopTarget>,
    pub(super) limits: Vec<TopLimit>,
}

/// What was counted since the gateway began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counters {
    /// When, in milliseconds.
    pub(super) at: u64,
    pub(super) requests: u64,
    pub(super) refused: u64,
    pub(super) thinking: u64,
    pub(super) solution: u64,
    pub(super) usd: f64,
}

/// A request that runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TopRequest {
    pub(super) account: String,
    pub(super) route: String,
    pub(super) seconds: f64,
    /// What serves it, and how many answers at once; nothing while it waits.
    pub(super) model: Option<String>,
    pub(super) answers: u64,
    /// Of all answers together.
    pub(super) thinking: Share,
    pub(super) solution: Share,
    pub(super) reserved_usd: f64,
}

/// A part that is used of a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Share {
    pub(super) used: f64,
    pub(super) whole: f64,
}

/// What serves a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TopTarget {
    pub(super) model: String,
    pub(super) name: String,
    pub(super) is_available: bool,
    /// False for a local model that the next request loads.
    pub(super) is_loaded: bool,
    pub(super) why: Option<String>,
    pub(super) in_flight: u64,
    pub(super) limit: Option<u64>,
    pub(super) queue: u64,
    pub(super) failures: u64,
}

/// How a limit of an account stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct TopLimit {
    pub(super) account: String,
    /// Like `money a day` or `thinking an hour, model qwen3-8b`.
    pub(super) about: String,
    pub(super) is_money: bool,
    pub(super) spent: Share,
    pub(super) reserved: f64,
    /// In how many seconds it is spent at this rate, where that is before it resets.
    pub(super) runs_out_in: Option<f64>,
}

impl Share {
    /// From 0 to 1; nothing of nothing.
    pub(super) fn ratio(self) -> f64 {
        if self.whole > 0.0 { (self.used / self.whole).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl Snapshot {
    /// Of three parts of the page.
    pub(super) fn of(now: &Value, requests: &Value, money: &Value) -> Snapshot {
        Snapshot {
            version: text(&now["version"]),
            not_ready: now["not_ready"].as_str().map(harmless),
            counters: Counters::of(&now["counters"]),
            in_flight: count(&now["in_flight"]),
            queued: count(&now["queued"]),
            connections: count(&now["connections"]),
            reserved_usd: number(&now["reserved_usd"]),
            requests: list(&requests["requests"]).iter().map(TopRequest::of).collect(),
            requests_count: count(&requests["requests_count"]),
            targets: list(&now["targets"]).iter().map(TopTarget::of).collect(),
            limits: list(&money["accounts"])
                .iter()
                .flat_map(|account| limits(account, moment(&money["now"])))
                .collect(),
        }
    }
}

impl Counters {
    fn of(json: &Value) -> Counters {
        Counters {
            at: count(&json["at"]),
            requests: count(&json["requests"]),
            refused: count(&json["refused"]),
            thinking: count(&json["thinking_tokens"]),
            solution: count(&json["solution_tokens"]),
            usd: number(&json["usd"]),
        }
    }
}

impl TopRequest {
    fn of(json: &Value) -> TopRequest {
        let attempt = &json["attempt"];
        let answers = count(&attempt["answers"]).max(1);
        #[expect(clippy::cast_precision_loss, reason = "there are few answers")]
        let share = |phase: &Value| Share {
            used: number(&phase["used"]),
            whole: number(&phase["budget"]) * answers as f64,
        };
        TopRequest {
            account: text(&json["account"]),
            route: text(&json["route"]),
            seconds: number(&json["seconds"]),
            model: attempt["model"].as_str().map(harmless),
            answers,
            thinking: share(&attempt["thinking"]),
            solution: share(&attempt["solution"]),
            reserved_usd: number(&attempt["reserved_usd"]),
        }
    }
}

impl TopTarget {
    fn of(json: &Value) -> TopTarget {
        let failures = json["failures"].as_object().into_iter().flat_map(|faults| faults.values());
        TopTarget {
            model: text(&json["model"]),
            name: text(&json["target"]),
            is_available: json["available"] == true,
            is_loaded: json["loaded"] != false,
            why: json["why"].as_str().map(harmless),
            in_flight: count(&json["in_flight"]),
            limit: json["limit"].as_u64(),
            queue: count(&json["queue"]),
            failures: failures.map(count).sum(),
        }
    }
}

fn limits(account: &Value, now: Option<Timestamp>) -> Vec<TopLimit> {
    let name = text(&account["account"]);
    let limit = |json: &Value| {
        let unit = text(&json["unit"]);
        let window = json["window"].as_str().map(|window| format!(" per {window}")).unwrap_or_default();
        let about = json["about"].as_str().map(|about| format!(", {}", harmless(about))).unwrap_or_default();
        TopLimit {
            account: name.clone(),
            about: format!("{unit}{window}{about}"),
            is_money: unit == "money",
            spent: Share { used: number(&json["spent"]), whole: number(&json["max"]) },
            reserved: number(&json["reserved"]),
            runs_out_in: now.zip(moment(&json["runs_out_at"])).map(|(now, end)| seconds(now, end)),
        }
    };
    list(&account["limits"]).iter().map(limit).collect()
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    let length = u64::try_from(to.0.saturating_sub(from.0)).unwrap_or_default();
    Duration::from_millis(length).as_secs_f64()
}

fn moment(json: &Value) -> Option<Timestamp> {
    json.as_str()?.parse().ok()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().map(harmless).unwrap_or_default()
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}
