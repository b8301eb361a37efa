//! Which candidate to take: preference sets what success is worth against what it costs.

use super::candidate_pool::worth;
use super::eligible_model::PricedCandidate;
use super::request::PlanRequest;

/// So much more success is not paid for with a dearer model. No prediction tells so little apart: where .997 is foretold of a trivial
/// request, a level that is off by half a logit makes .995 or .998 of it. A hair more than .002, since chances are rounded.
const SUCCESS_TIE: f64 = 0.002_000_001;

/// So much more success is not paid for with a dearer model, where a right answer is worth so many dollars. It is .002 dollars' worth at
/// most: at ten dollars an answer even half of a thousandth is worth half a cent.
pub fn success_tie(worth: f64) -> f64 {
    SUCCESS_TIE / worth.max(1.0)
}

/// What is aimed at.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanObjective {
    /// What a right answer is worth at this preference, in dollars; beyond all bounds for the best regardless.
    pub worth: f64,
    /// The success that the cheapest must reach, if a preference or a thought is stated; else value alone decides.
    pub floor: Option<f64>,
}

/// What was taken, and between which chances of success nothing else would be.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrontierChoice {
    pub at: usize,
    pub range: SuccessRange,
}

/// A range of success.
#[derive(Debug, Clone, Copy)]
pub(super) struct SuccessRange {
    low: f64,
    high: f64,
}

/// Room to choose in, used again for each choice.
#[derive(Debug, Default)]
pub(super) struct FrontierScratch {
    path: Vec<usize>,
}

impl PlanObjective {
    /// What counts where the choice must reach a certain success, or need not.
    pub(super) fn of(request: &PlanRequest, floor: Option<f64>) -> PlanObjective {
        let p = request.budget.preference.unwrap_or_default().get();
        let worth = if p >= 1.0 { f64::INFINITY } else { worth(request) * p / (1.0 - p) };
        PlanObjective { worth, floor }
    }

    /// Value alone.
    pub(super) fn of_value(request: &PlanRequest) -> PlanObjective {
        PlanObjective { worth: worth(request), floor: None }
    }

    /// The best of some candidates.
    pub(super) fn best_of<'c>(
        &self,
        all: impl IntoIterator<Item = &'c PricedCandidate, IntoIter: Clone>,
    ) -> Option<&'c PricedCandidate> {
        let mut all = all.into_iter();
        let best = self.best(all.clone().map(|one| (one.success, one.weighted_cost)))?;
        all.nth(best)
    }

    /// The best of some chances of success, each with its weighted cost.
    pub(super) fn best(&self, all: impl Iterator<Item = (f64, f64)>) -> Option<usize> {
        let rank = |(success, weighted_cost): (f64, f64)| match self.floor {
            Some(floor) if success < floor => (false, success),
            _ if self.worth.is_infinite() => (true, success),
            _ => (true, self.worth * success - weighted_cost),
        };
        let mut best: Option<(usize, (bool, f64))> = None;
        for (at, one) in all.map(rank).enumerate() {
            if best.is_none_or(|(_, most)| one > most) {
                best = Some((at, one));
            }
        }
        best.map(|(at, _)| at)
    }

    /// The best of several models, each by its chance of success and its weighted cost. Where value alone decides it is the
    /// cheapest of those that succeed about as often as the one of the best value: where nobody can say which is better, the better
    /// one is not paid for.
    pub(super) fn best_model(&self, all: impl Iterator<Item = (f64, f64)> + Clone) -> Option<usize> {
        let best = self.best(all.clone())?;
        if self.floor.is_some() || self.worth.is_infinite() {
            return Some(best);
        }
        let (success, dearest) = all.clone().nth(best)?;
        let least = success - success_tie(self.worth);
        let tied = all.enumerate().filter(|(_, (success, cost))| *success >= least && *cost < dearest);
        let cheapest = tied.min_by(|(_, (_, one)), (_, (_, other))| one.total_cmp(other));
        Some(cheapest.map_or(best, |(at, _)| at))
    }
}

impl SuccessRange {
    /// All there is.
    pub(super) const WHOLE: SuccessRange = SuccessRange { low: f64::NEG_INFINITY, high: f64::INFINITY };

    pub(super) fn contains(&self, success: f64) -> bool {
        self.low <= success && success <= self.high
    }

    fn intersect(self, other: SuccessRange) -> SuccessRange {
        SuccessRange { low: self.low.max(other.low), high: self.high.min(other.high) }
    }
}

