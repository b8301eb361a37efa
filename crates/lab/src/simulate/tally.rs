//! What is counted of one policy's run, in all and in slices of its time.

use std::collections::BTreeMap;

use stint_types::units::{Chance, Timestamp, Tokens, Zone};

use super::setup::SimulationSetup;
use super::virtual_time::VirtualTime;

/// Into how many slices the run's time is cut.
pub(super) const SLICES: usize = 120;

/// One slice of the time, by when requests arrived.
#[derive(Debug, Clone, Default)]
pub(super) struct TimeSlice {
    pub arrived: u64,
    pub served: u64,
    /// The sum of what answers were worth, less what they cost in money and time.
    pub value: f64,
    /// The sum of the seconds that attempts waited for a place.
    pub waited: f64,
    pub by_model: Vec<u64>,
    /// What every tenant spent, by when it was settled.
    pub spent: Vec<f64>,
}

/// What one tenant spent in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct WindowSpend {
    pub tenant: usize,
    pub begins: Timestamp,
    pub ends: Option<Timestamp>,
    /// Dollars spent on what was admitted in it.
    pub spent: f64,
    /// Dollars that the part of the window allows that the run covers.
    pub pace: f64,
}

impl WindowSpend {
    /// How far it is from its pace, as a share of that: above 0 for too much.
    pub(super) fn deviation(&self) -> f64 {
        self.spent / self.pace.max(1e-12) - 1.0
    }
}

/// What was promised and not kept: each of these is a mistake of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct InvariantViolations {
    /// Spent and reserved were beyond a limit.
    pub beyond: u64,
    /// A settlement took more than was set aside.
    pub overruns: u64,
    /// Something happened before what happened last.
    pub backwards: u64,
    /// Requests of which nobody knows what became.
    pub lost: u64,
    /// Nano-dollars that stayed set aside.
    pub left: u64,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedAnswer {
    pub tenant: usize,
    pub model: usize,
    pub arrived: VirtualTime,
    pub ends: VirtualTime,
    pub waited: f64,
    pub chance: Chance,
    pub right: bool,
    pub dollars: f64,
    pub thinking: Tokens,
    pub cut: bool,
}

/// All that is counted.
#[derive(Debug, Clone, Default)]
pub(super) struct PolicyTally {
    pub arrived: u64,
    pub served: u64,
    pub failed: u64,
    pub retried: u64,
    pub refused: BTreeMap<String, u64>,
    pub right: u64,
    pub cut: u64,
    pub chance: f64,
    pub dollars: f64,
    pub seconds: f64,
    pub waited: f64,
    pub thinking: u64,
    pub value: f64,
    pub by_model: Vec<u64>,
    pub slices: Vec<TimeSlice>,
    pub window_spends: Vec<WindowSpend>,
    pub faults: InvariantViolations,
}

impl PolicyTally {
    /// Nothing yet.
    pub(super) fn new(setup: &SimulationSetup) -> PolicyTally {
        let (models, tenants) = (setup.models.len(), setup.tenants.len());
        let slice =
            TimeSlice { by_model: vec![0; models], spent: vec![0.0; tenants], ..TimeSlice::default() };
        PolicyTally { by_model: vec![0; models], slices: vec![slice; SLICES], ..PolicyTally::default() }
    }

    /// A request has arrived.
    pub(super) fn arrived(&mut self, setup: &SimulationSetup, at: VirtualTime) {
        self.arrived += 1;
        self.slice(setup, at).arrived += 1;
    }

    /// One was refused; the word says why.
    pub(super) fn refused(&mut self, word: &str) {
        match self.refused.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                self.refused.insert(word.to_owned(), 1);
            }
        }
    }

    /// One was answered.
    pub(super) fn served(&mut self, setup: &SimulationSetup, served: &SimulatedAnswer) {
        let seconds = served.ends.since(served.arrived);
        let (worth, second) = (setup.route.worth.as_dollars(), setup.route.cost_per_second.as_dollars());
        let value = worth * served.chance.get() - served.dollars - second * seconds;
        self.served += 1;
        self.right += u64::from(served.right);
        self.cut += u64::from(served.cut);
        self.chance += served.chance.get();
        self.dollars += served.dollars;
        self.seconds += seconds;
        self.waited += served.waited;
        self.thinking += served.thinking.0;
        self.value += value;
        self.by_model[served.model] += 1;
        let slice = self.slice(setup, served.arrived);
        slice.served += 1;
        slice.value += value;
        slice.waited += served.waited;
        slice.by_model[served.model] += 1;
        self.slice(setup, served.ends).spent[served.tenant] += served.dollars;
    }

    /// Money was spent by a tenant on a request that was admitted then.
    pub(super) fn spent(
        &mut self,
        setup: &SimulationSetup,
        tenant: usize,
        admitted: Timestamp,
        dollars: f64,
    ) {
        let Some(budget) = setup.budgets[tenant] else { return };
        let holds = |spend: &&mut WindowSpend| {
            spend.tenant == tenant && spend.begins <= admitted && spend.ends.is_none_or(|end| admitted < end)
        };
        if let Some(spend) = self.window_spends.iter_mut().rev().find(holds) {
            spend.spent += dollars;
            return;
        }
        let (begins, ends) = match budget.window.bounds(admitted, &Zone::UTC) {
            Some((begins, ends)) => (begins, Some(ends)),
            None => (Timestamp(i64::MIN), None),
        };
        let pace = budget.dollars * setup.window_coverage(begins, ends);
        self.window_spends.push(WindowSpend { tenant, begins, ends, spent: dollars, pace });
    }

    fn slice(&mut self, setup: &SimulationSetup, at: VirtualTime) -> &mut TimeSlice {
        let place = Tokens::round((setup.elapsed_share(at) * Tokens(SLICES as u64).as_f64()).floor()).0;
        let place = usize::try_from(place).unwrap_or(SLICES).min(SLICES - 1);
        &mut self.slices[place]
    }
}
