//! The loop: what happens, in order, in virtual time, under one policy.
//!
//! Every request takes the gateway's way: predicted, corrected by what was learned, planned, reserved, sent, retried with the
//! next best model where its worst case fits, settled, learned from. Only execution is made up.

mod deciding;
mod learning;

use std::sync::Arc;

use crate::simulate::arrivals::ArrivalProcess;
use crate::simulate::event_queue::{EventQueue, SimulationEvent};
use crate::simulate::in_flight::{AttemptStage, InFlightRequest};
use crate::simulate::learner::SimulatedLearner;
use crate::simulate::model_server::{FAILURE_SECONDS, ModelServer, SlotResult};
use crate::simulate::policy::SimulationPolicy;
use crate::simulate::setup::SimulationSetup;
use crate::simulate::simulated_attempt::SimulatedAttempt;
use crate::simulate::simulated_ledger::SimulatedLedger;
use crate::simulate::slab::Slab;
use crate::simulate::tally::{PolicyTally, SimulatedAnswer};
use crate::simulate::virtual_time::VirtualTime;
use stint_decide::learn::OutcomeSample;
use stint_types::catalog::{Demand, Market, Plan, RequestTraits, Tariff};
use stint_types::units::{Chance, Money, Tokens};

/// One policy's world.
pub(super) struct Simulation<'a> {
    setup: &'a SimulationSetup,
    policy: SimulationPolicy,
    now: VirtualTime,
    events: EventQueue,
    arrivals: ArrivalProcess,
    requests_arrived: u64,
    servers: Vec<ModelServer>,
    ledger: SimulatedLedger,
    in_flight: Slab<InFlightRequest>,
    /// Lessons whose judgement is still to come.
    pending_feedback: Slab<OutcomeSample>,
    learner: SimulatedLearner,
    /// What every tenant's dollar counts in hindsight.
    oracle_prices: &'a [f64],
    /// Overwritten for every request.
    demand: Demand,
    market: Market,
    /// True if every limit is looked at after everything that happens.
    audit_each: bool,
    tally: PolicyTally,
}

