//! What a right answer is worth to a route that does not say it: the more, the more work its question is.
//!
//! One sum for all questions would have a problem of an olympiad answered without a thought, since the thought alone costs more than the
//! answer to a greeting is worth. Who asks for much work is ready to pay its usual price, as with a provider itself, whose models think
//! where nobody says anything.

use std::sync::Arc;

use stint_types::catalog::{Demand, Model, Route};
use stint_types::units::Tokens;

/// So many times its usual price a right answer is worth at least. A judgement: at ten times the price a thought is made that raises the
/// chance of a right answer by a tenth.
const TIMES: f64 = 10.0;
/// No question is worth so many times the usual sum.
const FACTOR_MAX: f64 = 20.0;

/// How many times the route's worth a right answer to this question is worth. 1 where the operator wrote one, or steers by success.
pub(super) fn factor(route: &Route, models: &[&Arc<Model>], demand: &Demand) -> f64 {
    if !route.worth_by_task || route.success_target.is_some() {
        return 1.0;
    }
    let prices = models.iter().filter_map(|model| usual_price(model, demand)).collect();
    factor_of(prices, route.worth.as_dollars())
}

/// The same by what the question usually costs on each model that may serve it, of which the middle one counts.
fn factor_of(mut prices: Vec<f64>, worth: f64) -> f64 {
    if prices.is_empty() {
        return 1.0;
    }
    let middle = prices.len() / 2;
    let (_, price, _) = prices.select_nth_unstable_by(middle, f64::total_cmp);
    (TIMES * *price / worth).clamp(1.0, FACTOR_MAX)
}

/// What a model's whole thought and answer usually cost, in dollars. What it reads is the same at any budget.
fn usual_price(model: &Model, demand: &Demand) -> Option<f64> {
    let (tariff, demand) = (model.planning_tariff()?, demand.models.get(&model.name)?);
    let thought = if model.thinking_max > Tokens::ZERO { demand.thinking.mean() } else { 0.0 };
    Some(tariff.rates.list.output.dollars_per_token() * (thought + demand.solution.as_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(prices: &[f64], expected: f64) {
        let found = factor_of(prices.to_vec(), 0.3);
        assert!((found - expected).abs() < 1e-9, "{prices:?}: {found}");
    }

    #[test]
    fn a_question_that_takes_much_work_is_worth_more() {
        check(&[], 1.0);
        check(&[0.0], 1.0);
        check(&[0.01], 1.0);
        check(&[0.15], 5.0);
        check(&[0.15, 0.001, 90.0], 5.0);
        check(&[90.0], FACTOR_MAX);
    }
}
