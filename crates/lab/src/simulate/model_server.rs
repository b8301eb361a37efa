//! What serves a model: places, a queue, speeds, prices and a health that change on the way.

use std::collections::VecDeque;
use std::sync::Arc;

use stint_types::catalog::{GoesOn, HandOff, MemberRules, Model, ModelConditions, Prices, Service, Tariff};
use stint_types::units::{Price, Tokens};

use super::scenario::{ScenarioEvent, ScenarioModel};
use super::virtual_time::VirtualTime;

/// So many failures in a row close a model.
const FAILURES_MAX: u32 = 3;
/// How many seconds it stays closed.
const CLOSED_SECONDS: f64 = 30.0;
/// How many seconds a call takes that fails.
pub(super) const FAILURE_SECONDS: f64 = 1.0;
/// What one service counts in the mean of how long they take.
const SERVICE_WEIGHT: f64 = 0.02;

/// One model's server.
#[derive(Debug)]
pub(super) struct ModelServer {
    /// The model at its present price.
    pub model: Arc<Model>,
    /// Its price without what events make of it.
    list_tariff: Option<Tariff>,
    spec: ScenarioModel,
    /// Requests that wait, in order.
    queue: VecDeque<usize>,
    busy: u32,
    /// How long one service takes, as seen so far.
    mean_service: f64,
    is_down: bool,
    slowdown: f64,
    ability_gain: f64,
    failures: u32,
    closed_until: VirtualTime,
}

/// What became of an attempt that came to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotResult {
    /// It is served at once.
    Started,
    /// It waits.
    Queued,
    /// Nobody is there.
    Failed,
}

impl ModelServer {
    /// A model's server, idle.
    pub(super) fn new(answerer: &ScenarioModel, model: Arc<Model>) -> ModelServer {
        let tokens = answerer.thinking + 300.0;
        ModelServer {
            list_tariff: model.tariff,
            model,
            queue: VecDeque::new(),
            busy: 0,
            mean_service: tokens * answerer.token_ms / 1e3,
            is_down: false,
            slowdown: 1.0,
            ability_gain: 0.0,
            failures: 0,
            closed_until: VirtualTime::default(),
            spec: answerer.clone(),
        }
    }

    /// How able the model is now, in logits.
    pub(super) fn ability(&self, share_of_run: f64) -> f64 {
        self.spec.ability + self.ability_gain + self.spec.drift * share_of_run.min(1.0)
    }

    /// What the gateway sees of it.
    pub(super) fn conditions(&self, now: VirtualTime) -> ModelConditions {
        let full = self.queue.len() >= usize::try_from(self.spec.queue).unwrap_or(usize::MAX);
        let queue = self.queue_delay();
        ModelConditions {
            queue,
            // Nobody who waits there gives up a thought.
            queue_least: queue,
            prefill: self.prefill_time(),
            token: self.token_time(),
            healthy: now >= self.closed_until && !full,
        }
    }

    /// Seconds until a new attempt would be served.
    #[expect(clippy::cast_precision_loss, reason = "a queue is short")]
    fn queue_delay(&self) -> f64 {
        if self.busy < self.spec.slots {
            return 0.0;
        }
        (self.queue.len() as f64 + 1.0) * self.mean_service / f64::from(self.spec.slots)
    }

    /// Seconds to read so much and write so much.
    pub(super) fn service_time(&self, read: Tokens, written: Tokens) -> f64 {
        self.prefill_time() * read.as_f64() + self.token_time() * written.as_f64()
    }

    fn token_time(&self) -> f64 {
        self.spec.token_ms * self.slowdown / 1e3
    }

    fn prefill_time(&self) -> f64 {
        self.spec.prefill_ms * self.slowdown / 1e3
    }

    /// Gives an attempt a place, or a place in the queue.
    pub(super) fn acquire(&mut self, flight: usize, now: VirtualTime) -> SlotResult {
        if self.is_down {
            self.failures += 1;
            if self.failures >= FAILURES_MAX {
                self.closed_until = now.after(CLOSED_SECONDS);
            }
            return SlotResult::Failed;
        }
        if self.busy < self.spec.slots {
            self.busy += 1;
            return SlotResult::Started;
        }
        self.queue.push_back(flight);
        SlotResult::Queued
    }

    /// Frees the place of an attempt that took so many seconds; returns who is next.
    pub(super) fn release(&mut self, took: f64) -> Option<usize> {
        self.failures = 0;
        self.mean_service += SERVICE_WEIGHT * (took - self.mean_service);
        let next = self.queue.pop_front();
        if next.is_none() {
            self.busy -= 1;
        }
        next
    }

    /// Lets an event begin, or end. Attempts that wait when an outage begins are sent away.
    pub(super) fn apply_event(&mut self, turn: &ScenarioEvent, begins: bool) -> Vec<usize> {
        let sign = if begins { 1.0 } else { -1.0 };
        self.ability_gain += sign * turn.ability;
        self.slowdown *= if begins { turn.slower } else { 1.0 / turn.slower };
        if (turn.price - 1.0).abs() > f64::EPSILON {
            let factor = if begins { turn.price } else { 1.0 };
            let tariff = self.list_tariff.map(|listed| multiplied(listed, factor));
            self.model = Arc::new(Model { tariff, ..(*self.model).clone() });
        }
        if turn.outage {
            self.is_down = begins;
        }
        if self.is_down { self.queue.drain(..).collect() } else { Vec::new() }
    }

    /// True if nobody is served and nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.busy == 0 && self.queue.is_empty()
    }
}

/// A model as the scenario describes it.
pub(super) fn model(answerer: &ScenarioModel) -> Model {
    let prices = Prices { input: answerer.price_input, output: answerer.price_output };
    Model {
        name: answerer.name.clone(),
        tariff: Some(Tariff::plain(prices)),
        context: Tokens(131_072),
        context_limited_by: None,
        classes: vec![answerer.class],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        never_thinks: false,
        thinking_ruled_out: None,
        thinking_max: answerer.thinking_max,
        thinking_usual: None,
        solution_max: Some(Tokens(4096)),
        output_max: None,
        output_min: Tokens(1),
        hand_off: HandOff { text: String::new(), overhead: Tokens(12), overhead_without_thought: Tokens(12) },
        services: vec![Service::Chat],
        capabilities: Vec::new(),
        efforts: Vec::new(),
        members: MemberRules::default(),
        resumes_tools: false,
        conversation: stint_types::catalog::ConversationRules::default(),
        goes_on: GoesOn::Never,
        stops_billing: true,
        reference: None,
        ability_guess: None,
        specialty: None,
    }
}

/// Every price times a factor; not that of a call.
fn multiplied(tariff: Tariff, factor: f64) -> Tariff {
    let times = |price: Price| {
        let tokens = Tokens(price.per_million_tokens.0).as_f64() * factor;
        Price { per_million_tokens: stint_types::units::Money(Tokens::round(tokens).0) }
    };
    let mut tariff = tariff;
    for rates in [Some(&mut tariff.rates), tariff.long.as_mut().map(|(_, rates)| rates)].into_iter().flatten()
    {
        rates.list = Prices { input: times(rates.list.input), output: times(rates.list.output) };
        rates.cache_read = times(rates.cache_read);
        rates.cache_write = times(rates.cache_write);
        rates.cache_hour = times(rates.cache_hour);
    }
    tariff
}
