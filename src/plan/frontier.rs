//! Which offer to take: preference sets what success is worth against what it costs.

use crate::catalog::{Offer, Route};
use crate::units::Preference;

use super::why::Reason;

/// How many models are kept as fallbacks.
const FALLBACKS_MAX: usize = 3;

/// An offer, with what it is ranked by.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub offer: Offer,
    /// λ·cost + ν·time, in dollars.
    pub burden: f64,
    /// What limited its thinking.
    pub reason: Reason,
}

/// The best offer, then the best of each model not named before, as fallbacks.
pub(super) fn ranked<'a>(
    candidates: &'a [Candidate],
    route: &Route,
    preference: Option<Preference>,
) -> Vec<&'a Candidate> {
    let mut left: Vec<&Candidate> = candidates.iter().collect();
    let mut ranked: Vec<&Candidate> = Vec::new();
    while let Some(best) = choose(&left, route, preference) {
        left.retain(|candidate| candidate.offer.model != best.offer.model);
        ranked.push(best);
        if ranked.len() > FALLBACKS_MAX {
            break;
        }
    }
    ranked
}

/// The best of some candidates.
///
/// With p the preference, an offer is worth `w(p)·success − burden`, where w(p) = worth·p/(1 − p): nothing at
/// 0, the route's worth at ½, and beyond all bounds at 1. The maximum is found by walking:
///
/// 1. The *front*: by rising burden, only what succeeds strictly more often than all before it.
/// 2. The *start*: the first on the front that reaches the route's floor, or its last. It is the choice at 0,
///    and what lies before it is left out, so that no preference yields less. Where no preference is stated
///    the floor does not count, and the value at ½ alone decides.
/// 3. The *path*: the lower convex hull of the front from the start on. Each step along it buys success at a
///    price, its slope; the walk goes on while w(p) covers the slope. At 1 it is the front's last offer.
///
/// On the hull slopes rise, so the walk ends at the maximum. *A higher preference never yields a lower
/// success*: front, start and path do not depend on p, and the walk ends before the first slope above w(p),
/// which for a larger w(p) is no earlier; success rises along the path, from the start to the front's last.
/// The argument uses no arithmetic on the chosen values, so it holds for floats as it does for reals.
fn choose<'a>(
    candidates: &[&'a Candidate],
    route: &Route,
    preference: Option<Preference>,
) -> Option<&'a Candidate> {
    let front = front(candidates);
    let p = preference.unwrap_or_default().get();
    if p >= 1.0 {
        return front.last().copied();
    }
    let path = hull(front.get(start(&front, route, preference)..)?);
    let worth = route.worth.as_dollars() * p / (1.0 - p);
    let steps = path.windows(2).take_while(|pair| p > 0.0 && slope(pair[0], pair[1]) <= worth).count();
    path.get(steps).copied()
}

fn start(front: &[&Candidate], route: &Route, preference: Option<Preference>) -> usize {
    let reaches = |candidate: &&Candidate| candidate.offer.success >= route.success_floor;
    match preference {
        Some(_) => front.iter().position(reaches).unwrap_or(front.len().saturating_sub(1)),
        None => 0,
    }
}

fn front<'a>(candidates: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let mut sorted = candidates.to_vec();
    // A stable sort: of equals the one with the earlier model and the smaller budget stays first.
    sorted.sort_by(|a, b| {
        let by_success = b.offer.success.get().total_cmp(&a.offer.success.get());
        a.burden.total_cmp(&b.burden).then(by_success)
    });
    let mut front: Vec<&Candidate> = Vec::new();
    for candidate in sorted {
        if front.last().is_none_or(|last| candidate.offer.success > last.offer.success) {
            front.push(candidate);
        }
    }
    front
}

/// The lower convex hull (Andrew's monotone chain), from the first to the last.
fn hull<'a>(front: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let mut hull: Vec<&Candidate> = Vec::new();
    for &candidate in front {
        while let [.., before, last] = hull.as_slice() {
            if slope(before, last) < slope(last, candidate) {
                break;
            }
            hull.pop();
        }
        hull.push(candidate);
    }
    hull
}

/// Dollars for a whole unit of success.
fn slope(from: &Candidate, to: &Candidate) -> f64 {
    (to.burden - from.burden) / (to.offer.success.get() - from.offer.success.get())
}
