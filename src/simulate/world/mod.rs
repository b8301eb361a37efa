//! The loop: what happens, in order, in virtual time, under one policy.
//!
//! Every request takes the gateway's way: predicted, corrected by what was learned, planned, reserved, sent, retried with the
//! next best model where its worst case fits, settled, learned from. Only execution is made up.

mod deciding;
mod learning;

use std::sync::Arc;

use crate::catalog::{Demand, Market, Plan, Tariff};
use crate::learn::Lesson;
use crate::units::{Chance, Money, Tokens};

use crate::simulate::agenda::{Agenda, Happening};
use crate::simulate::arrivals::Arrivals;
use crate::simulate::bank::Bank;
use crate::simulate::flight::{Flight, Stage};
use crate::simulate::host::{FAILS_AFTER, Host, Seat};
use crate::simulate::learner::Learner;
use crate::simulate::moment::Moment;
use crate::simulate::policy::Policy;
use crate::simulate::setting::Setting;
use crate::simulate::slots::Slots;
use crate::simulate::tally::{Served, Tally};
use crate::simulate::work::Work;

/// One policy's world.
pub(super) struct World<'a> {
    setting: &'a Setting,
    policy: Policy,
    now: Moment,
    agenda: Agenda,
    arrivals: Arrivals,
    started: u64,
    hosts: Vec<Host>,
    bank: Bank,
    flights: Slots<Flight>,
    /// Lessons whose judgement is still to come.
    words: Slots<Lesson>,
    learner: Learner,
    /// What every tenant's dollar counts in hindsight.
    prices: &'a [f64],
    /// Written anew for every request.
    demand: Demand,
    market: Market,
    /// True where every limit is looked at after everything that happens.
    audited: bool,
    tally: Tally,
}

