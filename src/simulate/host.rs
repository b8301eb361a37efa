//! What serves a model: places, a queue, speeds, prices and a health that change on the way.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::catalog::{Conditions, GoesOn, HandOff, MemberRules, Model, Prices, Service, Tariff};
use crate::units::{Price, Tokens};

use super::moment::Moment;
use super::scenario::{Answerer, Turn};

/// So many failures in a row close a model.
const FAILURES_MAX: u32 = 3;
/// How many seconds it stays closed.
const CLOSED: f64 = 30.0;
/// How many seconds a call takes that fails.
pub(super) const FAILS_AFTER: f64 = 1.0;
/// What one service counts in the mean of how long they take.
const LATEST: f64 = 0.02;

/// One model's server.
#[derive(Debug)]
pub(super) struct Host {
    /// The model at its present price.
    pub model: Arc<Model>,
    /// Its price without what events make of it.
    listed: Option<Tariff>,
    answerer: Answerer,
    /// Flights that wait, in order.
    line: VecDeque<usize>,
    busy: u32,
    /// How long one service takes, as seen so far.
    usual: f64,
    is_down: bool,
    slower: f64,
    gained: f64,
    failures: u32,
    closed_until: Moment,
}

/// What became of a flight that came to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// It is served at once.
    Served,
    /// It waits.
    Waits,
    /// Nobody is there.
    Fails,
}

impl Host {
    /// A model's server, idle.
    pub(super) fn new(answerer: &Answerer, model: Arc<Model>) -> Host {
        let tokens = answerer.thinking + 300.0;
        Host {
            listed: model.tariff,
            model,
            line: VecDeque::new(),
            busy: 0,
            usual: tokens * answerer.token_ms / 1e3,
            is_down: false,
            slower: 1.0,
            gained: 0.0,
            failures: 0,
            closed_until: Moment::default(),
            answerer: answerer.clone(),
        }
    }

    /// How able the model is now, in logits.
    pub(super) fn ability(&self, share_of_run: f64) -> f64 {
        self.answerer.ability + self.gained + self.answerer.drift * share_of_run.min(1.0)
    }

    /// What the gateway sees of it.
    pub(super) fn conditions(&self, now: Moment) -> Conditions {
        let full = self.line.len() >= usize::try_from(self.answerer.queue).unwrap_or(usize::MAX);
        Conditions {
            queue: self.wait(),
            prefill: self.prefill(),
            token: self.token(),
            healthy: now >= self.closed_until && !full,
        }
    }

    /// Seconds until a new flight would be served.
    #[expect(clippy::cast_precision_loss, reason = "a queue is short")]
    fn wait(&self) -> f64 {
        if self.busy < self.answerer.slots {
            return 0.0;
        }
        (self.line.len() as f64 + 1.0) * self.usual / f64::from(self.answerer.slots)
    }

    /// Seconds to read so much and write so much.
    pub(super) fn takes(&self, read: Tokens, written: Tokens) -> f64 {
        self.prefill() * read.as_f64() + self.token() * written.as_f64()
    }

    fn token(&self) -> f64 {
        self.answerer.token_ms * self.slower / 1e3
    }

    fn prefill(&self) -> f64 {
        self.answerer.prefill_ms * self.slower / 1e3
    }

    /// Gives a flight a place, or a place in the queue.
    pub(super) fn seat(&mut self, flight: usize, now: Moment) -> Seat {
        if self.is_down {
            self.failures += 1;
            if self.failures >= FAILURES_MAX {
                self.closed_until = now.after(CLOSED);
            }
            return Seat::Fails;
        }
        if self.busy < self.answerer.slots {
            self.busy += 1;
            return Seat::Served;
        }
        self.line.push_back(flight);
        Seat::Waits
    }

    /// Frees the place of a flight that took so many seconds; says who is next.
    pub(super) fn leave(&mut self, took: f64) -> Option<usize> {
        self.failures = 0;
        self.usual += LATEST * (took - self.usual);
        let next = self.line.pop_front();
        if next.is_none() {
            self.busy -= 1;
        }
        next
    }

    /// Lets an event begin, or end. Whoever waits when an outage begins is sent away.
    pub(super) fn turn(&mut self, turn: &Turn, begins: bool) -> Vec<usize> {
        let sign = if begins { 1.0 } else { -1.0 };
        self.gained += sign * turn.ability;
        self.slower *= if begins { turn.slower } else { 1.0 / turn.slower };
        if (turn.price - 1.0).abs() > f64::EPSILON {
            let factor = if begins { turn.price } else { 1.0 };
            let tariff = self.listed.map(|listed| multiplied(listed, factor));
            self.model = Arc::new(Model { tariff, ..(*self.model).clone() });
        }
        if turn.outage {
            self.is_down = begins;
        }
        if self.is_down { self.line.drain(..).collect() } else { Vec::new() }
    }

    /// True where nobody is served and nobody waits.
    pub(super) fn is_idle(&self) -> bool {
        self.busy == 0 && self.line.is_empty()
    }
}

/// A model as the scenario describes it.
pub(super) fn model(answerer: &Answerer) -> Model {
    let prices = Prices { input: answerer.price_input, output: answerer.price_output };
    Model {
        name: answerer.name.clone(),
        tariff: Some(Tariff::plain(prices)),
        context: Tokens(131_072),
        classes: vec![answerer.class],
        thinking_min: Tokens::ZERO,
        thinks_always: false,
        thinking_max: answerer.thinking_max,
        thinking_usual: None,
        solution_max: Some(Tokens(4096)),
        output_max: None,
        hand_off: HandOff { text: String::new(), overhead: Tokens(12), unthought: Tokens(12) },
        services: vec![Service::Chat],
        capabilities: Vec::new(),
        efforts: Vec::new(),
        members: MemberRules::default(),
        resumes_tools: false,
        goes_on: GoesOn::Never,
        stops_billing: true,
        reference: None,
        specialty: None,
    }
}

/// Every price times a factor; not that of a call.
fn multiplied(tariff: Tariff, factor: f64) -> Tariff {
    let times = |price: Price| {
        let tokens = Tokens(price.per_million_tokens.0).as_f64() * factor;
        Price { per_million_tokens: crate::units::Money(Tokens::round(tokens).0) }
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
