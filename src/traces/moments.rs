//! `Moments`: what is noted of a request while it runs.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::gateway::RequestStage;
use stint_sessions::history::RequestRecord;
use stint_types::units::Timestamp;

/// When what happened, and to which spans it leads.
#[derive(Debug)]
pub(super) struct Moments {
    began: (SystemTime, Instant),
    /// When it was read: what the gateway counts its seconds from.
    arrived: Option<Instant>,
    /// Each stage's end, in order.
    pub(super) stages: Vec<(&'static str, Instant)>,
    pub(super) attempts: Vec<Attempt>,
    /// When settling began.
    pub(super) settling: Option<Instant>,
    pub(super) record: Option<Arc<RequestRecord>>,
    /// The limit or the reason that refused it.
    pub(super) refusal: Option<String>,
    /// How many tool calls passed.
    pub(super) tool_calls: Option<u64>,
}

/// One call of a target.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) span: u64,
    pub(super) model: Arc<str>,
    pub(super) target: Arc<str>,
    pub(super) began: Instant,
    pub(super) ended: Option<(Instant, &'static str)>,
    /// What failed, in a word.
    pub(super) error: Option<String>,
}

impl Moments {
    pub(super) fn begin() -> Moments {
        // Spans differ by the other clock, which is finer.
        let now = Duration::from_millis(u64::try_from(Timestamp::now().0).unwrap_or_default());
        Moments {
            began: (SystemTime::UNIX_EPOCH + now, Instant::now()),
            arrived: None,
            stages: Vec::with_capacity(8),
            attempts: Vec::new(),
            settling: None,
            record: None,
            refusal: None,
            tool_calls: None,
        }
    }

    /// When it began.
    pub(super) fn began(&self) -> Instant {
        self.began.1
    }

    /// A moment on the calendar.
    pub(super) fn on_calendar(&self, moment: Instant) -> SystemTime {
        self.began.0 + moment.saturating_duration_since(self.began.1)
    }

    /// A moment so many seconds after its arrival.
    pub(super) fn after(&self, seconds: f64) -> Instant {
        self.arrived.unwrap_or(self.began.1) + Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    pub(super) fn dispatch(&mut self, span: u64, model: &Arc<str>, target: &Arc<str>) {
        let (model, target) = (model.clone(), target.clone());
        self.attempts.push(Attempt { span, model, target, began: Instant::now(), ended: None, error: None });
    }

    pub(super) fn reach(&mut self, stage: &RequestStage<'_>) {
        let now = Instant::now();
        match stage {
            RequestStage::Arrived => {
                self.arrived = Some(now);
                self.end_stage("read", now);
            }
            RequestStage::Joined => self.end_stage("step", now),
            RequestStage::Estimated => self.end_stage("demand", now),
            RequestStage::Planned => self.end_stage("plan", now),
            RequestStage::Reserved => self.end_stage("reserve", now),
            RequestStage::PlaceFound => self.end_stage("queue", now),
            RequestStage::Recorded => self.end_stage("dispatch", now),
            RequestStage::AttemptEnded { ended, error } => {
                // Of two at once the one that was given up ended with the other.
                for attempt in self.attempts.iter_mut().filter(|attempt| attempt.ended.is_none()) {
                    attempt.ended = Some((now, ended));
                    attempt.error = error.map(str::to_owned);
                }
            }
            RequestStage::Settling => self.settling = Some(now),
            RequestStage::ToolCalls(passed) => self.tool_calls = Some(*passed),
            RequestStage::Refused(why) => self.refusal = Some((*why).to_owned()),
        }
    }

    /// A stage that is gone through again counts as one, and ends with the last time.
    fn end_stage(&mut self, name: &'static str, now: Instant) {
        self.stages.retain(|(known, _)| *known != name);
        self.stages.push((name, now));
    }
}