impl<'a> World<'a> {
    /// A world at its beginning.
    pub(super) fn new(setting: &'a Setting, policy: Policy, prices: &'a [f64], audited: bool) -> World<'a> {
        let named = setting.models.iter();
        let told = |number| setting.population.told(&setting.population.request(0), number);
        let demands = named.clone().enumerate().map(|(number, model)| (model.name.clone(), told(number)));
        let first = setting.population.request(0);
        let demand = Demand {
            class: setting.population.task(&first),
            difficulty: setting.population.difficulty(&first),
            confidence: Chance::new(0.5),
            models: demands.collect(),
        };
        let hosts = setting.answerers.iter().zip(&setting.models);
        let market = named.map(|model| (model.name.clone(), crate::catalog::Conditions::default())).collect();
        World {
            setting,
            policy,
            now: Moment::default(),
            agenda: agenda(setting),
            arrivals: Arrivals::new(&setting.scenario, setting.trace.clone()),
            started: 0,
            hosts: hosts.map(|(answerer, model)| Host::new(answerer, model.clone())).collect(),
            bank: Bank::new(&setting.terms, &setting.tenants),
            flights: Slots::new(),
            words: Slots::new(),
            learner: Learner::new(setting.tenants.len()),
            prices,
            demand,
            market: Market { models: market, ..Market::default() },
            audited,
            tally: Tally::new(setting),
        }
    }

    /// Runs it to the end of its last answer, and says what was counted.
    pub(super) fn run(mut self) -> Tally {
        self.expect_arrival();
        while let Some((at, what)) = self.agenda.next() {
            self.tally.faults.backwards += u64::from(at < self.now);
            self.now = at;
            match what {
                Happening::Arrival => self.arrive(),
                Happening::Ends(place) => self.end(place),
                Happening::Word(place) => self.hear(place),
                Happening::Turn(number) => self.turn(number),
            }
            if self.audited {
                self.audit();
            }
        }
        self.close()
    }

    fn expect_arrival(&mut self) {
        if self.started < self.setting.scenario.requests {
            let at = self.arrivals.next();
            self.agenda.enter(at, Happening::Arrival);
        }
    }

    /// A request arrives: it is planned, reserved and sent, or refused.
    fn arrive(&mut self) {
        let request = self.setting.population.request(self.started);
        self.started += 1;
        self.expect_arrival();
        self.tally.arrived(self.setting, self.now);
        let context = self.look(&request);
        let plan = match self.plan(&request) {
            Ok(plan) => plan,
            Err(refusal) => return self.tally.refused(refusal.code()),
        };
        let Plan { best, fallbacks, .. } = plan;
        let (model, tariff) = self.found(&best.model);
        let prices = Some(tariff.list(request.prompt));
        let (id, moment) = ((request.number, request.tenant), self.now.on_calendar(self.setting.start));
        if self.bank.reserve(id, &best.model, best.worst, prices, moment).is_err() {
            return self.tally.refused("insufficient_quota");
        }
        let mut fallbacks = fallbacks;
        fallbacks.reverse();
        let (arrived, seated) = (self.now, self.now);
        let stage = Stage::Waiting;
        let flight =
            Flight { request, arrived, offer: best, fallbacks, model, tariff, context, seated, stage };
        let place = self.flights.put(flight);
        self.seat(place);
    }

    /// Brings a flight to the host of its offer.
    fn seat(&mut self, place: usize) {
        let Some(flight) = self.flights.at(place) else { return };
        flight.seated = self.now;
        match self.hosts[flight.model].seat(place, self.now) {
            Seat::Served => self.begin(place),
            Seat::Waits => flight.stage = Stage::Waiting,
            Seat::Fails => self.fail(place),
        }
    }

    fn fail(&mut self, place: usize) {
        if let Some(flight) = self.flights.at(place) {
            flight.stage = Stage::Failing;
            self.agenda.enter(self.now.after(FAILS_AFTER), Happening::Ends(place));
        }
    }

    /// The model begins to work.
    fn begin(&mut self, place: usize) {
        let Some(flight) = self.flights.at(place) else { return };
        let (population, host) = (&self.setting.population, &self.hosts[flight.model]);
        let ability = host.ability(self.setting.share(self.now));
        let truth = population.truth(&flight.request, flight.model, ability);
        let luck = population.luck(&flight.request, flight.model);
        let work = Work::of(&flight.offer, &flight.request, &truth, &luck);
        flight.stage = Stage::Serving { begun: self.now, work, luck };
        let ends = self.now.after(host.takes(work.read(), work.written()));
        self.agenda.enter(ends, Happening::Ends(place));
    }

    /// An attempt ends: in an answer, or in nothing.
    fn end(&mut self, place: usize) {
        let Some(flight) = self.flights.at(place) else { return };
        let Stage::Serving { begun, work, luck } = flight.stage else { return self.retry(place) };
        let next = self.hosts[flight.model].leave(self.now.since(begun));
        if let Some(flight) = self.flights.take(place) {
            let right = luck.right < work.chance.get();
            let money = flight.cost(&work);
            let (tenant, moment) = (flight.request.tenant, self.now.on_calendar(self.setting.start));
            self.settle(&flight, money, work.thinking);
            let admitted = flight.arrived.on_calendar(self.setting.start);
            self.tally.spent(self.setting, tenant, admitted, money.as_dollars());
            self.tally.served(
                self.setting,
                &Served {
                    tenant,
                    model: flight.model,
                    arrived: flight.arrived,
                    ends: self.now,
                    waited: begun.since(flight.seated),
                    chance: work.chance,
                    right,
                    dollars: money.as_dollars(),
                    thinking: work.thinking,
                    cut: work.ended == crate::catalog::Ended::Cut,
                },
            );
            if self.policy == Policy::Stint {
                let lines = self.bank.lines(tenant, moment);
                self.learner.settle(tenant, moment, money, &lines);
                self.learn(&flight, &work, right);
            }
        }
        if let Some(next) = next {
            self.begin(next);
        }
    }

    /// Tries the next best model, if its worst case fits beside what was spent; else the request has failed.
    fn retry(&mut self, place: usize) {
        let Some(flight) = self.flights.at(place) else { return };
        let number = flight.request.number;
        while let Some(offer) = flight.fallbacks.pop() {
            if self.bank.extend(number, Money::ZERO, offer.worst, &offer.model).is_ok() {
                let found = self.hosts.iter().position(|host| host.model.name == offer.model);
                flight.model = found.unwrap_or(flight.model);
                flight.tariff = self.hosts[flight.model].model.tariff.unwrap_or(Tariff::FREE);
                flight.offer = offer;
                self.tally.retried += 1;
                return self.seat(place);
            }
        }
        if let Some(flight) = self.flights.take(place) {
            self.settle(&flight, Money::ZERO, Tokens::ZERO);
            self.tally.failed += 1;
        }
    }

    fn settle(&mut self, flight: &Flight, money: Money, thinking: Tokens) {
        let (id, at) =
            ((flight.request.number, flight.request.tenant), self.now.on_calendar(self.setting.start));
        let within = self.bank.settle(id, money, thinking, at);
        self.tally.faults.overruns += u64::from(!within);
    }

    /// An event begins, or ends: its number, twice.
    fn turn(&mut self, number: usize) {
        for place in self.setting.turn(&mut self.hosts, number) {
            self.fail(place);
        }
    }

    fn found(&self, name: &Arc<str>) -> (usize, Tariff) {
        let number = self.hosts.iter().position(|host| host.model.name == *name).unwrap_or(0);
        (number, self.hosts[number].model.tariff.unwrap_or(Tariff::FREE))
    }

    /// Looks at every limit of every tenant.
    fn audit(&mut self) {
        let now = self.now.on_calendar(self.setting.start);
        for tenant in 0..self.setting.tenants.len() {
            let beyond = |line: &crate::ledger::Line| {
                line.spent.size().saturating_add(line.reserved.size()) > line.max.size()
            };
            let count = self.bank.lines(tenant, now).iter().filter(|line| beyond(line)).count();
            self.tally.faults.beyond += u64::try_from(count).unwrap_or(u64::MAX);
        }
    }

    fn close(mut self) -> Tally {
        let accounted = self.tally.served + self.tally.failed + self.tally.refused.values().sum::<u64>();
        self.tally.faults.lost = self.tally.arrived.abs_diff(accounted);
        self.tally.faults.lost += u64::from(self.flights.len() > 0 || !self.hosts.iter().all(Host::is_idle));
        self.tally.faults.left = self.bank.reserved().money.0;
        self.tally
    }
}

/// The beginnings and ends of a scenario's events.
pub(super) fn agenda(setting: &Setting) -> Agenda {
    let mut agenda = Agenda::default();
    for (number, turn) in setting.scenario.events.iter().enumerate() {
        agenda.enter(Moment::share(setting.length, turn.at), Happening::Turn(2 * number));
        if let Some(lasts) = turn.lasts {
            agenda.enter(Moment::share(setting.length, turn.at + lasts), Happening::Turn(2 * number + 1));
        }
    }
    agenda
}
