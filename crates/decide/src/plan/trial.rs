//! Few trials of models that look worse than the best, so that what is logged tells how good they are.
//!
//! Each of the others has the same chance, unless it costs more: then its chance is so small that all trials together are
//! expected to cost no more than their share.

use stint_types::units::SeededRng;

use super::explore::{BanditArm, DrawnArm, draw_by_propensity};
use super::frontier::PlanObjective;
use super::request::TrialShare;

/// Finds the chance of each arm and draws one.
pub(super) fn sample_trial(
    share: TrialShare,
    arms: &mut [BanditArm],
    objective: &PlanObjective,
    rng: &mut SeededRng,
) -> DrawnArm {
    let values = arms.iter().map(|arm| (arm.best.success, arm.best.weighted_cost));
    let Some(best) = objective.best_model(values).filter(|_| arms.len() > 1) else { return DrawnArm::None };
    let (bounds, usual) = (share.bounds, arms[best].best.dollars);
    let others = f64::from(u32::try_from(arms.len() - 1).unwrap_or(u32::MAX));
    // The best is taken so seldom that what it spends then shrinks no more than that.
    let spend = bounds.spend.get() * (1.0 - bounds.requests.get()) * usual / others;
    let mut left = 1.0;
    for (_, arm) in arms.iter_mut().enumerate().filter(|(place, _)| *place != best) {
        let dollars = arm.best.dollars;
        let affordable = if dollars > 0.0 { spend / dollars } else { 1.0 };
        let chance =
            if dollars <= share.dollars_max { affordable.min(bounds.requests.get() / others) } else { 0.0 };
        arm.propensity = chance;
        left -= chance;
    }
    arms[best].propensity = left;
    match draw_by_propensity(arms, rng) {
        place if place == best => DrawnArm::Best,
        place => DrawnArm::One(place),
    }
}