impl FrontierScratch {
    /// The best of some candidates, in the order `order` (see [`sort_by_cost`]).
    ///
    /// With p the preference, a candidate is worth `w(p)·success − weighted cost`, where w(p) = worth·p/(1 − p): nothing at
    /// 0, the route's worth at ½, and beyond all bounds at 1. Where none is stated, that alone decides. Where one is,
    /// the maximum is found by walking:
    ///
    /// 1. The *front*: by rising weighted cost, only what succeeds strictly more often than all before it.
    /// 2. The *start*: the first on the front that reaches the floor, or its last. It is the choice at 0, and what lies
    ///    before it is left out, so that no preference yields less. The floor is the route's, or what succeeds at the best value
    ///    where that is less: so 0 is no dearer than where none is stated, and ½ is the same.
    /// 3. The *path*: the lower convex hull of the front from the start on. Each step along it buys success at a
    ///    price, its slope; the walk goes on while w(p) covers the slope. At 1 it is the front's last candidate.
    ///
    /// On the hull slopes rise, so the walk ends at the maximum. *A higher preference never yields a lower
    /// success*: front, start and path do not depend on p, and the walk ends before the first slope above w(p),
    /// which for a larger w(p) is no earlier; success rises along the path, from the start to the front's last.
    /// The argument uses no arithmetic on the chosen values, so it holds for floats as it does for reals. It goes on
    /// where the choice is refined among more candidates of its own *cell*, the success between the middles to the
    /// next on the path: of equal choices these are equal, and of different ones the cells do not overlap.
    pub(super) fn choose(
        &mut self,
        all: &[PricedCandidate],
        order: &[usize],
        objective: &PlanObjective,
        range: SuccessRange,
    ) -> Option<FrontierChoice> {
        let Some(floor) = objective.floor else {
            let best = objective.best(order.iter().map(|&at| (all[at].success, all[at].weighted_cost)))?;
            return Some(FrontierChoice { at: order[best], range });
        };
        self.build_hull(all, order, floor);
        let path = &self.path;
        let slopes = path.windows(2).map(|pair| slope(&all[pair[0]], &all[pair[1]]));
        let steps = slopes.take_while(|slope| objective.worth > 0.0 && *slope <= objective.worth).count();
        let at = *path.get(steps)?;
        let middle = |other: Option<&usize>, none| {
            other.map_or(none, |&other| f64::midpoint(all[other].success, all[at].success))
        };
        let low = middle(steps.checked_sub(1).and_then(|before| path.get(before)), f64::NEG_INFINITY);
        let high = middle(path.get(steps + 1), f64::INFINITY);
        Some(FrontierChoice { at, range: SuccessRange { low, high }.intersect(range) })
    }

    /// Leaves the path from the start to the best.
    fn build_hull(&mut self, all: &[PricedCandidate], order: &[usize], floor: f64) {
        let path = &mut self.path;
        path.clear();
        for &at in order {
            if path.last().is_none_or(|&last| all[at].success > all[last].success) {
                path.push(at);
            }
        }
        let reaches = path.iter().position(|&at| all[at].success >= floor);
        path.drain(..reaches.unwrap_or(path.len().saturating_sub(1)));
        // The lower convex hull (Andrew's monotone chain), within the same room: what is kept moves to the front.
        let mut kept = 0;
        for next in 0..path.len() {
            while kept > 1
                && slope(&all[path[kept - 2]], &all[path[kept - 1]])
                    >= slope(&all[path[kept - 1]], &all[path[next]])
            {
                kept -= 1;
            }
            path[kept] = path[next];
            kept += 1;
        }
        path.truncate(kept);
    }
}

/// By rising weighted cost; of equals what succeeds most, then what comes first: the earlier model and the smaller budget.
pub(super) fn sort_by_cost(all: &[PricedCandidate], order: &mut [usize]) {
    order.sort_unstable_by(|&a, &b| {
        let by_cost = all[a].weighted_cost.total_cmp(&all[b].weighted_cost);
        by_cost.then_with(|| all[b].success.total_cmp(&all[a].success)).then(a.cmp(&b))
    });
}

/// Dollars for a whole unit of success.
fn slope(from: &PricedCandidate, to: &PricedCandidate) -> f64 {
    (to.weighted_cost - from.weighted_cost) / (to.success - from.success)
}
