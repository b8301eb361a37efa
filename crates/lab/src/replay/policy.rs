//! What another policy would have chosen among what was weighed.

use std::sync::Arc;

use stint_decide::plan::success_tie;
use stint_types::catalog::{Candidate, Decision, Route};
use stint_types::units::{Chance, Preference};

/// A way of choosing among the best offers of the models.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplayPolicy {
    /// As a route would choose, by what it says of worth, time, models and exploration.
    Route(Box<Route>),
    /// Always this model, or the best of the others where it could not serve.
    Model(Arc<str>),
    /// The least expected cost.
    Cheapest,
    /// The highest predicted success.
    Best,
    /// All alike.
    Even,
}

impl ReplayPolicy {
    /// The chance with which it would have chosen each candidate; they sum up to 1 where there is one.
    pub fn shares(&self, decision: &Decision) -> Vec<f64> {
        let candidates = &decision.candidates;
        match self {
            ReplayPolicy::Even => even(candidates.len(), |_| true),
            ReplayPolicy::Cheapest => {
                all_on(candidates, best_by(candidates, |candidate| -candidate.cost.as_dollars()))
            }
            ReplayPolicy::Best => {
                all_on(candidates, best_by(candidates, |candidate| candidate.success.get()))
            }
            ReplayPolicy::Model(name) => {
                let named = candidates.iter().position(|candidate| candidate.model == *name);
                all_on(candidates, named.or_else(|| best_by(candidates, |candidate| candidate.value)))
            }
            ReplayPolicy::Route(route) => of_route(route, decision),
        }
    }
}

/// The floor of exploration is spread evenly; the rest goes to the best by what was believed when it was decided. (A draw
/// from the beliefs spreads more than that: the share of it that the logged policy had is in its propensities alone.)
fn of_route(route: &Route, decision: &Decision) -> Vec<f64> {
    let candidates = &decision.candidates;
    let allowed = |candidate: &Candidate| route.models.is_empty() || route.models.contains(&candidate.model);
    let preference = decision.stakes.preference;
    let logged = decision.stakes.success_min.map(Chance::get);
    let floor = match preference {
        Some(_) => route.success_floor.get().min(logged.unwrap_or(1.0)),
        None => logged.unwrap_or(0.0),
    };
    let floor = reachable(floor, candidates.iter().filter(|one| allowed(one)));
    let worth = |candidate: &Candidate| {
        if allowed(candidate) && candidate.success.get() >= floor {
            value(route, preference, decision.stakes.shadow_price, candidate)
        } else {
            f64::NEG_INFINITY
        }
    };
    let best = best_by(candidates, worth).map(|best| match (preference, logged) {
        (None, None) => {
            let tie = success_tie(route.worth.as_dollars());
            cheapest_tied(candidates, best, tie, allowed, |candidate| {
                burden(route, decision.stakes.shadow_price, candidate)
            })
        }
        _ => best,
    });
    let spread = route.explore.get();
    let mut shares = even(candidates.len(), |at| candidates.get(at).is_some_and(allowed));
    shares.iter_mut().for_each(|share| *share *= spread);
    if let Some(share) = best.and_then(|best| shares.get_mut(best)) {
        *share += 1.0 - spread;
    }
    shares
}

/// A success that a choice must not fall below, or the highest there is.
fn reachable<'a>(floor: f64, candidates: impl Iterator<Item = &'a Candidate>) -> f64 {
    let highest = candidates.map(|candidate| candidate.success.get()).fold(0.0, f64::max);
    highest.min(floor)
}

/// `w(p)·success − λ·cost − ν·time`, as `plan` has it.
fn value(route: &Route, preference: Option<Preference>, price: f64, candidate: &Candidate) -> f64 {
    let p = preference.unwrap_or_default().get();
    if p >= 1.0 {
        return candidate.success.get();
    }
    route.worth.as_dollars() * p / (1.0 - p) * candidate.success.get() - burden(route, price, candidate)
}

/// λ·cost + ν·time, in dollars.
fn burden(route: &Route, price: f64, candidate: &Candidate) -> f64 {
    price * candidate.cost.as_dollars() + route.cost_per_second.as_dollars() * candidate.seconds
}

/// The cheapest of those that succeed about as often as the best, which `plan` takes where value alone decides.
fn cheapest_tied(
    candidates: &[Candidate],
    best: usize,
    tie: f64,
    counts: impl Fn(&Candidate) -> bool,
    burden: impl Fn(&Candidate) -> f64,
) -> usize {
    let (least, most) = (candidates[best].success.get() - tie, burden(&candidates[best]));
    let is_cheaper = |one: &Candidate| counts(one) && one.success.get() >= least && burden(one) < most;
    let cheaper = candidates.iter().enumerate().filter(|(_, one)| is_cheaper(one));
    cheaper.min_by(|(_, one), (_, other)| burden(one).total_cmp(&burden(other))).map_or(best, |(at, _)| at)
}

fn even(count: usize, counts: impl Fn(usize) -> bool) -> Vec<f64> {
    let among = (0..count).filter(|&at| counts(at)).count();
    #[expect(clippy::cast_precision_loss, reason = "a handful of models")]
    let share = 1.0 / among.max(1) as f64;
    (0..count).map(|at| if counts(at) { share } else { 0.0 }).collect()
}

fn all_on(candidates: &[Candidate], chosen: Option<usize>) -> Vec<f64> {
    (0..candidates.len()).map(|at| if Some(at) == chosen { 1.0 } else { 0.0 }).collect()
}

/// The first of the highest.
fn best_by(candidates: &[Candidate], by: impl Fn(&Candidate) -> f64) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (at, candidate) in candidates.iter().enumerate() {
        let value = by(candidate);
        if best.is_none_or(|(_, so_far)| value > so_far) {
            best = Some((at, value));
        }
    }
    best.map(|(at, _)| at)
}
