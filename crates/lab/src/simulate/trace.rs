//! Recorded requests: what a gateway's decision log says of them, as a world to decide in again.
//!
//! Of every request the log has what was predicted of each model, and what was believed after learning. The predictions are
//! what is told again, and the beliefs are taken for the truth; what was observed of the model that served it (a thought that
//! ended by itself, the answer's length, a judgement) is so again where that model serves it again. How the models stood, their
//! queues and speeds, is what is decided by again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use stint_types::catalog::{
    LengthTails, LogNormal, MeasuredLengths, ModelConditions, ModelDemand, TaskClass, ThinkingStopReason,
};
use stint_types::units::{Chance, Timestamp, Tokens};

/// The requests of a decision log, in the order of their times.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestTrace {
    pub(super) rows: Vec<RecordedRequest>,
}

/// One recorded request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecordedRequest {
    pub at: Timestamp,
    pub class: TaskClass,
    pub difficulty: f64,
    pub prompt: Tokens,
    /// By model, what was predicted and what was believed.
    pub models: Vec<(Arc<str>, ModelDemand, ModelDemand)>,
    /// By model, how it stood when it was decided, where the log has that.
    pub conditions: Vec<(Arc<str>, ModelConditions)>,
    pub outcome: RecordedOutcome,
}

/// What was observed of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RecordedOutcome {
    pub model: Arc<str>,
    pub thinking: Tokens,
    pub ended: ThinkingStopReason,
    pub solution: Tokens,
    /// How right it was, by the word that counts most.
    pub success: Option<Chance>,
}

/// Why a decision log cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// A line that is no line of a decision log.
    #[error("line {line} is no line of a decision log: take it out, or record again")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        cause: serde_json::Error,
    },
    /// No request in it that was answered.
    #[error("the decision log has no request that was answered: let the gateway write one first")]
    Empty,
}

/// What is read of a line; other kinds and other members are left alone.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum TraceLine {
    Decision {
        decision: TraceDecision,
        outcome: TraceOutcome,
    },
    Verdict {
        verdict: TraceVerdict,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct TraceDecision {
    id: String,
    at: String,
    class: TaskClass,
    difficulty: f64,
    candidates: Vec<TraceCandidate>,
}

#[derive(Deserialize)]
struct TraceCandidate {
    model: Arc<str>,
    #[serde(default)]
    conditions: Option<ModelConditions>,
    prior: TracePrediction,
    belief: TracePrediction,
}

#[derive(Deserialize)]
struct TracePrediction {
    thinking: TraceLogNormal,
    solution: Tokens,
    prompt: Tokens,
    done: f64,
    blind: f64,
    bend: f64,
    #[serde(default = "unsaturated")]
    saturation: f64,
}

/// Older logs have none: their curve was a power of the share.
fn unsaturated() -> f64 {
    1.0
}

#[derive(Deserialize)]
struct TraceLogNormal {
    mu: f64,
    sigma: f64,
}

#[derive(Deserialize)]
struct TraceOutcome {
    model: Arc<str>,
    choices: Vec<TraceChoice>,
}

#[derive(Deserialize)]
struct TraceChoice {
    prompt: Tokens,
    thinking: Tokens,
    thinking_ended: TraceThinkingEnd,
    solution: Tokens,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TraceThinkingEnd {
    None,
    Closed,
    Cut,
    Stopped,
}

#[derive(Deserialize)]
struct TraceVerdict {
    id: String,
    success: f64,
    weight: f64,
}

impl RequestTrace {
    /// Reads a decision log, one JSON object a line: its `decision` lines, and the `verdict` lines on them.
    ///
    /// # Errors
    /// When a line cannot be read, or nothing in it was answered.
    pub fn parse(text: &str) -> Result<RequestTrace, TraceError> {
        let (mut rows, mut verdicts) = (Vec::new(), HashMap::<String, TraceVerdict>::new());
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match serde_json::from_str(line) {
                Ok(TraceLine::Decision { decision, outcome }) => {
                    rows.extend(RecordedRequest::of(&decision, outcome).map(|row| (decision.id, row)));
                }
                Ok(TraceLine::Verdict { verdict }) => {
                    let known = verdicts.get(&verdict.id).map_or(0.0, |known| known.weight);
                    if verdict.weight >= known {
                        verdicts.insert(verdict.id.clone(), verdict);
                    }
                }
                Ok(TraceLine::Other) => {}
                Err(cause) => return Err(TraceError::Line { line: number + 1, cause }),
            }
        }
        let judged = |(id, mut row): (String, RecordedRequest)| {
            row.outcome.success = verdicts.get(&id).map(|verdict| Chance::new(verdict.success));
            row
        };
        let mut rows: Vec<RecordedRequest> = rows.into_iter().map(judged).collect();
        rows.sort_by_key(|row| row.at);
        if rows.is_empty() { Err(TraceError::Empty) } else { Ok(RequestTrace { rows }) }
    }

    /// How many requests it has.
    pub(super) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// When the first came.
    pub(super) fn start(&self) -> Timestamp {
        self.rows.first().map(|row| row.at).unwrap_or_default()
    }

    /// How long after the first that of a number came.
    pub(super) fn after(&self, number: u64) -> Duration {
        let row = usize::try_from(number).ok().and_then(|number| self.rows.get(number));
        Duration::from_millis(row.map_or(0, |row| row.at.0.abs_diff(self.start().0)))
    }
}

impl RecordedRequest {
    fn of(decision: &TraceDecision, outcome: TraceOutcome) -> Option<RecordedRequest> {
        let choice = outcome.choices.into_iter().next()?;
        let both = |one: &TraceCandidate| (one.model.clone(), one.prior.demand(), one.belief.demand());
        let stood = |one: &TraceCandidate| Some((one.model.clone(), one.conditions?));
        let ended = match choice.thinking_ended {
            TraceThinkingEnd::None => ThinkingStopReason::None,
            TraceThinkingEnd::Closed => ThinkingStopReason::Closed,
            TraceThinkingEnd::Cut => ThinkingStopReason::Cut,
            TraceThinkingEnd::Stopped => ThinkingStopReason::Stopped,
        };
        Some(RecordedRequest {
            at: decision.at.parse().ok()?,
            class: decision.class,
            difficulty: decision.difficulty,
            prompt: choice.prompt,
            models: decision.candidates.iter().map(both).collect(),
            conditions: decision.candidates.iter().filter_map(stood).collect(),
            outcome: RecordedOutcome {
                model: outcome.model,
                thinking: choice.thinking,
                ended,
                solution: choice.solution,
                success: None,
            },
        })
    }
}

impl TracePrediction {
    fn demand(&self) -> ModelDemand {
        ModelDemand {
            thinking: LogNormal { mu: self.thinking.mu, sigma: self.thinking.sigma },
            solution: self.solution,
            prompt: self.prompt,
            done: Chance::new(self.done),
            blind: Chance::new(self.blind),
            bend: self.bend,
            saturation: self.saturation,
            spread: 0.0,
            prompt_least: self.prompt,
            prompt_usual: Tokens::ZERO,
            measured: MeasuredLengths { thinking: true, solution: true },
            tails: LengthTails::default(),
        }
    }
}
