//! The curve of success over the share of a thought, by the answers after cut thoughts.

use stint_types::catalog::ModelDemand;
use stint_types::units::Tokens;

/// An answer after a cut thought.
pub(super) struct CutAnswer {
    /// What else is predicted of it.
    pub(super) demand: ModelDemand,
    /// How far it thought.
    pub(super) thought: Tokens,
    pub(super) right: bool,
}

/// The bend and the saturation under which answers after cut thoughts are likeliest. A bend below 1 would let a single token
/// gain much, so what rises early is left to the saturation; and that is 1 unless another explains clearly more.
pub(super) fn likeliest_curve(cuts: &mut [CutAnswer]) -> (f64, f64) {
    /// So much likelier a second number must make what was seen (Akaike's criterion).
    const WORTH_A_NUMBER: f64 = 1.0;
    const SATURATIONS: [f64; 7] = [0.5, 0.7, 1.4, 2.0, 2.8, 4.0, 6.0];
    let mut best = (1.0, 1.0, f64::NEG_INFINITY);
    let saturated = SATURATIONS.map(|saturation| (saturation, WORTH_A_NUMBER));
    for (saturation, penalty) in [(1.0, 0.0)].into_iter().chain(saturated) {
        for bend in (4..=48).map(|quarters| f64::from(quarters) / 4.0) {
            let each = cuts.iter_mut().map(|cut| {
                (cut.demand.bend, cut.demand.saturation) = (bend, saturation);
                log_likelihood(cut)
            });
            let likelihood = each.sum::<f64>() - penalty;
            if likelihood > best.2 {
                best = (bend, saturation, likelihood);
            }
        }
    }
    (best.0, best.1)
}

/// ln P of how the answer turned out.
fn log_likelihood(cut: &CutAnswer) -> f64 {
    let right = cut.demand.success_if_cut(cut.thought.as_f64()).clamp(1e-3, 1.0 - 1e-3);
    if cut.right { right.ln() } else { (1.0 - right).ln() }
}
