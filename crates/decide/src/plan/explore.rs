//! Trying what is uncertain: one draw of what is believed about each model, with a floor for all of them.
//!
//! Thompson's rule takes the model that is best under one draw from the beliefs. The chance that it takes each is found
//! first, as its share of many draws, and the model is then drawn by these chances: that is the same rule, and the chance
//! that is recorded is the one that was used.

use stint_types::units::SeededRng;

use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::frontier::PlanObjective;
use super::request::{DrawRule, PlanRequest};
use super::trial::sample_trial;

/// How many draws tell the chances.
const DRAWS: u32 = 64;

/// The best candidate of each model that has one, and the chance with which it is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct BanditArm {
    pub best: PricedCandidate,
    pub propensity: f64,
}

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArmDraw {
    pub uncapped: bool,
    pub drawn: DrawnArm,
}

/// How an arm is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrawnArm {
    /// The best is, with certainty.
    None,
    /// The best is, and another might have been.
    Best,
    /// This one is.
    One(usize),
}

/// Each model's best candidate, in the order of the models, none drawn yet.
pub(super) fn arms(pool: &CandidatePool, objective: &PlanObjective) -> Vec<BanditArm> {
    let mut arms: Vec<BanditArm> = Vec::with_capacity(pool.models.len());
    let mut places = vec![usize::MAX; pool.models.len()];
    for candidate in &pool.candidates {
        let place = &mut places[candidate.model_index];
        match arms.get_mut(*place) {
            None => {
                *place = arms.len();
                arms.push(BanditArm { best: *candidate, propensity: 0.0 });
            }
            Some(arm) => {
                let pair = [&arm.best, candidate].map(|one| (one.success, one.weighted_cost));
                if objective.best(pair.into_iter()) == Some(1) {
                    arm.best = *candidate;
                }
            }
        }
    }
    arms
}

/// What is drawn for a request, if its route explores: whether it is one of those whose thoughts are left uncapped, and
/// the model.
pub(super) fn draw_arm(
    request: &PlanRequest,
    pool: &CandidatePool,
    arms: &mut [BanditArm],
    objective: &PlanObjective,
) -> ArmDraw {
    let Some(explore) = request.explore else { return ArmDraw { uncapped: false, drawn: DrawnArm::None } };
    let mut rng = SeededRng::new(explore.seed);
    let uncapped = rng.next_f64() < request.route.uncapped.get();
    let drawn = match explore.rule {
        DrawRule::Beliefs(floor) if floor.get() > 0.0 && arms.len() > 1 => {
            DrawnArm::One(sample_arm(pool, arms, objective, floor.get(), &mut rng))
        }
        DrawRule::Trials(share) => sample_trial(share, arms, objective, &mut rng),
        DrawRule::Beliefs(_) => DrawnArm::None,
    };
    ArmDraw { uncapped, drawn }
}

/// Finds the chance of each and draws one.
fn sample_arm(
    pool: &CandidatePool,
    arms: &mut [BanditArm],
    objective: &PlanObjective,
    floor: f64,
    rng: &mut SeededRng,
) -> usize {
    let each = f64::from(DRAWS).recip() * (1.0 - floor);
    let even = floor / f64::from(u32::try_from(arms.len().max(1)).unwrap_or(u32::MAX));
    arms.iter_mut().for_each(|arm| arm.propensity = even);
    for _ in 0..DRAWS {
        let drawn = arms.iter().map(|BanditArm { best, .. }| {
            let spread = pool.models[best.model_index].terms.demand.spread;
            let off = if spread > 0.0 { spread * normal(rng) } else { 0.0 };
            ((best.success + off).clamp(0.0, 1.0), best.weighted_cost)
        });
        if let Some(won) = objective.best(drawn).and_then(|won| arms.get_mut(won)) {
            won.propensity += each;
        }
    }
    draw_by_propensity(arms, rng)
}

/// Draws one by its chance.
pub(super) fn draw_by_propensity(arms: &[BanditArm], rng: &mut SeededRng) -> usize {
    let mut left = rng.next_f64();
    let taken = arms.iter().position(|arm| {
        left -= arm.propensity;
        left < 0.0
    });
    // Rounding may leave a crumb of the whole; it goes to the likeliest.
    taken.unwrap_or_else(|| likeliest(arms))
}

fn likeliest(arms: &[BanditArm]) -> usize {
    let chances = arms.iter().enumerate();
    chances.max_by(|a, b| a.1.propensity.total_cmp(&b.1.propensity)).map_or(0, |(at, _)| at)
}

/// A number that is as good as normal for beliefs that are rough themselves: how many of 56 fair bits are set (de Moivre),
/// and eight more for a share of a step.
fn normal(rng: &mut SeededRng) -> f64 {
    let bits = rng.next_u64();
    let ones = f64::from((bits >> 8).count_ones()) - 28.0;
    (ones + f64::from((bits & 0xff) as u8) / 256.0 - 0.5) / 14.0_f64.sqrt()
}