impl<'a> Simulation<'a> {
    /// A world at its beginning.
    pub(super) fn new(
        setup: &'a SimulationSetup,
        policy: SimulationPolicy,
        prices: &'a [f64],
        audited: bool,
    ) -> Simulation<'a> {
        let named = setup.models.iter();
        let told = |number| setup.population.predicted(&setup.population.request(0), number);
        let demands = named.clone().enumerate().map(|(number, model)| (model.name.clone(), told(number)));
        let first = setup.population.request(0);
        let demand = Demand {
            class: setup.population.task(&first),
            difficulty: setup.population.difficulty(&first),
            confidence: Chance::new(0.5),
            request: RequestTraits::default(),
            models: demands.collect(),
        };
        let hosts = setup.model_specs.iter().zip(&setup.models);
        let market = named
            .map(|model| (model.name.clone(), stint_types::catalog::ModelConditions::default()))
            .collect();
        Simulation {
            setup,
            policy,
            now: VirtualTime::default(),
            events: scenario_events(setup),
            arrivals: ArrivalProcess::new(&setup.scenario, setup.trace.clone()),
            requests_arrived: 0,
            servers: hosts.map(|(answerer, model)| ModelServer::new(answerer, model.clone())).collect(),
            ledger: SimulatedLedger::new(&setup.terms, &setup.tenants),
            in_flight: Slab::new(),
            pending_feedback: Slab::new(),
            learner: SimulatedLearner::new(setup.tenants.len()),
            oracle_prices: prices,
            demand,
            market: Market { models: market, ..Market::default() },
            audit_each: audited,
            tally: PolicyTally::new(setup),
        }
    }

    /// Runs it to the end of its last answer, and says what was counted.
    pub(super) fn run(mut self) -> PolicyTally {
        self.schedule_arrival();
        while let Some((at, what)) = self.events.pop() {
            self.tally.faults.backwards += u64::from(at < self.now);
            self.now = at;
            match what {
                SimulationEvent::Arrival => self.arrive(),
                SimulationEvent::AttemptEnd(place) => self.end_attempt(place),
                SimulationEvent::Feedback(place) => self.apply_feedback(place),
                SimulationEvent::ScenarioEvent(number) => self.apply_event(number),
            }
            if self.audit_each {
                self.audit();
            }
        }
        self.finish()
    }

    fn schedule_arrival(&mut self) {
        if self.requests_arrived < self.setup.scenario.requests {
            let at = self.arrivals.next();
            self.events.schedule(at, SimulationEvent::Arrival);
        }
    }

    /// A request arrives: it is planned, reserved and sent, or refused.
    fn arrive(&mut self) {
        let request = self.setup.population.request(self.requests_arrived);
        self.requests_arrived += 1;
        self.schedule_arrival();
        self.tally.arrived(self.setup, self.now);
        self.update_estimates(&request);
        let plan = match self.plan(&request) {
            Ok(plan) => plan,
            Err(refusal) => return self.tally.refused(refusal.code()),
        };
        let Plan { best, fallbacks, .. } = plan;
        let (model, tariff) = self.find_model(&best.model);
        let prices = Some(tariff.list(request.prompt));
        let (id, moment) = ((request.number, request.tenant), self.now.to_timestamp(self.setup.start));
        if self.ledger.reserve(id, &best.model, best.worst, prices, moment).is_err() {
            return self.tally.refused("insufficient_quota");
        }
        let mut fallbacks = fallbacks;
        fallbacks.reverse();
        let (arrived, seated) = (self.now, self.now);
        let stage = AttemptStage::Waiting;
        let flight = InFlightRequest {
            request,
            arrived,
            offer: best,
            fallbacks,
            model,
            tariff,
            enqueued_at: seated,
            stage,
        };
        let place = self.in_flight.insert(flight);
        self.enqueue(place);
    }

    /// Brings an attempt to the host of its offer.
    fn enqueue(&mut self, place: usize) {
        let Some(flight) = self.in_flight.get_mut(place) else { return };
        flight.enqueued_at = self.now;
        match self.servers[flight.model].acquire(place, self.now) {
            SlotResult::Started => self.start_service(place),
            SlotResult::Queued => flight.stage = AttemptStage::Waiting,
            SlotResult::Failed => self.fail(place),
        }
    }

    fn fail(&mut self, place: usize) {
        if let Some(flight) = self.in_flight.get_mut(place) {
            flight.stage = AttemptStage::Failing;
            self.events.schedule(self.now.after(FAILURE_SECONDS), SimulationEvent::AttemptEnd(place));
        }
    }

    /// The model begins to work.
    fn start_service(&mut self, place: usize) {
        let Some(flight) = self.in_flight.get_mut(place) else { return };
        let (population, host) = (&self.setup.population, &self.servers[flight.model]);
        let ability = host.ability(self.setup.elapsed_share(self.now));
        let truth = population.truth(&flight.request, flight.model, ability);
        let luck = population.draws(&flight.request, flight.model);
        let work = SimulatedAttempt::of(&flight.offer, &flight.request, &truth, &luck);
        flight.stage = AttemptStage::Serving { begun: self.now, work, luck };
        let ends = self.now.after(host.service_time(work.tokens_read(), work.tokens_written()));
        self.events.schedule(ends, SimulationEvent::AttemptEnd(place));
    }

    /// An attempt ends: in an answer, or in nothing.
    fn end_attempt(&mut self, place: usize) {
        let Some(flight) = self.in_flight.get_mut(place) else { return };
        let AttemptStage::Serving { begun, work, luck } = flight.stage else { return self.retry(place) };
        let next = self.servers[flight.model].release(self.now.since(begun));
        if let Some(flight) = self.in_flight.remove(place) {
            let right = luck.right < work.chance.get();
            let money = flight.cost(&work);
            let (tenant, moment) = (flight.request.tenant, self.now.to_timestamp(self.setup.start));
            self.ledger.grow(flight.request.number, money, &flight.offer.model);
            self.settle(&flight, money, work.thinking);
            let admitted = flight.arrived.to_timestamp(self.setup.start);
            self.tally.spent(self.setup, tenant, admitted, money.as_dollars());
            self.tally.served(
                self.setup,
                &SimulatedAnswer {
                    tenant,
                    model: flight.model,
                    arrived: flight.arrived,
                    ends: self.now,
                    waited: begun.since(flight.enqueued_at),
                    chance: work.chance,
                    right,
                    dollars: money.as_dollars(),
                    thinking: work.thinking,
                    cut: work.ended == stint_types::catalog::ThinkingStopReason::Cut,
                },
            );
            if self.policy == SimulationPolicy::Stint {
                let lines = self.ledger.statement(tenant, moment);
                self.learner.settle(tenant, moment, money, &lines);
                self.learn(&flight, &work, right);
            }
        }
        if let Some(next) = next {
            self.start_service(next);
        }
    }

    /// Tries the next best model, if its worst case fits beside what was spent; else the request has failed.
    fn retry(&mut self, place: usize) {
        let Some(flight) = self.in_flight.get_mut(place) else { return };
        let number = flight.request.number;
        while let Some(offer) = flight.fallbacks.pop() {
            if self.ledger.extend(number, Money::ZERO, offer.worst, &offer.model).is_ok() {
                let found = self.servers.iter().position(|host| host.model.name == offer.model);
                flight.model = found.unwrap_or(flight.model);
                flight.tariff = self.servers[flight.model].model.tariff.unwrap_or(Tariff::FREE);
                flight.offer = offer;
                self.tally.retried += 1;
                return self.enqueue(place);
            }
        }
        if let Some(flight) = self.in_flight.remove(place) {
            self.settle(&flight, Money::ZERO, Tokens::ZERO);
            self.tally.failed += 1;
        }
    }

    fn settle(&mut self, flight: &InFlightRequest, money: Money, thinking: Tokens) {
        let (id, at) =
            ((flight.request.number, flight.request.tenant), self.now.to_timestamp(self.setup.start));
        let within = self.ledger.settle(id, money, thinking, at);
        self.tally.faults.overruns += u64::from(!within);
    }

    /// An event begins, or ends: its number, twice.
    fn apply_event(&mut self, number: usize) {
        for place in self.setup.apply_event(&mut self.servers, number) {
            self.fail(place);
        }
    }

    fn find_model(&self, name: &Arc<str>) -> (usize, Tariff) {
        let number = self.servers.iter().position(|host| host.model.name == *name).unwrap_or(0);
        (number, self.servers[number].model.tariff.unwrap_or(Tariff::FREE))
    }

    /// Looks at every limit of every tenant.
    fn audit(&mut self) {
        let now = self.now.to_timestamp(self.setup.start);
        for tenant in 0..self.setup.tenants.len() {
            let beyond = |line: &stint_ledger::LimitStatus| {
                line.spent.size().saturating_add(line.reserved.size()) > line.max.size()
            };
            let count = self.ledger.statement(tenant, now).iter().filter(|line| beyond(line)).count();
            self.tally.faults.beyond += u64::try_from(count).unwrap_or(u64::MAX);
        }
    }

    fn finish(mut self) -> PolicyTally {
        let accounted = self.tally.served + self.tally.failed + self.tally.refused.values().sum::<u64>();
        self.tally.faults.lost = self.tally.arrived.abs_diff(accounted);
        self.tally.faults.lost +=
            u64::from(self.in_flight.len() > 0 || !self.servers.iter().all(ModelServer::is_idle));
        self.tally.faults.left = self.ledger.reserved().money.0;
        self.tally
    }
}

/// The beginnings and ends of a scenario's events.
pub(super) fn scenario_events(setup: &SimulationSetup) -> EventQueue {
    let mut agenda = EventQueue::default();
    for (number, turn) in setup.scenario.events.iter().enumerate() {
        agenda.schedule(
            VirtualTime::fraction_of(setup.length, turn.at),
            SimulationEvent::ScenarioEvent(2 * number),
        );
        if let Some(lasts) = turn.lasts {
            agenda.schedule(
                VirtualTime::fraction_of(setup.length, turn.at + lasts),
                SimulationEvent::ScenarioEvent(2 * number + 1),
            );
        }
    }
    agenda
}
