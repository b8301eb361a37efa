//! Trying what is uncertain: one draw of what is believed about each model, with a floor for all of them.
//!
//! Thompson's rule takes the model that is best under one draw from the beliefs. The chance that it takes each is found
//! first, as its share of many draws, and the model is then drawn by these chances: that is the same rule, and the chance
//! that is recorded is the one that was used.

use crate::units::SeededRng;

use super::candidate_pool::CandidatePool;
use super::eligible_model::PricedCandidate;
use super::frontier::PlanObjective;
use super::request::PlanRequest;

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
    /// Which of the stands, where one is drawn.
    pub drawn: Option<usize>,
}

/// Each model's best candidate, in the order of the models, none drawn yet.
pub(super) fn arms(board: &CandidatePool, aim: &PlanObjective) -> Vec<BanditArm> {
    let mut stands: Vec<BanditArm> = Vec::with_capacity(board.models.len());
    let mut places = vec![usize::MAX; board.models.len()];
    for candidate in &board.candidates {
        let place = &mut places[candidate.model_index];
        match stands.get_mut(*place) {
            None => {
                *place = stands.len();
                stands.push(BanditArm { best: *candidate, propensity: 0.0 });
            }
            Some(stand) => {
                let pair = [&stand.best, candidate].map(|one| (one.success, one.weighted_cost));
                if aim.best(pair.into_iter()) == Some(1) {
                    stand.best = *candidate;
                }
            }
        }
    }
    stands
}

/// What is drawn for a request, if its route explores: whether it is one of those whose thoughts are left uncapped, and
/// the model.
pub(super) fn draw_arm(
    ask: &PlanRequest,
    board: &CandidatePool,
    stands: &mut [BanditArm],
    aim: &PlanObjective,
) -> ArmDraw {
    let Some(explore) = ask.explore else { return ArmDraw { uncapped: false, drawn: None } };
    let (mut dice, floor) = (SeededRng::new(explore.seed), explore.floor.get());
    let uncapped = dice.next_f64() < ask.route.uncapped.get();
    let is_drawn = floor > 0.0 && stands.len() > 1;
    ArmDraw { uncapped, drawn: is_drawn.then(|| sample_arm(board, stands, aim, floor, &mut dice)) }
}

/// Finds the chance of each and draws one.
fn sample_arm(
    board: &CandidatePool,
    stands: &mut [BanditArm],
    aim: &PlanObjective,
    floor: f64,
    dice: &mut SeededRng,
) -> usize {
    let each = f64::from(DRAWS).recip() * (1.0 - floor);
    let even = floor / f64::from(u32::try_from(stands.len().max(1)).unwrap_or(u32::MAX));
    stands.iter_mut().for_each(|stand| stand.propensity = even);
    for _ in 0..DRAWS {
        let drawn = stands.iter().map(|BanditArm { best, .. }| {
            let spread = board.models[best.model_index].terms.demand.spread;
            let off = if spread > 0.0 { spread * normal(dice) } else { 0.0 };
            ((best.success + off).clamp(0.0, 1.0), best.weighted_cost)
        });
        if let Some(won) = aim.best(drawn).and_then(|won| stands.get_mut(won)) {
            won.propensity += each;
        }
    }
    let mut left = dice.next_f64();
    let taken = stands.iter().position(|stand| {
        left -= stand.propensity;
        left < 0.0
    });
    // Rounding may leave a crumb of the whole; it goes to the likeliest.
    taken.unwrap_or_else(|| likeliest(stands))
}

fn likeliest(stands: &[BanditArm]) -> usize {
    let chances = stands.iter().enumerate();
    chances.max_by(|a, b| a.1.propensity.total_cmp(&b.1.propensity)).map_or(0, |(at, _)| at)
}

/// A number that is as good as normal for beliefs that are rough themselves: how many of 56 fair bits are set (de Moivre),
/// and eight more for a share of a step.
fn normal(dice: &mut SeededRng) -> f64 {
    let bits = dice.next_u64();
    let ones = f64::from((bits >> 8).count_ones()) - 28.0;
    (ones + f64::from((bits & 0xff) as u8) / 256.0 - 0.5) / 14.0_f64.sqrt()
}
